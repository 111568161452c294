// Products of matrices.
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// Integers are multiplied in f64, which is exact below 2^53.
Term matrixProduct(NodeSite &s, Term a, Term b, bool transA = false, bool transB = false) {
  if (!a || !b) return {};
  DType dtype = a.dtype();
  if (dtype != b.dtype()) return s.fail("operands are {0} and {1}", ir::name(dtype), ir::name(b.dtype()));
  if (!a.isFloat()) a = a.cast(DType::f64), b = b.cast(DType::f64);
  return castTo(s.writer().op("matmul", {a, b}, {{"trans_a", transA}, {"trans_b", transB}}), dtype);
}

// As NumPy's: a vector on the left is a row, on the right a column, and that dim is dropped again.
Term numpyProduct(NodeSite &s, Term a, Term b) {
  if (!a || !b) return {};
  if (a.rank() == 0 || b.rank() == 0) return s.fail("operands must have dims: {0} and {1}", a.typeText(), b.typeText());
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.reshape({Dim(1), a.dim(0)});
  if (column) b = b.reshape({b.dim(0), Dim(1)});
  Term y = matrixProduct(s, a, b);
  Shape shape = y.shape();
  if (column && !shape.empty()) shape.pop_back();
  if (row && !shape.empty()) shape.erase(shape.end() - (column ? 1 : 2));
  return y.reshape(std::move(shape));
}
void matMul(NodeSite &s) { s.out(0, numpyProduct(s, s.in(0), s.in(1))); }

// 8-bit numbers without their zero points (input `zero`), in f64. Those of rows of a are [M] or [.., M, 1], those of
// columns of b are [N] or [.., 1, N].
Term centred(NodeSite &s, unsigned input, unsigned zero, bool isLeft) {
  Term x = s.in(input), z = s.optionalIn(zero);
  if (!x) return {};
  if (x.dtype() != DType::i8 && x.dtype() != DType::u8)
    return s.fail("input {0} must be of 8 bits, is {1}", input, x.typeText());
  if (!z) return x.cast(DType::f64);
  if (z.dtype() != x.dtype()) return s.fail("the zero point is {0}, the operand {1}", z.typeText(), x.typeText());
  if (z.rank() == 1 && z.dim(0).is(1)) z = z.reshape({});
  if (z.rank() == 1 && isLeft) z = z.reshape({z.dim(0), Dim(1)});
  auto together = ir::broadcastShapes({x.shape(), z.shape()});
  const unsigned summed = isLeft ? 1 : 2; // the dim of that number from the end has one zero point
  if ((z.rank() >= summed && !z.dim(-static_cast<int64_t>(summed)).is(1)) || !together || *together != x.shape())
    return s.fail("the zero points {0} are not those of {1} of {2}", z.typeText(), isLeft ? "rows" : "columns",
                  x.typeText());
  return x.cast(DType::f64) - z.cast(DType::f64);
}
void matMulInteger(NodeSite &s) {
  Term a = centred(s, 0, 2, true), b = centred(s, 1, 3, false);
  s.out(0, castTo(numpyProduct(s, a, b).cast(DType::i64), DType::i32));
}

Term scaled(Term x, double by) { return by == 1 ? x : x * by; }

void gemm(NodeSite &s) {
  Term a = s.in(0), b = s.in(1);
  bool transA = s.integer("transA", 0) != 0, transB = s.integer("transB", 0) != 0;
  double alpha = s.real("alpha", 1), beta = s.real("beta", 1);
  if (s.version() < 7) s.ignore("broadcast");
  if (!a || !b) return;
  if (a.rank() != 2 || b.rank() != 2)
    return void(s.fail("operands must be matrices: {0} and {1}", a.typeText(), b.typeText()));
  Term y = scaled(matrixProduct(s, a, b, transA, transB), alpha);
  Term c = s.optionalIn(2);
  if (!c || !y) return s.out(0, y);
  auto together = ir::broadcastShapes({y.shape(), c.shape()});
  if (!together || *together != y.shape())
    return void(s.fail("C {0} does not broadcast to the product {1}", c.typeText(), y.typeText()));
  s.out(0, beta == 0 ? y : y + scaled(c, beta));
}

// com.microsoft: alpha * A' x B', where transBatchX moves the first dim of X in front of its last.
void fusedMatMul(NodeSite &s) {
  Term a = s.in(0), b = s.in(1);
  if (s.integer("transBatchA", 0) || s.integer("transBatchB", 0))
    s.fail("transBatchA and transBatchB are not supported");
  bool transA = s.integer("transA", 0) != 0, transB = s.integer("transB", 0) != 0;
  s.out(0, scaled(matrixProduct(s, a, b, transA, transB), s.real("alpha", 1)));
}

void gemmFastGelu(NodeSite &s) {
  Term y = numpyProduct(s, s.in(0), s.in(1)), bias = s.optionalIn(2);
  if (bias && (bias.rank() != 1 || bias.dim(0) != y.dim(-1)))
    return void(s.fail("the bias {0} does not fit {1}", bias.typeText(), y.typeText()));
  s.out(0, (bias ? y + bias : y).apply("gelu"));
}

} // namespace

llvm::ArrayRef<OpEntry> linearOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "MatMul", 1, matMul},
      {"", "Gemm", 6, gemm},
      {"", "MatMulInteger", 10, matMulInteger},
      {"com.microsoft", "FusedMatMul", 1, fusedMatMul},
      {"com.microsoft", "GemmFastGelu", 1, gemmFastGelu},
  };
  return entries;
}

} // namespace fusor::onnx
