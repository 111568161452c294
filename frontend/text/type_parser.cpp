#include "frontend/text/type_parser.h"
#include "ir/graph/element_text.h"
#include "ir/graph/names.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace fusor::frontend {
namespace {

constexpr int64_t kLargestSymbol = int64_t(1) << 40;
// Of a dim's polynomial: what an import makes of a shape of 16 symbolic sizes must be read back.
constexpr unsigned kMostFactors = 32, kMostTerms = 64;
// What symbols are bounded for is arithmetic on coefficients. Up to this, the largest size of an ONNX model, one counts
// as 1: several are multiplied there.
constexpr int64_t kFreeSymbol = int64_t(1) << 16;

int64_t magnitudeOf(const ir::SymbolRange &range) { return range.high <= kFreeSymbol ? 1 : range.high; }

std::vector<std::string> symbolNames(const ir::Module &module) {
  std::vector<std::string> names;
  for (const auto &[name, range] : module.symbols()) names.push_back(name);
  return names;
}

std::vector<std::string> dtypeNames() {
  std::vector<std::string> names;
  for (ir::DType type : ir::kAllDTypes) names.push_back(ir::name(type).str());
  return names;
}

} // namespace

std::optional<TypeParser::Factor> TypeParser::factor() {
  Token token = cursor_.peek();
  if (token.is(TokenKind::integer)) {
    cursor_.next();
    int64_t value;
    if (token.text.getAsInteger(10, value) || static_cast<double>(value) > kMostElements) {
      cursor_.error(token, "the dim is too large");
      return std::nullopt;
    }
    return Factor{ir::Dim(value), static_cast<double>(value)};
  }
  if (!token.is(TokenKind::word)) {
    cursor_.expected("a dim: a number or a symbol");
    return std::nullopt;
  }
  cursor_.next();
  const auto &symbols = module_.symbols();
  auto it = symbols.find(token.text.str());
  if (it == symbols.end()) {
    auto &error = cursor_.error(token, llvm::formatv("symbol '{0}' is not declared", token.text).str());
    auto known = nearest(token.text, symbolNames(module_));
    error.hint = known ? llvm::formatv("did you mean '{0}'?", *known).str()
                       : llvm::formatv("add a line such as 'dim {0} in 1..64' at the top", token.text).str();
    return std::nullopt;
  }
  return Factor{ir::Dim::symbol(token.text), static_cast<double>(magnitudeOf(it->second))};
}

std::optional<TypeParser::Factor> TypeParser::term() {
  Token start = cursor_.peek();
  auto product = factor();
  for (unsigned factors = 1; product && cursor_.accept(TokenKind::star); ++factors) {
    auto next = factor();
    if (!next) return std::nullopt;
    product->magnitude *= std::max(1.0, next->magnitude);
    if (product->magnitude > kMostElements || factors >= kMostFactors) {
      cursor_.error(start, "the dim is too large");
      return std::nullopt;
    }
    product->dim = product->dim * next->dim;
  }
  return product;
}

std::optional<ir::Dim> TypeParser::dim() {
  Token start = cursor_.peek();
  bool negative = cursor_.accept(TokenKind::minus);
  auto first = term();
  if (!first) return std::nullopt;
  ir::Dim sum = negative ? ir::Dim(0) - first->dim : first->dim;
  double magnitude = first->magnitude;
  for (unsigned terms = 1; cursor_.at(TokenKind::plus) || cursor_.at(TokenKind::minus); ++terms) {
    bool minus = cursor_.next().is(TokenKind::minus);
    auto next = term();
    if (!next) return std::nullopt;
    magnitude += next->magnitude;
    if (magnitude > kMostElements || terms >= kMostTerms) {
      cursor_.error(start, "the dim is too large");
      return std::nullopt;
    }
    sum = minus ? sum - next->dim : sum + next->dim;
  }
  if (sum.isConstant() && sum.value() < 0) {
    cursor_.error(start, llvm::formatv("a dim must not be negative, is {0}", sum.value()).str());
    return std::nullopt;
  }
  return sum;
}

std::optional<ir::Shape> TypeParser::shape() {
  Token start = cursor_.peek();
  if (!cursor_.expect(TokenKind::leftBracket, "'[' and the dims")) return std::nullopt;
  ir::Shape shape;
  if (!cursor_.at(TokenKind::rightBracket)) do {
      auto next = dim();
      if (!next) return std::nullopt;
      shape.push_back(std::move(*next));
      if (shape.size() > kMostDims) {
        cursor_.error(start, llvm::formatv("a shape has at most {0} dims", kMostDims).str());
        return std::nullopt;
      }
    } while (cursor_.accept(TokenKind::comma));
  if (!cursor_.expect(TokenKind::rightBracket, "',' or ']' after a dim")) return std::nullopt;
  if (isTooLarge({ir::DType::u8, shape})) {
    cursor_.error(start, llvm::formatv("[{0}] has too many elements", ir::str(llvm::ArrayRef<ir::Dim>(shape))).str());
    return std::nullopt;
  }
  return shape;
}

bool TypeParser::isTooLarge(const ir::TensorType &type) const {
  ir::SymbolValues largest;
  for (const ir::Dim &dim : type.shape)
    dim.forEachSymbol(
        [&](llvm::StringRef symbol) { largest[symbol] = magnitudeOf(module_.symbols().lookup(symbol.str())); });
  double elements = 1;
  for (const ir::Dim &dim : type.shape)
    elements *= std::max(1.0, std::fabs(static_cast<double>(dim.evaluate(largest).value_or(1))));
  return elements > (largest.empty() ? kMostElements : kMostInRange);
}

std::optional<ir::DType> TypeParser::dtype() {
  Token token = cursor_.peek();
  if (!token.is(TokenKind::word)) {
    cursor_.expected("a type such as bf16[256]");
    return std::nullopt;
  }
  cursor_.next();
  auto dtype = ir::parseDType(token.text);
  if (!dtype) {
    auto &error = cursor_.error(token, llvm::formatv("there is no dtype called '{0}'", token.text).str());
    if (auto known = nearest(token.text, dtypeNames())) error.hint = llvm::formatv("did you mean '{0}'?", *known).str();
  }
  return dtype;
}

std::optional<ir::TensorType> TypeParser::type() {
  auto element = dtype();
  if (!element) return std::nullopt;
  auto dims = shape();
  if (!dims) return std::nullopt;
  ir::TensorType type{*element, std::move(*dims)};
  if (cursor_.acceptWord("per")) {
    if (!cursor_.expectWord("tensor")) return std::nullopt;
    type.granularity = ir::Granularity::tensor;
  }
  return type;
}

bool TypeParser::symbolRange() {
  Token name = cursor_.peek();
  if (!cursor_.expect(TokenKind::word, "the name of a symbol") || !cursor_.expectWord("in")) return false;
  Token range = cursor_.peek();
  auto low = integer("the smallest value");
  if (!low || !cursor_.expect(TokenKind::dotDot, "'..'")) return false;
  auto high = integer("the largest value");
  if (!high) return false;
  if (*low < 0 || *high < *low || *high > kLargestSymbol) {
    cursor_.error(range, llvm::formatv("the range of '{0}' must be within 0..{1} and not empty, is {2}..{3}", name.text,
                                       kLargestSymbol, *low, *high)
                             .str());
    return false;
  }
  auto &symbols = module_.symbols();
  auto it = symbols.find(name.text.str());
  if (it != symbols.end() && (it->second.low != *low || it->second.high != *high)) {
    cursor_.error(
        name, llvm::formatv("symbol '{0}' is already declared in {1}..{2}", name.text, it->second.low, it->second.high)
                  .str());
    return false;
  }
  module_.declareSymbol(name.text, {*low, *high});
  return true;
}

std::optional<int64_t> TypeParser::integer(llvm::StringRef what) {
  bool negative = cursor_.accept(TokenKind::minus);
  Token token = cursor_.peek();
  if (!cursor_.expect(TokenKind::integer, what)) return std::nullopt;
  int64_t value;
  std::string digits = (negative ? "-" : "") + token.text.str();
  if (llvm::StringRef(digits).getAsInteger(10, value)) {
    cursor_.error(token, "the number does not fit in 64 bits");
    return std::nullopt;
  }
  return value;
}

std::optional<double> TypeParser::real(llvm::StringRef what) {
  bool negative = cursor_.accept(TokenKind::minus);
  Token token = cursor_.peek();
  if (!token.is(TokenKind::integer) && !token.is(TokenKind::real) && !token.isWord("inf") && !token.isWord("nan")) {
    cursor_.expected(what);
    return std::nullopt;
  }
  cursor_.next();
  auto value = ir::parseReal(token.text);
  if (!value) cursor_.error(token, "the number is out of the range of f64");
  return value ? std::optional<double>(negative ? -*value : *value) : std::nullopt;
}

} // namespace fusor::frontend
