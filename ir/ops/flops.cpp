#include "ir/ops/flops.h"
#include "ir/ops/op_def.h"

namespace fusor::ir {
namespace {

double size(const Dim &dim, const SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  return value ? static_cast<double>(*value) : 0;
}

double flopsOf(const Op &op, const SymbolValues &symbols) {
  auto elements = [&](Value v) { return size(v.type().elements(), symbols); };
  auto dim = [&](Value v, int i) { return size(v.type().dim(i), symbols); };
  if (op.def().lowering == Lowering::contraction) {
    Value a = op.operand(0u), b = op.operand(1);
    if (op.is("linear_weight_grad")) return 2 * elements(a) * dim(b, -1); // dy [..., N], x [..., K]
    if (op.is("matmul")) return 2 * elements(op.result()) * dim(a, op.attr<bool>("trans_a") ? -2 : -1);
    return 2 * elements(op.result()) * dim(a, -1); // x [..., K] or dy [..., N]
  }
  bool backward = op.is("attention_grad");
  if (!backward && !op.is("attention")) return 0;
  Value q = op.operand(backward ? 1u : 0u), k = op.operand(backward ? 2u : 1u);
  double gemms = backward ? 5 : 2; // of queries by keys by head size
  double flops = gemms * 2 * elements(q) * dim(k, 1);
  return op.attr<bool>("causal") ? flops / 2 : flops;
}

double flopsOf(const Block &block, const SymbolValues &symbols) {
  double flops = 0;
  for (const Op &op : block.ops()) flops += contractionFlops(op, symbols);
  return flops;
}

} // namespace

double contractionFlops(const Op &op, const SymbolValues &symbols) {
  return flopsOf(op, symbols) + (op.body() ? flopsOf(*op.body(), symbols) : 0);
}

double contractionFlops(const Function &function, const SymbolValues &symbols) {
  return flopsOf(function.block(), symbols);
}

} // namespace fusor::ir
