#include "passes/lift/triangle.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::Value;

constexpr unsigned kMostMaskDepth = 24; // of the ops that make a mask
constexpr int64_t kMostStored = int64_t(1) << 24;

/// rows * i + columns * j + offset.
struct Ramp {
  int64_t rows = 0, columns = 0;
  Dim offset;
};

struct Known {
  std::optional<Ramp> ramp;
  std::optional<Triangle> triangle;
};

Known number(double x) { return {{}, Triangle{x, x, 0}}; }

std::optional<double> numberOf(const Known &known) {
  if (known.triangle && known.triangle->isNumber()) return known.triangle->before;
  return std::nullopt;
}

std::optional<Ramp> rampOf(const Known &known) {
  if (known.ramp) return known.ramp;
  auto x = numberOf(known);
  if (x && *x == static_cast<double>(static_cast<int64_t>(*x)) && std::abs(*x) < 1e15)
    return Ramp{0, 0, Dim(static_cast<int64_t>(*x))};
  return std::nullopt;
}

// A stored matrix, perhaps with dims of 1 in front.
std::optional<Known> ofStored(const ir::Persistent &p) {
  llvm::ArrayRef<Dim> shape = p.type.shape;
  if (shape.size() < 2 || llvm::any_of(shape, [](const Dim &d) { return !d.isConstant(); })) return std::nullopt;
  if (llvm::any_of(shape.drop_back(2), [](const Dim &d) { return !d.is(1); })) return std::nullopt;
  const int64_t rows = shape[shape.size() - 2].value(), columns = shape.back().value();
  if (rows < 1 || columns < 1 || rows > kMostStored / columns) return std::nullopt;
  auto at = [&](int64_t i, int64_t j) { return ir::loadElement(p.type.dtype, p.data->data(), i * columns + j); };
  // The diagonal is where the first row changes; a matrix that starts behind it is no mask.
  int64_t diagonal = 0;
  while (diagonal + 1 < columns && at(0, diagonal + 1) == at(0, 0)) ++diagonal;
  const double before = at(0, 0), behind = diagonal + 1 < columns ? at(0, diagonal + 1) : before;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (at(i, j) != (j <= i + diagonal ? before : behind)) return std::nullopt;
  return Known{{}, Triangle{before, behind, Dim(diagonal)}};
}

// The dim `fromLast` places before the last; 1 where there is none.
Dim dimFromLast(llvm::ArrayRef<Dim> shape, unsigned fromLast) {
  return fromLast < shape.size() ? shape[shape.size() - 1 - fromLast] : Dim(1);
}

// The only dim that is not 1, counted from the last, where that is one of the last two.
std::optional<unsigned> onlyWideDim(llvm::ArrayRef<Dim> shape) {
  std::optional<unsigned> only;
  for (unsigned i = 0; i < shape.size(); ++i)
    if (!dimFromLast(shape, i).is(1)) {
      if (only || i > 1) return std::nullopt;
      only = i;
    }
  return only;
}

class Analysis {
public:
  std::optional<Known> of(Value value, unsigned depth) {
    if (auto it = known_.find(value.def()); it != known_.end()) return it->second;
    auto known = analyse(value, depth);
    return known_[value.def()] = known;
  }

private:
  std::optional<Known> analyse(Value value, unsigned depth) {
    if (auto x = scalarOf(value)) return number(*x);
    if (const ir::Persistent *p = storedConstant(value)) return ofStored(*p);
    Op *op = value.op();
    if (!op || depth == 0 || op->resultCount() != 1) return std::nullopt;
    if (op->is("extent")) return Known{Ramp{0, 0, product(op->attr<ir::Shape>("shape"))}, {}};
    if (op->is("iota")) {
      unsigned fromLast = value.rank() - 1 - op->site().axis("axis", value.rank());
      if (fromLast > 1) return std::nullopt;
      return Known{Ramp{fromLast == 1, fromLast == 0, 0}, {}};
    }
    if (op->is("slice")) return sliced(*op, depth);
    if (op->is("reshape") || op->is("broadcast")) return moved(*op, depth);
    if (op->is("cast")) return cast(*op, depth);
    if (op->def().isElementwise()) return computed(*op, depth);
    return std::nullopt;
  }

  std::optional<Known> sliced(Op &op, unsigned depth) {
    auto known = of(op.operand(0u), depth - 1);
    const auto &start = op.attr<ir::Shape>("start");
    if (!known || llvm::any_of(op.attr<std::vector<int64_t>>("step"), [](int64_t s) { return s != 1; }))
      return std::nullopt;
    const Dim row = start.size() >= 2 ? start[start.size() - 2] : Dim(0),
              column = start.empty() ? Dim(0) : start.back();
    if (known->ramp)
      known->ramp->offset = known->ramp->offset + Dim(known->ramp->rows) * row + Dim(known->ramp->columns) * column;
    if (known->triangle) known->triangle->diagonal = known->triangle->diagonal + row - column;
    return known;
  }

  // Elements along the last two dims stay there, or a vector becomes a column or a row.
  std::optional<Known> moved(Op &op, unsigned depth) {
    auto known = of(op.operand(0u), depth - 1);
    if (!known || numberOf(*known)) return known;
    auto from = op.operand(0u).shape(), to = op.result().shape();
    if (op.is("broadcast")) return known; // along dims that are new or 1; it is one number there
    if (dimFromLast(from, 0) == dimFromLast(to, 0) && dimFromLast(from, 1) == dimFromLast(to, 1)) return known;
    auto before = onlyWideDim(from), after = onlyWideDim(to);
    if (!known->ramp || !before || !after) return std::nullopt;
    if (*before != *after) std::swap(known->ramp->rows, known->ramp->columns);
    return known;
  }

  std::optional<Known> cast(Op &op, unsigned depth) {
    auto known = of(op.operand(0u), depth - 1);
    const ir::DType to = op.result().dtype();
    if (!known) return known;
    if (known->triangle) {
      for (double *x : {&known->triangle->before, &known->triangle->behind})
        *x = to == ir::DType::i1 ? *x != 0 : ir::roundTo(to, *x);
      return known;
    }
    // Counts are exact up to 2^24 in f32; no mask has more rows.
    const bool keeps = to == ir::DType::i32 || to == ir::DType::i64 || to == ir::DType::f32 || to == ir::DType::f64;
    return keeps ? known : std::nullopt;
  }

  std::optional<Known> computed(Op &op, unsigned depth) {
    llvm::SmallVector<Known, 3> parts;
    for (Value operand : op.operands()) {
      auto known = of(operand, depth - 1);
      if (!known) return std::nullopt;
      parts.push_back(*known);
    }
    if (llvm::any_of(parts, [](const Known &k) { return k.ramp.has_value(); })) return ofRamps(op, parts);
    // The same function on both sides of one diagonal.
    const Triangle *along = nullptr;
    for (const Known &part : parts)
      if (!part.triangle->isNumber()) {
        if (along && along->diagonal != part.triangle->diagonal) return std::nullopt;
        along = &*part.triangle;
      }
    llvm::SmallVector<double, 3> before, behind;
    for (const Known &part : parts) before.push_back(part.triangle->before), behind.push_back(part.triangle->behind);
    auto value = [&](llvm::ArrayRef<double> x) {
      return ir::roundTo(op.result().dtype(), op.def().formula.value(x.data(), op.site()));
    };
    return Known{{}, Triangle{value(before), value(behind), along ? along->diagonal : Dim(0)}};
  }

  static std::optional<Known> ofRamps(const Op &op, llvm::ArrayRef<Known> parts) {
    if (parts.size() != 2) return std::nullopt;
    auto a = rampOf(parts[0]), b = rampOf(parts[1]);
    if (!a || !b) return std::nullopt;
    if (op.is("add")) return Known{Ramp{a->rows + b->rows, a->columns + b->columns, a->offset + b->offset}, {}};
    const Ramp d{a->rows - b->rows, a->columns - b->columns, a->offset - b->offset};
    if (op.is("sub")) return Known{d, {}};
    const bool less = op.is("lt") || op.is("le"), orEqual = op.is("le") || op.is("ge");
    if (!less && !op.is("gt") && !op.is("ge")) return std::nullopt;
    // i - j + c compared with 0: at least c + 1 > 0 is j <= i + c, more than 0 is j <= i + c - 1; j - i + c the other
    // way round.
    const bool rowsFirst = d.rows == 1 && d.columns == -1;
    if (!rowsFirst && !(d.rows == -1 && d.columns == 1)) return std::nullopt;
    const Dim c = rowsFirst ? d.offset : Dim(0) - d.offset; // compared: i - j + c, or its negative
    const bool wantsAbove = rowsFirst != less;              // true where i - j + c > 0 (or >= 0)
    // above: j <= i + c (>=) or j <= i + c - 1 (>). below: j > i + c - 1 (<=) or j > i + c (<).
    const bool atDiagonal = wantsAbove == orEqual;
    return Known{{}, Triangle{wantsAbove ? 1.0 : 0.0, wantsAbove ? 0.0 : 1.0, atDiagonal ? c : c - Dim(1)}};
  }

  llvm::DenseMap<const ir::ValueDef *, std::optional<Known>> known_;
};

} // namespace

std::optional<Triangle> triangleOf(Value value) {
  auto known = Analysis().of(value, kMostMaskDepth);
  return known ? known->triangle : std::nullopt;
}

} // namespace fusor::passes
