// Masks that depend on no input are evaluated, so their spelling does not matter: triangles of constants, comparisons
// of iotas, slices of a buffer; where their sizes are symbols, triangle.h knows them. A boolean key mask with fill -inf
// is attention's key_mask. All else is its bias.
#include "passes/lift/mask.h"
#include "ir/ops/op_def.h"
#include "ir/reference/reference.h"
#include "passes/lift/bound.h"
#include "passes/lift/triangle.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::RefTensor, ir::Value;

constexpr int64_t kMostElements = int64_t(1) << 22; // of a mask that is evaluated while compiling: 2048 x 2048
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kHides = -1e30;   // beside any score the weight of this one is 0
constexpr double kFarBelow = 1e29; // what is added to such a score leaves it there
constexpr double kAbsorbed = 1e22; // kHides + this is kHides in f32; no score of q and k is as large

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

Value beforeBroadcast(Value value) {
  while (Op *broadcast = madeBy(value, "broadcast")) value = broadcast->operand(0u);
  return value;
}

// Whatever its symbols are, in their ranges. Dims are multilinear in practice, so their least value is at a corner.
bool isNeverNegative(const Dim &dim, const ir::Module &module) {
  llvm::SmallVector<std::string, 4> symbols;
  dim.forEachSymbol([&](llvm::StringRef symbol) {
    if (!llvm::is_contained(symbols, symbol)) symbols.push_back(symbol.str());
  });
  if (symbols.size() > 8) return false;
  for (unsigned corner = 0; corner < 1u << symbols.size(); ++corner) {
    ir::SymbolValues values;
    for (unsigned i = 0; i < symbols.size(); ++i) {
      auto range = module.symbols().find(symbols[i]);
      if (range == module.symbols().end()) return false;
      values[symbols[i]] = corner >> i & 1 ? range->second.high : range->second.low;
    }
    auto value = dim.evaluate(values);
    if (!value || *value < 0) return false;
  }
  return true;
}

// What a mask over these scores hides; absent where it is not known while compiling.
std::optional<Hides> knownToHide(Value mask, const ScoresAt &scores,
                                 llvm::function_ref<std::optional<bool>(double)> hides) {
  if (auto triangle = triangleOf(mask)) {
    auto before = hides(triangle->before), behind = hides(triangle->behind);
    if (before == std::optional(false) && triangle->isNumber()) return Hides::nothing;
    if (before == std::optional(false) && behind == std::optional(true) && triangle->diagonal == scores.tk - scores.tq)
      return Hides::later;
  }
  if (!scores.tq.isConstant() || !scores.tk.isConstant() || scores.tq.value() * scores.tk.value() > kMostElements)
    return std::nullopt;
  KnownValues known;
  const RefTensor *tensor = known(mask);
  if (!tensor) return std::nullopt;
  return hiddenBy(*tensor, scores.tq.value(), scores.tk.value(), hides);
}

std::string numberText(double number) { return llvm::formatv("{0}", number).str(); }

} // namespace

double Masks::Bias::magnitude() const {
  return value ? largestMagnitude(value) * std::abs(scores.factor) : std::abs(fill);
}

std::string Masks::take(Bias bias) {
  const double magnitude = bias.magnitude();
  if (causalAsBias_ && magnitude > kFarBelow) { // neither is it beside this one
    biases_.push_back(*causalAsBias_);
    causalAsBias_.reset(), causal_ = false;
  }
  if (magnitude > mostInside_)
    return llvm::formatv("%{0} is added, then hidden scores become a number that it may be below",
                         bias.value ? bias.value.name() : bias.condition.name())
        .str();
  biases_.push_back(std::move(bias));
  return "";
}

// Whether `scores` + `mask` is causal.
bool Masks::takeTriangle(Value mask, const ScoresAt &scores) {
  std::optional<double> fill;
  auto hides = knownToHide(mask, scores, [&](double m) -> std::optional<bool> {
    m *= scores.factor;
    if (m <= kHides) fill = std::max(m, fill.value_or(-kInf));
    return m == 0 ? std::optional(false) : m <= kHides ? std::optional(true) : std::nullopt;
  });
  if (hides == Hides::nothing) return true;
  if (hides != Hides::later) return false;
  const bool isThere = *fill > -kInf; // a query that sees no key has a mean of all of them
  const bool farAway = llvm::all_of(biases_, [](const Bias &bias) { return bias.magnitude() <= kFarBelow; });
  if (isThere && !(farAway && isNeverNegative(scores.tk - scores.tq, mask.users().front()->function()->module())))
    return false;
  if (isThere && !causal_) causalAsBias_ = Bias{scores, mask, {}, false, 0};
  causal_ = true;
  return true;
}

std::string Masks::add(Value mask, const ScoresAt &scores) {
  if (takeTriangle(mask, scores)) return "";
  Value inner = beforeBroadcast(mask);
  if (Op *sum = madeBy(inner, "add")) {
    std::string problem = add(sum->operand(0u), scores);
    return problem.empty() ? add(sum->operand(1u), scores) : problem;
  }
  // select(condition, rest, -inf)
  if (Op *select = madeBy(inner, "select"))
    for (unsigned i : {1u, 2u})
      if (scalarOf(select->operand(3 - i)) == -kInf && scores.factor > 0) {
        std::string problem = this->select(select->operand(0u), select->operand(3 - i), i == 1, scores);
        return problem.empty() && scalarOf(select->operand(i)) != 0.0 ? add(select->operand(i), scores) : problem;
      }
  // select(triangle, rest, lowest)
  if (Op *select = madeBy(inner, "select"))
    for (unsigned i : {1u, 2u}) {
      auto fill = scalarOf(select->operand(3 - i));
      if (!fill || *fill * scores.factor > kHides || largestMagnitude(select->operand(i)) > kFarBelow) continue;
      auto hides =
          knownToHide(select->operand(0u), scores, [&](double m) { return std::optional((m != 0) != (i == 1)); });
      if (hides != Hides::later || !selectLater(*fill * scores.factor, scores, *select).empty()) continue;
      return add(select->operand(i), scores);
    }
  return take(Bias{scores, inner, {}, false, 0});
}

// Later scores become `fill`, which is finite.
std::string Masks::selectLater(double fill, const ScoresAt &scores, const Op &at) {
  if (causal_ && !hidden_) return ""; // they are hidden already
  if (hidden_) return "later scores become a number twice";
  causal_ = true;
  if (scores.tq.is(1)) return ""; // no key is later
  const bool farAway = llvm::all_of(biases_, [](const Bias &bias) { return bias.magnitude() <= kFarBelow; });
  if (fill <= kHides && farAway && isNeverNegative(scores.tk - scores.tq, at.function()->module())) {
    mostInside_ = std::min(mostInside_, kFarBelow);
  } else {
    hidden_ = fill, mostInside_ = 0;
  }
  return "";
}

std::string Masks::select(Value condition, Value fill, bool seen, const ScoresAt &scores) {
  auto number = scalarOf(fill);
  if (number) *number *= scores.factor;
  const std::string becomes = "hidden scores become " + (number ? numberText(*number) : "%" + fill.name().str());
  auto hides = knownToHide(condition, scores, [&](double m) { return std::optional((m != 0) != seen); });
  if (hides == Hides::nothing) return "";
  if (!number) return becomes + ", which is no number";
  const bool isOut = *number == -kInf;
  if (hides == Hides::later) {
    if (!isOut) return selectLater(*number, scores, *condition.users().front());
    if (hidden_) return "later scores become a number twice";
    causal_ = true, causalAsBias_.reset();
    return "";
  }
  // A row without keys: attention gives 0, these small ops NaN with -inf, but a mean of all values with finite numbers.
  if (*number > kHides) return becomes + ": rows without keys would be another result";
  Bias bias{scores, {}, beforeBroadcast(condition), seen, *number};
  if (!isOut) {
    mostInside_ = std::min(mostInside_, kAbsorbed);
    biases_.push_back(std::move(bias));
    return "";
  }
  Value keys = perKey(condition, scores.tk);
  if (!keys || keys_) return biases_.push_back(std::move(bias)), "";
  bias.condition = keys;
  keys_ = std::move(bias);
  return "";
}

bool Masks::isKeyMask(llvm::ArrayRef<Dim> front, const Dim &tk) const {
  auto shape = keys_->condition.shape();
  if (product(shape) == tk) return true; // one for all
  return shape.size() == front.size() + 2 && shape[0] == front[0] && front == llvm::ArrayRef<Dim>(keys_->scores.front);
}

Value Masks::keyMask(ir::Builder &b, llvm::ArrayRef<Dim> front, const Dim &tk) const {
  if (!keys_ || !isKeyMask(front, tk)) return {};
  Value keys = keys_->condition;
  const Dim rows = product(keys.shape()) == tk ? Dim(1) : front[0];
  Value mask = b.op("reshape", {keys}, {{"shape", ir::Shape{rows, tk}}});
  if (!keys_->seen) mask = b.op("not", {mask});
  return rows == front[0] ? mask : b.op("broadcast", {mask}, {{"shape", ir::Shape{front[0], tk}}});
}

// As [batch, heads, tq, tk]; `front` has one dim where there are no heads.
Value Masks::written(ir::Builder &b, const Bias &bias, llvm::ArrayRef<Dim> front, ir::DType dtype) const {
  Value x = bias.value;
  if (bias.condition) {
    Value zero = b.constant(0, dtype), fill = b.constant(bias.fill, dtype);
    x = b.op("select", {bias.condition, bias.seen ? zero : fill, bias.seen ? fill : zero});
  } else if (bias.scores.factor != 1) {
    x = b.op("mul", {x, b.constant(bias.scores.factor, dtype)});
  }
  const ir::Shape &at = bias.scores.front;
  ir::Shape own(at.size() + 2 - x.rank(), Dim(1));
  own.append(x.shape().begin(), x.shape().end());
  llvm::ArrayRef<Dim> ownFront = llvm::ArrayRef<Dim>(own).drop_back(2);
  ir::Shape shape{Dim(1), Dim(1)};
  if (llvm::any_of(ownFront, [](const Dim &d) { return !d.is(1); })) {
    if (llvm::ArrayRef<Dim>(at) == front) {
      for (unsigned i = 0; i < ownFront.size(); ++i) shape[i] = ownFront[i];
    } else { // heads and batch are one dim on one side: all of both
      ir::Shape all = at;
      all.append(own.end() - 2, own.end());
      x = b.op("broadcast", {x}, {{"shape", all}});
      for (unsigned i = 0; i < front.size(); ++i) shape[i] = front[i];
    }
  }
  shape.append(own.end() - 2, own.end());
  return x.shape() == llvm::ArrayRef<Dim>(shape) ? x : b.op("reshape", {x}, {{"shape", shape}});
}

Value Masks::bias(ir::Builder &b, llvm::ArrayRef<Dim> front, ir::DType dtype) const {
  Value sum;
  auto plus = [&](const Bias &bias) {
    Value x = written(b, bias, front, dtype);
    sum = sum ? b.op("add", {sum, x}) : x;
  };
  for (const Bias &bias : biases_) plus(bias);
  if (keys_ && !isKeyMask(front, keys_->scores.tk)) plus(*keys_);
  return sum;
}

} // namespace fusor::passes
