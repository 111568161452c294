#include "passes/optimizer/derive.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

// The derived value that equals `cast @param {to = dtype}`, declared where there is none yet.
std::string derivedCopy(ir::Module &module, const ir::Persistent &param, ir::DType to) {
  ir::Attrs attrs{{"to", to}};
  for (const auto &persistent : module.persistents())
    if (persistent->kind == ir::PersistentKind::derived && persistent->deriveOp == "cast" &&
        persistent->deriveFrom[0] == param.name && persistent->deriveAttrs == attrs)
      return persistent->name;
  std::string name = param.name + "." + ir::name(to).str();
  for (unsigned i = 1; module.persistent(name); ++i) // somebody has a parameter of that name
    name = param.name + "." + ir::name(to).str() + "." + std::to_string(i);
  module.addPersistent({ir::PersistentKind::derived,
                        name,
                        param.type.withDType(to),
                        {},
                        nullptr,
                        "cast",
                        {param.name},
                        attrs,
                        param.location});
  return name;
}

bool readCopies(ir::Module &module, ir::Function &function) {
  bool changed = false;
  for (ir::Op *op : function.block().opPointers()) {
    ir::Value source = op->operand(0u);
    if (!op->is("cast") || !source.isPersistent()) continue;
    const ir::Persistent *param = module.persistent(source.name());
    if (param->kind != ir::PersistentKind::param) continue;
    op->result().replaceAllUsesWith(function.read(derivedCopy(module, *param, op->attr<ir::DType>("to"))));
    op->erase();
    changed = true;
  }
  return changed;
}

// A function that writes a parameter writes its copies too.
bool writeCopies(ir::Module &module, ir::Function &function) {
  auto entries = function.returns();
  ir::Op *terminator = function.block().terminator();
  ir::Builder builder(*terminator);
  builder.setLocation(terminator->location());
  size_t before = entries.size();
  for (size_t i = 0; i < before; ++i) {
    if (entries[i].kind != ir::ReturnKind::update) continue;
    for (const auto &copy : module.persistents()) {
      bool isWritten = llvm::any_of(
          entries, [&](const ir::ReturnEntry &e) { return e.kind == ir::ReturnKind::update && e.name == copy->name; });
      if (copy->kind != ir::PersistentKind::derived || copy->deriveOp != "cast" ||
          copy->deriveFrom[0] != entries[i].name || isWritten)
        continue;
      ir::Value value = builder.op("cast", {entries[i].value}, copy->deriveAttrs);
      value.setName("new." + copy->name);
      entries.push_back({ir::ReturnKind::update, copy->name, value});
    }
  }
  if (entries.size() == before) return false;
  ir::Location location = terminator->location();
  function.setReturns(entries, location);
  return true;
}

} // namespace

llvm::Expected<bool> derive(ir::Module &module, PassContext &) {
  bool changed = false;
  for (const auto &function : module.functions()) changed |= readCopies(module, *function);
  for (const auto &function : module.functions()) changed |= writeCopies(module, *function);
  return changed;
}

} // namespace fusor::passes
