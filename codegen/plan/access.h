// Reading through movement ops: where an element of transpose(slice(x)) lies in x.
#pragma once
#include "codegen/plan/loop.h"

namespace fusor::codegen {

/// True for a cluster input and for movement ops on leaves (transpose, slice, split, broadcast, reshape, gather of an
/// input): values that are loaded, not computed.
bool isLeaf(ir::Value value);

/// Where element (i0, i1, ...) of leaf `value` lies, as strides over its own dims. The error says which op cannot be
/// read through, e.g. a reshape of a transposed input.
llvm::Expected<Access> leafAccess(ir::Value value);

/// Row-major strides of `shape`.
llvm::SmallVector<ir::Dim, 4> rowMajorStrides(llvm::ArrayRef<ir::Dim> shape);

} // namespace fusor::codegen
