#include "ir/graph/graph.h"
#include "ir/graph/bug.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

void addUser(Value value, Op *user) {
  if (value) value.def()->users.push_back(user);
}
void dropUser(Value value, Op *user) {
  if (!value) return;
  auto &users = value.def()->users;
  users.erase(llvm::find(users, user)); // one entry a use
}

} // namespace

void Value::replaceAllUsesWith(Value other) {
  if (*this == other) return;
  for (Op *user : llvm::to_vector<4>(users()))
    for (unsigned i = 0; i < user->operands().size(); ++i)
      if (user->operand(i) == *this) user->setOperand(i, other);
}

Op::Op(const OpDef &def, llvm::ArrayRef<Value> operands, llvm::ArrayRef<TensorType> resultTypes, Attrs attrs,
       Location location)
    : def_(&def), operands_(operands.begin(), operands.end()), attrs_(std::move(attrs)),
      location_(std::move(location)) {
  for (Value operand : operands_) addUser(operand, this);
  for (const TensorType &type : resultTypes) addResult(type, "");
}

Op::~Op() {
  dropOperands();
  body_.reset();
}

llvm::StringRef Op::name() const { return def_->name; }

Value Op::operand(llvm::StringRef name) const {
  for (unsigned i = 0; i < def_->operands.size(); ++i)
    if (def_->operands[i].name == name) return operand(i);
  FUSOR_BUG("op '{0}' has no operand called '{1}'", this->name(), name);
}

void Op::setOperand(unsigned i, Value value) {
  dropUser(operands_[i], this);
  operands_[i] = value;
  addUser(value, this);
}

void Op::addOperand(Value value) {
  operands_.push_back(value);
  addUser(value, this);
}

void Op::eraseOperand(unsigned i) {
  dropUser(operands_[i], this);
  operands_.erase(operands_.begin() + i);
}

llvm::SmallVector<Value, 2> Op::results() const {
  return llvm::to_vector<2>(llvm::map_range(results_, [](const auto &def) { return Value(def.get()); }));
}

Value Op::addResult(TensorType type, llvm::StringRef name) {
  auto def = std::make_unique<ValueDef>();
  def->kind = ValueDef::Kind::result;
  def->type = std::move(type);
  def->name = name.str();
  def->definingOp = this;
  def->index = results_.size();
  results_.push_back(std::move(def));
  return result(results_.size() - 1);
}

void Op::eraseResult(unsigned i) {
  results_.erase(results_.begin() + i);
  for (unsigned k = i; k < results_.size(); ++k) results_[k]->index = k;
}

bool Op::unused() const {
  return llvm::all_of(results_, [](const auto &def) { return def->users.empty(); });
}

const AttrValue &Op::attrValue(llvm::StringRef name) const { return site().attrValue(name); }

void Op::setAttr(llvm::StringRef name, AttrValue value) {
  const AttrSpec *spec = def_->attr(name);
  if (!spec) FUSOR_BUG("op '{0}' has no attribute called '{1}'", this->name(), name);
  if (spec->defaultValue && *spec->defaultValue == value)
    attrs_.erase(name);
  else
    attrs_.set(name, std::move(value));
}

OpSite Op::site() const { return {*def_, operands_, attrs_}; }

Block &Op::makeBody() {
  body_ = std::make_unique<Block>(function(), this);
  return *body_;
}

Function *Op::function() const { return block_ ? block_->function() : nullptr; }

void Op::erase() {
  if (!unused()) FUSOR_BUG("erasing '{0}' whose results are still used", name());
  block_->ops().erase(getIterator());
}

void Op::dropOperands() {
  for (Value operand : operands_) dropUser(operand, this);
  operands_.clear();
}

Block::~Block() {
  for (Op &op : ops_) op.dropOperands(); // users before definitions: no dangling use lists
  while (!ops_.empty()) ops_.pop_back();
}

Value Block::addArgument(TensorType type, llvm::StringRef name) {
  auto def = std::make_unique<ValueDef>();
  def->kind = ValueDef::Kind::argument;
  def->type = std::move(type);
  def->name = name.str();
  def->index = arguments_.size();
  def->block = this;
  arguments_.push_back(std::move(def));
  return Value(arguments_.back().get());
}

void Block::eraseArgument(unsigned i) {
  arguments_.erase(arguments_.begin() + i);
  for (unsigned k = i; k < arguments_.size(); ++k) arguments_[k]->index = k;
}

llvm::SmallVector<Value, 4> Block::arguments() const {
  return llvm::to_vector<4>(llvm::map_range(arguments_, [](const auto &def) { return Value(def.get()); }));
}

llvm::SmallVector<Op *, 0> Block::opPointers() const {
  llvm::SmallVector<Op *, 0> pointers;
  for (const Op &op : ops_) pointers.push_back(const_cast<Op *>(&op));
  return pointers;
}

Op *Block::insert(std::unique_ptr<Op> op, Op *before) {
  op->block_ = this;
  Op *raw = op.release();
  ops_.insert(before ? before->getIterator() : ops_.end(), raw);
  return raw;
}

void Block::moveBefore(Op *op, Op *before) {
  ops_.splice(before ? before->getIterator() : ops_.end(), op->block()->ops(), op->getIterator());
  op->block_ = this;
}

Op *Block::terminator() const {
  if (ops_.empty()) return nullptr;
  auto &last = const_cast<Op &>(ops_.back());
  return last.def().isTerminator ? &last : nullptr;
}

Function::~Function() { block_.reset(); }

Value Function::read(llvm::StringRef name) {
  auto it = reads_.find(name);
  if (it != reads_.end()) return Value(it->second.get());
  const Persistent *persistent = module_->persistent(name);
  if (!persistent) FUSOR_BUG("function '{0}' reads @{1}, which the module does not declare", name_, name);
  auto def = std::make_unique<ValueDef>();
  def->kind = ValueDef::Kind::persistent;
  def->type = persistent->type;
  def->name = name.str();
  llvm::StringRef key = def->name;
  return Value((reads_[key] = std::move(def)).get());
}

llvm::SmallVector<Value, 8> Function::reads() const {
  llvm::SmallVector<Value, 8> values;
  for (const auto &entry : reads_)
    if (Value value(entry.second.get()); !value.unused() || module_->persistent(entry.first)) values.push_back(value);
  return values;
}

llvm::SmallVector<ReturnEntry, 4> Function::returns() const {
  llvm::SmallVector<ReturnEntry, 4> entries;
  Op *op = block_->terminator();
  if (!op) return entries;
  const auto &targets = op->attr<std::vector<std::string>>("targets");
  for (unsigned i = 0; i < op->operands().size(); ++i) {
    llvm::StringRef target = i < targets.size() ? llvm::StringRef(targets[i]) : "";
    ReturnKind kind = target.empty()                  ? ReturnKind::result
                      : target.consume_front("grad ") ? ReturnKind::gradient
                                                      : ReturnKind::update;
    entries.push_back({kind, target.str(), op->operand(i)});
  }
  return entries;
}

void Function::setReturns(llvm::ArrayRef<ReturnEntry> entries, Location location) {
  std::vector<std::string> targets;
  llvm::SmallVector<Value, 8> values;
  for (const ReturnEntry &entry : entries) {
    targets.push_back(entry.kind == ReturnKind::gradient ? "grad " + entry.name : entry.name);
    values.push_back(entry.value);
  }
  if (Op *old = block_->terminator()) old->erase();
  Attrs attrs;
  if (llvm::any_of(targets, [](const std::string &t) { return !t.empty(); })) attrs.set("targets", std::move(targets));
  block_->insert(std::make_unique<Op>(opDef("return"), values, llvm::ArrayRef<TensorType>(), std::move(attrs),
                                      std::move(location)));
}

llvm::StringRef name(PersistentKind kind) {
  static constexpr const char *names[] = {"param", "state", "const", "derived"};
  return names[static_cast<unsigned>(kind)];
}

Persistent &Module::addPersistent(Persistent persistent) {
  if (this->persistent(persistent.name)) FUSOR_BUG("persistent value @{0} is declared twice", persistent.name);
  persistents_.push_back(std::make_unique<Persistent>(std::move(persistent)));
  persistentByName_[persistents_.back()->name] = persistents_.back().get();
  return *persistents_.back();
}

Persistent *Module::persistent(llvm::StringRef name) { return persistentByName_.lookup(name); }
const Persistent *Module::persistent(llvm::StringRef name) const { return persistentByName_.lookup(name); }

void Module::erasePersistent(llvm::StringRef name) {
  std::string key = name.str();
  persistentByName_.erase(key);
  llvm::erase_if(persistents_, [&](const auto &p) { return p->name == key; });
}

Function &Module::addFunction(llvm::StringRef name) {
  if (function(name)) FUSOR_BUG("function @{0} is declared twice", name);
  functions_.push_back(std::make_unique<Function>(this, name));
  return *functions_.back();
}

Function *Module::function(llvm::StringRef name) const {
  for (const auto &function : functions_)
    if (function->name() == name) return function.get();
  return nullptr;
}

void Module::eraseFunction(llvm::StringRef name) {
  llvm::erase_if(functions_, [&](const auto &f) { return f->name() == name; });
}

} // namespace fusor::ir
