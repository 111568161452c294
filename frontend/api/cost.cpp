#include "frontend/api/cost.h"
#include "ir/ops/op_def.h"

namespace fusor::frontend {
namespace {

double size(const ir::Dim &dim, const ir::SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  return value ? static_cast<double>(*value) : 0;
}

double flopsOf(const ir::Op &op, const ir::SymbolValues &symbols) {
  auto elements = [&](ir::Value v) { return size(v.type().elements(), symbols); };
  auto dim = [&](ir::Value v, int i) { return size(v.type().dim(i), symbols); };
  if (op.def().lowering == ir::Lowering::contraction) {
    ir::Value a = op.operand(0u), b = op.operand(1);
    if (op.is("linear_weight_grad")) return 2 * elements(a) * dim(b, -1); // dy [..., N], x [..., K]
    if (op.is("matmul")) return 2 * elements(op.result()) * dim(a, op.attr<bool>("trans_a") ? -2 : -1);
    return 2 * elements(op.result()) * dim(a, -1); // x [..., K] or dy [..., N]
  }
  bool backward = op.is("attention_grad");
  if (!backward && !op.is("attention")) return 0;
  ir::Value q = op.operand(backward ? 1u : 0u), k = op.operand(backward ? 2u : 1u);
  double gemms = backward ? 5 : 2; // of queries by keys by head size
  double flops = gemms * 2 * elements(q) * dim(k, 1);
  return op.attr<bool>("causal") ? flops / 2 : flops;
}

double flopsOf(const ir::Block &block, const ir::SymbolValues &symbols) {
  double flops = 0;
  for (const ir::Op &op : block.ops()) {
    flops += flopsOf(op, symbols);
    if (op.body()) flops += flopsOf(*op.body(), symbols);
  }
  return flops;
}

} // namespace

double contractionFlops(const ir::Function &function, const ir::SymbolValues &symbols) {
  return flopsOf(function.block(), symbols);
}

} // namespace fusor::frontend
