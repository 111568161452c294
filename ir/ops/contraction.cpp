// Contractions: matmul, linear and its weight gradient. Sums are in f32 (f64 for f64); the result is rounded once.
#include "ir/ops/families.h"
#include "ir/ops/indexing.h"
#include "ir/ops/op_builder.h"
#include "ir/ops/rounding.h"

namespace fusor::ir {
namespace {

// The dtype of the result: `out`, else the operands'; FP8 operands give bf16.
DType resultType(const OpSite &site) {
  if (const AttrValue *out = site.attrs.find("out")) return std::get<DType>(*out);
  DType dtype = site.type(0).dtype;
  return isFp8(dtype) ? DType::bf16 : dtype;
}

llvm::Error checkPair(const OpSite &site) {
  DType a = site.type(0).dtype, b = site.type(1).dtype;
  bool floats = isFloat(a) && isFloat(b);
  if (!floats || (a != b && !(isFp8(a) && isFp8(b))))
    return opError("operands must be floats of one dtype (or both FP8): {0} and {1}", site.type(0).str(),
                   site.type(1).str());
  return llvm::Error::success();
}

double scaled(const RefTensor &t, int64_t i) { return t.scale == 1 ? t.data[i] : t.data[i] / t.scale; }

// --- matmul: a [..., M, K] x b [..., K, N], either transposed, leading dims broadcast

llvm::Expected<ResultTypes> inferMatmul(const OpSite &site) {
  if (auto error = checkPair(site)) return error;
  const TensorType &a = site.type(0), &b = site.type(1);
  if (a.rank() < 2 || b.rank() < 2) return opError("operands need at least 2 dims: {0} and {1}", a.str(), b.str());
  bool ta = site.flag("trans_a"), tb = site.flag("trans_b");
  const Dim &m = a.dim(ta ? -1 : -2), &ka = a.dim(ta ? -2 : -1), &kb = b.dim(tb ? -1 : -2), &n = b.dim(tb ? -2 : -1);
  if (ka != kb)
    return opError("contracted dims must be equal: {0} of {1} and {2} of {3}", ka.str(), a.str(), kb.str(), b.str());
  auto shape = broadcastShapes({llvm::ArrayRef<Dim>(a.shape).drop_back(2), llvm::ArrayRef<Dim>(b.shape).drop_back(2)});
  if (!shape) return opError("leading dims must broadcast: {0} and {1}", a.str(), b.str());
  shape->append({m, n});
  return ResultTypes{{resultType(site), std::move(*shape)}};
}

void matmulReference(const RefCall &call) {
  const RefTensor &a = *call.inputs[0], &b = *call.inputs[1];
  RefTensor &y = call.outputs[0];
  bool ta = call.site.flag("trans_a"), tb = call.site.flag("trans_b");
  int64_t m = y.dim(-2), n = y.dim(-1), k = a.dim(ta ? -2 : -1);
  llvm::ArrayRef<int64_t> batch = llvm::ArrayRef<int64_t>(y.shape).drop_back(2);
  Index as = broadcastStrides(llvm::ArrayRef<int64_t>(a.shape).drop_back(2), batch),
        bs = broadcastStrides(llvm::ArrayRef<int64_t>(b.shape).drop_back(2), batch);
  forEachIndex(batch, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    int64_t a0 = dot(index, as) * m * k, b0 = dot(index, bs) * k * n;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t t = 0; t < k; ++t)
          sum += scaled(a, a0 + (ta ? t * m + r : r * k + t)) * scaled(b, b0 + (tb ? c * k + t : t * n + c));
        y.data[(i * m + r) * n + c] = sum;
      }
  });
  roundAll(y);
}

llvm::SmallVector<Value, 4> matmulGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value a = g.op.operand(0u), w = g.op.operand(1), dy = g.gradient();
  dy = b.cast(dy, a.dtype());
  bool ta = g.op.attr<bool>("trans_a"), tb = g.op.attr<bool>("trans_b");
  // y = A B with A = op(a), B = op(b):  dA = dy B^T, dB = A^T dy; a transposed operand gets the transposed gradient.
  Value da =
      ta ? b.op("matmul", {w, dy}, {{"trans_a", tb}, {"trans_b", true}}) : b.op("matmul", {dy, w}, {{"trans_b", !tb}});
  Value dw =
      tb ? b.op("matmul", {dy, a}, {{"trans_a", true}, {"trans_b", ta}}) : b.op("matmul", {a, dy}, {{"trans_a", !ta}});
  return {sumToShape(b, da, a.shape()), sumToShape(b, dw, w.shape())};
}

// --- linear: x [..., K], weight [N, K], bias [N] -> [..., N]

llvm::Expected<ResultTypes> inferLinear(const OpSite &site) {
  if (auto error = checkPair(site)) return error;
  const TensorType &x = site.type(0), &w = site.type(1);
  if (x.rank() < 1 || w.rank() != 2)
    return opError("needs x [..., K] and weight [N, K]: {0} and {1}", x.str(), w.str());
  if (x.dim(-1) != w.dim(1))
    return opError("contracted dims must be equal: {0} of x {1} and {2} of weight {3}", x.dim(-1).str(), x.str(),
                   w.dim(1).str(), w.str());
  if (Value bias = site.operand(2))
    if (bias.rank() != 1 || bias.shape()[0] != w.dim(0) || !isFloat(bias.dtype()))
      return opError("bias must be [{0}] like the rows of weight {1}, is {2}", w.dim(0).str(), w.str(),
                     bias.type().str());
  Shape shape = x.shape;
  shape.back() = w.dim(0);
  return ResultTypes{{resultType(site), std::move(shape)}};
}

void linearReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0], &w = *call.inputs[1];
  const RefTensor *bias = call.inputs.size() > 2 ? call.inputs[2] : nullptr;
  RefTensor &y = call.outputs[0];
  int64_t n = w.dim(0), k = w.dim(1), rows = n ? y.elements() / n : 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += scaled(x, r * k + t) * scaled(w, c * k + t);
      y.data[r * n + c] = sum + (bias ? bias->data[c] : 0);
    }
  roundAll(y);
}

bool isQuantised(Value v) { return v.type().granularity != Granularity::none; }

// What `v` was quantised from, else what it stands for.
Value unquantised(Builder &b, Value v, DType dtype) {
  if (!isQuantised(v)) return b.cast(v, dtype);
  if (v.op() && v.op()->is("quantize")) return b.cast(v.op()->operand(0u), dtype);
  return b.op("dequantize", {v}, {{"to", dtype}});
}

// dgrad and wgrad. The weight gradient stays in f32 (its sum over all rows), which an f32 master weight receives
// unrounded. With FP8 operands both take the FP8 copies of x, w and dy (which a grad_quantize behind the op made), and
// the bias gradient sums dy as it was before; so does all where dy alone was quantised, to measure it.
llvm::SmallVector<Value, 4> linearGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value x = g.op.operand(0u), w = g.op.operand(1), bias = g.op.operand(2), dy = g.gradient();
  DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32, narrow = resultType(g.op.site());
  bool inFp8 = isQuantised(x) && isQuantised(w) && isQuantised(dy);
  Value dyPlain = inFp8 ? Value() : isQuantised(dy) ? unquantised(b, dy, narrow) : b.cast(dy, x.dtype());
  Value dx = inFp8
                 ? b.op("linear_input_grad", {dy, w}, {{"out", narrow}})
                 : b.op("linear_input_grad", {dyPlain, isQuantised(w) ? b.op("dequantize", {w}, {{"to", narrow}}) : w});
  Value dw;
  if (inFp8 && !g.op.attr<bool>("plain_wgrad"))
    dw = b.op("linear_weight_grad", {dy, x}, {{"out", wide}});
  else if (isQuantised(x))
    dw = b.op("linear_weight_grad", {unquantised(b, dy, narrow), unquantised(b, x, narrow)}, {{"out", wide}});
  else
    dw = b.op("linear_weight_grad", {dyPlain, x}, {{"out", wide}});
  if (bias && isQuantised(dy)) dy = unquantised(b, dy, wide);
  Value db;
  if (bias) {
    std::vector<int64_t> lead;
    for (unsigned i = 0; i + 1 < dy.rank(); ++i) lead.push_back(i);
    db = lead.empty() ? b.cast(dy, wide) : b.op("sum", {b.cast(dy, wide)}, {{"dims", lead}});
  }
  return {dx, dw, db};
}

llvm::Expected<ResultTypes> inferInputGrad(const OpSite &site) {
  if (auto error = checkPair(site)) return error;
  const TensorType &dy = site.type(0), &w = site.type(1);
  if (dy.rank() < 1 || w.rank() != 2 || dy.dim(-1) != w.dim(0))
    return opError("needs dy [..., N] and weight [N, K]: {0} and {1}", dy.str(), w.str());
  Shape shape = dy.shape;
  shape.back() = w.dim(1);
  return ResultTypes{{resultType(site), std::move(shape)}};
}

void inputGradReference(const RefCall &call) {
  const RefTensor &dy = *call.inputs[0], &w = *call.inputs[1];
  RefTensor &dx = call.outputs[0];
  int64_t n = w.dim(0), k = w.dim(1), rows = k ? dx.elements() / k : 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c)
      for (int64_t t = 0; t < k; ++t) dx.data[r * k + t] += scaled(dy, r * n + c) * scaled(w, c * k + t);
  roundAll(dx);
}

llvm::SmallVector<Value, 4> inputGradGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value dy = g.op.operand(0u), w = g.op.operand(1), ddx = b.cast(g.gradient(), dy.dtype());
  return {b.op("linear", {ddx, w}), b.op("linear_weight_grad", {dy, ddx}, {{"out", w.dtype()}})};
}

llvm::Expected<ResultTypes> inferWeightGrad(const OpSite &site) {
  if (auto error = checkPair(site)) return error;
  const TensorType &dy = site.type(0), &x = site.type(1);
  if (dy.rank() < 1 || x.rank() != dy.rank() ||
      !llvm::ArrayRef<Dim>(dy.shape).drop_back().equals(llvm::ArrayRef<Dim>(x.shape).drop_back()))
    return opError("needs dy [..., N] and x [..., K] with equal leading dims: {0} and {1}", dy.str(), x.str());
  return ResultTypes{{resultType(site), {dy.dim(-1), x.dim(-1)}}};
}

void weightGradReference(const RefCall &call) {
  const RefTensor &dy = *call.inputs[0], &x = *call.inputs[1];
  int64_t n = dy.dim(-1), k = x.dim(-1), rows = n ? dy.elements() / n : 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c)
      for (int64_t t = 0; t < k; ++t) call.outputs[0].data[c * k + t] += scaled(dy, r * n + c) * scaled(x, r * k + t);
  roundAll(call.outputs[0]);
}

llvm::SmallVector<Value, 4> weightGradGradient(const GradientSite &g) {
  Builder &b = g.builder;
  Value dy = g.op.operand(0u), x = g.op.operand(1), ddw = b.cast(g.gradient(), x.dtype()); // [N, K]
  return {b.op("linear", {x, ddw}), b.op("linear_input_grad", {dy, ddw})};
}

} // namespace

llvm::ArrayRef<OpDef> contractionOps() {
  static const std::vector<OpDef> ops = {
      op("matmul")
          .summary("a x b over the last two dims; leading dims broadcast")
          .quantised()
          .operands({"a", "b"})
          .flag("trans_a", false)
          .note("a is [..., K, M]")
          .flag("trans_b", false)
          .note("b is [..., N, K]")
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: the operands', for FP8 bf16")
          .lowering(Lowering::contraction)
          .precision(PrecisionClass::low)
          .infer(inferMatmul)
          .reference(matmulReference)
          .gradient(matmulGradient),
      op("linear")
          .summary("x times weight transposed, plus bias: [..., K] x [N, K] -> [..., N]")
          .quantised()
          .operands({"x", "weight", "bias?"})
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: the operands', for FP8 bf16")
          .flag("plain_wgrad", false)
          .note("of FP8 operands: the weight gradient is computed from what they were quantised from")
          .flag("fast_accum", false)
          .note(
              "of FP8 operands: a library may keep fewer bits of the sum, as Transformer Engine does in forward passes")
          .word("gradient_of", {"none", "input", "weight"})
          .note(
              "in a backward pass: what of a linear layer it is the gradient of, where operands were transposed for it")
          .lowering(Lowering::contraction)
          .precision(PrecisionClass::low)
          .infer(inferLinear)
          .reference(linearReference)
          .gradient(linearGradient),
      op("linear_input_grad")
          .summary("dy times weight: [..., N] x [N, K] -> [..., K]")
          .quantised()
          .operands({"dy", "weight"})
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: the operands', for FP8 bf16")
          .lowering(Lowering::contraction)
          .precision(PrecisionClass::low)
          .infer(inferInputGrad)
          .reference(inputGradReference)
          .gradient(inputGradGradient),
      op("linear_weight_grad")
          .summary("dy transposed times x over all leading dims: [..., N] x [..., K] -> [N, K]")
          .quantised()
          .operands({"dy", "x"})
          .optional("out", AttrKind::dtype)
          .note("dtype of the result; absent: the operands', for FP8 bf16")
          .lowering(Lowering::contraction)
          .precision(PrecisionClass::low)
          .infer(inferWeightGrad)
          .reference(weightGradReference)
          .gradient(weightGradGradient),
  };
  return ops;
}

} // namespace fusor::ir
