// Randomness is a function of (seed, stream, element): the same on every device, and recomputed instead of saved.
#include "ir/ops/counter_rng.h"
#include "ir/ops/families.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_builder.h"

namespace fusor::ir {
namespace {

llvm::Error checkSeed(const OpSite &site, unsigned i) {
  if (isInteger(site.type(i).dtype) && site.type(i).rank() == 0) return llvm::Error::success();
  return opError("seed must be an integer scalar, is {0}", site.type(i).str());
}

llvm::Expected<ResultTypes> inferUniform(const OpSite &site) {
  if (auto error = checkSeed(site, 0)) return error;
  return ResultTypes{{DType::f32, site.attr<Shape>("shape")}};
}

void uniformReference(const RefCall &call) {
  uint64_t key = rngKey(static_cast<uint64_t>(static_cast<int64_t>(call.inputs[0]->data[0])),
                        static_cast<uint64_t>(call.site.integer("stream")));
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i)
    call.outputs[0].data[i] = rngUniform(key, static_cast<uint64_t>(i));
}

llvm::Expected<ResultTypes> inferDropout(const OpSite &site) {
  if (auto error = checkSeed(site, 1)) return error;
  if (!isFloat(site.type(0).dtype)) return opError("works on floats, is given {0}", site.type(0).str());
  return ResultTypes{site.type(0)};
}

llvm::SmallVector<Value, 2> expandDropout(Builder &b, const OpSite &site) {
  Value x = site.operand(0);
  Graph u(b,
          b.op("random_uniform", {site.operand(1)}, {{"shape", x.type().shape}, {"stream", site.integer("stream")}}));
  double rate = site.real("rate");
  Graph wide(b, b.cast(x, computeType(x.dtype())));
  Graph kept = u >= rate;
  return {select(kept, wide * (rate < 1 ? 1 / (1 - rate) : 0.0), 0.0).cast(x.dtype())};
}

} // namespace

llvm::ArrayRef<OpDef> randomOps() {
  static const std::vector<OpDef> ops = {
      op("random_uniform")
          .summary("f32 in [0, 1) from (seed, stream, element)")
          .operands({"seed"})
          .required("shape", AttrKind::shape)
          .note("of the result")
          .integer("stream", 0)
          .note("tells apart draws from one seed")
          .untyped({0})
          .lowering(Lowering::indexMap)
          .infer(inferUniform)
          .reference(uniformReference)
          .zeroGradient(),
      op("dropout")
          .summary("0 with probability rate, else x / (1 - rate); the same (seed, stream) drops the same elements")
          .operands({"x", "seed"})
          .real("rate", 0.1)
          .note("probability of 0")
          .range(0, 1)
          .integer("stream", 0)
          .note("tells apart draws from one seed")
          .untyped({1})
          .lowering(Lowering::expansion)
          .infer(inferDropout)
          .expansion(expandDropout)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            return {g.builder.op("dropout", {g.gradient(), g.op.operand(1)}, g.op.attrs()), Value()};
          }),
  };
  return ops;
}

} // namespace fusor::ir
