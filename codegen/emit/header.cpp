#include "codegen/emit/header.h"
#include "ir/graph/printer.h"
#include "ir/ops/traffic.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

Dim flopsOf(const Op &op) {
  Dim elements = op.result().type().elements();
  if (op.def().lowering == Lowering::contraction) {
    Value a = op.operand(0u);
    Dim k = op.is("linear_weight_grad") ? product(a.shape().drop_back()) : a.shape().back();
    if (op.is("matmul") && op.attr<bool>("trans_a")) k = a.shape()[a.rank() - 2];
    return elements * k * Dim(2);
  }
  if (op.def().lowering == Lowering::attention) { // two products forward, five backward
    Value q = op.operand(op.is("attention_grad") ? 1 : 0), k = op.operand(op.is("attention_grad") ? 2 : 1);
    return q.type().elements() * k.shape()[1] * Dim(op.is("attention_grad") ? 10 : 4);
  }
  if (op.def().lowering == Lowering::view || op.def().lowering == Lowering::indexMap) return 0;
  return elements;
}

std::string joined(llvm::ArrayRef<Value> values) {
  std::string text;
  llvm::SmallVector<ValueDef *, 8> seen;
  for (Value v : values)
    if (!llvm::is_contained(seen, v.def())) seen.push_back(v.def()), text += " " + v.name().str();
  return text.empty() ? " nothing" : text;
}

unsigned countOps(const Block &block) {
  return llvm::count_if(block.ops(), [](const Op &op) { return !op.def().isTerminator; });
}

// How often one tensor of the largest shape is read or written: by the ops one by one, less by the kernel.
std::string passesSaved(const FusionBody &body) {
  const Block &block = body.block();
  const TensorType *largest = nullptr;
  auto consider = [&](Value v) {
    if (!v || !v.rank()) return;
    if (!largest || (v.type().elements() != largest->elements() && v.type().elements().divide(largest->elements())))
      largest = &v.type();
  };
  int64_t before = 0, after = 0;
  for (const Op &op : block.ops())
    if (!op.def().isTerminator)
      for (Value v : op.results()) consider(v);
  if (!largest) return "";
  auto isLargest = [&](Value v) { return v && v.type().elements() == largest->elements(); };
  for (const Op &op : block.ops()) {
    if (op.def().isTerminator || op.def().lowering == Lowering::view) continue;
    before += llvm::count_if(op.operands(), isLargest) + llvm::count_if(op.results(), isLargest);
  }
  after += llvm::count_if(block.arguments(), isLargest) + llvm::count_if(block.terminator()->operands(), isLargest);
  if (before <= after) return "";
  return llvm::formatv("; saves {0} pass{1} over [{2}]", before - after, before - after == 1 ? "" : "es",
                       str(llvm::ArrayRef<Dim>(largest->shape)));
}

// add_gelu__bf16_11008: the chain, the dtype and the fixed dims of its first result.
std::string kernelName(const FusionBody &body) {
  Value result = body.block().terminator()->operand(0u);
  std::string name = body.chain + "__" + ir::name(result.dtype()).str();
  if (body.flat.anchor && body.flat.anchor->def().lowering == Lowering::contraction)
    result = body.flat.anchor->result();
  for (const Dim &dim : llvm::ArrayRef<Dim>(result.shape()).take_back(2))
    if (dim.isConstant() && !dim.is(1)) name += "_" + std::to_string(dim.value());
  return name;
}

std::string commented(llvm::StringRef text, llvm::StringRef prefix) {
  std::string out;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    out += (prefix + line).str() + "\n";
    text = rest;
  }
  return out;
}

} // namespace

void describe(const FusionBody &body, KernelSet &set) {
  const Block &block = body.block();
  set.name = kernelName(body);
  set.ir = printBlock(block, 0);
  set.ir.resize(llvm::StringRef(set.ir).rtrim('\n').rfind('\n') +
                1); // without the yield: the header says what is written
  Dim unfused = 0;
  for (const Op &op : block.ops()) {
    if (op.def().isTerminator || op.def().lowering == Lowering::view) continue;
    for (Value v : op.operands())
      if (v) unfused = unfused + bytesRead(op, v);
    for (Value v : op.results()) unfused = unfused + bytesOf(v);
    set.flops = set.flops + flopsOf(op);
  }
  for (Value argument : block.arguments()) set.bytesRead = set.bytesRead + bytesRead(argument);
  for (Value result : block.terminator()->operands()) set.bytesWritten = set.bytesWritten + bytesOf(result);
  set.bytesSaved = unfused - set.bytesRead - set.bytesWritten;
}

std::string kernelHeader(const FusionBody &body, const KernelSet &set, llvm::StringRef name, llvm::StringRef step,
                         const LaunchOf &launch) {
  unsigned ops = countOps(body.block());
  std::string text = llvm::formatv("// {0}   ({1} kernel)\n", name, codegen::name(body.kind));
  text += commented(set.ir, "//   ");
  text += llvm::formatv("// {0} op{1} -> ", ops, ops == 1 ? "" : "s");
  text += step.empty() ? "1 kernel" : "several kernels, this is step '" + step.str() + "'";
  text += "; reads" + joined(body.block().arguments());
  text += ", writes" + joined(body.block().terminator()->operands()) + passesSaved(body) + ".\n";
  text += "// grid = " + launch.grid.str() + llvm::formatv(", block = {0}", launch.block).str() +
          (launch.sharedBytes ? llvm::formatv(", {0} bytes of shared memory", launch.sharedBytes).str() : "") +
          (launch.note.empty() ? "" : ", " + launch.note) + "\n";
  return text;
}

} // namespace fusor::codegen
