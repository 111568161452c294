// softmax: exp(x - max x) over its sum; and softmax of the same rows under another shape.
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

Finding findInSmallOps(Op &div) {
  Value e = div.operand(0u);
  Op *exp = madeBy(e, "exp"), *sum = madeBy(div.operand(1), "sum");
  if (!exp || !sum || sum->operand(0u) != e) return Finding::none();
  Op *shift = madeBy(exp->operand(0u), "sub");
  Op *max = shift ? madeBy(shift->operand(1), "reduce_max") : nullptr;
  if (max && max->operand(0u) != shift->operand(0u)) max = nullptr;
  Value x = max ? shift->operand(0u) : exp->operand(0u), y = div.result();
  auto axis = onlyReducedDim(*sum);
  if (!axis)
    return Finding::refused("%{0} sums several dims, or does not keep them as 1", sum->result().name()).worth(y, {x});
  if (!max)
    return Finding::refused("no maximum is subtracted from %{0}: exp may overflow, softmax does not", x.name())
        .worth(y, {x});
  if (auto of = onlyReducedDim(*max); of != axis)
    return Finding::refused("the maximum is over {0}, the sum over dim {1}",
                            of ? "dim " + std::to_string(*of) : "other dims", *axis)
        .worth(y, {x});
  if (!isWide(x)) return Finding::refused("small ops in {0} round in between", ir::name(x.dtype())).worth(y, {x});
  return Finding::found(y, [=](ir::Builder &b) { return b.op("softmax", {x}, {{"axis", *axis}}); }).worth(y, {x});
}

// reshape(softmax(reshape x)) over a last dim that stays, as softmax of two dims is written.
Finding findBetweenReshapes(Op &back) {
  Op *softmax = madeBy(back.operand(0u), "softmax");
  Op *flat = softmax ? madeBy(softmax->operand(0u), "reshape") : nullptr;
  if (!flat) return Finding::none();
  Value x = flat->operand(0u), rows = flat->result();
  if (x.rank() == 0 || x.shape() != back.result().shape()) return Finding::none();
  if (softmax->site().axis("axis", rows.rank()) != rows.rank() - 1 || x.shape().back() != rows.shape().back())
    return Finding::refused("softmax is not over the last dim of %{0}", x.name());
  return Finding::found(back.result(), [=](ir::Builder &b) {
    ir::Attrs attrs = softmax->attrs();
    attrs.erase("axis");
    return b.op("softmax", {x}, attrs);
  });
}

} // namespace

Finding findSoftmax(Op &op) {
  if (op.is("div")) return findInSmallOps(op);
  if (op.is("reshape")) return findBetweenReshapes(op);
  return Finding::none();
}

} // namespace fusor::passes
