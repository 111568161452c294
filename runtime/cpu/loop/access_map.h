// codegen's Access under known symbols: where element (row, column) of a loop lies, in as few multiplications as
// possible.
#pragma once
#include "codegen/plan/loop.h"

namespace fusor::runtime {

/// Sizes of a loop's domain under known symbols.
struct LoopExtents {
  llvm::SmallVector<int64_t, 4> dims;
  unsigned rowDims = 0;
  int64_t rows = 1, columns = 1;
};
LoopExtents extentsOf(const codegen::LoopPlan &plan, const ir::SymbolValues &symbols);

/// offset + rowOffset(row) + columnOffset(column), in elements.
class AccessMap {
public:
  AccessMap() = default;
  AccessMap(int64_t offset, llvm::ArrayRef<int64_t> strides, const LoopExtents &extents);
  AccessMap(const ir::Dim &offset, llvm::ArrayRef<ir::Dim> strides, const LoopExtents &extents,
            const ir::SymbolValues &symbols);
  /// Element i of a flat array: one row of any number of columns.
  static AccessMap flat();

  int64_t offset() const { return offset_; }
  /// The rows are one arithmetic progression with this stride.
  bool rowsAreAffine() const { return rows_.size() <= 1; }
  int64_t rowStride() const { return rows_.empty() ? 0 : rows_[0].stride; }
  bool columnsAreAffine() const { return columnOffsets_.empty(); }
  int64_t columnStride() const { return columnStride_; }
  bool dependsOnColumns() const { return !columnOffsets_.empty() || columnStride_ != 0; }

  int64_t rowOffset(int64_t row) const {
    if (rows_.size() == 1) return row * rows_[0].stride;
    int64_t at = 0;
    for (size_t i = rows_.size(); i-- > 0;) {
      int64_t outer = row / rows_[i].extent;
      at += (row - outer * rows_[i].extent) * rows_[i].stride;
      row = outer;
    }
    return at;
  }
  int64_t columnOffset(int64_t column) const {
    return columnOffsets_.empty() ? column * columnStride_ : columnOffsets_[column];
  }
  int64_t operator()(int64_t row, int64_t column) const { return offset_ + rowOffset(row) + columnOffset(column); }

private:
  struct Axis {
    int64_t extent, stride;
  };
  int64_t offset_ = 0;
  llvm::SmallVector<Axis, 4> rows_; // neighbours merged where one continues the other
  int64_t columnStride_ = 0;
  std::vector<int64_t> columnOffsets_; // where the columns are no arithmetic progression
};

} // namespace fusor::runtime
