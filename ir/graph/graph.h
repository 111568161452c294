// The graph: Module > Function > Block > Op > Value.
//
//   Module      symbols with ranges, persistent values (param, state, const, derived), functions
//   Function    a name and a Block; reads persistent values, returns values and new persistent values
//   Block       arguments, ops in execution order, a terminator (`return` of a function, `yield` of a fusion's body)
//   Op          one entry of the op table applied to operands; results; attributes; perhaps a body (fusion)
//   Value       an SSA value: a block argument, an op's result, or a read of a persistent value
//
// Ownership: blocks own ops, functions own their block and their persistent reads. `Value` is a pointer-sized handle.
// Every use is known to the value used (`users`), so rewriting is `replaceAllUsesWith`.
#pragma once
#include "ir/graph/attributes.h"
#include "ir/graph/location.h"
#include "ir/types/type.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ilist.h"
#include "llvm/ADT/ilist_node.h"
#include <map>
#include <memory>

namespace fusor::ir {

class Block;
class Function;
class Module;
class Op;
struct OpDef;
struct OpSite;

/// What a Value points to. Passes use Value; only graph code touches this.
struct ValueDef {
  enum class Kind : uint8_t { argument, result, persistent } kind;
  TensorType type;
  std::string name; // without % or @; unique in its function only when printed
  Op *definingOp = nullptr;
  unsigned index = 0;               // result or argument number
  Block *block = nullptr;           // of an argument
  llvm::SmallVector<Op *, 2> users; // one entry a use
};

class Value {
public:
  Value() = default;
  explicit Value(ValueDef *def) : def_(def) {}
  explicit operator bool() const { return def_ != nullptr; }
  bool operator==(Value o) const { return def_ == o.def_; }
  bool operator!=(Value o) const { return def_ != o.def_; }

  const TensorType &type() const { return def_->type; }
  DType dtype() const { return def_->type.dtype; }
  llvm::ArrayRef<Dim> shape() const { return def_->type.shape; }
  unsigned rank() const { return def_->type.rank(); }
  llvm::StringRef name() const { return def_->name; }
  void setName(llvm::StringRef name) { def_->name = name.str(); }
  void setType(TensorType type) { def_->type = std::move(type); }

  /// The op that makes it; null for arguments and persistent values.
  Op *op() const { return def_->definingOp; }
  unsigned index() const { return def_->index; }
  bool isArgument() const { return def_->kind == ValueDef::Kind::argument; }
  bool isPersistent() const { return def_->kind == ValueDef::Kind::persistent; }
  llvm::ArrayRef<Op *> users() const { return def_->users; }
  bool hasOneUse() const { return def_->users.size() == 1; }
  bool unused() const { return def_->users.empty(); }
  void replaceAllUsesWith(Value other);

  ValueDef *def() const { return def_; }

private:
  ValueDef *def_ = nullptr;
};

class Op : public llvm::ilist_node<Op> {
public:
  /// Made by Builder, which infers and verifies; this only stores.
  Op(const OpDef &def, llvm::ArrayRef<Value> operands, llvm::ArrayRef<TensorType> resultTypes, Attrs attrs,
     Location location);
  ~Op();
  Op(const Op &) = delete;

  const OpDef &def() const { return *def_; }
  llvm::StringRef name() const;
  bool is(llvm::StringRef opName) const { return name() == opName; }

  /// Operand slots as in the op table; an absent optional operand is a null Value.
  llvm::ArrayRef<Value> operands() const { return operands_; }
  Value operand(unsigned i) const { return i < operands_.size() ? operands_[i] : Value(); }
  /// The operand called `name` in the table, or null.
  Value operand(llvm::StringRef name) const;
  void setOperand(unsigned i, Value value);
  void addOperand(Value value);
  void eraseOperand(unsigned i);

  unsigned resultCount() const { return results_.size(); }
  Value result(unsigned i = 0) const { return Value(results_[i].get()); }
  llvm::SmallVector<Value, 2> results() const;
  /// Adds a result (fusions grow); returns it.
  Value addResult(TensorType type, llvm::StringRef name);
  void eraseResult(unsigned i);
  bool unused() const;

  const Attrs &attrs() const { return attrs_; }
  OpSite site() const;
  /// The attribute, or the table's default. Asking for one the table does not have is our bug.
  template <typename T> const T &attr(llvm::StringRef name) const { return std::get<T>(attrValue(name)); }
  const AttrValue &attrValue(llvm::StringRef name) const;
  void setAttr(llvm::StringRef name, AttrValue value); // drops it when equal to the default

  Block *body() const { return body_.get(); }
  Block &makeBody();

  const Location &location() const { return location_; }
  void setLocation(Location l) { location_ = std::move(l); }
  Block *block() const { return block_; }
  Function *function() const;

  /// Detaches from its block and frees it; its results must be unused.
  void erase();
  void dropOperands();

private:
  friend class Block;
  const OpDef *def_;
  llvm::SmallVector<Value, 4> operands_;
  llvm::SmallVector<std::unique_ptr<ValueDef>, 2> results_;
  Attrs attrs_;
  Location location_;
  Block *block_ = nullptr;
  std::unique_ptr<Block> body_;
};

class Block {
public:
  explicit Block(Function *function, Op *parent = nullptr) : function_(function), parent_(parent) {}
  ~Block();
  Block(const Block &) = delete;

  Value addArgument(TensorType type, llvm::StringRef name);
  void eraseArgument(unsigned i);
  unsigned argumentCount() const { return arguments_.size(); }
  Value argument(unsigned i) const { return Value(arguments_[i].get()); }
  llvm::SmallVector<Value, 4> arguments() const;

  using OpList = llvm::iplist<Op>;
  OpList &ops() { return ops_; }
  const OpList &ops() const { return ops_; }
  /// Ops as pointers, safe against erasing while walking.
  llvm::SmallVector<Op *, 0> opPointers() const;
  /// Takes ownership, before `before` (null: at the end).
  Op *insert(std::unique_ptr<Op> op, Op *before = nullptr);
  void moveBefore(Op *op, Op *before);
  /// The `return` or `yield`; null while the block is being built.
  Op *terminator() const;

  Function *function() const { return function_; }
  /// The fusion this is the body of; null for a function's block.
  Op *parent() const { return parent_; }

private:
  Function *function_;
  Op *parent_;
  llvm::SmallVector<std::unique_ptr<ValueDef>, 4> arguments_;
  OpList ops_;
};

/// What an entry of a function's `return` is.
enum class ReturnKind : uint8_t {
  result,   // %loss: handed to the caller
  update,   // @w = %new: the new content of a persistent value
  gradient, // grad @w = %dw: between the gradient and the optimizer pass only
};
struct ReturnEntry {
  ReturnKind kind;
  std::string name; // of the persistent value, or empty
  Value value;
};

class Function {
public:
  Function(Module *module, llvm::StringRef name)
      : module_(module), name_(name.str()), block_(std::make_unique<Block>(this)) {}
  ~Function();

  Module &module() const { return *module_; }
  llvm::StringRef name() const { return name_; }
  void setName(llvm::StringRef n) { name_ = n.str(); }
  Block &block() const { return *block_; }

  /// The value of persistent `name` as this function reads it. It must exist in the module.
  Value read(llvm::StringRef name);
  /// Persistent values read so far, in order of first read; not those that nobody uses and the module erased since.
  llvm::SmallVector<Value, 8> reads() const;

  /// The entries of `return`, in order.
  llvm::SmallVector<ReturnEntry, 4> returns() const;
  /// Replaces the `return`.
  void setReturns(llvm::ArrayRef<ReturnEntry> entries, Location location = {});

private:
  Module *module_;
  std::string name_;
  llvm::MapVector<llvm::StringRef, std::unique_ptr<ValueDef>> reads_;
  std::unique_ptr<Block> block_; // destroyed before reads_
};

enum class PersistentKind : uint8_t { param, state, constant, derived };
llvm::StringRef name(PersistentKind kind); // "param", "state", "const", "derived"

/// How a param or state starts when no checkpoint is given.
struct Initializer {
  enum class Kind : uint8_t { zeros, constant, normal } kind = Kind::zeros;
  double value = 0; // the constant, or the standard deviation of the normal
  bool operator==(const Initializer &o) const { return kind == o.kind && value == o.value; }
};

struct Persistent {
  PersistentKind kind;
  std::string name;
  TensorType type;
  Initializer init = {};                              // param, state
  std::shared_ptr<const std::vector<char>> data = {}; // const: raw elements
  /// derived: `op(@source, ...)`, an entry of the op table over persistent operands, e.g. cast(@w).
  std::string deriveOp = {};
  llvm::SmallVector<std::string, 2> deriveFrom = {};
  Attrs deriveAttrs = {};
  Location location = {};
};

struct SymbolRange {
  int64_t low = 1, high = 1;
};

using SymbolRanges = llvm::MapVector<std::string, SymbolRange, std::map<std::string, unsigned>>;

class Module {
public:
  Module() = default;
  Module(Module &&) = delete;
  explicit Module(llvm::StringRef name) : name_(name.str()) {}

  llvm::StringRef name() const { return name_; }
  void setName(llvm::StringRef n) { name_ = n.str(); }

  SymbolRanges &symbols() { return symbols_; }
  const SymbolRanges &symbols() const { return symbols_; }
  void declareSymbol(llvm::StringRef name, SymbolRange range) { symbols_[name.str()] = range; }

  /// Persistent values in declaration order. Adding a name twice is our bug.
  Persistent &addPersistent(Persistent persistent);
  Persistent *persistent(llvm::StringRef name);
  const Persistent *persistent(llvm::StringRef name) const;
  llvm::ArrayRef<std::unique_ptr<Persistent>> persistents() const { return persistents_; }
  void erasePersistent(llvm::StringRef name);

  Function &addFunction(llvm::StringRef name);
  Function *function(llvm::StringRef name) const;
  llvm::ArrayRef<std::unique_ptr<Function>> functions() const { return functions_; }
  void eraseFunction(llvm::StringRef name);

  /// The text form. parse(str()) gives an equal module.
  std::string str() const;
  /// A deep copy.
  std::unique_ptr<Module> clone() const;

private:
  std::string name_;
  SymbolRanges symbols_;
  llvm::SmallVector<std::unique_ptr<Persistent>, 0> persistents_;
  llvm::StringMap<Persistent *> persistentByName_;
  llvm::SmallVector<std::unique_ptr<Function>, 2> functions_;
};

} // namespace fusor::ir
