// Tensors out of nothing: constants, fills, ranges.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "model.pb.h"
#include <cmath>
#include <cstring>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

template <typename T> Data dataOf(DType dtype, llvm::SmallVector<int64_t, 4> shape, llvm::ArrayRef<T> values) {
  auto *bytes = reinterpret_cast<const char *>(values.data());
  return {dtype, std::move(shape), std::make_shared<const std::vector<char>>(bytes, bytes + values.size() * sizeof(T))};
}

void constant(NodeSite &s) {
  if (s.node().attribute_size() != 1) return void(s.fail("needs one attribute, has {0}", s.node().attribute_size()));
  if (s.hasAttr("value")) {
    if (auto data = s.tensor("value")) s.outData(0, std::move(*data));
  } else if (s.hasAttr("value_int")) {
    int64_t value = s.integer("value_int", 0);
    s.outData(0, dataOf<int64_t>(DType::i64, {}, value));
  } else if (s.hasAttr("value_ints")) {
    std::vector<int64_t> values = s.list("value_ints");
    s.outData(0, dataOf<int64_t>(DType::i64, {static_cast<int64_t>(values.size())}, values));
  } else if (s.hasAttr("value_float")) {
    auto value = static_cast<float>(s.real("value_float", 0));
    s.outData(0, dataOf<float>(DType::f32, {}, value));
  } else if (s.hasAttr("value_floats")) {
    std::vector<double> values = s.realList("value_floats");
    std::vector<float> floats(values.begin(), values.end());
    s.outData(0, dataOf<float>(DType::f32, {static_cast<int64_t>(floats.size())}, floats));
  } else {
    s.fail("its value is of a kind that is not supported (strings, sparse)");
  }
}

void constantOfShape(NodeSite &s) {
  auto dims = s.dims(0, "shape");
  std::optional<Data> value = s.tensor("value");
  if (!dims || s.failed()) return;
  DType dtype = value ? value->dtype : DType::f32;
  if (value && value->elements() != 1)
    return void(s.fail("attribute 'value' must hold one element, holds {0}", value->elements()));
  double number = value ? ir::loadElement(dtype, value->bytes->data(), 0) : 0;
  Shape shape(dims->begin(), dims->end());
  int64_t count = 1;
  for (const Dim &dim : shape) {
    if (dim.isConstant() && dim.value() < 0) return void(s.fail("shape has a negative dim, {0}", dim.value()));
    count = dim.isConstant() && dim.value() <= kMaxKnown && count <= kMaxKnown ? count * dim.value() : kMaxKnown + 1;
  }
  bool isSmall = count <= kMaxKnown && (ir::isInteger(dtype) || dtype == DType::i1);
  if (isSmall && std::fabs(number) < 9e15) {
    Known known{dtype, {}, std::vector<Dim>(count, Dim(static_cast<int64_t>(number)))};
    for (const Dim &dim : shape) known.shape.push_back(dim.value());
    return s.outKnown(0, std::move(known));
  }
  s.out(0, s.writer().constant(number, dtype).broadcast(std::move(shape)));
}

// start, start + delta, ...: below (or above) limit.
void range(NodeSite &s) {
  ir::TensorType type = s.type(0);
  if (s.failed()) return;
  bool isInteger = ir::isInteger(type.dtype);
  Dim count;
  if (isInteger) {
    auto start = s.dims(0, "start"), limit = s.dims(1, "limit"), delta = s.dims(2, "delta");
    if (s.failed() || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
      return void(s.fail("start, limit and delta must be scalars"));
    const Dim &by = delta->front();
    auto span = foldSub({limit->front(), start->front()});
    if (!span) return void(s.fail("has too many elements"));
    if (by.is(0)) return void(s.fail("delta must not be 0"));
    if (span->isConstant() && by.isConstant()) {
      bool up = by.value() > 0;
      uint64_t size = up ? static_cast<uint64_t>(by.value()) : -static_cast<uint64_t>(by.value());
      int64_t distance = span->value();
      bool none = up ? distance <= 0 : distance >= 0;
      uint64_t length = up ? static_cast<uint64_t>(distance) : -static_cast<uint64_t>(distance);
      uint64_t n = none ? 0 : length / size + (length % size != 0);
      if (n > static_cast<uint64_t>(kMaxDim)) return void(s.fail("has {0} elements", n));
      count = Dim(static_cast<int64_t>(n));
    } else {
      if (!by.is(1)) return void(s.fail("by {0} to a size that inputs fix is not supported", by.str()));
      if (!isModest(*span) || !s.writer().demandAtLeast(*span, 0))
        return void(s.fail("whether {0} is negative is not known", span->str()));
      count = *span;
    }
  } else {
    auto start = s.reals(0, "start"), limit = s.reals(1, "limit"), delta = s.reals(2, "delta");
    if (s.failed() || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
      return void(s.fail("start, limit and delta must be scalars"));
    double n = std::ceil((limit->front() - start->front()) / delta->front());
    if (!(n <= static_cast<double>(kMaxDim)))
      return void(s.fail("has no or too many elements: from {0} to {1} by {2}", start->front(), limit->front(),
                         delta->front()));
    count = Dim(n > 0 ? static_cast<int64_t>(n) : 0);
  }
  DType compute = isInteger ? DType::i64 : wide(type.dtype);
  Term start = s.in(0).reshape({}), delta = s.in(2).reshape({});
  Term y = start.cast(compute) + s.writer().iota({count}, 0, compute) * delta.cast(compute);
  s.out(0, castTo(y, type.dtype));
}

void eyeLike(NodeSite &s) {
  ir::TensorType type = s.type(0);
  int64_t k = s.integer("k", 0);
  auto dtype =
      s.hasAttr("dtype") ? dtypeOf(static_cast<int32_t>(s.integer("dtype", 0))) : llvm::Expected<DType>(type.dtype);
  if (!dtype) return void(s.fail("attribute 'dtype': {0}", llvm::toString(dtype.takeError())));
  if (type.rank() != 2) return void(s.fail("needs two dims, is given {0}", type.str()));
  k = std::clamp(k, -kMaxDim, kMaxDim);
  Term i = s.writer().iota({type.shape[0], Dim(1)}, 0), j = s.writer().iota({Dim(1), type.shape[1]}, 1);
  s.out(0, (j - i == static_cast<double>(k)).cast(*dtype));
}

} // namespace

llvm::ArrayRef<OpEntry> constantOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Constant", 1, constant},
      {"", "ConstantOfShape", 9, constantOfShape},
      {"", "Range", 11, range},
      {"", "EyeLike", 9, eyeLike},
  };
  return entries;
}

} // namespace fusor::onnx
