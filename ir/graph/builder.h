// Inserts ops. Types are inferred from the op table; what does not fit is an Error (create) or our bug (op).
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/Error.h"

namespace fusor::ir {

class Builder {
public:
  /// At the end of `block` (before its terminator once it has one), or before `op`.
  explicit Builder(Block &block) : block_(&block), before_(block.terminator()) {}
  explicit Builder(Op &before) : block_(before.block()), before_(&before) {}

  Block &block() const { return *block_; }
  Op *insertionPoint() const { return before_; }
  /// Given to the ops made from now on.
  void setLocation(Location location) { location_ = std::move(location); }
  const Location &location() const { return location_; }

  /// Checks operands, attributes and types against the table entry and inserts the op. The error's text starts with
  /// "'add' ".
  llvm::Expected<Op *> create(llvm::StringRef op, llvm::ArrayRef<Value> operands, Attrs attrs = {});
  /// The same where a failure would be our bug.
  Op *make(llvm::StringRef op, llvm::ArrayRef<Value> operands, Attrs attrs = {});
  /// First result of make().
  Value op(llvm::StringRef op, llvm::ArrayRef<Value> operands, Attrs attrs = {}) {
    return make(op, operands, std::move(attrs))->result();
  }

  /// A scalar constant.
  Value constant(double value, DType dtype = DType::f32);
  /// `value` itself when it has that dtype already.
  Value cast(Value value, DType dtype);

private:
  Block *block_;
  Op *before_;
  Location location_;
};

/// Operand count and dtypes, attribute names, kinds, ranges and choices, then the entry's `infer`. The text starts with
/// "'add' ".
llvm::Expected<llvm::SmallVector<TensorType, 2>> inferTypes(const OpSite &site);

} // namespace fusor::ir
