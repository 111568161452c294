// Masks that depend on no input are evaluated, so their spelling does not matter: triangles of constants, comparisons
// of iotas, slices of a buffer. Of the others a boolean key mask with fill -inf is what attention has.
#include "passes/lift/mask.h"
#include "ir/ops/op_def.h"
#include "ir/reference/reference.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::RefTensor, ir::Value;

constexpr int64_t kMostElements = int64_t(1) << 22; // of a mask that is evaluated while compiling: 2048 x 2048
constexpr double kHides = -1e30;                    // added to any score it leaves nothing of it: exp gives 0

bool hasSymbols(llvm::ArrayRef<Dim> shape) {
  return llvm::any_of(shape, [](const Dim &d) { return !d.isConstant(); });
}

/// Evaluates values that no input reaches. Symbols are allowed where elements are only repeated along them.
class KnownValues {
public:
  const RefTensor *operator()(Value value) {
    if (auto it = known_.find(value.def()); it != known_.end()) return it->second.get();
    return (known_[value.def()] = evaluate(value)).get();
  }

private:
  std::unique_ptr<RefTensor> evaluate(Value value) {
    auto tensor = std::make_unique<RefTensor>();
    tensor->dtype = value.dtype();
    int64_t elements = 1;
    for (const Dim &d : value.shape()) {
      tensor->shape.push_back(d.isConstant() ? d.value() : 1);
      elements *= tensor->shape.back();
      d.forEachSymbol([&](llvm::StringRef symbol) { symbols_[symbol.str()] = 1; });
      if (!d.isConstant() && !d.asSymbol()) return nullptr;
      if (elements > kMostElements) return nullptr;
    }
    tensor->data.assign(elements, 0);
    if (const ir::Persistent *p = storedConstant(value)) {
      for (int64_t i = 0; i < elements; ++i) tensor->data[i] = ir::loadElement(p->type.dtype, p->data->data(), i);
      return tensor;
    }
    Op *op = value.op();
    if (!op || op->resultCount() != 1) return nullptr;
    const bool repeats = op->def().isElementwise() || op->is("cast") || op->is("broadcast") || op->is("slice");
    if (!repeats && !op->is("reshape") && !op->is("iota") && !op->is("constant")) return nullptr;
    if (!repeats && hasSymbols(value.shape())) return nullptr;
    if (op->is("slice") && hasSymbols(op->attr<ir::Shape>("start"))) return nullptr;
    llvm::SmallVector<const RefTensor *, 4> inputs;
    for (Value operand : op->operands()) {
      const RefTensor *input = operand ? (*this)(operand) : nullptr;
      if (!input) return nullptr;
      inputs.push_back(input);
    }
    if (auto error = ir::evaluateOp(op->site(), inputs, *tensor, symbols_)) {
      llvm::consumeError(std::move(error));
      return nullptr;
    }
    return tensor;
  }

  llvm::DenseMap<const ir::ValueDef *, std::unique_ptr<RefTensor>> known_;
  ir::SymbolValues symbols_;
};

/// What a known mask hides: nothing, what is to the right of the diagonal that ends in the last corner, or something
/// else.
enum class Hides : uint8_t { nothing, later, other };

Hides hiddenBy(const RefTensor &mask, int64_t tq, int64_t tk, llvm::function_ref<std::optional<bool>(double)> hides) {
  const unsigned rank = mask.shape.size();
  for (unsigned i = 0; i + 2 < rank; ++i)
    if (mask.shape[i] != 1) return Hides::other; // other masks for other heads or batches
  const int64_t columns = rank >= 1 ? mask.shape[rank - 1] : 1, rows = rank >= 2 ? mask.shape[rank - 2] : 1;
  bool all = true, causal = tq <= tk;
  for (int64_t i = 0; i < tq; ++i)
    for (int64_t j = 0; j < tk; ++j) {
      auto hidden = hides(mask.data[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)]);
      if (!hidden) return Hides::other;
      all &= !*hidden;
      causal &= *hidden == (j > i + tk - tq);
    }
  return all ? Hides::nothing : causal ? Hides::later : Hides::other;
}

// Takes a known mask in; absent where `mask` is not known while compiling.
std::optional<std::string> takeKnown(Masks &masks, Value mask, const Dim &tq, const Dim &tk,
                                     llvm::function_ref<std::optional<bool>(double)> hides) {
  if (!tq.isConstant() || !tk.isConstant() || tq.value() * tk.value() > kMostElements) return std::nullopt;
  KnownValues known;
  const RefTensor *tensor = known(mask);
  if (!tensor) return std::nullopt;
  switch (hiddenBy(*tensor, tq.value(), tk.value(), hides)) {
  case Hides::nothing: return "";
  case Hides::later: masks.causal = true; return "";
  case Hides::other: break;
  }
  return llvm::formatv("mask %{0} is neither causal nor empty", mask.name()).str();
}

// [B, Tk] of [B, 1, ..., 1, Tk], [1, ..., Tk] or what broadcasts them.
Value perKey(Value condition, const Dim &tk) {
  while (Op *broadcast = madeBy(condition, "broadcast")) condition = broadcast->operand(0u);
  auto shape = condition.shape();
  if (shape.empty() || shape.back() != tk) return {};
  if (shape.size() > 2 && llvm::any_of(shape.drop_front().drop_back(), [](const Dim &d) { return !d.is(1); }))
    return {};
  if (shape.size() == 2 && !shape[0].is(1)) return {}; // [Tq, Tk]
  return condition;
}

} // namespace

std::string addMask(Masks &masks, Value mask, const Dim &tq, const Dim &tk) {
  auto known = takeKnown(masks, mask, tq, tk, [](double m) -> std::optional<bool> {
    return m == 0 ? std::optional(false) : m <= kHides ? std::optional(true) : std::nullopt;
  });
  if (known) return *known;
  // select(condition, 0, -inf), added
  while (Op *broadcast = madeBy(mask, "broadcast")) mask = broadcast->operand(0u);
  if (Op *select = madeBy(mask, "select"))
    for (unsigned i : {1u, 2u})
      if (scalarOf(select->operand(i)) == 0.0)
        return selectMask(masks, select->operand(0u), select->operand(3 - i), i == 1, tq, tk);
  return llvm::formatv("%{0} is added to the scores: it is not known to hide or to leave each of them", mask.name())
      .str();
}

std::string selectMask(Masks &masks, Value condition, Value fill, bool seen, const Dim &tq, const Dim &tk) {
  const auto number = scalarOf(fill);
  const std::string becomes =
      "hidden scores become " + (number ? llvm::formatv("{0}", *number).str() : "%" + fill.name().str());
  Masks known;
  auto problem = takeKnown(known, condition, tq, tk, [&](double m) -> std::optional<bool> { return (m != 0) != seen; });
  if (problem) {
    if (known.causal && !(number && *number <= kHides)) return becomes + ", which hides most of them only";
    masks.causal |= known.causal;
    return *problem;
  }
  // A row without keys: attention gives 0, these small ops NaN with -inf, but a mean of all values with finite numbers.
  if (number != -std::numeric_limits<double>::infinity())
    return becomes + ": rows without keys would be another result";
  Value keys = perKey(condition, tk);
  if (!keys) return llvm::formatv("mask %{0} is not one for each batch and key", condition.name()).str();
  if (masks.keys) return "there are two key masks";
  masks.keys = keys, masks.seen = seen;
  return "";
}

Value keyMask(ir::Builder &b, const Masks &masks, const Dim &batch, const Dim &tk) {
  if (!masks.keys) return {};
  const Dim rows = product(masks.keys.shape()) == tk ? Dim(1) : batch;
  Value mask = b.op("reshape", {masks.keys}, {{"shape", ir::Shape{rows, tk}}});
  if (!masks.seen) mask = b.op("not", {mask});
  return rows == batch ? mask : b.op("broadcast", {mask}, {{"shape", ir::Shape{batch, tk}}});
}

} // namespace fusor::passes
