// The optimizer's ops. Each adamw is one tensor; passes/fusion gathers all of a step into one multi-tensor kernel.
#include "ir/ops/families.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

llvm::Expected<ResultTypes> inferGlobalNorm(const OpSite &site) {
  for (const Value &v : site.operands)
    if (!isFloat(v.dtype())) return opError("operands must be floats, found {0}", v.type().str());
  return ResultTypes{{DType::f32, {}}};
}

void globalNormReference(const RefCall &call) {
  double sum = 0;
  for (const RefTensor *t : call.inputs)
    for (double v : t->data) sum += v * v;
  call.outputs[0].data[0] = std::sqrt(sum);
}

llvm::Expected<ResultTypes> inferAdamW(const OpSite &site) {
  const TensorType &p = site.type(0);
  if (!isFloat(p.dtype)) return opError("param must be a float, is {0}", p.str());
  for (unsigned i = 1; i < 4; ++i)
    if (site.type(i).shape != p.shape || !isFloat(site.type(i).dtype))
      return opError("'{0}' must have the shape of param {1}, is {2}", site.def.operands[i].name, p.str(),
                     site.type(i).str());
  for (unsigned i = 4; i < site.operands.size(); ++i)
    if (site.operand(i) && site.type(i).rank() != 0)
      return opError("'{0}' must be a scalar, is {1}", site.def.operands[i].name, site.type(i).str());
  if (Value apply = site.operand(7); apply && apply.dtype() != DType::i1)
    return opError("'apply' must be i1[], is {0}", apply.type().str());
  return ResultTypes{p, site.type(2), site.type(3)};
}

// Decoupled weight decay as in PyTorch:
//   m' = b1 m + (1 - b1) g,  v' = b2 v + (1 - b2) g^2,  p' = p (1 - lr wd) - lr (m' / c1) / (sqrt(v' / c2) + eps),  c =
//   1 - b^step.
// c is -expm1(step log b): in f32, 1 - 0.999^step would lose five digits at step 1.
llvm::SmallVector<Value, 2> expandAdamW(Builder &b, const OpSite &site) {
  auto wide = [&](Value v) { return Graph(b, b.cast(v, DType::f32)); };
  Graph p = wide(site.operand(0)), g = wide(site.operand(1)), m = wide(site.operand(2)), v = wide(site.operand(3));
  Graph step = wide(site.operand(4)), lr = wide(site.operand(5));
  if (Value scale = site.operand(6)) g = g * wide(scale);
  double b1 = site.real("beta1"), b2 = site.real("beta2");
  Graph c1 = -expm1(step * std::log(b1)), c2 = -expm1(step * std::log(b2));
  Graph m1 = m * b1 + g * (1 - b1), v1 = v * b2 + g * g * (1 - b2);
  Graph update = m1 / c1 / (sqrt(v1 / c2) + site.real("eps"));
  Graph p1 = p * (1.0 - lr * site.real("weight_decay")) - lr * update;
  if (Value condition = site.operand(7)) {
    Graph apply(b, condition);
    p1 = select(apply, p1, p), m1 = select(apply, m1, m), v1 = select(apply, v1, v);
  }
  return {p1.cast(site.type(0).dtype), m1.cast(site.type(2).dtype), v1.cast(site.type(3).dtype)};
}

} // namespace

llvm::ArrayRef<OpDef> optimizerOps() {
  static const std::vector<OpDef> ops = {
      op("global_norm")
          .summary("square root of the sum of squares over all operands")
          .precision(PrecisionClass::any)
          .operands({"values..."})
          .lowering(Lowering::multiTensor)
          .infer(inferGlobalNorm)
          .reference(globalNormReference),
      op("adamw")
          .summary(
              "one AdamW step of one tensor; grad is multiplied by grad_scale; nothing changes where apply is false")
          .precision(PrecisionClass::any)
          .operands({"param", "grad", "m", "v", "step", "lr", "grad_scale?", "apply?"})
          .results({"param", "m", "v"})
          .real("beta1", 0.9)
          .note("decay of the first moment")
          .range(0, 0.999999)
          .real("beta2", 0.999)
          .note("decay of the second moment")
          .range(0, 0.9999999)
          .real("eps", 1e-8)
          .note("added to the root of the second moment")
          .range(0, 1)
          .real("weight_decay", 0.01)
          .note("decoupled, times lr")
          .range(0, 1e3)
          .samples(0.1, 2)
          .lowering(Lowering::multiTensor)
          .inPlace()
          .infer(inferAdamW)
          .expansion(expandAdamW),
  };
  return ops;
}

} // namespace fusor::ir
