#include "codegen/plan/access.h"
#include "codegen/plan/dims.h"

namespace fusor::codegen {

using namespace ir;

namespace {

using Strides = llvm::SmallVector<Dim, 4>;

// The same change of index applied to the access itself and to the indices of a gather inside it.
template <typename Change> void changeIndex(Access &access, Change change) {
  change(access.offset, access.strides);
  if (access.gather) change(access.gather->offset, access.gather->strides);
}

void applyTranspose(Access &access, const Op &op) {
  const auto &perm = op.attr<std::vector<int64_t>>("perm");
  changeIndex(access, [&](Dim &, Strides &strides) {
    Strides moved;
    for (int64_t p : perm) moved.push_back(strides[p]);
    strides = std::move(moved);
  });
}

void applySlice(Access &access, const Op &op) {
  const Shape &start = op.attr<Shape>("start");
  const auto &step = op.attr<std::vector<int64_t>>("step");
  changeIndex(access, [&](Dim &offset, Strides &strides) {
    for (unsigned i = 0; i < strides.size(); ++i) {
      offset = offset + start[i] * strides[i];
      if (!step.empty()) strides[i] = strides[i] * Dim(step[i]);
    }
  });
}

void applySplit(Access &access, const Op &op, unsigned part) {
  unsigned axis = op.site().axis("axis", op.operand(0u).rank());
  Dim before = 0;
  for (unsigned i = 0; i < part; ++i) before = before + op.attr<Shape>("sizes")[i];
  changeIndex(access, [&](Dim &offset, Strides &strides) { offset = offset + before * strides[axis]; });
}

void applyBroadcast(Access &access, Value from, Value to) {
  unsigned shift = to.rank() - from.rank();
  changeIndex(access, [&](Dim &, Strides &strides) {
    Strides wide(to.rank(), Dim(0));
    for (unsigned i = 0; i < from.rank(); ++i)
      if (!from.shape()[i].is(1) || to.shape()[i + shift].is(1)) wide[i + shift] = strides[i];
    strides = std::move(wide);
  });
}

llvm::Error applyReshape(Access &access, Value from, Value to) {
  if (auto pairs = unitReshape(from.shape(), to.shape())) {
    changeIndex(access, [&](Dim &, Strides &strides) {
      Strides moved(to.rank(), Dim(0));
      for (auto [i, j] : *pairs) moved[j] = strides[i];
      strides = std::move(moved);
    });
    return llvm::Error::success();
  }
  if (access.gather || access.strides != rowMajorStrides(from.shape()))
    return opError("reshape {0} -> {1} of something that is not contiguous cannot be read through", from.type().str(),
                   to.type().str());
  access.strides = rowMajorStrides(to.shape());
  return llvm::Error::success();
}

llvm::Expected<Access> gatherAccess(const Op &op) {
  Value table = op.operand(0u), indices = op.operand(1);
  if (!table.isArgument() || op.site().axis("axis", table.rank()) != 0)
    return opError("gather along another axis than 0 of an input is a kernel of its own");
  auto at = leafAccess(indices);
  if (!at) return at.takeError();
  if (at->gather) return opError("a gather by gathered indices is a kernel of its own");
  Strides own = rowMajorStrides(table.shape());
  Access access;
  access.input = table.index();
  access.strides.assign(indices.rank(), Dim(0));
  access.strides.append(own.begin() + 1, own.end());
  Access::Gather gather{at->input, at->offset, at->strides, own[0], table.shape()[0]};
  gather.strides.append(table.rank() - 1, Dim(0));
  access.gather = std::move(gather);
  return access;
}

} // namespace

llvm::SmallVector<Dim, 4> rowMajorStrides(llvm::ArrayRef<Dim> shape) {
  Strides strides(shape.size(), Dim(1));
  for (unsigned i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool isLeaf(Value value) {
  if (!value) return false;
  if (value.isArgument()) return true;
  const Op &op = *value.op();
  if (op.is("gather"))
    return op.operand(0u).isArgument() && op.site().axis("axis", op.operand(0u).rank()) == 0 && isLeaf(op.operand(1));
  bool readThrough = op.is("transpose") || op.is("slice") || op.is("split") || op.is("broadcast") || op.is("reshape");
  return readThrough && isLeaf(op.operand(0u));
}

llvm::Expected<Access> leafAccess(Value value) {
  if (value.isArgument()) {
    Access access;
    access.input = value.index();
    access.strides = rowMajorStrides(value.shape());
    return access;
  }
  const Op &op = *value.op();
  if (op.is("gather")) return gatherAccess(op);
  auto access = leafAccess(op.operand(0u));
  if (!access) return access;
  if (op.is("transpose"))
    applyTranspose(*access, op);
  else if (op.is("slice"))
    applySlice(*access, op);
  else if (op.is("split"))
    applySplit(*access, op, value.index());
  else if (op.is("broadcast"))
    applyBroadcast(*access, op.operand(0u), value);
  else if (auto error = applyReshape(*access, op.operand(0u), value))
    return error;
  return access;
}

} // namespace fusor::codegen
