// The values a line of a block can name.
#pragma once
#include "frontend/text/cursor.h"
#include "ir/graph/graph.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::frontend {

/// A value used in the text. It is null where the text that defines it had an error: what uses it is skipped in
/// silence.
struct Use {
  Token token;
  ir::Value value;
};

class Scope {
public:
  struct Entry {
    ir::Value value; // null: defined by a line that had an error
    Token token;
  };
  /// `outer`: of the block the fusion is in, for the body of a fusion.
  explicit Scope(ir::Block &block, const Scope *outer = nullptr)
      : block_(&block), outer_(outer), depth_(outer ? outer->depth_ + 1 : 0) {}

  ir::Block &block() const { return *block_; }
  bool isBody() const { return outer_; }
  const Scope *outer() const { return outer_; }
  /// 0 for a function, 1 for the body of a fusion in it, ...
  unsigned depth() const { return depth_; }
  /// Its `return` or `yield` has been read.
  bool ended = false;

  const Entry *find(const Token &token) const {
    const auto &names = token.isNumbered() ? numbered_ : named_;
    auto it = names.find(token.name());
    return it == names.end() ? nullptr : &it->second;
  }
  /// The entry already there, or null when this one was added.
  const Entry *define(const Token &token, ir::Value value) {
    auto &names = token.isNumbered() ? numbered_ : named_;
    return added(names.try_emplace(token.name(), Entry{value, token}), value, token);
  }
  /// The same under a name the text does not spell.
  const Entry *define(llvm::StringRef name, const Token &token, ir::Value value) {
    return added(named_.try_emplace(name, Entry{value, token}), value, token);
  }
  bool has(llvm::StringRef name) const { return named_.count(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto &entry : named_) all.push_back(entry.getKey().str());
    llvm::sort(all);
    return all;
  }
  /// Where `value` is declared.
  const Token *declaration(ir::Value value) const {
    auto it = declarations_.find(value.def());
    return it == declarations_.end() ? nullptr : &it->second;
  }

private:
  const Entry *added(std::pair<llvm::StringMap<Entry>::iterator, bool> result, ir::Value value, const Token &token) {
    if (!result.second) return &result.first->second;
    if (value) declarations_[value.def()] = token;
    return nullptr;
  }

  ir::Block *block_;
  const Scope *outer_;
  unsigned depth_;
  llvm::StringMap<Entry> named_, numbered_; // %h; %0
  llvm::DenseMap<const ir::ValueDef *, Token> declarations_;
};

} // namespace fusor::frontend
