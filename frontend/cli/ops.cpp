// fusor ops: the op table, as text, JSON lines or docs/ops.md.
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"
#include "ir/ops/docs.h"
#include "ir/ops/op_def.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend::cli {
namespace {

llvm::StringRef kindName(ir::AttrKind kind) {
  static constexpr const char *names[] = {"bool", "int", "real", "word", "ints", "strings", "dtype", "shape"};
  return names[static_cast<size_t>(kind)];
}

llvm::json::Object describe(const ir::OpDef &op) {
  llvm::json::Array operands, attributes;
  for (const ir::OperandSpec &o : op.operands)
    operands.push_back(llvm::json::Object{{"name", o.name}, {"optional", o.optional}, {"variadic", o.variadic}});
  for (const ir::AttrSpec &a : op.attrs)
    attributes.push_back(llvm::json::Object{
        {"name", a.name},
        {"kind", kindName(a.kind)},
        {"required", a.required},
        {"summary", a.summary},
        {"default", a.defaultValue ? llvm::json::Value(ir::str(*a.defaultValue)) : llvm::json::Value(nullptr)}});
  return llvm::json::Object{{"op", op.name},
                            {"summary", op.summary},
                            {"operands", std::move(operands)},
                            {"results", llvm::json::Array(op.results)},
                            {"attributes", std::move(attributes)},
                            {"lowering", ir::name(op.lowering)},
                            {"gradient", op.gradient != nullptr || op.expansion != nullptr}};
}

} // namespace

int ops(const CommonOptions &common, const OpsOptions &options) {
  Console console(common);
  if (common.json) {
    for (const ir::OpDef *op : ir::allOps()) console.object(describe(*op));
    return 0;
  }
  console.result(llvm::StringRef(options.markdown ? ir::opsMarkdown() : ir::opsText()).rtrim('\n'));
  return 0;
}

} // namespace fusor::frontend::cli
