#include "ir/graph/builder.h"
#include "ir/graph/bug.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::ir {
namespace {

llvm::Error prefixed(const OpDef &def, llvm::Error error) {
  return opError("'{0}' {1}", def.name, llvm::toString(std::move(error)));
}

llvm::Error checkOperands(const OpSite &site) {
  const OpDef &def = site.def;
  size_t declared = def.operands.size(), given = site.operands.size();
  if (given < def.requiredOperands() || (given > declared && !def.isVariadic())) {
    std::string expected = def.isVariadic() ? llvm::formatv("at least {0}", def.requiredOperands()).str()
                                            : std::to_string(def.requiredOperands());
    if (!def.isVariadic() && declared > def.requiredOperands()) expected += llvm::formatv(" to {0}", declared).str();
    return opError("takes {0} operands, {1} are given", expected, given);
  }
  for (size_t i = 0; i < given; ++i)
    if (!site.operands[i] && (i >= declared || !def.operands[i].optional)) return opError("operand {0} is missing", i);
  for (Value value : site.operands)
    if (value && value.type().granularity != Granularity::none && !def.takesQuantised)
      return opError("works on plain tensors; dequantize {0} first", value.type().str());
  if (!def.isElementwise()) return llvm::Error::success();

  Value first;
  for (size_t i = 0; i < given; ++i) {
    if (llvm::is_contained(def.untypedOperands, i)) continue;
    Value value = site.operands[i];
    DType dtype = value.dtype();
    bool fits = def.typeClass == TypeClass::any || (def.typeClass == TypeClass::floats && isFloat(dtype)) ||
                (def.typeClass == TypeClass::numbers && dtype != DType::i1) ||
                (def.typeClass == TypeClass::booleans && dtype == DType::i1);
    if (!fits) {
      static constexpr const char *classes[] = {"a float", "a number", "i1", "anything"};
      return opError("operand '{0}' must be {1}, is {2}", def.operands[i].name,
                     classes[static_cast<int>(def.typeClass)], value.type().str());
    }
    if (first && value.dtype() != first.dtype())
      return opError("operands must have one dtype: '{0}' is {1}, '{2}' is {3}",
                     def.operands[first == site.operands[0] ? 0 : 1].name, first.type().str(), def.operands[i].name,
                     value.type().str());
    if (!first) first = value;
  }
  return llvm::Error::success();
}

// A bound as the attribute's own kind is spelt: 1, or 1.0.
std::string boundText(const AttrSpec &spec, double bound) {
  return str(spec.kind == AttrKind::integer ? AttrValue(static_cast<int64_t>(bound)) : AttrValue(bound));
}

double asNumber(const AttrValue &value) {
  if (auto *integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (auto *real = std::get_if<double>(&value)) return *real;
  return 0;
}

llvm::Error checkAttributes(const OpSite &site) {
  const OpDef &def = site.def;
  static constexpr const char *kinds[] = {"true or false",      "an integer",        "a number", "a word",
                                          "a list of integers", "a list of strings", "a dtype",  "a shape"};
  for (const Attrs::Entry &entry : site.attrs.entries()) {
    const AttrSpec *spec = def.attr(entry.name);
    if (!spec) {
      std::string known = llvm::join(llvm::map_range(def.attrs, [](const AttrSpec &a) { return a.name; }), ", ");
      return opError("has no attribute '{0}'; it has {1}", entry.name, known.empty() ? "none" : known);
    }
    if (entry.value.index() != static_cast<size_t>(spec->kind))
      return opError("attribute '{0}' must be {1}, is {2}", entry.name, kinds[static_cast<size_t>(spec->kind)],
                     str(entry.value));
    if (!spec->choices.empty() && !llvm::is_contained(spec->choices, std::get<std::string>(entry.value)))
      return opError("attribute '{0}' must be one of {1}, is {2}", entry.name, llvm::join(spec->choices, ", "),
                     str(entry.value));
    if (spec->range && !(asNumber(entry.value) >= spec->range->first && asNumber(entry.value) <= spec->range->second))
      return opError("attribute '{0}' must be in {1}..{2}, is {3}", entry.name, boundText(*spec, spec->range->first),
                     boundText(*spec, spec->range->second), str(entry.value));
    if (auto *shape = std::get_if<Shape>(&entry.value);
        shape && llvm::any_of(*shape, [](const Dim &dim) { return dim.isConstant() && dim.value() < 0; }))
      return opError("attribute '{0}' must have no negative dim, is {1}", entry.name, str(entry.value));
  }
  for (const AttrSpec &spec : def.attrs)
    if (spec.required && !site.has(spec.name))
      return opError("needs attribute '{0}' ({1})", spec.name, kinds[static_cast<size_t>(spec.kind)]);
  return llvm::Error::success();
}

} // namespace

llvm::Expected<ResultTypes> inferTypes(const OpSite &site) {
  if (auto error = checkOperands(site)) return prefixed(site.def, std::move(error));
  if (auto error = checkAttributes(site)) return prefixed(site.def, std::move(error));
  if (!site.def.infer) return ResultTypes();
  auto types = site.def.infer(site);
  if (!types) return prefixed(site.def, types.takeError());
  return types;
}

llvm::Expected<Op *> Builder::create(llvm::StringRef name, llvm::ArrayRef<Value> operands, Attrs attrs) {
  const OpDef *def = findOp(name);
  if (!def) return opError("there is no op called '{0}'", name);
  while (!operands.empty() && !operands.back()) operands = operands.drop_back(); // absent optional operands at the end
  for (const AttrSpec &spec : def->attrs)                                        // defaults are not stored
    if (const AttrValue *value = attrs.find(spec.name); value && spec.defaultValue && *value == *spec.defaultValue)
      attrs.erase(spec.name);
  auto types = inferTypes({*def, operands, attrs});
  if (!types) return types.takeError();
  return block_->insert(std::make_unique<Op>(*def, operands, *types, std::move(attrs), location_), before_);
}

Op *Builder::make(llvm::StringRef name, llvm::ArrayRef<Value> operands, Attrs attrs) {
  auto op = create(name, operands, std::move(attrs));
  if (!op) FUSOR_BUG("an op that the compiler itself made is invalid: {0}", llvm::toString(op.takeError()));
  return *op;
}

Value Builder::constant(double value, DType dtype) { return op("constant", {}, {{"value", value}, {"dtype", dtype}}); }

Value Builder::cast(Value value, DType dtype) {
  return value.dtype() == dtype ? value : op("cast", {value}, {{"to", dtype}});
}

} // namespace fusor::ir
