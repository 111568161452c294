// fusor ops: the op table, as text, JSON lines or docs/ops.md.
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"
#include "ir/ops/families.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend::cli {
namespace {

std::string operandText(const ir::OpDef &op) {
  return llvm::join(llvm::map_range(op.operands,
                                    [](const ir::OperandSpec &o) {
                                      return o.name + (o.optional ? "?" : o.variadic ? "..." : "");
                                    }),
                    ", ");
}

llvm::StringRef kindName(ir::AttrKind kind) {
  static constexpr const char *names[] = {"bool", "int", "real", "word", "ints", "strings", "dtype", "shape"};
  return names[static_cast<size_t>(kind)];
}

// "eps: real = 1e-05 in 0..1e+30"
std::string attributeText(const ir::AttrSpec &a) {
  std::string text = a.name + ": " + (a.choices.empty() ? kindName(a.kind).str() : llvm::join(a.choices, "/"));
  if (a.defaultValue)
    text += " = " + ir::str(*a.defaultValue);
  else if (!a.required)
    text += ", optional";
  if (a.range) llvm::raw_string_ostream(text) << llvm::format(" in %g..%g", a.range->first, a.range->second);
  return text;
}

std::string attributesText(const ir::OpDef &op, llvm::StringRef separator) {
  return llvm::join(llvm::map_range(op.attrs, attributeText), separator);
}

std::string results(const ir::OpDef &op) { return llvm::join(op.results, ", "); }

llvm::json::Object describe(const ir::OpDef &op) {
  llvm::json::Array operands, attributes;
  for (const ir::OperandSpec &o : op.operands)
    operands.push_back(llvm::json::Object{{"name", o.name}, {"optional", o.optional}, {"variadic", o.variadic}});
  for (const ir::AttrSpec &a : op.attrs)
    attributes.push_back(llvm::json::Object{
        {"name", a.name},
        {"kind", kindName(a.kind)},
        {"required", a.required},
        {"default", a.defaultValue ? llvm::json::Value(ir::str(*a.defaultValue)) : llvm::json::Value(nullptr)}});
  return llvm::json::Object{{"op", op.name},
                            {"summary", op.summary},
                            {"operands", std::move(operands)},
                            {"results", llvm::json::Array(op.results)},
                            {"attributes", std::move(attributes)},
                            {"lowering", ir::name(op.lowering)},
                            {"gradient", op.gradient != nullptr || op.expansion != nullptr}};
}

std::string cell(std::string text) { // in a Markdown table
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string markdown() {
  std::string text = "# Ops\n\nMade by `fusor ops --markdown` from the op table in `ir/ops/`. An operand with `?` is "
                     "optional, one with `...` stands for any number.\n\n| op | operands | results | attributes | "
                     "does | lowered by |\n|---|---|---|---|---|---|\n";
  for (const ir::OpDef *op : ir::allOps())
    text += llvm::formatv("| `{0}` | {1} | {2} | {3} | {4} | {5} |\n", op->name, operandText(*op), results(*op),
                          cell(attributesText(*op, "<br>")), cell(op->summary), ir::name(op->lowering))
                .str();
  return text;
}

} // namespace

int ops(const CommonOptions &common, const OpsOptions &options) {
  Console console(common);
  if (common.json) {
    for (const ir::OpDef *op : ir::allOps()) console.object(describe(*op));
    return 0;
  }
  if (options.markdown) {
    console.result(llvm::StringRef(markdown()).rtrim('\n'));
    return 0;
  }
  for (const ir::OpDef *op : ir::allOps()) {
    std::string head = op->name + "(" + operandText(*op) + ") -> " + (op->results.empty() ? "()" : results(*op));
    console.result(llvm::formatv("{0,-52} {1}", head, op->summary));
    if (!op->attrs.empty()) console.result("    {" + attributesText(*op, "; ") + "}");
  }
  return 0;
}

} // namespace fusor::frontend::cli
