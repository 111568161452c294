#include "passes/lift/bound.h"
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>
#include <limits>

namespace fusor::passes {

using ir::DType, ir::Op, ir::Value;

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr unsigned kMostBoundDepth = 16; // of the ops that make a mask

namespace {

class Bounds {
public:
  double of(Value value, unsigned depth) {
    if (auto it = known_.find(value.def()); it != known_.end()) return it->second;
    const double bound = analyse(value, depth);
    return known_[value.def()] = std::isnan(bound) ? kUnknown : bound;
  }

private:
  double analyse(Value value, unsigned depth) {
    if (value.dtype() == DType::i1) return 1;
    if (ir::isInteger(value.dtype())) return std::ldexp(1.0, 8 * static_cast<int>(ir::byteSize(value.dtype())) - 1);
    if (auto x = scalarOf(value)) return std::abs(*x);
    if (const ir::Persistent *p = storedConstant(value)) return ofStored(*p);
    Op *op = value.op();
    if (!op || depth == 0) return kUnknown;
    auto operand = [&](unsigned i) { return of(op->operand(i), depth - 1); };
    if (op->is("reshape") || op->is("broadcast") || op->is("slice") || op->is("transpose") || op->is("cast") ||
        op->is("neg") || op->is("abs"))
      return operand(0);
    if (op->is("add") || op->is("sub")) return operand(0) + operand(1);
    if (op->is("mul")) return operand(0) * operand(1); // 0 * infinite is no number
    if (op->is("select")) return std::max(operand(1), operand(2));
    return kUnknown;
  }

  static double ofStored(const ir::Persistent &p) {
    double most = 0;
    const auto elements = static_cast<int64_t>(p.data->size() / ir::byteSize(p.type.dtype));
    for (int64_t i = 0; i < elements && most < kUnknown; ++i) {
      const double x = std::abs(ir::loadElement(p.type.dtype, p.data->data(), i));
      most = x <= kUnknown ? std::max(most, x) : kUnknown;
    }
    return most;
  }

  llvm::DenseMap<const ir::ValueDef *, double> known_;
};

} // namespace

double largestMagnitude(Value value) { return Bounds().of(value, kMostBoundDepth); }

} // namespace fusor::passes
