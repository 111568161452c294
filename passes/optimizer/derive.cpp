#include "passes/optimizer/derive.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/rewrite/constant.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::passes {

std::string derivedValue(ir::Module &module, llvm::StringRef op, llvm::ArrayRef<std::string> sources, ir::Attrs attrs,
                         const ir::TensorType &type, const llvm::Twine &wanted) {
  for (const auto &persistent : module.persistents())
    if (persistent->kind == ir::PersistentKind::derived && persistent->deriveOp == op &&
        llvm::makeArrayRef(persistent->deriveFrom) == sources && persistent->deriveAttrs == attrs)
      return persistent->name;
  const std::string first = wanted.str();
  std::string name = first;
  for (unsigned i = 1; module.persistent(name); ++i) // somebody has a parameter of that name
    name = first + "." + std::to_string(i);
  llvm::SmallVector<std::string, 2> from(sources.begin(), sources.end());
  module.addPersistent({ir::PersistentKind::derived,
                        name,
                        type,
                        {},
                        nullptr,
                        op.str(),
                        std::move(from),
                        std::move(attrs),
                        module.persistent(sources[0])->location});
  return name;
}

namespace {

constexpr llvm::StringLiteral kCopies[] = {"cast", "quantize", "amax", "transpose"};

// What a cast to `to` makes of the constant, as a constant.
std::string castConstant(ir::Module &module, const ir::Persistent &source, ir::DType to) {
  const int64_t count = source.data->size() / ir::byteSize(source.type.dtype);
  std::vector<char> bytes(count * ir::byteSize(to));
  for (int64_t i = 0; i < count; ++i)
    ir::storeElement(to, bytes.data(), i, ir::roundTo(to, ir::loadElement(source.type.dtype, source.data->data(), i)));
  ir::TensorType type = source.type;
  type.dtype = to;
  return writeConstant(module, (source.name + "." + ir::name(to)).str(), type, std::move(bytes), source.location);
}

// Casts of constants are constants; what nothing else reads goes.
bool foldCasts(ir::Module &module, ir::Function &function) {
  bool changed = false;
  for (ir::Op *op : function.block().opPointers()) {
    const ir::Persistent *source = op->is("cast") ? storedConstant(op->operand(0u)) : nullptr;
    if (!source || isUnsaturatedCast(op->site())) continue;
    const std::string name = source->name;
    op->result().replaceAllUsesWith(function.read(castConstant(module, *source, op->result().dtype())));
    op->erase();
    eraseUnread(module, name);
    changed = true;
  }
  return changed;
}

bool readCopies(ir::Module &module, ir::Function &function) {
  bool changed = false;
  auto isKind = [&](ir::Value v, ir::PersistentKind kind) {
    return v && v.isPersistent() && module.persistent(v.name())->kind == kind;
  };
  for (ir::Op *op : function.block().opPointers()) {
    if (!isKind(op->operand(0u), ir::PersistentKind::param) && !isKind(op->operand(0u), ir::PersistentKind::constant))
      continue;
    std::string param = op->operand(0u).name().str();
    auto replace = [&](unsigned result, llvm::StringRef by, llvm::ArrayRef<std::string> sources, ir::Attrs attrs,
                       llvm::StringRef suffix) {
      ir::Value value = op->result(result);
      if (value.unused()) return;
      value.replaceAllUsesWith(function.read(
          derivedValue(module, by, sources, std::move(attrs), value.type(), llvm::Twine(param) + "." + suffix)));
    };
    if (op->is("cast") && !isUnsaturatedCast(op->site()))
      replace(0, "cast", param, {{"to", op->attr<ir::DType>("to")}}, ir::name(op->attr<ir::DType>("to")));
    else if (op->is("quantize") && isKind(op->operand(1), ir::PersistentKind::state)) {
      replace(0, "quantize", {param, op->operand(1).name().str()}, op->attrs(), "fp8");
      replace(1, "amax", param, {}, "amax");
    } else
      continue;
    op->erase();
    changed = true;
  }
  return changed;
}

} // namespace

bool writeCopies(ir::Module &module, ir::Function &function) {
  auto entries = function.returns();
  ir::Op *terminator = function.block().terminator();
  ir::Builder builder(*terminator);
  builder.setLocation(terminator->location());
  llvm::StringMap<ir::Value> written;
  for (const ir::ReturnEntry &entry : entries)
    if (entry.kind == ir::ReturnKind::update) written[entry.name] = entry.value;
  size_t before = entries.size();
  for (const auto &copy : module.persistents()) {
    bool isOurs = llvm::is_contained(kCopies, copy->deriveOp);
    if (copy->kind != ir::PersistentKind::derived || !isOurs || written.count(copy->name)) continue;
    if (llvm::none_of(copy->deriveFrom, [&](const std::string &source) { return written.count(source); })) continue;
    llvm::SmallVector<ir::Value, 2> operands;
    for (const std::string &source : copy->deriveFrom)
      operands.push_back(written.count(source) ? written[source] : function.read(source));
    ir::Value value = builder.op(copy->deriveOp, operands, copy->deriveAttrs);
    value.setName("new." + copy->name);
    entries.push_back({ir::ReturnKind::update, copy->name, value});
    written[copy->name] = value;
  }
  if (entries.size() == before) return false;
  ir::Location location = terminator->location();
  function.setReturns(entries, location);
  return true;
}

llvm::Expected<bool> derive(ir::Module &module, PassContext &) {
  bool changed = false;
  for (const auto &function : module.functions()) changed |= foldCasts(module, *function);
  for (const auto &function : module.functions()) changed |= readCopies(module, *function);
  for (const auto &function : module.functions()) changed |= writeCopies(module, *function);
  return changed;
}

} // namespace fusor::passes
