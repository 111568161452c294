// Writes IR for nodes of a file. What does not fit is no bug here, it is the file's: the first failure is kept, what is
// made of it is empty and says nothing more, so an expansion reads as arithmetic and is checked once, at its end.
#pragma once
#include "frontend/onnx/error.h"
#include "frontend/onnx/known.h"
#include "ir/graph/builder.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace fusor::onnx {

class Writer;
using EqualSizes = std::map<std::string, ir::Dim>; // a symbol of an input's shape -> the size that it must be

/// A value in an expansion; empty after a failure. Dims of an empty one read as 1.
class Term {
public:
  Term() = default;
  Term(Writer &writer, ir::Value value) : writer_(&writer), value_(value) {}
  explicit operator bool() const { return static_cast<bool>(value_); }
  ir::Value value() const { return value_; }
  Writer &writer() const { return *writer_; }

  ir::DType dtype() const { return value_ ? value_.dtype() : ir::DType::f32; }
  unsigned rank() const { return value_ ? value_.rank() : 0; }
  ir::Shape shape() const { return value_ ? value_.type().shape : ir::Shape(); }
  ir::Dim dim(int64_t i) const;
  /// "f32[2, B]"
  std::string typeText() const { return value_ ? value_.type().str() : "nothing"; }
  bool isFloat() const { return ir::isFloat(dtype()); }

  Term cast(ir::DType to) const;
  Term reshape(ir::Shape shape) const;
  Term transpose(std::vector<int64_t> perm) const;
  Term broadcast(ir::Shape shape) const;
  Term slice(ir::Shape start, ir::Shape size, std::vector<int64_t> step = {}) const;
  /// `count` of dim `axis` from `start`.
  Term part(unsigned axis, ir::Dim start, ir::Dim count) const;
  /// Elements of dim `axis` in the opposite order; the dim must be a number.
  Term reversed(unsigned axis) const;
  /// An op with this as its operand.
  Term apply(llvm::StringRef op, ir::Attrs attrs = {}) const;
  /// A reduction over `dims` that keeps them as 1.
  Term reduce(llvm::StringRef op, std::vector<int64_t> dims, bool keep = true) const;

private:
  Writer *writer_ = nullptr;
  ir::Value value_;
};

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator*(Term a, double b);
Term operator/(Term a, double b);
Term operator-(Term a);
Term operator<(Term a, Term b);
Term operator<=(Term a, Term b);
Term operator>(Term a, Term b);
Term operator>=(Term a, Term b);
Term operator<(Term a, double b);
Term operator>=(Term a, double b);
Term operator>(Term a, double b);
Term operator==(Term a, Term b);
Term operator==(Term a, double b);
/// Of i1. (An operator && would take the place of asking whether two terms are there.)
Term both(Term a, Term b);
Term select(Term condition, Term a, Term b);

class Writer {
public:
  Writer(ir::Module &module, ir::Function &function)
      : module_(module), function_(function), builder_(function.block()) {}

  ir::Module &module() const { return module_; }
  ir::Function &function() const { return function_; }

  /// First result of an op.
  Term op(llvm::StringRef name, llvm::ArrayRef<Term> operands, ir::Attrs attrs = {});
  /// All results; as many empty ones after a failure.
  llvm::SmallVector<Term, 3> ops(llvm::StringRef name, llvm::ArrayRef<Term> operands, ir::Attrs attrs,
                                 unsigned results);
  Term constant(double value, ir::DType dtype);
  /// 0, 1, 2, ... along the only dim that is not 1.
  Term iota(ir::Shape shape, unsigned axis, ir::DType dtype = ir::DType::i64);
  Term concat(llvm::ArrayRef<Term> parts, int64_t axis);
  /// A size as a scalar that is known when the program is launched.
  Term extent(const ir::Dim &dim, ir::DType dtype);
  /// A const of the module.
  Term data(const Data &data, llvm::StringRef name);
  Term known(const Known &known, llvm::StringRef name);

  /// Given to what is made from now on.
  void startNode(ir::Location location);
  bool failed() const { return static_cast<bool>(failure_); }
  template <typename... Args> Term fail(const char *format, Args &&...args) {
    if (!failure_) failure_ = llvm::formatv(format, std::forward<Args>(args)...).str();
    return {};
  }
  /// The failure since startNode().
  std::optional<std::string> takeFailure() { return std::exchange(failure_, std::nullopt); }

  /// No dim and no product of dims that computing with would overflow.
  llvm::Error checkSize(llvm::ArrayRef<ir::Dim> shape) const;
  /// Demands that `dim` is at least `low`, or at most `high`: what the range of its symbol allows is narrowed, where it
  /// is one symbol plus a number. False where it cannot be had.
  bool demandAtLeast(const ir::Dim &dim, int64_t low);
  /// Demands that a symbol is `size`. False, and kept in equalSizes(): the importer starts again with the two as one.
  bool demandEqual(const ir::Dim &dim, const ir::Dim &size);
  const EqualSizes &equalSizes() const { return equal_; }

private:
  std::string freshName(llvm::StringRef name);
  ir::Module &module_;
  ir::Function &function_;
  ir::Builder builder_;
  std::optional<std::string> failure_;
  unsigned made_ = 0; // by this node
  EqualSizes equal_;
};

} // namespace fusor::onnx
