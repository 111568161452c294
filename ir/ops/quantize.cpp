// FP8: quantize, dequantize, the delayed-scaling update, and the marker that asks for a quantised gradient.
// A quantised tensor is one value of one type, data and scale together: value = data / scale. Kernels see its two
// parts: passes/fp8/fold.h takes `quantize` apart into `fp8_cast` and `amax`, whose results are plain tensors.
#include "ir/ops/families.h"
#include "ir/ops/op_builder.h"
#include <limits>

namespace fusor::ir {
namespace {

llvm::Error checkScale(const OpSite &site, unsigned i) {
  if (site.type(i).dtype == DType::f32 && site.type(i).rank() == 0) return llvm::Error::success();
  return opError("'{0}' must be f32[], is {1}", site.def.operands[i].name, site.type(i).str());
}

llvm::Error checkWide(const OpSite &site) {
  if (isFloat(site.type(0).dtype) && !isFp8(site.type(0).dtype)) return llvm::Error::success();
  return opError("quantises f64, f32, f16 or bf16, is given {0}", site.type(0).str());
}

llvm::Expected<ResultTypes> inferFp8Cast(const OpSite &site) {
  if (auto error = checkScale(site, 1)) return error;
  DType dtype = site.attr<DType>("dtype");
  if (dtype != DType::f8e4m3 && dtype != DType::f8e5m2)
    return opError("dtype must be f8e4m3 or f8e5m2, is {0}", name(dtype));
  if (auto error = checkWide(site)) return error;
  return ResultTypes{{dtype, site.type(0).shape}};
}

llvm::SmallVector<Value, 2> expandFp8Cast(Builder &b, const OpSite &site) {
  Value scaled = b.op("mul", {b.cast(site.operand(0), DType::f32), site.operand(1)});
  return {b.cast(scaled, site.attr<DType>("dtype"))};
}

llvm::Expected<ResultTypes> inferAmax(const OpSite &site) {
  if (auto error = checkWide(site)) return error;
  return ResultTypes{{DType::f32, {}}};
}

// A NaN is not greater than 0, so it does not count, as in Transformer Engine; nor does the -Inf of no elements.
llvm::SmallVector<Value, 2> expandAmax(Builder &b, const OpSite &site) {
  Value size = b.op("abs", {b.cast(site.operand(0), DType::f32)}), zero = b.constant(0);
  Value counted = b.op("select", {b.op("gt", {size, zero}), size, zero});
  return {counted.rank() ? b.op("max", {b.op("reduce_max", {counted}), zero}) : counted};
}

llvm::Expected<ResultTypes> inferQuantize(const OpSite &site) {
  auto cast = inferFp8Cast(site);
  if (!cast) return cast.takeError();
  DType dtype = cast->front().dtype;
  if (site.type(0).rank())
    if (auto axis = checkedAxis(site, site.type(0), "contract"); !axis) return axis.takeError();
  return ResultTypes{{dtype, site.type(0).shape, Granularity::tensor}, {DType::f32, {}}};
}

void quantizeReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0];
  auto scale = static_cast<float>(call.inputs[1]->data[0]);
  RefTensor &q = call.outputs[0];
  q.scale = scale;
  double amax = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    q.data[i] = roundTo(q.dtype, static_cast<float>(x.data[i]) * scale);
    if (double magnitude = std::fabs(x.data[i]); magnitude > amax)
      amax = magnitude; // a NaN does not count, as in Transformer Engine
  }
  call.outputs[1].data[0] = amax;
}

llvm::Expected<ResultTypes> inferDequantize(const OpSite &site) {
  if (site.type(0).granularity == Granularity::none)
    return opError("needs a quantised tensor, is given {0}", site.type(0).str());
  return ResultTypes{site.type(0).withDType(site.attr<DType>("to"))};
}

void dequantizeReference(const RefCall &call) {
  const RefTensor &q = *call.inputs[0];
  float inverse = 1.0f / static_cast<float>(q.scale);
  for (int64_t i = 0; i < q.elements(); ++i)
    call.outputs[0].data[i] = roundTo(call.outputs[0].dtype, static_cast<float>(q.data[i]) * inverse);
}

llvm::Expected<ResultTypes> inferAmaxUpdate(const OpSite &site) {
  if (site.type(0).dtype != DType::f32 || site.type(0).rank() != 1)
    return opError("history must be f32[L], is {0}", site.type(0).str());
  if (auto error = checkScale(site, 1)) return error;
  if (auto error = checkScale(site, 2)) return error;
  return ResultTypes{site.type(0), site.type(1), site.type(1)};
}

float nextScale(const RefCall &call, double largest) {
  auto used = static_cast<float>(largest);
  if (!(used > 0) || std::isinf(used)) return static_cast<float>(call.inputs[1]->data[0]);
  auto top = static_cast<float>(maxFinite(call.site.attr<DType>("dtype")) *
                                std::exp2(-static_cast<double>(call.site.integer("margin"))));
  return std::min(top / used, std::numeric_limits<float>::max());
}

// Transformer Engine's rule to the last edge case: an amax of 0 leaves everything as it is; the history shifts by one,
// the new value goes last and slot 0 becomes 0; a maximum that is 0, infinite or NaN keeps the scale; an infinite scale
// becomes FLT_MAX. With ..._finite an amax of Inf counts as 0, also in slot 0 (where micro-batches collect) and in a
// history that has one.
void amaxUpdateReference(const RefCall &call) {
  const RefTensor &history = *call.inputs[0];
  llvm::StringRef algo = call.site.word("algo");
  bool finiteOnly = algo.consume_back("_finite");
  auto amax = static_cast<float>(call.inputs[2]->data[0]), scale = static_cast<float>(call.inputs[1]->data[0]);
  std::vector<double> &next = call.outputs[0].data = history.data;
  if (finiteOnly && !std::isfinite(amax)) {
    amax = 0;
    if (history.elements() != 0) next[0] = 0;
  }
  if (amax != 0 && history.elements() != 0) {
    double largest = amax;
    for (int64_t i = 1; i < history.elements(); ++i)
      if (!finiteOnly || std::isfinite(history.data[i])) largest = std::max(largest, history.data[i]);
    next.erase(next.begin());
    next.push_back(amax);
    next[0] = 0;
    scale = nextScale(call, algo == "max" ? largest : amax);
  }
  call.outputs[1].data[0] = scale;
  call.outputs[2].data[0] = 1.0f / scale;
}

void identityReference(const RefCall &call) { call.outputs[0].data = call.inputs[0]->data; }

} // namespace

llvm::ArrayRef<OpDef> quantizeOps() {
  static const std::vector<OpDef> ops = {
      op("quantize")
          .precision(PrecisionClass::any)
          .summary(
              "x * scale rounded to FP8 with saturation, and max |x|; contract names the axis its consumer sums over")
          .operands({"x", "scale"})
          .results({"q", "amax"})
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f8e4m3), false, {}, {}})
          .note("f8e4m3 or f8e5m2")
          .integer("contract", -1)
          .note("axis the consumer sums over")
          .word("granularity", {"tensor"})
          .note("elements that share a scale")
          .untyped({1})
          .lowering(Lowering::pointwise)
          .infer(inferQuantize)
          .reference(quantizeReference)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> { // straight through
            return {g.gradient() ? g.builder.cast(g.gradient(), g.op.operand(0u).dtype()) : Value(), Value()};
          }),
      op("fp8_cast")
          .precision(PrecisionClass::any)
          .summary("x * scale rounded to FP8 with saturation, as a plain tensor: the data of a quantised one")
          .operands({"x", "scale"})
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f8e4m3), false, {}, {}})
          .note("f8e4m3 or f8e5m2")
          .untyped({1})
          .lowering(Lowering::expansion)
          .infer(inferFp8Cast)
          .expansion(expandFp8Cast),
      op("amax")
          .precision(PrecisionClass::any)
          .summary("largest |x|; a NaN does not count")
          .operands({"x"})
          .lowering(Lowering::expansion)
          .infer(inferAmax)
          .expansion(expandAmax),
      op("dequantize")
          .summary("the plain tensor a quantised one stands for")
          .quantised()
          .precision(PrecisionClass::any)
          .operands({"q"})
          .attr({"to", AttrKind::dtype, AttrValue(DType::f32), false, {}, {}})
          .note("dtype of the result")
          .lowering(Lowering::pointwise)
          .infer(inferDequantize)
          .reference(dequantizeReference)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> { return {g.gradient()}; }),
      op("amax_update")
          .summary(
              "one step of delayed scaling: new amax history, scale, and 1 / scale, which products are multiplied by")
          .precision(PrecisionClass::any)
          .operands({"history", "scale", "amax"})
          .results({"history", "scale", "scale_inv"})
          .word("algo", {"max", "most_recent", "max_finite", "most_recent_finite"})
          .note(
              "scale from the maximum of the history, or from the newest amax; _finite: an amax of Inf does not count")
          .integer("margin", 0)
          .note("the scale leaves 2^margin of headroom")
          .range(0, 30)
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f8e4m3), false, {}, {}})
          .note("whose largest value amax is mapped to")
          .lowering(Lowering::multiTensor)
          .infer(inferAmaxUpdate)
          .reference(amaxUpdateReference),
      op("grad_quantize")
          .summary("x itself; its gradient is quantised with scale")
          .operands({"x", "scale"})
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f8e5m2), false, {}, {}})
          .note("of the gradient")
          .untyped({1})
          .lowering(Lowering::view)
          .infer([](const OpSite &site) -> llvm::Expected<ResultTypes> {
            if (auto error = checkScale(site, 1)) return error;
            return ResultTypes{site.type(0)};
          })
          .reference(identityReference)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            return {g.builder.op("quantize", {g.gradient(), g.op.operand(1)}, {{"dtype", g.op.attr<DType>("dtype")}}),
                    Value()};
          }),
  };
  return ops;
}

} // namespace fusor::ir
