// The same elements in another order, copies of them in a pattern, triangles.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

void transpose(NodeSite &s) {
  Term x = s.in(0);
  std::vector<int64_t> perm = s.list("perm");
  if (!s.hasAttr("perm"))
    for (unsigned i = x.rank(); i-- > 0;) perm.push_back(i);
  s.out(0, x.transpose(std::move(perm)));
}

// [d0, d1] -> [1, d0, 1, d1] -> [r0, d0, r1, d1] -> [r0*d0, r1*d1]
void tile(NodeSite &s) {
  Term x = s.in(0);
  auto repeats = s.dims(1, "repeats");
  if (!repeats || !x) return;
  if (repeats->size() != x.rank())
    return void(s.fail("repeats has {0} entries for {1}", repeats->size(), x.typeText()));
  Shape apart, wide, joined;
  for (unsigned i = 0; i < x.rank(); ++i) {
    const Dim &times = (*repeats)[i];
    if (times.isConstant() && (times.value() < 0 || times.value() > kMaxDim))
      return void(s.fail("repeats has {0}", times.value()));
    apart.append({Dim(1), x.dim(i)});
    wide.append({times, x.dim(i)});
    auto size = foldMul({times, x.dim(i)});
    if (!size) return void(s.fail("{0} times dim {1} is too large", times.str(), x.dim(i).str()));
    joined.push_back(*size);
  }
  s.out(0, x.reshape(std::move(apart)).broadcast(std::move(wide)).reshape(std::move(joined)));
}

void depthToSpace(NodeSite &s) {
  Term x = s.in(0);
  int64_t b = s.integer("blocksize", 0);
  std::string mode = s.version() >= 11 ? s.text("mode", "DCR") : "DCR";
  if (b <= 0 || b > 4096 || x.rank() != 4) return void(s.fail("needs [N, C, H, W] and a blocksize above 0"));
  auto c = x.dim(1).divide(Dim(b * b));
  if (!c) return void(s.fail("channels {0} are no multiple of {1}", x.dim(1).str(), b * b));
  Dim n = x.dim(0), h = x.dim(2), w = x.dim(3);
  Term y = mode == "CRD" ? x.reshape({n, *c, Dim(b), Dim(b), h, w}).transpose({0, 1, 4, 2, 5, 3})
                         : x.reshape({n, Dim(b), Dim(b), *c, h, w}).transpose({0, 3, 4, 1, 5, 2});
  s.out(0, y.reshape({n, *c, h * Dim(b), w * Dim(b)}));
}
void spaceToDepth(NodeSite &s) {
  Term x = s.in(0);
  int64_t b = s.integer("blocksize", 0);
  if (b <= 0 || b > 4096 || x.rank() != 4) return void(s.fail("needs [N, C, H, W] and a blocksize above 0"));
  auto h = x.dim(2).divide(Dim(b)), w = x.dim(3).divide(Dim(b));
  if (!h || !w) return void(s.fail("{0} does not divide into blocks of {1}", x.typeText(), b));
  Dim n = x.dim(0), c = x.dim(1);
  if (auto error = s.writer().checkSize({c, Dim(b * b)})) return void(s.fail("{0}", llvm::toString(std::move(error))));
  s.out(0,
        x.reshape({n, c, *h, Dim(b), *w, Dim(b)}).transpose({0, 3, 5, 1, 2, 4}).reshape({n, c * Dim(b * b), *h, *w}));
}

// Element (i, j) of the last two dims is kept where j - i >= k (upper) or <= k.
void trilu(NodeSite &s) {
  Term x = s.in(0);
  bool upper = s.integer("upper", 1) != 0;
  Term k = s.has(1) ? s.in(1).reshape({}).cast(DType::i64) : s.writer().constant(0, DType::i64);
  if (!x) return;
  if (x.rank() < 2) return void(s.fail("needs at least two dims, is given {0}", x.typeText()));
  Term i = s.writer().iota({x.dim(-2), Dim(1)}, 0), j = s.writer().iota({Dim(1), x.dim(-1)}, 1);
  s.out(0, select(upper ? j - i >= k : j - i <= k, x, s.writer().constant(0, x.dtype())));
}

} // namespace

llvm::ArrayRef<OpEntry> movementOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Transpose", 1, transpose, 1},    {"", "Tile", 6, tile, 1}, {"", "DepthToSpace", 1, depthToSpace},
      {"", "SpaceToDepth", 1, spaceToDepth}, {"", "Trilu", 14, trilu},
  };
  return entries;
}

} // namespace fusor::onnx
