// QuantizeLinear and DequantizeLinear: one scale for the tensor, for each place of an axis, or for each block along it.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "model.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// A scale or zero point in a shape that broadcasts with x.
Term spread(NodeSite &s, Term v, Term x, int64_t axisGiven, int64_t block) {
  if (!v || !x) return {};
  if (block == 0 && (v.rank() == 0 || (v.rank() == 1 && v.dim(0).is(1)))) return v.reshape({});
  unsigned axis = s.axis(axisGiven, x.rank());
  if (s.failed()) return {};
  if (block == 0) {
    if (v.rank() != 1 || v.dim(0) != x.dim(axis))
      return s.fail("scale {0} does not fit axis {1} of {2}", v.typeText(), axis, x.typeText());
    Shape shape(x.rank(), Dim(1));
    shape[axis] = v.dim(0);
    return v.reshape(std::move(shape));
  }
  if (v.rank() != x.rank() || !x.dim(axis).isConstant() || !v.dim(axis).isConstant())
    return s.fail("scale {0} does not fit blocks of {1}", v.typeText(), x.typeText());
  int64_t n = x.dim(axis).value(), blocks = v.dim(axis).value();
  if (block > n || blocks != (n + block - 1) / block)
    return s.fail("{0} blocks of {1} do not cover dim {2}", blocks, block, n);
  for (unsigned i = 0; i < x.rank(); ++i)
    if (i != axis && v.dim(i) != x.dim(i))
      return s.fail("scale {0} does not fit {1} in dim {2}", v.typeText(), x.typeText(), i);
  Shape apart = v.shape(), wide, joined = v.shape();
  apart.insert(apart.begin() + axis + 1, Dim(1));
  wide = apart;
  wide[axis + 1] = Dim(block);
  joined[axis] = Dim(blocks * block);
  return v.reshape(std::move(apart))
      .broadcast(std::move(wide))
      .reshape(std::move(joined))
      .part(axis, Dim(0), Dim(n)); // the last may be cut
}

// The version of ai.onnx whose rules a node follows. Other domains have the attributes of 21 in their first version.
int64_t rulesOf(NodeSite &s) { return s.node().domain().empty() || s.node().domain() == "ai.onnx" ? s.version() : 21; }

int64_t blockOf(NodeSite &s) {
  int64_t block = rulesOf(s) >= 21 ? s.integer("block_size", 0) : 0;
  if (block < 0 || block > kMaxDim) s.fail("attribute 'block_size' is {0}", block);
  return block;
}
int64_t axisOf(NodeSite &s) { return rulesOf(s) >= 13 ? s.integer("axis", 1) : 1; }

// Attribute output_dtype; empty where it is not given.
std::optional<ElementType> outputType(NodeSite &s, int64_t since) {
  int64_t number = rulesOf(s) >= since ? s.integer("output_dtype", 0) : 0;
  if (number == 0) return std::nullopt;
  auto type = elementTypeOf(static_cast<int32_t>(number));
  if (type) return *type;
  return s.fail("attribute 'output_dtype': {0}", llvm::toString(type.takeError())), std::nullopt;
}

// round(x / scale) + zero, to the nearest element of `to`.
void quantize(NodeSite &s, ElementType to, Term zero, bool saturate) {
  Term x = s.in(0), scale = s.in(1);
  int64_t axis = axisOf(s), block = blockOf(s);
  if (s.failed()) return;
  Term y = x.cast(DType::f32) / spread(s, scale, x, axis, block).cast(DType::f32);
  if (auto point = s.constant(2); ir::isFp8(to.dtype) && point && llvm::any_of(*point, [](double p) { return p != 0; }))
    return void(s.fail("the zero point of an FP8 type must be 0"));
  if (ir::isFp8(to.dtype)) return s.out(0, castTo(y, to.dtype, saturate)); // a zero point only names the type
  y = y.apply("round");
  if (zero) y = y + spread(s, zero, x, axis, block).cast(DType::f32);
  if (!to.isNibble) return s.out(0, y.cast(to.dtype)); // the IR saturates
  const double low = ir::isSigned(to.dtype) ? -8 : 0;
  s.outNibble(0, y.apply("clamp", {{"low", low}, {"high", low + 15}}).cast(to.dtype));
}

void quantizeLinear(NodeSite &s) {
  Term zero = s.optionalIn(2);
  bool saturate = rulesOf(s) < 19 || s.integer("saturate", 1) != 0;
  if (rulesOf(s) >= 23) s.ignore("precision");
  ElementType to{zero ? zero.dtype() : DType::u8, s.isNibble(2)};
  if (auto asked = outputType(s, 21)) {
    if (zero && (asked->dtype != to.dtype || asked->isNibble != to.isNibble))
      return void(s.fail("output_dtype is {0}, the zero point {1}", ir::name(asked->dtype), ir::name(to.dtype)));
    to = *asked;
  }
  quantize(s, to, zero, saturate);
}

void dequantizeLinear(NodeSite &s) {
  Term q = s.in(0), scale = s.in(1), zero = s.optionalIn(2);
  int64_t axis = axisOf(s), block = blockOf(s);
  ElementType to = outputType(s, 23).value_or(ElementType{scale.dtype()});
  bool isNibble = s.isNibble(0), isZeroNibble = s.isNibble(2);
  if (s.failed()) return;
  if (!ir::isFloat(to.dtype)) return void(s.fail("the result cannot be {0}", ir::name(to.dtype)));
  if (zero && (zero.dtype() != q.dtype() || isNibble != isZeroNibble))
    return void(s.fail("the zero point is {0}{1}, the tensor {2}{3}", isZeroNibble ? "4-bit " : "",
                       ir::name(zero.dtype()), isNibble ? "4-bit " : "", ir::name(q.dtype())));
  Term y;
  if (ir::isInteger(q.dtype())) { // the difference is exact
    y = q.cast(DType::i64);
    if (zero) y = y - spread(s, zero, q, axis, block).cast(DType::i64);
    y = y.cast(DType::f32);
  } else {
    y = q.cast(DType::f32);
    if (zero) y = y - spread(s, zero, q, axis, block).cast(DType::f32);
  }
  s.out(0, (y * spread(s, scale, q, axis, block).cast(DType::f32)).cast(to.dtype));
}

// trt, as TensorRT's tools write them: to e4m3 and back.
void quantizeFp8(NodeSite &s) {
  if (s.has(2)) s.fail("a zero point is not supported");
  quantize(s, {DType::f8e4m3}, {}, true);
}
void dequantizeFp8(NodeSite &s) {
  if (s.has(2)) s.fail("a zero point is not supported");
  if (DType dtype = s.type(0).dtype; dtype != DType::f8e4m3) s.fail("input 0 must be f8e4m3, is {0}", ir::name(dtype));
  dequantizeLinear(s);
}

void dynamicQuantizeLinear(NodeSite &s) { // to uint8, with 0 in the range
  Term x = s.in(0);
  if (!x) return;
  auto dims = allDims(x.rank());
  Term zero = s.writer().constant(0, DType::f32);
  auto extreme = [&](const char *reduce, const char *limit) {
    Term t = dims.empty() ? x : x.reduce(reduce, dims, false);
    return s.writer().op(limit, {t, zero});
  };
  Term high = extreme("reduce_max", "max"), low = extreme("reduce_min", "min");
  Term scale = (high - low) / 255.0;
  Term safe = scale ? select(scale == 0.0, s.writer().constant(1, DType::f32), scale) : Term();
  Term point = ((-low) / safe).apply("round").apply("clamp", {{"low", 0.0}, {"high", 255.0}});
  s.out(0, ((x / safe).apply("round") + point).cast(DType::u8));
  s.out(1, scale);
  s.out(2, point.cast(DType::u8));
}

} // namespace

llvm::ArrayRef<OpEntry> quantizeOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "QuantizeLinear", 10, quantizeLinear},
      {"", "DequantizeLinear", 10, dequantizeLinear},
      {"", "DynamicQuantizeLinear", 11, dynamicQuantizeLinear},
      {"com.microsoft", "QuantizeLinear", 1, quantizeLinear},
      {"com.microsoft", "DequantizeLinear", 1, dequantizeLinear},
      {"trt", "TRT_FP8QuantizeLinear", 1, quantizeFp8},
      {"trt", "TRT_FP8DequantizeLinear", 1, dequantizeFp8},
      {"trt", "DequantizeLinear", 1, dequantizeLinear},
  };
  return entries;
}

} // namespace fusor::onnx
