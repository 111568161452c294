// Elements by index.
#include "frontend/onnx/ops/places.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

void gather(NodeSite &s) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  if (s.failed()) return;
  s.checkIndices(1, x.dim(axis));
  Term indices = s.in(1);
  s.out(0, s.writer().op("gather", {x, indices}, {{"axis", static_cast<int64_t>(axis)}}));
}

void gatherElements(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  if (s.failed()) return;
  s.checkIndices(1, x.dim(axis));
  Term places = placesOf(s, x, indices, axis);
  s.out(0, s.writer().op("gather", {x.reshape({ir::product(x.shape())}), places}, {{"axis", int64_t(0)}}));
}

void gatherNd(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1);
  int64_t batch = s.version() >= 12 ? s.integer("batch_dims", 0) : 0;
  if (batch < 0 || batch >= static_cast<int64_t>(std::max(1u, x.rank())))
    return void(s.fail("batch_dims {0} is not below the rank", batch));
  auto rows = rowsOf(s, x.shape(), indices, batch);
  if (!rows) return;
  Shape all = x.shape(), flat{product(all, 0, rows->named)};
  flat.append(all.begin() + rows->named, all.end());
  s.out(0, s.writer().op("gather", {x.reshape(std::move(flat)), rows->places}, {{"axis", int64_t(0)}}));
}

} // namespace

llvm::ArrayRef<OpEntry> gatherOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Gather", 1, gather, 1},
      {"", "GatherElements", 11, gatherElements},
      {"", "GatherND", 11, gatherNd},
  };
  return entries;
}

} // namespace fusor::onnx
