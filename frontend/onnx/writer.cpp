#include "frontend/onnx/writer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::onnx {

using ir::Attrs, ir::Dim, ir::DType, ir::Shape;

// --- terms

Dim Term::dim(int64_t i) const {
  int64_t r = rank(), at = i < 0 ? i + r : i;
  return at >= 0 && at < r ? value_.shape()[at] : Dim(1);
}

Term Term::apply(llvm::StringRef op, Attrs attrs) const {
  return value_ ? writer_->op(op, {*this}, std::move(attrs)) : Term();
}
Term Term::cast(DType to) const { return !value_ || dtype() == to ? *this : apply("cast", {{"to", to}}); }
Term Term::reshape(Shape shape) const {
  return value_ && value_.type().shape == shape ? *this : apply("reshape", {{"shape", std::move(shape)}});
}
Term Term::transpose(std::vector<int64_t> perm) const { return apply("transpose", {{"perm", std::move(perm)}}); }
Term Term::broadcast(Shape shape) const {
  return value_ && value_.type().shape == shape ? *this : apply("broadcast", {{"shape", std::move(shape)}});
}
Term Term::slice(Shape start, Shape size, std::vector<int64_t> step) const {
  if (llvm::all_of(step, [](int64_t s) { return s == 1; })) step.clear();
  return apply("slice", {{"start", std::move(start)}, {"size", std::move(size)}, {"step", std::move(step)}});
}
Term Term::part(unsigned axis, Dim start, Dim count) const {
  if (!value_ || axis >= rank()) return {};
  Shape starts(rank(), Dim(0)), sizes = shape();
  starts[axis] = std::move(start), sizes[axis] = std::move(count);
  return slice(std::move(starts), std::move(sizes));
}
Term Term::reversed(unsigned axis) const {
  if (!value_ || axis >= rank()) return {};
  if (dim(axis).is(0)) return *this;
  Shape starts(rank(), Dim(0));
  starts[axis] = dim(axis) - Dim(1);
  std::vector<int64_t> step(rank(), 1);
  step[axis] = -1;
  return slice(std::move(starts), shape(), std::move(step));
}
Term Term::reduce(llvm::StringRef op, std::vector<int64_t> dims, bool keep) const {
  return apply(op, {{"dims", std::move(dims)}, {"keep", keep}});
}

namespace {

Term binary(llvm::StringRef op, Term a, Term b) { return a && b ? a.writer().op(op, {a, b}) : Term(); }
Term number(Term like, double value) { return like ? like.writer().constant(value, like.dtype()) : Term(); }

} // namespace

Term operator+(Term a, Term b) { return binary("add", a, b); }
Term operator-(Term a, Term b) { return binary("sub", a, b); }
Term operator*(Term a, Term b) { return binary("mul", a, b); }
Term operator/(Term a, Term b) { return binary("div", a, b); }
Term operator+(Term a, double b) { return a + number(a, b); }
Term operator-(Term a, double b) { return a - number(a, b); }
Term operator*(Term a, double b) { return a * number(a, b); }
Term operator/(Term a, double b) { return a / number(a, b); }
Term operator-(Term a) { return a.apply("neg"); }
Term operator<(Term a, Term b) { return binary("lt", a, b); }
Term operator<=(Term a, Term b) { return binary("le", a, b); }
Term operator>(Term a, Term b) { return binary("gt", a, b); }
Term operator>=(Term a, Term b) { return binary("ge", a, b); }
Term operator<(Term a, double b) { return a < number(a, b); }
Term operator>(Term a, double b) { return a > number(a, b); }
Term operator>=(Term a, double b) { return a >= number(a, b); }
Term operator==(Term a, Term b) { return binary("eq", a, b); }
Term operator==(Term a, double b) { return a == number(a, b); }
Term both(Term a, Term b) { return binary("and", a, b); }
Term select(Term condition, Term a, Term b) {
  return condition && a && b ? a.writer().op("select", {condition, a, b}) : Term();
}

// --- writer

void Writer::startNode(ir::Location location) {
  builder_.setLocation(std::move(location));
  failure_.reset();
  made_ = 0;
}

llvm::Error Writer::checkSize(llvm::ArrayRef<Dim> shape) const {
  if (shape.size() > kMaxRank)
    return problem("would make a tensor of {0} dims, at most {1} are supported", shape.size(), kMaxRank);
  int64_t product = 1, terms = 1;
  for (const Dim &dim : shape) {
    DimTerms of = dim.isConstant() ? DimTerms{1, std::min<int64_t>(dim.value(), 0), std::max<int64_t>(dim.value(), 0)}
                                   : termsOf(dim);
    int64_t size = std::max<int64_t>({-std::max(of.low, -kMaxDim - 1), of.high, 1});
    terms *= std::max(1u, of.count);
    if (size > kMaxDim || terms > kMaxDimTerms)
      return problem("would make a dim that is too large: {0}, the limit is {1}", shown(dim.str()), kMaxDim);
    if (llvm::MulOverflow(product, size, product) || product > kMaxElements)
      return problem("would make a tensor that is too large: [{0}] has more than {1} elements", shown(ir::str(shape)),
                     kMaxElements);
  }
  return llvm::Error::success();
}

llvm::SmallVector<Term, 3> Writer::ops(llvm::StringRef name, llvm::ArrayRef<Term> operands, Attrs attrs,
                                       unsigned results) {
  llvm::SmallVector<Term, 3> none(results);
  if (failed()) return none;
  if (++made_ > kMaxUnrolled) return fail("would become more than {0} ops", kMaxUnrolled), none;
  for (const Attrs::Entry &entry : attrs.entries())
    if (const auto *shape = std::get_if<Shape>(&entry.value))
      if (auto error = checkSize(*shape)) return fail("{0}", llvm::toString(std::move(error))), none;
  llvm::SmallVector<ir::Value, 4> values;
  for (const Term &operand : operands) values.push_back(operand.value());
  auto op = builder_.create(name, values, std::move(attrs));
  if (!op) return fail("{0}", llvm::toString(op.takeError())), none;
  llvm::SmallVector<Term, 3> terms;
  for (ir::Value result : (*op)->results()) {
    if (auto error = checkSize(result.shape())) return fail("{0}", llvm::toString(std::move(error))), none;
    terms.push_back({*this, result});
  }
  if (terms.size() != results) return fail("'{0}' has {1} results", name, terms.size()), none;
  return terms;
}

Term Writer::op(llvm::StringRef name, llvm::ArrayRef<Term> operands, Attrs attrs) {
  return ops(name, operands, std::move(attrs), 1)[0];
}

Term Writer::constant(double value, DType dtype) { return op("constant", {}, {{"value", value}, {"dtype", dtype}}); }

Term Writer::iota(Shape shape, unsigned axis, DType dtype) {
  return op("iota", {}, {{"shape", std::move(shape)}, {"axis", static_cast<int64_t>(axis)}, {"dtype", dtype}});
}

Term Writer::concat(llvm::ArrayRef<Term> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : op("concat", parts, {{"axis", axis}});
}

Term Writer::extent(const Dim &dim, DType dtype) {
  if (dim.isConstant()) return constant(static_cast<double>(dim.value()), dtype);
  return op("extent", {}, {{"shape", Shape{dim}}, {"dtype", dtype}});
}

std::string Writer::freshName(llvm::StringRef name) {
  std::string base = name.empty() || name.startswith("grad ") ? "value" : shown(name), fresh = base;
  for (unsigned i = 1; module_.persistent(fresh); ++i) fresh = base + "_" + std::to_string(i);
  return fresh;
}

Term Writer::data(const Data &data, llvm::StringRef name) {
  Shape shape(data.shape.begin(), data.shape.end());
  if (auto error = checkSize(shape)) return fail("{0}", llvm::toString(std::move(error)));
  ir::Persistent persistent{ir::PersistentKind::constant, freshName(name), {data.dtype, shape}};
  persistent.data = data.bytes;
  persistent.location = builder_.location();
  return {*this, function_.read(module_.addPersistent(std::move(persistent)).name)};
}

Term Writer::known(const Known &known, llvm::StringRef name) {
  if (known.isConstant()) return data(dataOf(known), name);
  llvm::SmallVector<Term, 8> parts;
  for (const Dim &element : known.elements) parts.push_back(extent(element, known.dtype).reshape({Dim(1)}));
  return concat(parts, 0).reshape(Shape(known.shape.begin(), known.shape.end()));
}

bool Writer::demandAtLeast(const Dim &dim, int64_t low) {
  if (dim.isConstant()) return dim.value() >= low;
  if (isNeverNegative(dim) && low <= 0) return true;
  // symbol + number >= low
  std::string symbol;
  unsigned count = 0;
  dim.forEachSymbol([&](llvm::StringRef name) { symbol = name.str(), ++count; });
  if (count != 1) return false;
  Dim rest = dim - Dim::symbol(symbol);
  Dim negated = dim + Dim::symbol(symbol);
  auto range = module_.symbols().find(symbol);
  if (range == module_.symbols().end()) return false;
  ir::SymbolRange &r = range->second;
  if (rest.isConstant()) { // symbol >= low - rest
    r.low = std::max(r.low, low - rest.value());
    return r.low <= r.high;
  }
  if (negated.isConstant()) { // rest - symbol >= low
    r.high = std::min(r.high, negated.value() - low);
    return r.low <= r.high;
  }
  return false;
}

bool Writer::demandEqual(const Dim &dim, const Dim &size) {
  if (dim == size) return true;
  auto symbol = dim.asSymbol();
  bool isOther = symbol.has_value() && isNeverNegative(size);
  size.forEachSymbol([&](llvm::StringRef name) { isOther &= symbol && name != *symbol; });
  if (isOther) equal_.try_emplace(symbol->str(), size);
  return false;
}

} // namespace fusor::onnx
