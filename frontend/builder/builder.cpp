#include "frontend/builder/builder.h"
#include "frontend/builder/graph_state.h"
#include "ir/graph/names.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor {
namespace frontend {

ir::Location toIr(Site s) {
  constexpr llvm::StringRef kHere = "frontend/builder/builder.cpp";
  llvm::StringRef file = s.file, root = __FILE__; // both as this build spells its tree
  if (root.consume_back(kHere)) file.consume_front(root);
  return {file.str(), s.line, 0};
}

} // namespace frontend

using frontend::Access;
using frontend::GraphState;
using frontend::toIr;

// --- values

DType Value::dtype() const { return empty() ? f32 : frontend::fromIr(Access::value(*this).dtype()); }
unsigned Value::rank() const { return empty() ? 0 : Access::value(*this).rank(); }
Shape Value::shape() const {
  Shape shape;
  for (int i = 0, n = static_cast<int>(rank()); i < n; ++i) shape.push_back(dim(i));
  return shape;
}
Dim Value::dim(int i) const {
  int n = static_cast<int>(rank());
  if (i < 0) i += n;
  if (i < 0 || i >= n) return Dim(0); // of an empty value: whatever is made of it says nothing more
  return Access::wrap({Access::value(*this).shape()[i], {}});
}
Value Value::named(const std::string &name) const {
  if (!empty()) Access::value(*this).setName(name);
  return *this;
}
std::string Value::type() const { return empty() ? "<empty>" : Access::value(*this).type().str(); }

Value frontend::Access::wrap(std::shared_ptr<GraphState> graph, ir::Value value) {
  Value v;
  v.graph_ = std::move(graph);
  v.def_ = value.def();
  return v;
}
Builder frontend::Access::builder(std::shared_ptr<GraphState> graph) {
  Builder b("");
  b.graph_ = std::move(graph);
  return b;
}

// --- declarations

Builder::Builder(const std::string &name, Site site) : graph_(std::make_shared<GraphState>(name)) {
  graph_->function = &graph_->module->addFunction("forward");
  graph_->functionLocation = toIr(site);
}

Value Builder::input(const std::string &name, DType type, const Shape &shape, Site site) {
  ir::Block &block = graph_->function->block();
  for (ir::Value argument : block.arguments())
    if (argument.name() == name) {
      graph_->fail(site, llvm::formatv("input '{0}' is declared twice in @{1}: give the second another name", name,
                                       graph_->function->name()));
      return Access::wrap(graph_, {});
    }
  return Access::wrap(graph_, block.addArgument({toIr(type), graph_->shape(shape, site)}, name));
}

namespace {

Value declare(const std::shared_ptr<GraphState> &graph, ir::Persistent wanted, Site site) {
  std::string name = wanted.name;
  const ir::Persistent *there = graph->module->persistent(name);
  if (!there) {
    wanted.location = toIr(site);
    graph->module->addPersistent(std::move(wanted));
  } else if (graph->declaredHere.contains(name)) {
    graph->fail(site, llvm::formatv("'{0}' is declared twice in @{1}, before at {2}: give the second another name, or "
                                    "read(\"{0}\") to share it",
                                    name, graph->function->name(), there->location.str()));
    return Access::wrap(graph, {});
  } else if (there->kind != wanted.kind || there->type != wanted.type) {
    graph->fail(site, llvm::formatv("'{0}' is {1} {2} at {3} and {4} {5} here: they must agree or have two names", name,
                                    ir::name(there->kind), there->type.str(), there->location.str(),
                                    ir::name(wanted.kind), wanted.type.str()));
    return Access::wrap(graph, {});
  }
  graph->declaredHere.insert(name);
  return Access::wrap(graph, graph->function->read(name));
}

ir::Initializer toIr(Init init) {
  static_assert(int(Init::kNormal) == int(ir::Initializer::Kind::normal));
  return {static_cast<ir::Initializer::Kind>(init.kind), init.value};
}

ir::Persistent persistent(ir::PersistentKind kind, const std::string &name, ir::TensorType type, Init init = {}) {
  ir::Persistent p{};
  p.kind = kind, p.name = name, p.type = std::move(type), p.init = toIr(init);
  return p;
}

} // namespace

Value Builder::param(const std::string &name, DType type, const Shape &shape, Init init, Site site) {
  return declare(graph_, persistent(ir::PersistentKind::param, name, {toIr(type), graph_->shape(shape, site)}, init),
                 site);
}
Value Builder::state(const std::string &name, DType type, const Shape &shape, Init init, Site site) {
  return declare(graph_, persistent(ir::PersistentKind::state, name, {toIr(type), graph_->shape(shape, site)}, init),
                 site);
}
Value Builder::constant(const std::string &name, DType type, const std::vector<int64_t> &shape, const void *data,
                        Site site) {
  int64_t elements = 1;
  for (int64_t d : shape) elements *= d;
  const char *bytes = static_cast<const char *>(data);
  ir::Persistent p = persistent(ir::PersistentKind::constant, name,
                                {toIr(type), graph_->shape(Shape(shape.begin(), shape.end()), site)});
  p.data = std::make_shared<std::vector<char>>(bytes, bytes + elements * ir::byteSize(toIr(type)));
  return declare(graph_, std::move(p), site);
}
Value Builder::constant(double value, DType type, Site site) {
  return op("constant", {}, {{"value", value}, {"dtype", type}}, site);
}

Value Builder::read(const std::string &name, Site site) {
  if (graph_->module->persistent(name)) return Access::wrap(graph_, graph_->function->read(name));
  graph_->fail(site, llvm::formatv("there is no parameter, state or constant '{0}': declare it first", name));
  return Access::wrap(graph_, {});
}

// --- results

namespace {
// Says so where `value` is no value of the current function. An empty one is the effect of an error reported before.
bool usable(GraphState &graph, const Value &value, llvm::StringRef what, Site site) {
  if (value.empty()) {
    if (graph.errors.empty()) graph.fail(site, what + " is an empty Value: it was made by no builder");
    return false;
  }
  if (Access::shared(value).get() != &graph) {
    graph.fail(site, what + " belongs to another Builder");
    return false;
  }
  return true;
}
} // namespace

void Builder::output(Value value, const std::string &name, Site site) {
  if (!usable(*graph_, value, "the output", site)) return;
  ir::Value v = Access::value(value);
  if (!name.empty() && v.op()) v.setName(name);
  graph_->returns.push_back({ir::ReturnKind::result, "", v});
}

void Builder::update(const std::string &name, Value value, Site site) {
  if (!usable(*graph_, value, "the new content of '" + name + "'", site)) return;
  const ir::Persistent *p = graph_->module->persistent(name);
  if (!p || p->kind != ir::PersistentKind::state)
    return graph_->fail(site, llvm::formatv("'{0}' is {1}: only a state can be updated", name,
                                            p ? ("a " + ir::name(p->kind)).str() : "not declared"));
  if (p->type != Access::value(value).type())
    return graph_->fail(site, llvm::formatv("state '{0}' is {1}, its new content is {2}", name, p->type.str(),
                                            Access::value(value).type().str()));
  for (ir::ReturnEntry &entry : graph_->returns)
    if (entry.kind == ir::ReturnKind::update && entry.name == name)
      return graph_->fail(site, llvm::formatv("state '{0}' is updated twice in @{1}", name, graph_->function->name()));
  graph_->returns.push_back({ir::ReturnKind::update, name, Access::value(value)});
}

void Builder::function(const std::string &name, Site site) {
  if (graph_->module->function(name)) graph_->fail(site, llvm::formatv("there is a function @{0} already", name));
  graph_->closeFunction();
  graph_->function = &graph_->module->addFunction(name);
  graph_->functionLocation = toIr(site);
  graph_->returns.clear();
  graph_->declaredHere.clear();
}

// --- ops

Value Builder::iota(const Shape &shape, DType type, Site site) {
  return op("iota", {}, {{"shape", shape}, {"dtype", type}}, site);
}
Value Builder::extent(const Shape &shape, DType type, Site site) {
  return op("extent", {}, {{"shape", shape}, {"dtype", type}}, site);
}

std::vector<Value> Builder::ops(const std::string &op, const std::vector<Value> &operands,
                                const std::vector<Attr> &attrs, Site site) {
  struct ToIr {
    GraphState &graph;
    Site site;
    ir::AttrValue operator()(const std::vector<int64_t> &v) { return v; }
    ir::AttrValue operator()(DType t) { return toIr(t); }
    ir::AttrValue operator()(const Shape &s) { return graph.shape(s, site); }
    ir::AttrValue operator()(const std::string &s) { return s; }
    ir::AttrValue operator()(bool v) { return v; }
    ir::AttrValue operator()(int64_t v) { return v; }
    ir::AttrValue operator()(double v) { return v; }
  };
  ir::Attrs converted;
  for (const Attr &attr : attrs) converted.set(attr.name, std::visit(ToIr{*graph_, site}, attr.value));
  return frontend::applyOp(graph_, op, operands, std::move(converted), site);
}

Error Builder::error() const {
  if (graph_->errors.empty()) return {};
  return {ErrorKind::input, llvm::join(graph_->errors, "\n")};
}

// --- the state behind

namespace frontend {

void GraphState::fail(Site site, const llvm::Twine &text) {
  // With the path as it was compiled: an editor opens it.
  errors.push_back((ir::Location{site.file, site.line, 0}.str() + ": error: " + text).str());
}

ir::Shape GraphState::shape(const Shape &shape, Site site) {
  ir::Shape result;
  for (const Dim &d : shape) {
    const DimState &state = Access::state(d);
    for (const DimState::Range &said : state.symbols) {
      if (!ir::isSymbolName(said.symbol)) {
        fail(site, llvm::formatv("'{0}' cannot be a dim's symbol: use letters, digits and _", said.symbol));
        continue;
      }
      auto there = module->symbols().find(said.symbol);
      if (!said.range) {
        if (there == module->symbols().end())
          fail(site, llvm::formatv("dim \"{0}\" has no range yet: write dim(\"{0}\", low, high) where it comes first",
                                   said.symbol));
        continue;
      }
      auto [low, high] = *said.range;
      if (low < 0 || high < low)
        fail(site,
             llvm::formatv("dim \"{0}\" has range {1}..{2}: it must be 0 <= low <= high", said.symbol, low, high));
      else if (there == module->symbols().end())
        module->declareSymbol(said.symbol, *said.range);
      else if (there->second.low != low || there->second.high != high)
        fail(site, llvm::formatv("dim \"{0}\" has range {1}..{2} here and {3}..{4} before", said.symbol, low, high,
                                 there->second.low, there->second.high));
    }
    if (state.dim.isConstant() && state.dim.value() < 0)
      fail(site, llvm::formatv("a dim must not be negative, is {0}", state.dim.value()));
    result.push_back(state.dim);
  }
  return result;
}

void GraphState::closeFunction() {
  std::vector<ir::ReturnEntry> entries = returns; // results first: they have a place, updates have a name
  llvm::stable_sort(entries, [](const auto &a, const auto &b) { return a.kind < b.kind; });
  function->setReturns(entries, functionLocation);
}

std::vector<Value> applyOp(const std::shared_ptr<GraphState> &graph, llvm::StringRef op, llvm::ArrayRef<Value> operands,
                           ir::Attrs attrs, Site site) {
  std::vector<Value> none(1, Access::wrap(graph, {}));
  const ir::OpDef *def = ir::findOp(op);
  if (!def) {
    graph->fail(site, llvm::formatv("there is no op '{0}'; `fusor ops` lists them", op));
    return none;
  }
  if (def->isTerminator || !def->infer) {
    graph->fail(site, llvm::formatv("'{0}' is made by the builder or by passes, not by hand", op));
    return none;
  }
  llvm::SmallVector<ir::Value, 4> values;
  for (unsigned i = 0; i < operands.size(); ++i) {
    const Value &operand = operands[i];
    bool optional = i < def->operands.size() && def->operands[i].optional;
    if (operand.empty() && optional && !Access::shared(operand)) { // left out, not failed
      values.push_back({});
      continue;
    }
    std::string what = llvm::formatv("operand {0} of '{1}'", i, op);
    if (!usable(*graph, operand, what, site)) return none;
    ir::Value v = Access::value(operand);
    const ir::Block *from = v.isArgument() ? v.def()->block : v.op() ? v.op()->block() : &graph->function->block();
    bool otherFunction =
        from != &graph->function->block() || (v.isPersistent() && graph->function->read(v.name()) != v);
    if (otherFunction) {
      graph->fail(site, llvm::formatv("{0} belongs to another function than @{1}: functions share parameters and "
                                      "states by name, not values",
                                      what, graph->function->name()));
      return none;
    }
    values.push_back(v);
  }
  ir::Builder at(graph->function->block());
  at.setLocation(toIr(site));
  auto made = at.create(op, values, std::move(attrs));
  if (!made) {
    graph->fail(site, llvm::toString(made.takeError()));
    return none;
  }
  std::vector<Value> results;
  for (ir::Value result : (*made)->results()) results.push_back(Access::wrap(graph, result));
  return results;
}

llvm::Expected<std::unique_ptr<ir::Module>> finish(const Builder &builder) {
  GraphState &graph = Access::graph(builder);
  if (!graph.errors.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", llvm::join(graph.errors, "\n").c_str());
  graph.closeFunction();
  std::unique_ptr<ir::Module> copy = graph.module->clone();
  graph.function->block().terminator()->erase(); // the function stays open
  return copy;
}

} // namespace frontend
} // namespace fusor
