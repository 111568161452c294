// softmax, layer_norm, rms_norm and their gradients. All are expansions into row reductions and elementwise ops
// computed in f32: the row kernels and the float64 reference both follow from them. Statistics keep the reduced dim as
// size 1.
#include "ir/ops/families.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_builder.h"

namespace fusor::ir {
namespace {

using Values = llvm::SmallVector<Value, 2>;

DType outType(const OpSite &site, unsigned like = 0) {
  if (const AttrValue *out = site.attrs.find("out")) return std::get<DType>(*out);
  return site.type(like).dtype;
}

llvm::Error checkFloats(const OpSite &site) {
  for (const Value &v : site.operands)
    if (v && !isFloat(v.dtype())) return opError("operands must be floats, found {0}", v.type().str());
  if (site.type(0).rank() == 0) return opError("needs at least one dim, is given {0}", site.type(0).str());
  return llvm::Error::success();
}

// Optional per-feature vectors from operand `first` on.
llvm::Error checkVectors(const OpSite &site, unsigned first) {
  for (unsigned i = first; i < site.operands.size(); ++i)
    if (Value v = site.operand(i); v && (v.rank() != 1 || v.shape()[0] != site.type(0).dim(-1)))
      return opError("'{0}' must be [{1}] like the last dim of {2}, is {3}", site.def.operands[i].name,
                     site.type(0).dim(-1).str(), site.type(0).str(), v.type().str());
  return llvm::Error::success();
}

TensorType statistic(const TensorType &x) { // [..., C] -> [..., 1] in the compute type
  Shape shape = x.shape;
  shape.back() = Dim(1);
  return {computeType(x.dtype), std::move(shape)};
}

llvm::Error checkLike(const OpSite &site, unsigned i, const TensorType &x, bool isStatistic) {
  Shape expected = isStatistic ? statistic(x).shape : x.shape;
  if (site.type(i).shape == expected) return llvm::Error::success();
  return opError("'{0}' must have shape [{1}], is {2}", site.def.operands[i].name, str(llvm::ArrayRef<Dim>(expected)),
                 site.type(i).str());
}

// --- softmax

llvm::Expected<ResultTypes> inferSoftmax(const OpSite &site) {
  if (auto error = checkFloats(site)) return error;
  auto axis = checkedAxis(site, site.type(0));
  if (!axis) return axis.takeError();
  if (site.operands.size() > 1)
    if (auto error = checkLike(site, 1, site.type(0), false)) return error;
  return ResultTypes{site.type(0).withDType(outType(site))};
}

Values expandSoftmax(Builder &b, const OpSite &site) {
  Graph x = wide(b, site.operand(0));
  int64_t axis = site.integer("axis");
  Graph e = exp(x - x.max(axis));
  return {(e / e.sum(axis)).cast(outType(site))};
}

Values expandLogSoftmax(Builder &b, const OpSite &site) {
  Graph x = wide(b, site.operand(0));
  int64_t axis = site.integer("axis");
  Graph shifted = x - x.max(axis);
  return {(shifted - log(exp(shifted).sum(axis))).cast(outType(site))};
}

Values expandSoftmaxGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), y = wide(b, site.operand(1));
  return {(y * (dy - (dy * y).sum(site.integer("axis")))).cast(outType(site))};
}

Values expandLogSoftmaxGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), y = wide(b, site.operand(1));
  return {(dy - exp(y) * dy.sum(site.integer("axis"))).cast(outType(site))};
}

// --- normalize: the last step of both norms, from statistics that are there already

// What both norms hand out: y is what has been normalised.
Value affine(Builder &b, Graph y, Value w, Value bias, DType out) {
  if (w) y = y * wide(b, w);
  if (bias) y = y + wide(b, bias);
  return y.cast(out);
}

llvm::Expected<ResultTypes> inferNormalize(const OpSite &site) { // x, rstd, mean?, weight?, bias?
  if (auto error = checkFloats(site)) return error;
  for (unsigned i = 1; i < 3; ++i)
    if (site.operand(i))
      if (auto error = checkLike(site, i, site.type(0), true)) return error;
  if (auto error = checkVectors(site, 3)) return error;
  return ResultTypes{site.type(0).withDType(outType(site))};
}

Values expandNormalize(Builder &b, const OpSite &site) {
  Graph d = wide(b, site.operand(0));
  if (Value mean = site.operand(2)) d = d - wide(b, mean);
  return {affine(b, d * wide(b, site.operand(1)), site.operand(3), site.operand(4), outType(site))};
}

// --- layer_norm

llvm::Expected<ResultTypes> inferLayerNorm(const OpSite &site) {
  if (auto error = checkFloats(site)) return error;
  if (auto error = checkVectors(site, 1)) return error;
  TensorType s = statistic(site.type(0));
  return ResultTypes{site.type(0).withDType(outType(site)), s, s};
}

Values expandLayerNorm(Builder &b, const OpSite &site) {
  Graph x = wide(b, site.operand(0));
  Graph mean = x.mean(-1), d = x - mean, rstd = rsqrt((d * d).mean(-1) + site.real("eps"));
  return {affine(b, d * rstd, site.operand(1), site.operand(2), outType(site)), mean, rstd};
}

llvm::SmallVector<Value, 4> layerNormGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value x = g.op.operand(0u), w = g.op.operand(1), bias = g.op.operand(2), dy = g.gradient();
  if (!dy)
    return {Value(), Value(),
            Value()}; // only the statistics were used: they are saved values, not outputs to differentiate
  Value mean = g.op.result(1), rstd = g.op.result(2);
  Value dx = b.op("layer_norm_grad", {dy, x, mean, rstd, w});
  llvm::SmallVector<Value, 4> gradients{dx, Value(), Value()};
  if (w || bias) {
    Op *params = b.make("layer_norm_param_grad", {dy, x, mean, rstd});
    if (w) gradients[1] = b.cast(params->result(0), w.dtype());
    if (bias) gradients[2] = b.cast(params->result(1), bias.dtype());
  }
  gradients.resize(g.op.operands().size());
  return gradients;
}

llvm::Expected<ResultTypes> inferNormGrad(const OpSite &site) { // dy, x, statistics..., weight?
  if (auto error = checkFloats(site)) return error;
  bool layer = site.def.name == "layer_norm_grad";
  if (auto error = checkLike(site, 0, site.type(1), false)) return error;
  for (unsigned i = 2; i < (layer ? 4u : 3u); ++i)
    if (auto error = checkLike(site, i, site.type(1), true)) return error;
  if (auto error = checkVectors(site, layer ? 4 : 3)) return error;
  return ResultTypes{site.type(1)};
}

// With h = (x - mean) rstd and d = dy w:  dx = rstd (d - mean(d) - h mean(d h)).
Values expandLayerNormGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), x = wide(b, site.operand(1)), mean = wide(b, site.operand(2)),
        rstd = wide(b, site.operand(3));
  Graph h = (x - mean) * rstd, d = dy;
  if (Value w = site.operand(4)) d = d * wide(b, w);
  return {(rstd * (d - d.mean(-1) - h * (d * h).mean(-1))).cast(site.type(1).dtype)};
}

llvm::Expected<ResultTypes> inferParamGrad(const OpSite &site) {
  if (auto error = checkFloats(site)) return error;
  bool layer = site.def.name == "layer_norm_param_grad";
  if (auto error = checkLike(site, 0, site.type(1), false)) return error;
  for (unsigned i = 2; i < site.operands.size(); ++i)
    if (auto error = checkLike(site, i, site.type(1), true)) return error;
  TensorType vector{computeType(site.type(1).dtype), {site.type(1).dim(-1)}};
  return layer ? ResultTypes{vector, vector} : ResultTypes{vector};
}

std::vector<int64_t> leadingDims(Value x) {
  std::vector<int64_t> dims;
  for (unsigned i = 0; i + 1 < x.rank(); ++i) dims.push_back(i);
  return dims;
}

// Sum over all dims but the last; a vector has no leading dims and is its own sum.
Graph columnSum(Graph v) { return v.value().rank() == 1 ? v : v.sum(leadingDims(v.value()), false); }

Values expandLayerNormParamGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), x = wide(b, site.operand(1)), mean = wide(b, site.operand(2)),
        rstd = wide(b, site.operand(3));
  return {columnSum(dy * ((x - mean) * rstd)), columnSum(dy)};
}

// --- rms_norm

llvm::Expected<ResultTypes> inferRmsNorm(const OpSite &site) {
  if (auto error = checkFloats(site)) return error;
  if (auto error = checkVectors(site, 1)) return error;
  return ResultTypes{site.type(0).withDType(outType(site)), statistic(site.type(0))};
}

Values expandRmsNorm(Builder &b, const OpSite &site) {
  Graph x = wide(b, site.operand(0));
  Graph rstd = rsqrt((x * x).mean(-1) + site.real("eps"));
  return {affine(b, x * rstd, site.operand(1), Value(), outType(site)), rstd};
}

llvm::SmallVector<Value, 4> rmsNormGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value x = g.op.operand(0u), w = g.op.operand(1), dy = g.gradient(), rstd = g.op.result(1);
  llvm::SmallVector<Value, 4> gradients(g.op.operands().size());
  if (!dy) return gradients;
  gradients[0] = b.op("rms_norm_grad", {dy, x, rstd, w});
  if (w) gradients[1] = b.cast(b.op("rms_norm_param_grad", {dy, x, rstd}), w.dtype());
  return gradients;
}

// With d = dy w:  dx = rstd (d - x rstd^2 mean(d x)).
Values expandRmsNormGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), x = wide(b, site.operand(1)), rstd = wide(b, site.operand(2)), d = dy;
  if (Value w = site.operand(3)) d = d * wide(b, w);
  return {(rstd * (d - x * (rstd * rstd * (d * x).mean(-1)))).cast(site.type(1).dtype)};
}

Values expandRmsNormParamGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0)), x = wide(b, site.operand(1)), rstd = wide(b, site.operand(2));
  return {columnSum(dy * (x * rstd))};
}

} // namespace

llvm::ArrayRef<OpDef> normalizationOps() {
  static const std::vector<OpDef> ops = {
      op("softmax")
          .summary("exp(x) over its sum along an axis")
          .precision(PrecisionClass::normalizes)
          .operands({"x"})
          .integer("axis", -1)
          .note("dim normalised over")
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferSoftmax)
          .expansion(expandSoftmax)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            Value dx =
                g.builder.op("softmax_grad", {g.gradient(), g.op.result()}, {{"axis", g.op.attr<int64_t>("axis")}});
            return {g.builder.cast(dx, g.op.operand(0u).dtype())};
          }),
      op("softmax_grad")
          .summary("y * (dy - sum(dy * y))")
          .precision(PrecisionClass::any)
          .operands({"dy", "y"})
          .integer("axis", -1)
          .note("as of the softmax")
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferSoftmax)
          .expansion(expandSoftmaxGrad),
      op("log_softmax")
          .summary("x minus the log of the sum of exp(x) along an axis")
          .precision(PrecisionClass::normalizes)
          .operands({"x"})
          .integer("axis", -1)
          .note("dim normalised over")
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferSoftmax)
          .expansion(expandLogSoftmax)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            Value dx =
                g.builder.op("log_softmax_grad", {g.gradient(), g.op.result()}, {{"axis", g.op.attr<int64_t>("axis")}});
            return {g.builder.cast(dx, g.op.operand(0u).dtype())};
          }),
      op("log_softmax_grad")
          .summary("dy - exp(y) * sum(dy)")
          .precision(PrecisionClass::any)
          .operands({"dy", "y"})
          .integer("axis", -1)
          .note("as of the log_softmax")
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferSoftmax)
          .expansion(expandLogSoftmaxGrad),

      op("normalize")
          .summary("(x - mean) * rstd * weight + bias: a norm's result again, from the statistics it saved")
          .precision(PrecisionClass::any)
          .operands({"x", "rstd", "mean?", "weight?", "bias?"})
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferNormalize)
          .expansion(expandNormalize),

      op("layer_norm")
          .summary("rows to mean 0 and variance 1, times weight, plus bias")
          .precision(PrecisionClass::normalizes)
          .operands({"x", "weight?", "bias?"})
          .results({"y", "mean", "rstd"})
          .real("eps", 1e-5)
          .note("added to the variance")
          .range(0, 1e30)
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferLayerNorm)
          .expansion(expandLayerNorm)
          .gradient(layerNormGradient),
      op("layer_norm_grad")
          .summary("input gradient of layer_norm")
          .precision(PrecisionClass::any)
          .operands({"dy", "x", "mean", "rstd", "weight?"})
          .results({"dx"})
          .lowering(Lowering::expansion)
          .infer(inferNormGrad)
          .expansion(expandLayerNormGrad),
      op("layer_norm_param_grad")
          .summary("weight and bias gradients of layer_norm")
          .precision(PrecisionClass::any)
          .operands({"dy", "x", "mean", "rstd"})
          .results({"dweight", "dbias"})
          .lowering(Lowering::expansion)
          .infer(inferParamGrad)
          .expansion(expandLayerNormParamGrad),

      op("rms_norm")
          .summary("rows to mean square 1, times weight")
          .precision(PrecisionClass::normalizes)
          .operands({"x", "weight?"})
          .results({"y", "rstd"})
          .real("eps", 1e-5)
          .note("added to the mean square")
          .range(0, 1e30)
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: that of the first operand")
          .lowering(Lowering::expansion)
          .infer(inferRmsNorm)
          .expansion(expandRmsNorm)
          .gradient(rmsNormGradient),
      op("rms_norm_grad")
          .summary("input gradient of rms_norm")
          .precision(PrecisionClass::any)
          .operands({"dy", "x", "rstd", "weight?"})
          .results({"dx"})
          .lowering(Lowering::expansion)
          .infer(inferNormGrad)
          .expansion(expandRmsNormGrad),
      op("rms_norm_param_grad")
          .summary("weight gradient of rms_norm")
          .precision(PrecisionClass::any)
          .operands({"dy", "x", "rstd"})
          .results({"dweight"})
          .lowering(Lowering::expansion)
          .infer(inferParamGrad)
          .expansion(expandRmsNormParamGrad),
  };
  return ops;
}

} // namespace fusor::ir
