#include "ir/graph/printer.h"
#include "ir/graph/element_text.h"
#include "ir/graph/literal.h"
#include "ir/graph/names.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::ir {
namespace {

constexpr size_t kTypeColumnLimit = 100; // ops longer than this do not push the column of types

/// Hands out names no other value of the scope has.
class NameScope {
public:
  std::string unique(llvm::StringRef name) {
    if (name.empty()) return "%" + std::to_string(unnamed_++);
    if (taken_.insert(name).second) return spelled('%', name);
    for (unsigned &n = repeats_[name];;) {
      std::string candidate = name.str() + "." + std::to_string(++n);
      if (taken_.insert(candidate).second) return spelled('%', candidate);
    }
  }

private:
  unsigned unnamed_ = 0;
  llvm::StringSet<> taken_;
  llvm::StringMap<unsigned> repeats_;
};

std::string joined(llvm::ArrayRef<std::string> parts) { return llvm::join(parts, ", "); }

std::string typeList(llvm::ArrayRef<Value> values) {
  return llvm::join(llvm::map_range(values, [](Value v) { return v.type().str(); }), ", ");
}

std::string attrList(const Attrs &attrs, llvm::StringRef hidden = "") {
  std::vector<std::string> parts;
  for (const Attrs::Entry &entry : attrs.entries())
    if (entry.name != hidden) parts.push_back(entry.name + " = " + str(entry.value));
  return parts.empty() ? "" : " {" + joined(parts) + "}";
}

// "%z, @w = %new, grad @v = %dv"
std::string returnEntries(const Op &op, const ValueNames &names) {
  std::vector<std::string> parts;
  const auto &targets = op.attr<std::vector<std::string>>("targets");
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    llvm::StringRef target = i < targets.size() ? llvm::StringRef(targets[i]) : "";
    std::string grad = target.consume_front("grad ") ? "grad " : "";
    parts.push_back((target.empty() ? "" : grad + spelled('@', target) + " = ") + names(op.operand(i)));
  }
  return joined(parts);
}

// "%q, @w, bias = @b": optional operands by name.
std::string operandList(const Op &op, const ValueNames &names) {
  std::vector<std::string> parts;
  const auto &specs = op.def().operands;
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    bool optional = i < specs.size() && specs[i].optional;
    if (optional && !op.operand(i)) continue;
    parts.push_back((optional ? specs[i].name + " = " : "") + names(op.operand(i)));
  }
  return joined(parts);
}

// "%h = %y, @b, %u": what the body calls each operand, left out where it is what a reader expects.
std::string fusionArguments(const Op &op, const ValueNames &names) {
  if (!op.body()) return operandList(op, names);
  ValueNames inner(*op.body());
  std::vector<std::string> parts;
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    Value value = op.operand(i);
    std::string outside = names(value);
    std::string inside = i < op.body()->argumentCount() ? inner(op.body()->argument(i)) : outside;
    std::string expected = value && value.isPersistent() ? spelled('%', lastPart(value.name())) : outside;
    parts.push_back(inside == expected ? outside : inside + " = " + outside);
  }
  return joined(parts);
}

// "%s = add %h, %b {attrs}": everything before the types.
std::string opHead(const Op &op, const ValueNames &names) {
  std::vector<std::string> results;
  for (Value result : op.results()) results.push_back(names(result));
  std::string text = results.empty() ? "" : joined(results) + " = ";
  text += op.name();
  if (op.is("fusion")) {
    const AttrValue *name = op.attrs().find("name");
    if (name) text += " " + spelled('@', std::get<std::string>(*name));
    return text + "(" + fusionArguments(op, names) + ")" + attrList(op.attrs(), "name");
  }
  std::string operands = op.is("return") ? returnEntries(op, names) : operandList(op, names);
  if (!operands.empty()) text += " " + operands;
  return text + attrList(op.attrs(), op.is("return") ? "targets" : "");
}

std::string opLine(const Op &op, const ValueNames &names, unsigned indent, size_t typeColumn) {
  std::string text = opHead(op, names);
  if (op.resultCount()) {
    if (!op.body()) text.resize(std::max(text.size(), typeColumn), ' ');
    text += " : " + typeList(op.results());
  }
  if (op.body()) text += " {\n" + printBlock(*op.body(), indent + 2) + std::string(indent, ' ') + "}";
  return text;
}

std::string initText(const Initializer &init) {
  if (init.kind == Initializer::Kind::zeros) return "";
  return std::string(" {init = ") + (init.kind == Initializer::Kind::normal ? "normal(" : "constant(") +
         realLiteral(init.value) + ")}";
}

} // namespace

ValueNames::ValueNames(const Block &block) {
  NameScope scope;
  for (Value argument : block.arguments()) names_[argument.def()] = scope.unique(argument.name());
  for (const Op &op : block.ops())
    for (Value result : op.results()) names_[result.def()] = scope.unique(result.name());
}

std::string ValueNames::operator()(Value value) const {
  if (!value) return "<missing>";
  if (value.isPersistent()) return spelled('@', value.name());
  auto it = names_.find(value.def());
  if (it != names_.end()) return it->second;
  return (value.name().empty() ? "%" : spelled('%', value.name())) + "?";
}

std::string printOp(const Op &op, const ValueNames &names, unsigned indent) { return opLine(op, names, indent, 0); }

std::string printOp(const Op &op) {
  Block none(nullptr);
  return printOp(op, ValueNames(op.block() ? *op.block() : none));
}

std::string printBlock(const Block &block, unsigned indent) {
  ValueNames names(block);
  size_t typeColumn = 0;
  for (const Op &op : block.ops()) {
    if (op.body() || !op.resultCount()) continue;
    size_t size = opHead(op, names).size();
    if (size <= kTypeColumnLimit) typeColumn = std::max(typeColumn, size);
  }
  std::string text;
  for (const Op &op : block.ops()) text += std::string(indent, ' ') + opLine(op, names, indent, typeColumn) + "\n";
  return text;
}

std::string printFunction(const Function &function) {
  ValueNames names(function.block());
  std::vector<std::string> arguments;
  for (Value argument : function.block().arguments())
    arguments.push_back(names(argument) + ": " + argument.type().str());
  llvm::SmallVector<Value, 4> results;
  for (const ReturnEntry &entry : function.returns())
    if (entry.kind == ReturnKind::result && entry.value) results.push_back(entry.value);
  std::string text = "func " + spelled('@', function.name()) + "(" + joined(arguments) + ")";
  if (!results.empty()) text += " -> " + typeList(results);
  return text + " {\n" + printBlock(function.block()) + "}\n";
}

std::string printPersistent(const Persistent &persistent) {
  std::string text = name(persistent.kind).str() + " " + spelled('@', persistent.name) + " : " + persistent.type.str();
  switch (persistent.kind) {
  case PersistentKind::param:
  case PersistentKind::state: text += initText(persistent.init); break;
  case PersistentKind::constant:
    text += " = " + elementsText(persistent.type,
                                 persistent.data ? llvm::ArrayRef<char>(*persistent.data) : llvm::ArrayRef<char>());
    break;
  case PersistentKind::derived: {
    std::vector<std::string> sources;
    for (const std::string &source : persistent.deriveFrom) sources.push_back(spelled('@', source));
    text += " = " + persistent.deriveOp + " " + joined(sources) + attrList(persistent.deriveAttrs);
  }
  }
  return text + "\n";
}

std::string Module::str() const {
  std::vector<std::string> sections;
  if (!name_.empty()) sections.push_back("module " + spelled('@', name_) + "\n");
  std::string declarations;
  for (const auto &[symbol, range] : symbols_)
    declarations += "dim " + symbol + " in " + std::to_string(range.low) + ".." + std::to_string(range.high) + "\n";
  for (const auto &persistent : persistents_) declarations += printPersistent(*persistent);
  if (!declarations.empty()) sections.push_back(std::move(declarations));
  for (const auto &function : functions_) sections.push_back(printFunction(*function));
  return llvm::join(sections, "\n");
}

} // namespace fusor::ir
