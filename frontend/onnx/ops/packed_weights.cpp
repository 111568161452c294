// com.microsoft's MatMulNBits: a product with weights of 2, 4 or 8 bits, packed in bytes and scaled by blocks.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// The numbers of `bits` bits in each byte of the last dim, from the low ones on, as f32.
Term unpacked(Term bytes, int64_t bits) {
  if (!bytes || bits == 8) return bytes.cast(DType::f32);
  Shape apart = bytes.shape(), joined = bytes.shape();
  apart.push_back(Dim(1));
  joined.back() = joined.back() * Dim(8 / bits);
  Term rest = bytes.cast(DType::f32).reshape(std::move(apart));
  const auto base = static_cast<double>(1 << bits);
  llvm::SmallVector<Term, 4> numbers;
  for (int64_t i = 0; i < 8 / bits; ++i) {
    Term high = (rest / base).apply("floor");
    numbers.push_back(rest - high * base);
    rest = high;
  }
  return bytes.writer().concat(numbers, bytes.rank()).reshape(std::move(joined));
}

/// Weights [N, K] in blocks along K.
struct Blocks {
  int64_t n, k, bits, size;
  int64_t count() const { return (k + size - 1) / size; }
};

// Of each block, [N, blocks, 1]: numbers as they are, or packed like the weights with rows of whole bytes.
Term zeroPoints(NodeSite &s, Term given, const Blocks &b) {
  if (!given) return s.writer().constant(static_cast<double>(1 << (b.bits - 1)), DType::f32);
  const int64_t rowBytes = (b.count() * b.bits + 7) / 8;
  const bool isPacked = given.dtype() == DType::u8;
  if (ir::product(given.shape()) != Dim(b.n * (isPacked ? rowBytes : b.count())) || (!isPacked && !given.isFloat()))
    return s.fail("zero points {0} do not fit {1} rows of {2} blocks", given.typeText(), b.n, b.count());
  Term z = isPacked ? unpacked(given.reshape({Dim(b.n), Dim(rowBytes)}), b.bits).part(1, Dim(0), Dim(b.count()))
                    : given.cast(DType::f32);
  return z.reshape({Dim(b.n), Dim(b.count()), Dim(1)});
}

void matMulNBits(NodeSite &s) {
  Term x = s.in(0), packed = s.in(1), scales = s.in(2), zeros = s.optionalIn(3), bias = s.optionalIn(5);
  Blocks b{s.integer("N", 0), s.integer("K", 0), s.integer("bits", 4), s.integer("block_size", 0)};
  s.ignore("accuracy_level"); // products are never less exact than the types are
  if (s.integer("weight_prepacked", 0) != 0) s.fail("attribute 'weight_prepacked' is not supported");
  if (s.has(4)) s.fail("input 4, g_idx, is not supported");
  if (s.failed()) return;
  if (b.bits != 2 && b.bits != 4 && b.bits != 8)
    return void(s.fail("attribute 'bits' must be 2, 4 or 8, is {0}", b.bits));
  if (b.n < 1 || b.k < 1 || b.n > kMaxDim || b.k > kMaxDim || b.size < 16 || b.size > kMaxDim ||
      (b.size & (b.size - 1)))
    return void(s.fail("N = {0}, K = {1} or block_size = {2} is not supported", b.n, b.k, b.size));
  const Dim n(b.n), k(b.k), count(b.count());
  const Shape bytes{n, count, Dim(b.size * b.bits / 8)};
  if (packed.dtype() != DType::u8 || packed.shape() != bytes)
    return void(s.fail("weights must be u8[{0}], are {1}", ir::str(llvm::ArrayRef<Dim>(bytes)), packed.typeText()));
  if (x.rank() == 0 || x.dim(-1) != k || !x.isFloat())
    return void(s.fail("{0} is no float [.., {1}]", x.typeText(), b.k));
  if (scales.dtype() != x.dtype() || ir::product(scales.shape()) != n * count)
    return void(s.fail("scales {0} do not fit {1} rows of {2} blocks", scales.typeText(), b.n, b.count()));
  Term weights = unpacked(packed, b.bits) - zeroPoints(s, zeros, b);
  weights = weights * scales.cast(DType::f32).reshape({n, count, Dim(1)});
  weights = weights.reshape({n, count * Dim(b.size)}).part(1, Dim(0), k).cast(x.dtype()); // the last block may be cut
  const bool isVector = x.rank() == 1;
  Term y = s.writer().op("matmul", {isVector ? x.reshape({Dim(1), k}) : x, weights}, {{"trans_b", true}});
  if (isVector) y = y.reshape({n});
  if (bias && (bias.rank() != 1 || bias.dim(0) != n))
    return void(s.fail("the bias {0} does not fit {1} columns", bias.typeText(), b.n));
  s.out(0, bias ? y + bias : y);
}

} // namespace

llvm::ArrayRef<OpEntry> packedWeightsOperators() {
  static const std::vector<OpEntry> entries = {{"com.microsoft", "MatMulNBits", 1, matMulNBits}};
  return entries;
}

} // namespace fusor::onnx
