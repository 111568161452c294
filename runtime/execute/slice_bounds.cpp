#include "runtime/execute/slice_bounds.h"
#include "runtime/execute/user_error.h"
#include <algorithm>

namespace fusor::runtime {

using ir::Dim;

namespace {

void collect(const ir::Op &op, llvm::StringRef function, std::vector<SliceBound> &into) {
  const ir::TensorType &x = op.operand(0u).type();
  const auto &start = op.attr<ir::Shape>("start"), &size = op.attr<ir::Shape>("size");
  const auto &step = op.attr<std::vector<int64_t>>("step");
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (start[i].isConstant() && size[i].isConstant() && x.shape[i].isConstant()) continue; // checked when it was made
    if (start[i].is(0) && size[i] == x.shape[i]) continue;
    Dim last = start[i] + (size[i] - Dim(1)) * Dim(step.empty() ? 1 : step[i]);
    into.push_back({function.str(), start[i], last, x.shape[i], size[i], x.str()});
  }
}

} // namespace

std::vector<SliceBound> sliceBounds(const ir::Module &module) {
  std::vector<SliceBound> bounds;
  for (const auto &function : module.functions()) {
    llvm::SmallVector<const ir::Block *, 4> blocks{&function->block()};
    while (!blocks.empty())
      for (const ir::Op &op : blocks.pop_back_val()->ops()) {
        if (op.body()) blocks.push_back(op.body());
        if (op.name() == "slice") collect(op, function->name(), bounds);
      }
  }
  return bounds;
}

llvm::Error checkSliceBounds(llvm::ArrayRef<SliceBound> bounds, llvm::StringRef function,
                             const ir::SymbolValues &symbols) {
  for (const SliceBound &bound : bounds) {
    if (bound.function != function) continue;
    auto first = bound.first.evaluate(symbols), last = bound.last.evaluate(symbols), dim = bound.dim.evaluate(symbols),
         size = bound.size.evaluate(symbols);
    if (!first || !last || !dim || !size || *size == 0) continue; // a size that nothing gives is said elsewhere
    if (*size < 0 || std::min(*first, *last) < 0 || std::max(*first, *last) >= *dim)
      return userError("@{0} reads elements {1} to {2} of a dim of {3} ({4} to {5} of {6}): the inputs are too large "
                       "for the model",
                       function, *first, *last, *dim, bound.first.str(), bound.last.str(), bound.type);
  }
  return llvm::Error::success();
}

} // namespace fusor::runtime
