#include "runtime/cpu/loop/access_map.h"
#include "ir/graph/bug.h"

namespace fusor::runtime {

using namespace ir;

namespace {

int64_t valueOf(const Dim &dim, const SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  if (!value) FUSOR_BUG("{0} has no value when its loop is planned", dim.str());
  return *value;
}

} // namespace

LoopExtents extentsOf(const codegen::LoopPlan &plan, const SymbolValues &symbols) {
  LoopExtents extents;
  extents.rowDims = plan.rowDims;
  for (unsigned i = 0; i < plan.domain.size(); ++i) {
    extents.dims.push_back(valueOf(plan.domain[i], symbols));
    (i < plan.rowDims ? extents.rows : extents.columns) *= extents.dims.back();
  }
  return extents;
}

AccessMap::AccessMap(int64_t offset, llvm::ArrayRef<int64_t> strides, const LoopExtents &extents) : offset_(offset) {
  auto collapsed = [&](unsigned from, unsigned to) {
    llvm::SmallVector<Axis, 4> axes;
    for (unsigned i = from; i < to; ++i) {
      if (extents.dims[i] == 1) continue;
      Axis axis{extents.dims[i], strides[i]};
      if (!axes.empty() && axes.back().stride == axis.stride * axis.extent)
        axes.back() = {axes.back().extent * axis.extent, axis.stride};
      else
        axes.push_back(axis);
    }
    return axes;
  };
  rows_ = collapsed(0, extents.rowDims);
  auto columns = collapsed(extents.rowDims, extents.dims.size());
  if (columns.size() == 1) columnStride_ = columns[0].stride;
  if (columns.size() <= 1) return;
  columnOffsets_.resize(extents.columns);
  for (int64_t c = 0; c < extents.columns; ++c) {
    int64_t rest = c, at = 0;
    for (size_t i = columns.size(); i-- > 0;) {
      at += rest % columns[i].extent * columns[i].stride;
      rest /= columns[i].extent;
    }
    columnOffsets_[c] = at;
  }
}

AccessMap::AccessMap(const Dim &offset, llvm::ArrayRef<Dim> strides, const LoopExtents &extents,
                     const SymbolValues &symbols) {
  llvm::SmallVector<int64_t, 4> values;
  for (const Dim &stride : strides) values.push_back(valueOf(stride, symbols));
  *this = AccessMap(valueOf(offset, symbols), values, extents);
}

AccessMap AccessMap::flat() {
  AccessMap map;
  map.columnStride_ = 1;
  return map;
}

} // namespace fusor::runtime
