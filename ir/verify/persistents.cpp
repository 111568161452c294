// Persistent values: names, contents of consts, expressions of derived values.
#include "ir/graph/builder.h"
#include "ir/graph/names.h"
#include "ir/ops/op_def.h"
#include "ir/verify/checks.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::ir {
namespace {

std::string spelledName(const Persistent &persistent) { return spelled('@', persistent.name); }

void verifyContents(const Persistent &persistent, Problems &problems) {
  auto bytes = byteSize(persistent.type, {});
  if (!bytes)
    return problems.add(persistent.location, "const {0} has dims that are no numbers: {1}", spelledName(persistent),
                        persistent.type.str());
  int64_t given = persistent.data ? persistent.data->size() : 0;
  if (given != *bytes)
    problems.add(persistent.location, "const {0} holds {1} bytes, {2} has {3}", spelledName(persistent), given,
                 persistent.type.str(), *bytes);
}

void verifyDerivation(const Module &module, const Persistent &persistent, Problems &problems) {
  std::string who = "derived " + spelledName(persistent);
  const OpDef *def = findOp(persistent.deriveOp);
  if (!def) return problems.add(persistent.location, "{0}: there is no op called '{1}'", who, persistent.deriveOp);
  std::vector<ValueDef> sources(persistent.deriveFrom.size());
  llvm::SmallVector<Value, 4> operands;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Persistent *source = module.persistent(persistent.deriveFrom[i]);
    if (!source)
      return problems.add(persistent.location, "{0}: its source {1} is not declared", who,
                          spelled('@', persistent.deriveFrom[i]));
    sources[i].kind = ValueDef::Kind::persistent;
    sources[i].type = source->type;
    operands.push_back(Value(&sources[i]));
  }
  auto types = inferTypes({*def, operands, persistent.deriveAttrs});
  if (!types) return problems.add(persistent.location, "{0}: {1}", who, llvm::toString(types.takeError()));
  if (types->empty()) return problems.add(persistent.location, "{0}: '{1}' gives no value", who, def->name);
  if (types->front() != persistent.type)
    problems.add(persistent.location, "{0}: '{1}' gives {2}, declared is {3}", who, def->name, types->front().str(),
                 persistent.type.str());
}

// A derived value is computed from its sources, so it must not be among its own.
void verifyNoCycles(const Module &module, Problems &problems) {
  llvm::StringSet<> done; // known to lead into no cycle
  for (const auto &start : module.persistents()) {
    llvm::StringSet<> onPath;
    struct Step {
      const Persistent *persistent;
      size_t next;
    };
    llvm::SmallVector<Step, 8> path;
    auto enter = [&](const Persistent *p) {
      if (!p || p->kind != PersistentKind::derived || done.count(p->name)) return true;
      if (!onPath.insert(p->name).second) return false;
      path.push_back({p, 0});
      return true;
    };
    enter(start.get());
    while (!path.empty()) {
      Step &step = path.back();
      if (step.next == step.persistent->deriveFrom.size()) {
        onPath.erase(step.persistent->name);
        done.insert(step.persistent->name);
        path.pop_back();
        continue;
      }
      const Persistent *at = step.persistent;
      const std::string &source = at->deriveFrom[step.next++];
      if (enter(module.persistent(source))) continue;
      problems.add(at->location, "derived {0} depends on itself through {1}", spelled('@', source), spelledName(*at));
      for (const Step &s : path) done.insert(s.persistent->name);
      break;
    }
  }
}

} // namespace

void verifyPersistents(const Module &module, Problems &problems) {
  for (const auto &persistent : module.persistents()) {
    llvm::StringRef name = persistent->name;
    if (name.empty() || name.startswith("grad "))
      problems.add(persistent->location, "a persistent value must not be called \"{0}\"", name);
    if (module.persistent(name) != persistent.get())
      problems.add(persistent->location, "{0} is not found under its name: two have it, or it was renamed in place",
                   spelledName(*persistent));
    verifySymbols(
        module, persistent->type, [&] { return spelledName(*persistent); }, persistent->location, problems);
    if (persistent->kind == PersistentKind::constant) verifyContents(*persistent, problems);
    if (persistent->kind == PersistentKind::derived) verifyDerivation(module, *persistent, problems);
  }
  verifyNoCycles(module, problems);
}

void verifySymbols(const Module &module, const TensorType &type, llvm::function_ref<std::string()> what,
                   const Location &location, Problems &problems) {
  for (const Dim &dim : type.shape)
    dim.forEachSymbol([&](llvm::StringRef symbol) {
      if (!module.symbols().count(symbol.str()))
        problems.add(location, "{0} is {1}, and symbol '{2}' is not declared", what(), type.str(), symbol);
    });
}

} // namespace fusor::ir
