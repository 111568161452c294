// Conversions between dtypes, and what passes a tensor on.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace fusor::onnx {

using ir::DType;

namespace {

unsigned bitsOf(DType dtype) { return ir::byteSize(dtype) * 8; }

// Whether every value of integer type `from` is one of `to`.
bool holds(DType to, DType from) {
  if (ir::isSigned(from)) return ir::isSigned(to) && bitsOf(to) >= bitsOf(from);
  return bitsOf(to) > bitsOf(from) || (bitsOf(to) == bitsOf(from) && !ir::isSigned(to));
}

} // namespace

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Term wrapped(Term x, DType to) {
  if (!x) return x;
  double modulus = std::ldexp(1.0, static_cast<int>(bitsOf(to)));
  Term r = x.writer().op("mod", {x, x.writer().constant(modulus, DType::i64)});
  r = select(r < 0.0, r + modulus, r);
  if (ir::isSigned(to)) r = select(r >= modulus / 2, r - modulus, r);
  return r.cast(to);
}

Term castTo(Term x, DType to, bool saturate) {
  if (!x || x.dtype() == to) return x;
  DType from = x.dtype();
  if ((to == DType::f8e4m3 || to == DType::f8e5m2) && !saturate)
    return x.apply("cast", {{"to", to}, {"saturate", false}});
  if (!ir::isInteger(from) || !ir::isInteger(to) || holds(to, from)) return x.cast(to);
  if (to == DType::u64) return x.writer().fail("a cast from {0} to uint64 is not supported", ir::name(from));
  if (to == DType::i64) return x.cast(to); // from uint64: what is above 2^63 is not
  return wrapped(x.cast(DType::i64), to);
}

namespace {

// Whether i32 holds a size, whatever its symbols are.
bool fitsI32(const ir::Dim &size) {
  if (size.isConstant())
    return ir::roundTo(DType::i32, static_cast<double>(size.value())) == static_cast<double>(size.value());
  ir::SymbolValues largest;
  size.forEachSymbol([&](llvm::StringRef symbol) { largest[symbol.str()] = kMaxSymbol; });
  auto most = size.evaluate(largest);
  return isNeverNegative(size) && most && *most <= std::numeric_limits<int32_t>::max();
}

// Sizes stay sizes in another integer type that holds them.
std::optional<Known> asSizes(NodeSite &s, DType to) {
  const Known *known = s.known(0);
  if (!known || known->dtype == DType::i1 || (to != DType::i64 && to != DType::i32)) return std::nullopt;
  if (to == DType::i32 && !llvm::all_of(known->elements, fitsI32)) return std::nullopt;
  Known same = *known;
  same.dtype = to;
  return same;
}

void cast(NodeSite &s) {
  s.isNibble(0); // as any other integer
  bool saturate = s.version() < 19 || s.integer("saturate", 1) != 0;
  s.ignore("round_mode"); // of e8m0 only
  auto to = dtypeOf(static_cast<int32_t>(s.integer("to", 0)));
  if (!to) return void(s.fail("attribute 'to': {0}", llvm::toString(to.takeError())));
  if (auto sizes = asSizes(s, *to)) return s.outKnown(0, std::move(*sizes));
  s.out(0, castTo(s.in(0), *to, saturate));
}
void castLike(NodeSite &s) {
  s.isNibble(0);
  bool saturate = s.version() < 19 || s.integer("saturate", 1) != 0;
  s.ignore("round_mode");
  s.out(0, castTo(s.in(0), s.type(1).dtype, saturate));
}
void identity(NodeSite &s) { s.out(0, s.in(0)); }

// At inference it hands its input on. The mask is all true.
void dropout(NodeSite &s) {
  for (const char *name : {"ratio", "seed", "is_test", "consumed_inputs"}) s.ignore(name);
  s.has(1); // the ratio does not matter
  if (s.version() >= 12 && s.has(2)) {
    auto training = s.integers(2, "training_mode");
    if (training && !training->empty() && training->front() != 0)
      s.fail("dropout in training mode draws random numbers, which is not supported");
  }
  Term x = s.in(0);
  s.out(0, x);
  if (!s.wants(1) || !x) return;
  Term mask = s.writer().constant(1, DType::i1).broadcast(x.shape());
  s.out(1, s.version() < 10 ? mask.cast(x.dtype()) : mask);
}

} // namespace

llvm::ArrayRef<OpEntry> castOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Cast", 6, cast},
      {"", "CastLike", 15, castLike},
      {"", "Identity", 1, identity, 1},
      {"", "Dropout", 1, dropout},
  };
  return entries;
}

} // namespace fusor::onnx
