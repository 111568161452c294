#include "runtime/execute/freshness.h"
#include "ir/graph/builder.h"
#include "llvm/ADT/STLExtras.h"

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
  apply(effectOf(names, names));
}

void Freshness::ran(const Function &function) {
  auto [it, isNew] = effects_.try_emplace(&function);
  if (isNew) {
    llvm::StringSet<> names;
    for (const ReturnEntry &entry : function.returns())
      if (entry.kind == ReturnKind::update) names.insert(entry.name);
    it->second = effectOf(names, names);
  }
  apply(it->second);
}

Freshness::Effect Freshness::effectOf(llvm::StringSet<> names, const llvm::StringSet<> &fresh) const {
  Effect effect;
  for (const auto &persistent : module_.persistents()) { // in order: sources stand before what derives from them
    if (persistent->kind != PersistentKind::derived) continue;
    if (fresh.contains(persistent->name)) {
      effect.fresh.push_back(persistent->name);
    } else if (llvm::any_of(persistent->deriveFrom,
                            [&](const std::string &source) { return names.contains(source); })) {
      effect.stale.push_back(persistent->name);
      names.insert(persistent->name);
    }
  }
  return effect;
}

void Freshness::apply(const Effect &effect) {
  if (!stale_.empty())
    for (const std::string &name : effect.fresh) stale_.erase(name);
  for (const std::string &name : effect.stale) stale_.insert(name);
}

llvm::Error Freshness::refresh(llvm::ArrayRef<llvm::StringRef> names,
                               llvm::function_ref<llvm::Error(const Persistent &)> compute) {
  if (stale_.empty()) return llvm::Error::success();
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
