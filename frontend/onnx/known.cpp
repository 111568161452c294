#include "frontend/onnx/known.h"
#include "frontend/onnx/limits.h"
#include "ir/ops/indexing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace fusor::onnx {

using ir::Dim;

namespace {

constexpr int64_t kModest = int64_t(1) << 40; // products of two still fit

bool areConstant(llvm::ArrayRef<Dim> dims) {
  return llvm::all_of(dims, [](const Dim &dim) { return dim.isConstant(); });
}

// f(a, b) of numbers, with a check for overflow.
template <typename Checked> std::optional<Dim> number(llvm::ArrayRef<Dim> a, Checked checked) {
  int64_t result = 0;
  if (checked(a[0].value(), a[1].value(), result)) return std::nullopt;
  return Dim(result);
}

template <typename Apply> std::optional<Dim> ofNumbers(llvm::ArrayRef<Dim> a, Apply apply) {
  if (!areConstant(a)) return std::nullopt;
  return Dim(apply(a[0].value(), a[1].value()));
}

std::optional<Dim> modest(Dim dim) { return isModest(dim) ? std::optional<Dim>(std::move(dim)) : std::nullopt; }

} // namespace

// A Dim keeps its terms to itself; its text lists them: 2*B*T-S+1.
DimTerms termsOf(const Dim &dim) {
  DimTerms terms;
  std::string text = dim.str();
  for (llvm::StringRef rest = text; !rest.empty();) {
    bool isNegative = rest.consume_front("-");
    rest.consume_front("+");
    llvm::StringRef term = rest.take_until([](char c) { return c == '+' || c == '-'; });
    rest = rest.drop_front(term.size());
    int64_t coefficient = 0;
    std::string number = (isNegative ? "-" : "") + term.split('*').first.str();
    if (llvm::StringRef(number).getAsInteger(10, coefficient))
      coefficient = isNegative ? -1 : 1; // a symbol stands first
    terms.low = std::min(terms.low, coefficient), terms.high = std::max(terms.high, coefficient);
    ++terms.count;
  }
  return terms;
}

bool isModest(const Dim &dim) {
  if (dim.isConstant()) return true;
  DimTerms terms = termsOf(dim);
  return terms.count <= kMaxDimTerms && terms.low > -kModest && terms.high < kModest;
}

bool isNeverNegative(const Dim &dim) { return dim.isConstant() ? dim.value() >= 0 : termsOf(dim).low >= 0; }

bool Known::isConstant() const { return areConstant(elements); }

std::optional<Known> knownOf(const Data &data) {
  if ((!ir::isInteger(data.dtype) && data.dtype != ir::DType::i1) || data.elements() > kMaxKnown) return std::nullopt;
  Known known{data.dtype, data.shape, {}};
  for (int64_t i = 0, n = data.elements(); i < n; ++i) {
    if (data.dtype == ir::DType::i64) { // a double would round the largest
      int64_t value = 0;
      std::memcpy(&value, data.bytes->data() + i * 8, 8);
      known.elements.push_back(Dim(value));
      continue;
    }
    double value = ir::loadElement(data.dtype, data.bytes->data(), i);
    if (data.dtype == ir::DType::u64 && value >= 9e18) return std::nullopt;
    known.elements.push_back(Dim(static_cast<int64_t>(value)));
  }
  return known;
}

Data dataOf(const Known &known) {
  std::vector<char> bytes(known.elements.size() * ir::byteSize(known.dtype));
  for (size_t i = 0; i < known.elements.size(); ++i) {
    int64_t value = known.elements[i].value();
    if (known.dtype == ir::DType::i64)
      std::memcpy(bytes.data() + i * 8, &value, 8);
    else
      ir::storeElement(known.dtype, bytes.data(), static_cast<int64_t>(i), static_cast<double>(value));
  }
  return {known.dtype, known.shape, std::make_shared<const std::vector<char>>(std::move(bytes))};
}

std::optional<Dim> foldAdd(llvm::ArrayRef<Dim> a) {
  if (areConstant(a)) return number(a, llvm::AddOverflow<int64_t>);
  return isModest(a[0]) && isModest(a[1]) ? modest(a[0] + a[1]) : std::nullopt;
}
std::optional<Dim> foldSub(llvm::ArrayRef<Dim> a) {
  if (areConstant(a)) return number(a, llvm::SubOverflow<int64_t>);
  return isModest(a[0]) && isModest(a[1]) ? modest(a[0] - a[1]) : std::nullopt;
}
std::optional<Dim> foldMul(llvm::ArrayRef<Dim> a) {
  if (areConstant(a)) return number(a, llvm::MulOverflow<int64_t>);
  auto small = [](const Dim &d) {
    DimTerms terms = termsOf(d);
    return terms.low > -(1 << 20) && terms.high < (1 << 30) && terms.count <= 8;
  };
  return small(a[0]) && small(a[1]) ? modest(a[0] * a[1]) : std::nullopt;
}
std::optional<Dim> foldDiv(llvm::ArrayRef<Dim> a) { // truncates, as integers of every evaluator do
  if (a[1].is(0) || a[1].is(-1)) return std::nullopt;
  if (areConstant(a)) return Dim(a[0].value() / a[1].value());
  return isModest(a[0]) && isModest(a[1]) ? a[0].divide(a[1]) : std::nullopt;
}
std::optional<Dim> foldMod(llvm::ArrayRef<Dim> a) { // with the sign of the divisor
  if (!areConstant(a) || a[1].is(0) || a[1].is(-1)) return std::nullopt;
  int64_t r = a[0].value() % a[1].value();
  return Dim(r != 0 && (r < 0) != (a[1].value() < 0) ? r + a[1].value() : r);
}
std::optional<Dim> foldNeg(llvm::ArrayRef<Dim> a) { return foldSub({Dim(0), a[0]}); }
std::optional<Dim> foldMin(llvm::ArrayRef<Dim> a) {
  if (a[0] == a[1]) return a[0];
  return ofNumbers(a, [](int64_t x, int64_t y) { return std::min(x, y); });
}
std::optional<Dim> foldMax(llvm::ArrayRef<Dim> a) {
  if (a[0] == a[1]) return a[0];
  return ofNumbers(a, [](int64_t x, int64_t y) { return std::max(x, y); });
}
std::optional<Dim> foldEqual(llvm::ArrayRef<Dim> a) {
  if (a[0] == a[1]) return Dim(1);
  if (areConstant(a)) return Dim(0);
  auto apart = [](const Dim &size, const Dim &number) {
    return number.isConstant() && number.value() < 0 && isNeverNegative(size);
  };
  return apart(a[0], a[1]) || apart(a[1], a[0]) ? std::optional<Dim>(Dim(0)) : std::nullopt;
}
std::optional<Dim> foldLess(llvm::ArrayRef<Dim> a) {
  if (a[1].isConstant() && a[1].value() <= 0 && isNeverNegative(a[0])) return Dim(0);
  return ofNumbers(a, [](int64_t x, int64_t y) { return int64_t(x < y); });
}
std::optional<Dim> foldGreater(llvm::ArrayRef<Dim> a) { return foldLess({a[1], a[0]}); }
std::optional<Dim> foldWhere(llvm::ArrayRef<Dim> a) {
  if (a[1] == a[2]) return a[1];
  if (!a[0].isConstant()) return std::nullopt;
  return a[0].is(0) ? a[2] : a[1];
}

std::optional<Known> foldElements(Fold fold, llvm::ArrayRef<const Known *> arguments, ir::DType result) {
  llvm::SmallVector<llvm::SmallVector<Dim, 4>, 3> shapes;
  for (const Known *k : arguments) shapes.emplace_back(k->shape.begin(), k->shape.end());
  llvm::SmallVector<llvm::ArrayRef<Dim>, 3> views(shapes.begin(), shapes.end());
  auto shape = ir::broadcastShapes(views);
  if (!shape) return std::nullopt;
  Known known{result, {}, {}};
  int64_t count = 1;
  for (const Dim &dim : *shape) {
    known.shape.push_back(dim.value());
    if (llvm::MulOverflow(count, dim.value(), count) || count > kMaxKnown) return std::nullopt;
  }
  llvm::SmallVector<ir::Index, 3> strides;
  for (const Known *k : arguments) strides.push_back(ir::broadcastStrides(k->shape, known.shape));
  bool isWhole = true;
  ir::forEachIndex(known.shape, [&](llvm::ArrayRef<int64_t> index, int64_t) {
    llvm::SmallVector<Dim, 3> values;
    for (size_t i = 0; i < arguments.size(); ++i) values.push_back(arguments[i]->elements[ir::dot(index, strides[i])]);
    auto element = isWhole ? fold(values) : std::nullopt;
    if (element && element->isConstant() && result != ir::DType::i64) { // a narrow integer would wrap
      auto value = static_cast<double>(element->value());
      if (ir::roundTo(result, value) != value) element.reset();
    }
    if (!element) isWhole = false;
    known.elements.push_back(element ? std::move(*element) : Dim(0));
  });
  if (!isWhole) return std::nullopt;
  return known;
}

} // namespace fusor::onnx
