#include "codegen/movement/emit_movement.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/loop/index_text.h"
#include "codegen/plan/access.h"
#include "codegen/plan/anchors.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kBlock = 256, kMostBlocks = 1 << 20;

// One copy in words of several elements, where rows allow it: all strides but the last are multiples, the last is 1.
struct Words {
  StridedCopy copy;
  int64_t width = 1; // elements
};

bool divide(Dim &dim, int64_t by) {
  if (dim.is(0)) return true;
  auto quotient = dim.divide(Dim(by));
  if (quotient) dim = *quotient;
  return quotient.has_value();
}

std::optional<StridedCopy> inWordsOf(StridedCopy copy, int64_t width) {
  if (copy.extents.empty() || !copy.inStrides.back().is(1) || !copy.outStrides.back().is(1)) return std::nullopt;
  bool fits = divide(copy.extents.back(), width) && divide(copy.inOffset, width) && divide(copy.outOffset, width);
  for (auto *strides : {&copy.inStrides, &copy.outStrides})
    for (Dim &stride : llvm::MutableArrayRef<Dim>(*strides).drop_back()) fits &= divide(stride, width);
  return fits ? std::optional(std::move(copy)) : std::nullopt;
}

Words widest(const StridedCopy &copy, unsigned elementBytes, bool isDynamic) {
  for (int64_t bytes : {16, 8, 4, 2}) {
    int64_t width = bytes / elementBytes;
    if (width < 2 || isDynamic) continue;
    if (auto words = inWordsOf(copy, width)) return {std::move(*words), width};
  }
  return {copy, 1};
}

llvm::StringRef wordType(unsigned bytes) {
  return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "u32" : bytes == 2 ? "u16" : "u8";
}

std::optional<TransposePlan> tiledTranspose(const FusionBody &body) {
  auto plan = planMovement(body.flat);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return std::nullopt;
  }
  auto transpose = planTranspose(*plan);
  return transpose && byteSize(body.block().argument(transpose->input).dtype()) <= 4 ? transpose : std::nullopt;
}

class MovementWriter {
public:
  MovementWriter(const FusionBody &body, KernelSet &set, const MovementPlan &plan)
      : body_(body), set_(set), plan_(plan) {}

  void write() {
    if (auto transpose = tiledTranspose(body_)) return tiles(*transpose);
    bool isAlone = !plan_.fill && !plan_.startsFrom;
    if (plan_.fill) fill();
    if (plan_.startsFrom) start();
    copies(isAlone ? "" : plan_.fill ? "copy" : "write");
  }

private:
  Dim elements(const StridedCopy &copy) const { return product(copy.extents); }
  Dim outputElements(unsigned output) const { return body_.block().terminator()->operand(output).type().elements(); }

  CodeWriter::Block overElements(KernelBuilder &k, const Dim &count) {
    return k.code().block("for (i64 i = (i64)blockIdx.x * {0} + threadIdx.x; i < {1}; i += (i64)gridDim.x * {0})",
                          kBlock, k.dim(count));
  }
  static Count blocks(const Dim &count) { return Count::ceilDiv(count, kBlock).atMost(kMostBlocks); }

  void tiles(const TransposePlan &t) {
    KernelBuilder k(body_, set_);
    k.use("transpose.cuh");
    unsigned bytes = byteSize(k.inputType(t.input));
    int64_t side = 128 / bytes;
    std::string from = "(const " + wordType(bytes).str() + " *)" + k.input(t.input);
    if (!t.offset.is(0)) from += " + " + k.dim(t.offset);
    k.code().noted(llvm::formatv("transposeTiles({0}, ({1} *){2}, {3}, {4}, {5}, {6});", from, wordType(bytes),
                                 k.output(t.output), k.dim(t.rows), k.dim(t.columns), k.dim(t.inRow), k.dim(t.inBatch))
                       .str(),
                   "rows, columns, between rows, between matrices");
    k.finish({Count(t.batch) * Count::ceilDiv(t.rows, side) * Count::ceilDiv(t.columns, side), kBlock,
              llvm::formatv("tiles of {0} x {0}", side).str()});
  }

  void fill() {
    KernelBuilder k(body_, set_, "fill");
    DType type = k.outputType(0);
    {
      auto loop = overElements(k, outputElements(0));
      k.code().line("store({0} + i, {1});", k.output(0), constantText(*plan_.fill, type));
    }
    k.finish({blocks(outputElements(0)), kBlock, "the value around the copy"});
  }

  void start() {
    KernelBuilder k(body_, set_, "start");
    {
      auto loop = overElements(k, outputElements(0));
      k.code().line("{0}[i] = {1}[i];", k.output(0), k.input(*plan_.startsFrom));
    }
    LaunchOf launch{blocks(outputElements(0)), kBlock, "the old content; not needed in place"};
    launch.skipWhereAliased = std::pair{*plan_.startsFrom, 0u};
    k.finish(launch);
  }

  void copies(llvm::StringRef step) {
    KernelBuilder k(body_, set_, step);
    CodeWriter &w = k.code();
    Dim most = 0;
    if (plan_.dynamicOffset) w.line("const i64 start = (i64)load({0});", k.input(*plan_.dynamicOffset));
    for (unsigned n = 0; n < plan_.copies.size(); ++n) {
      unsigned bytes = byteSize(k.inputType(plan_.copies[n].input));
      auto [copy, width] = widest(plan_.copies[n], bytes, plan_.dynamicOffset.has_value());
      std::string in = k.input(copy.input), out = k.output(plan_.outputs[n]);
      Dim count = elements(copy);
      if (n == 0 || !most.isConstant() || !count.isConstant() || count.value() > most.value())
        most = n == 0 ? count : larger(most, count);
      auto loop = overElements(k, count);
      if (plan_.dynamicOffset) {
        auto inner = rowMajorStrides(copy.extents)[plan_.dynamicDim];
        w.line("const i64 row = i / {0} % {1} + start;", k.dim(inner), k.dim(copy.extents[plan_.dynamicDim]));
        w.line("if (row < 0 || row >= {0}) continue;", k.dim(plan_.dynamicLimit));
      }
      std::string from = indexOf(k, copy.extents, copy.inStrides, copy.inOffset);
      std::string to = indexOf(k, copy.extents, copy.outStrides, copy.outOffset);
      if (plan_.dynamicOffset) to += " + start * " + k.dim(plan_.dynamicStride);
      llvm::StringRef word = wordType(width * bytes);
      if (width > 1)
        w.noted(llvm::formatv("(({0} *){1})[{2}] = ((const {0} *){3})[{4}];", word, out, to, in, from).str(),
                llvm::formatv("{0} elements a word", width).str());
      else
        w.line("{0}[{1}] = {2}[{3}];", out, to, in, from);
    }
    k.finish({blocks(most), kBlock,
              plan_.copies.size() > 1 ? llvm::formatv("{0} copies one after another", plan_.copies.size()).str() : ""});
  }

  // Only the launch depends on it: the loops take several turns where it is too small.
  static Dim larger(const Dim &a, const Dim &b) {
    SymbolValues symbols;
    for (const Dim *dim : {&a, &b}) dim->forEachSymbol([&](llvm::StringRef symbol) { symbols[symbol] = 61; });
    return *a.evaluate(symbols) < *b.evaluate(symbols) ? b : a;
  }

  static std::string indexOf(KernelBuilder &k, const Shape &extents, llvm::ArrayRef<Dim> strides, const Dim &offset) {
    llvm::SmallVector<std::string, 6> terms;
    if (!offset.is(0)) terms.push_back(k.dim(offset));
    appendTerms(terms, extents, strides, "i", k);
    return sumOf(terms);
  }

  const FusionBody &body_;
  KernelSet &set_;
  const MovementPlan &plan_;
};

} // namespace

bool isTiledTranspose(const FusionBody &body) { return tiledTranspose(body).has_value(); }

llvm::Error emitMovement(const FusionBody &body, KernelSet &set) {
  auto plan = planMovement(body.flat);
  if (!plan) return plan.takeError();
  for (Value argument : body.block().arguments())
    if (argument.type().granularity != Granularity::none)
      return opError("no copy kernel takes {0} yet", argument.type().str());
  if (plan->startsFrom) set.inPlace.push_back({*plan->startsFrom, 0});
  MovementWriter(body, set, *plan).write();
  return llvm::Error::success();
}

} // namespace fusor::codegen
