#include "passes/pack/pack.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/rewrite/constant.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::passes {
namespace {

using ir::Module, ir::Op, ir::Persistent, ir::PersistentKind, ir::Value;

// Attention's q, k and v, where the names of the messages come from.
constexpr unsigned kParts = 3;

bool hasBias(const Op &linear) { return linear.operands().size() > 2 && linear.operand(2); }

// Why the projections of `attention` cannot be one product; empty where they can.
std::string refusal(const Module &module, const Op &attention, llvm::ArrayRef<Op *> linears) {
  const Op &first = *linears.front();
  for (const Op *linear : linears) {
    llvm::StringRef name = linear->result().name();
    if (linear->operand(0u) != first.operand(0u))
      return llvm::formatv("%{0} is of %{1}, %{2} of %{3}", first.result().name(), first.operand(0u).name(), name,
                           linear->operand(0u).name());
    if (llvm::any_of(linear->result().users(), [&](Op *user) { return user != &attention; }))
      return llvm::formatv("%{0} is read by another op too, which would need a copy", name);
    if (linear->attrs() != first.attrs() || hasBias(*linear) != hasBias(first))
      return llvm::formatv("%{0} and %{1} differ in their attributes, or one of them has no bias",
                           first.result().name(), name);
    for (unsigned i = 1; i <= (hasBias(first) ? 2u : 1u); ++i) {
      const char *part = i == 1 ? "weight" : "bias";
      const Persistent *stored = storedConstant(linear->operand(i));
      if (!stored) return llvm::formatv("the {0} of %{1} is not a constant", part, name);
      if (stored->type.dtype != first.operand(i).dtype())
        return llvm::formatv("%{0} and %{1} have a {2} of different dtypes", first.result().name(), name, part);
      if (i == 1 && isRead(module, stored->name, linear))
        return llvm::formatv("@{0} has another reader: a second copy would be kept", stored->name);
    }
  }
  return "";
}

// "layer.0.query.weight", "layer.0.key.weight": "layer.0.query.weight.key.weight".
std::string joined(llvm::ArrayRef<std::string> names) {
  std::string name = names.front();
  for (llvm::StringRef next : names.drop_front()) {
    auto apart = std::mismatch(next.begin(), next.end(), names.front().begin(), names.front().end()).first;
    size_t same = next.take_front(apart - next.begin()).rfind('.');
    name += ("." + (same == llvm::StringRef::npos ? next : next.drop_front(same + 1))).str();
  }
  return name;
}

// The rows of operand `i` of all `linears`, one behind the other, as a new constant.
Value packedConstant(ir::Function &function, llvm::ArrayRef<Op *> linears, unsigned i) {
  Module &module = function.module();
  std::vector<char> bytes;
  llvm::SmallVector<std::string, kParts> names;
  ir::Dim rows(0);
  for (Op *linear : linears) {
    const Persistent &stored = *module.persistent(linear->operand(i).name());
    llvm::append_range(bytes, *stored.data);
    names.push_back(stored.name);
    rows = rows + stored.type.dim(0);
  }
  const Persistent &first = *module.persistent(names.front());
  ir::TensorType type = first.type;
  type.shape[0] = rows;
  return function.read(writeConstant(module, joined(names), type, std::move(bytes), first.location));
}

void pack(ir::Function &function, llvm::ArrayRef<Op *> linears) {
  Op &first = *llvm::find_if(function.block().ops(), [&](Op &op) { return llvm::is_contained(linears, &op); });
  llvm::SmallVector<Value, kParts> operands = {first.operand(0u), packedConstant(function, linears, 1)};
  if (hasBias(first)) operands.push_back(packedConstant(function, linears, 2));
  ir::Shape sizes;
  llvm::SmallVector<std::string, kParts> names;
  for (Op *linear : linears) {
    sizes.push_back(linear->result().type().dim(-1));
    names.push_back(linear->result().name().str());
  }
  ir::Builder builder(first);
  builder.setLocation(first.location());
  Value packed = builder.op("linear", operands, first.attrs());
  if (llvm::none_of(names, [](llvm::StringRef name) { return name.empty(); })) packed.setName(joined(names));
  Op &split = *builder.op("split", {packed}, {{"sizes", sizes}}).op();
  for (unsigned i = 0; i < linears.size(); ++i) {
    Value part = split.result(i), old = linears[i]->result();
    std::string name = old.name().str();
    llvm::SmallVector<std::string, 2> constants;
    for (unsigned c = 1; c < operands.size(); ++c) constants.push_back(linears[i]->operand(c).name().str());
    old.replaceAllUsesWith(part);
    linears[i]->erase();
    part.setName(name);
    for (const std::string &constant : constants) eraseUnread(function.module(), constant);
  }
}

} // namespace

llvm::Expected<bool> packProjections(ir::Module &module, PassContext &context) {
  bool changed = false;
  for (const auto &function : module.functions())
    for (Op *op : function->block().opPointers()) {
      if (!op->is("attention")) continue;
      llvm::SmallSetVector<Op *, 4> linears; // k and v can be one projection
      for (unsigned i = 0; i < kParts; ++i)
        if (Op *made = op->operand(i).op(); made && made->is("linear")) linears.insert(made);
      if (linears.size() < 2) continue; // packed already, or computed otherwise
      // x is read once.
      std::optional<int64_t> x = ir::byteSize(linears[0]->operand(0u).type(), context.sizes(module));
      int64_t saved = x ? *x * static_cast<int64_t>(linears.size() - 1) : 0;
      if (std::string reason = refusal(module, *op, linears.getArrayRef()); !reason.empty()) {
        context.record(Decision::Kind::refused, "pack", *op, reason, saved);
        continue;
      }
      if (!context.spend("pack", op)) continue;
      context.record(Decision::Kind::taken, "pack", *op,
                     llvm::formatv("{0} projections are one product", linears.size()).str(), saved);
      pack(*function, linears.getArrayRef());
      changed = true;
    }
  return changed;
}

} // namespace fusor::passes
