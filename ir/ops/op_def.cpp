#include "ir/ops/op_def.h"
#include "ir/graph/bug.h"
#include "ir/ops/families.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

struct Table {
  std::vector<const OpDef *> entries;
  llvm::StringMap<const OpDef *> byName;
};

const Table &table() {
  static const Table table = [] {
    Table t;
    for (const Family &family : allFamilies())
      for (const OpDef &def : family.ops) {
        t.entries.push_back(&def);
        if (!t.byName.try_emplace(def.name, &def).second)
          FUSOR_BUG("the op table has two entries called '{0}'", def.name);
      }
    return t;
  }();
  return table;
}

} // namespace

llvm::StringRef name(Lowering lowering) {
  static constexpr const char *names[] = {"none",        "pointwise", "view",    "index_map",    "reduction",
                                          "contraction", "attention", "scatter", "multi_tensor", "expansion"};
  return names[static_cast<unsigned>(lowering)];
}

bool isUnsaturatedCast(const OpSite &site) { return site.def.name == "cast" && !site.flag("saturate"); }

const OpDef *findOp(llvm::StringRef name) { return table().byName.lookup(name); }

const OpDef &opDef(llvm::StringRef name) {
  const OpDef *def = findOp(name);
  if (!def) FUSOR_BUG("there is no op called '{0}'", name);
  return *def;
}

llvm::ArrayRef<const OpDef *> allOps() { return table().entries; }

const AttrSpec *OpDef::attr(llvm::StringRef attrName) const {
  auto it = llvm::find_if(attrs, [&](const AttrSpec &spec) { return spec.name == attrName; });
  return it == attrs.end() ? nullptr : &*it;
}

unsigned OpDef::requiredOperands() const {
  return llvm::count_if(operands, [](const OperandSpec &spec) { return !spec.optional && !spec.variadic; });
}

const AttrValue &OpSite::attrValue(llvm::StringRef name) const {
  if (const AttrValue *value = attrs.find(name)) return *value;
  const AttrSpec *spec = def.attr(name);
  if (!spec || !spec->defaultValue) FUSOR_BUG("op '{0}' has no value for attribute '{1}'", def.name, name);
  return *spec->defaultValue;
}

unsigned OpSite::axis(llvm::StringRef name, unsigned rank) const {
  int64_t axis = integer(name);
  return static_cast<unsigned>(axis < 0 ? axis + rank : axis);
}

} // namespace fusor::ir
