#include "runtime/execute/freshness.h"
#include "ir/graph/builder.h"

namespace fusor::runtime {

using namespace ir;

Freshness::Freshness(const Module &module) : module_(module) { markAll(); }

void Freshness::markAll() {
  for (const auto &persistent : module_.persistents())
    if (persistent->kind == PersistentKind::derived) stale_.insert(persistent->name);
}

void Freshness::written(llvm::StringRef name) {
  llvm::StringSet<> names;
  names.insert(name);
  changed(names, names);
}

void Freshness::ran(const Function &function) {
  llvm::StringSet<> names;
  for (const ReturnEntry &entry : function.returns())
    if (entry.kind == ReturnKind::update) names.insert(entry.name);
  changed(names, names);
}

void Freshness::changed(llvm::StringSet<> names, const llvm::StringSet<> &fresh) {
  for (const auto &persistent : module_.persistents()) { // in order: sources stand before what derives from them
    if (persistent->kind != PersistentKind::derived) continue;
    if (fresh.contains(persistent->name)) {
      stale_.erase(persistent->name);
      continue;
    }
    for (const std::string &source : persistent->deriveFrom)
      if (names.contains(source)) stale_.insert(persistent->name), names.insert(persistent->name);
  }
}

llvm::Error Freshness::refresh(llvm::ArrayRef<llvm::StringRef> names,
                               llvm::function_ref<llvm::Error(const Persistent &)> compute) {
  for (llvm::StringRef name : names) {
    if (!isStale(name)) continue;
    const Persistent &persistent = *module_.persistent(name);
    llvm::SmallVector<llvm::StringRef, 2> sources(persistent.deriveFrom.begin(), persistent.deriveFrom.end());
    if (auto error = refresh(sources, compute)) return error;
    if (auto error = compute(persistent)) return error;
    stale_.erase(name);
  }
  return llvm::Error::success();
}

llvm::SmallVector<llvm::StringRef, 8> readsOf(const Function &function) {
  llvm::SmallVector<llvm::StringRef, 8> names;
  for (Value read : function.reads())
    if (!read.unused()) names.push_back(read.name());
  return names;
}

llvm::Expected<std::unique_ptr<Module>> derivingModule(const Module &module) {
  auto deriving = std::make_unique<Module>("derived");
  for (const auto &persistent : module.persistents()) deriving->addPersistent(Persistent(*persistent));
  for (const auto &persistent : module.persistents()) {
    if (persistent->kind != PersistentKind::derived) continue;
    Function &function = deriving->addFunction("derive." + persistent->name);
    llvm::SmallVector<Value, 2> operands;
    for (const std::string &source : persistent->deriveFrom) operands.push_back(function.read(source));
    Builder builder(function.block());
    auto op = builder.create(persistent->deriveOp, operands, persistent->deriveAttrs);
    if (!op) return op.takeError();
    function.setReturns({{ReturnKind::update, persistent->name, (*op)->result()}});
  }
  return deriving;
}

} // namespace fusor::runtime
