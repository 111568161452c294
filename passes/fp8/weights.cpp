#include "passes/fp8/weights.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/recipe.h"
#include "passes/precision/demand.h"
#include "passes/rewrite/erase.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::DType, ir::Persistent, ir::PersistentKind, ir::Value;

// Goes to nothing but the function's results or a loss.
bool endsInResults(Value value) {
  return !value.unused() && llvm::all_of(value.users(), [&](ir::Op *user) {
    if (user->is("return")) return isResult(*user, value);
    if (user->is("softmax") || user->is("log_softmax") || user->is("cross_entropy")) return true;
    bool passesOn = user->def().isElementwise() || user->is("cast") || user->def().lowering == ir::Lowering::view;
    return passesOn && llvm::all_of(user->results(), endsInResults);
  });
}

/// One parameter, its derived copies, and the linear layers that read them.
class Weight {
public:
  Weight(ir::Module &module, Persistent &param) : module_(module), param_(param) {
    for (const auto &p : module.persistents())
      if (p->kind == PersistentKind::derived && llvm::is_contained(p->deriveFrom, param.name))
        copies_.push_back(p.get());
    for (const auto &function : module.functions())
      for (Value read : function->reads())
        if (isCopy(read.name()))
          for (ir::Op *user : read.users()) users_.push_back({user, read});
  }

  bool isOfLinear() const {
    return llvm::any_of(users_, [](const User &u) { return u.op->is("linear") && u.op->operand(1) == u.value; });
  }
  const ir::Op &firstUser() const { return *users_.front().op; }
  int64_t bytesRead() const { return param_.type.elements().value() * ir::byteSize(users_.front().value.dtype()); }

  std::string whyNot() const {
    for (const Persistent *copy : copies_) {
      bool isOurs = copy->deriveOp == "cast" || (copy->deriveOp == "fp8_cast" && copy->type.dtype == DType::f8e4m3);
      if (!isOurs) return "@" + copy->name + " is made from it";
      for (const auto &p : module_.persistents())
        if (llvm::is_contained(p->deriveFrom, copy->name)) return "@" + p->name + " is made from it";
    }
    for (const User &u : users_) {
      if (!u.op->is("linear") || u.op->operand(1) != u.value || u.op->operand(0u) == u.value)
        return (u.op->name() + " reads it too").str();
      if (endsInResults(u.op->result())) return "a head keeps its weight";
    }
    for (const auto &function : module_.functions())
      for (const ir::ReturnEntry &entry : function->returns())
        if (entry.kind != ir::ReturnKind::result && isCopy(entry.name))
          return ("@" + function->name() + " changes it").str();
    const Persistent *inverse = module_.persistent(weightInverseName(param_.name));
    if (inverse && inverse->deriveOp != "reciprocal") return "there is a @" + inverse->name + " already";
    return "";
  }

  void keepInFp8() {
    param_.type.dtype = DType::f8e4m3;
    std::string name = weightInverseName(param_.name);
    if (Persistent *inverse = module_.persistent(name))
      *inverse = Persistent{PersistentKind::param, name, inverse->type, {ir::Initializer::Kind::constant, 1.0}};
    else
      module_.addPersistent({PersistentKind::param, name, {DType::f32, {}}, {ir::Initializer::Kind::constant, 1.0}});
    for (const auto &function : module_.functions())
      for (Value read : function->reads())
        if (read.name() == param_.name) read.setType(param_.type);
    for (const User &u : users_) {
      DType wanted = u.value == u.op->function()->read(param_.name) ? DType::f32 : u.value.dtype();
      u.op->setOperand(1, ir::isFp8(wanted) ? u.op->function()->read(param_.name) : dequantised(*u.op, wanted));
    }
    std::string scale;
    for (const Persistent *copy : copies_) {
      if (copy->deriveOp == "fp8_cast") scale = copy->deriveFrom[1];
      module_.erasePersistent(std::string(copy->name));
    }
    if (scale.empty()) return;
    module_.erasePersistent(historyName(tensorOf(scale)));
    module_.erasePersistent(scale);
  }

private:
  struct User {
    ir::Op *op;
    Value value; // the parameter or a copy
  };

  bool isCopy(llvm::StringRef name) const {
    return name == param_.name || llvm::any_of(copies_, [&](const Persistent *copy) { return copy->name == name; });
  }

  Value dequantised(ir::Op &op, DType dtype) {
    ir::Builder b(op);
    b.setLocation(op.location());
    Value wide = b.cast(op.function()->read(param_.name), DType::f32);
    Value value = b.op("mul", {wide, op.function()->read(weightInverseName(param_.name))});
    value = b.cast(value, dtype);
    value.setName((param_.name + "." + ir::name(dtype)).str());
    return value;
  }

  ir::Module &module_;
  Persistent &param_;
  llvm::SmallVector<Persistent *, 2> copies_;
  llvm::SmallVector<User, 2> users_;
};

} // namespace

std::string weightInverseName(llvm::StringRef weight) { return (weight + ".scale_inv").str(); }

bool isFp8Weight(const ir::Module &module, const Persistent &param) {
  if (param.kind != PersistentKind::param || param.type.dtype != DType::f8e4m3) return false;
  const Persistent *inverse = module.persistent(weightInverseName(param.name));
  return inverse && inverse->kind == PersistentKind::param;
}

llvm::Expected<bool> fp8Weights(ir::Module &module, PassContext &context) {
  if (!context.options().fp8Weights || !context.enabled("fp8-weights")) return false;
  llvm::SmallVector<Persistent *, 32> params;
  for (const auto &p : module.persistents())
    if (p->kind == PersistentKind::param && p->type.dtype == DType::f32 && p->type.rank() == 2)
      params.push_back(p.get());
  bool changed = false;
  for (Persistent *param : params) {
    Weight weight(module, *param);
    if (!weight.isOfLinear()) continue;
    // What a run reads of it now, in the precision of its product, and would in FP8.
    const int64_t saved = weight.bytesRead() - param->type.elements().value();
    if (std::string why = weight.whyNot(); !why.empty()) {
      context.record(Decision::Kind::refused, "fp8-weights", weight.firstUser(), "'" + param->name + "': " + why,
                     saved);
      continue;
    }
    if (!context.spend("fp8-weights")) continue;
    context.record(Decision::Kind::taken, "fp8-weights", weight.firstUser(), "'" + param->name + "' is kept in E4M3",
                   saved);
    weight.keepInFp8();
    changed = true;
  }
  return changed;
}

} // namespace fusor::passes
