// Where elements stand: the largest, the k largest, those that are not 0; and the other way, 1 where an index says.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/places.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

void argReduce(NodeSite &s, const char *kind) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  bool keep = s.integer("keepdims", 1) != 0, last = s.version() >= 12 && s.integer("select_last_index", 0) != 0;
  if (s.failed()) return;
  if (x.dim(axis).is(0)) return void(s.fail("there is no element along axis {0} of {1}", axis, x.typeText()));
  Term from = last ? x.reversed(axis) : x;
  Term y = from.apply("arg_reduce", {{"axis", static_cast<int64_t>(axis)}, {"keep", keep}, {"kind", std::string(kind)}})
               .cast(DType::i64);
  if (last) y = s.writer().extent(x.dim(axis), DType::i64) - 1.0 - y;
  s.out(0, y);
}
void argMax(NodeSite &s) { argReduce(s, "max"); }
void argMin(NodeSite &s) { argReduce(s, "min"); }

void oneHot(NodeSite &s) {
  Term indices = s.in(0), values = s.in(2);
  auto depth = s.dims(1, "depth");
  int64_t axis = s.integer("axis", -1);
  if (!depth || depth->size() != 1 || !indices || !values) return void(s.fail("depth must be one number"));
  const Dim &n = depth->front();
  unsigned at = s.axis(axis, indices.rank() + 1);
  if (s.failed()) return;
  if (n.isConstant() && (n.value() < 0 || n.value() > kMaxDim)) return void(s.fail("depth is {0}", n.value()));
  Shape wide = indices.shape(), along(indices.rank() + 1, Dim(1));
  wide.insert(wide.begin() + at, Dim(1));
  along[at] = n;
  Term hot = fromFront(castTo(indices, DType::i64), n).reshape(wide) == s.writer().iota(along, at);
  Term off = values.part(0, Dim(0), Dim(1)).reshape({}), on = values.part(0, Dim(1), Dim(1)).reshape({});
  s.out(0, select(hot, on, off));
}

} // namespace

llvm::ArrayRef<OpEntry> rankingOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "ArgMax", 1, argMax},
      {"", "ArgMin", 1, argMin},
      {"", "OneHot", 9, oneHot},
  };
  return entries;
}

} // namespace fusor::onnx
