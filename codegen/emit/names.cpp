#include "codegen/emit/names.h"
#include "ir/types/dtype.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::codegen {

namespace {

// Keywords, CUDA's names, the device library's that generated code calls, and the loop variables of the kernel classes.
constexpr const char *kReserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "class", "compl", "const", "constexpr", "const_cast", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "return", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true",
    "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq", "char16_t", "char32_t", "char8_t", "concept", "requires", "co_await", "co_return",
    "co_yield", "linux", "unix", "main", "std", "near", "far", "signbit", "errno", "NULL", "INFINITY", "NAN", "EOF",
    // CUDA
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "uint2", "uint4", "float2", "float4", "int2", "int4",
    "double2", "rsqrt", "rsqrtf",
    // device library
    "i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bf16", "f16", "f8e4m3", "f8e5m2", "load", "store",
    "convert", "roundTo", "widen", "toFloat", "fromFloat", "loadVector", "storeVector", "bitsToFloat", "floatBits",
    "math", "Sum", "Max", "Min", "Product", "warpReduce", "blockReduce", "blockReduceAll", "columnTotals",
    "storeColumnSums", "scalarTotal", "wrapIndex", "rngKey", "rngUniform", "GemmOperands", "GemmTile64", "GemmTile128",
    "gemmSimt", "gemmF64", "HeadView", "AttentionShape", "AttentionBias", "attentionForward", "attentionDelta",
    "attentionQueryGrad", "attentionKeyGrad", "gatherOrder", "gatherRowSums", "gatherPartSums", "gatherPartTotals",
    "TensorTable", "TensorChunk", "findChunk", "tensorPointer",
    // what kernels call their own
    "i", "j", "e", "c", "r", "row", "column", "rows", "columns", "count", "thread", "unit", "unitRows", "step", "tile",
    "chunk", "chunks", "partials", "element", "batch", "acc", "slice", "Epilogue", "operands", "shape", "table",
    "pointers", "sizes", "chunkPrefix", "tensors", "exists", "endRow", "q_view", "k_view", "v_view", "y_view",
    "bias_view", "dy_view", "dq_view", "dk_view", "dv_view", "put", "left", "start", "firstRow", "first", "end",
    "value", "key", "lane", "warp", "next"};

} // namespace

std::string identifierFrom(llvm::StringRef name, unsigned most) {
  llvm::SmallVector<llvm::StringRef, 8> parts, kept;
  name.split(parts, '.', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  auto isNumber = [](llvm::StringRef part) { return llvm::all_of(part, [](char c) { return llvm::isDigit(c); }); };
  for (size_t i = 0; i < parts.size(); ++i) {
    bool isLayers = i + 1 < parts.size() && isNumber(parts[i + 1]);
    if (isNumber(parts[i]) || isLayers || (!kept.empty() && ir::parseDType(parts[i]))) continue;
    kept.push_back(parts[i]);
  }
  if (kept.empty() && !parts.empty()) kept.push_back(parts.front());
  std::string text;
  for (char c : llvm::join(llvm::makeArrayRef(kept).take_back(3), "_")) {
    bool fits = llvm::isAlnum(c) || c == '_';
    if (fits && !(text.empty() && !llvm::isAlpha(c)) && !(c == '_' && llvm::StringRef(text).endswith("_")))
      text += c; // neither a leading nor a double underscore: those names are the compiler's
    else if (!fits && !text.empty() && text.back() != '_')
      text += '_';
    if (text.size() == most) break;
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text.empty() ? "v" : text;
}

std::string NamePool::make(llvm::StringRef wanted) {
  if (taken_.empty())
    for (const char *name : kReserved) taken_.insert(name);
  std::string base = identifierFrom(wanted), name = base;
  for (unsigned n = 2; !taken_.insert(name).second; ++n)
    name = base + (llvm::isDigit(base.back()) ? "_" : "") + std::to_string(n);
  return name;
}

} // namespace fusor::codegen
