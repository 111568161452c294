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
void matMul(NodeSite &s) {
  Term a = s.in(0), b = s.in(1);
  if (!a || !b) return;
  if (a.rank() == 0 || b.rank() == 0)
    return void(s.fail("operands must have dims: {0} and {1}", a.typeText(), b.typeText()));
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.reshape({Dim(1), a.dim(0)});
  if (column) b = b.reshape({b.dim(0), Dim(1)});
  Term y = matrixProduct(s, a, b);
  Shape shape = y.shape();
  if (column && !shape.empty()) shape.pop_back();
  if (row && !shape.empty()) shape.erase(shape.end() - (column ? 1 : 2));
  s.out(0, y.reshape(std::move(shape)));
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

} // namespace

llvm::ArrayRef<OpEntry> linearOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "MatMul", 1, matMul},
      {"", "Gemm", 6, gemm},
      {"com.microsoft", "FusedMatMul", 1, fusedMatMul},
  };
  return entries;
}

} // namespace fusor::onnx
