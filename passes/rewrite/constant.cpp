#include "passes/rewrite/constant.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {

using ir::Module, ir::Persistent, ir::PersistentKind, ir::Value;

const Persistent *storedConstant(Value value) {
  if (!value.isPersistent()) return nullptr;
  const Persistent *p = value.users().front()->function()->module().persistent(value.name());
  return p->kind == PersistentKind::constant && p->data ? p : nullptr;
}

std::string writeConstant(Module &module, llvm::StringRef wanted, const ir::TensorType &type, std::vector<char> bytes,
                          const ir::Location &location) {
  std::string name = wanted.str();
  for (unsigned i = 1; const Persistent *there = module.persistent(name); ++i) {
    if (there->kind == PersistentKind::constant && there->type == type && there->data && *there->data == bytes)
      return name;
    name = wanted.str() + "." + std::to_string(i);
  }
  module.addPersistent({.kind = PersistentKind::constant,
                        .name = name,
                        .type = type,
                        .data = std::make_shared<const std::vector<char>>(std::move(bytes)),
                        .location = location});
  return name;
}

bool isRead(const Module &module, llvm::StringRef name, const ir::Op *except) {
  for (const auto &function : module.functions())
    for (Value read : function->reads())
      if (read.name() == name && llvm::any_of(read.users(), [&](ir::Op *user) { return user != except; })) return true;
  return llvm::any_of(module.persistents(), [&](const auto &p) { return llvm::is_contained(p->deriveFrom, name); });
}

void eraseUnread(Module &module, const std::string &name) {
  if (!isRead(module, name)) module.erasePersistent(name);
}

} // namespace fusor::passes
