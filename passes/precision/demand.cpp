#include "passes/precision/demand.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
using ir::PrecisionClass;

bool Demand::isWideHead(const ir::Op &op) {
  if (op.def().lowering != ir::Lowering::contraction) return false;
  const ir::Dim outputs = op.result().rank() ? op.result().type().dim(-1) : ir::Dim(1);
  return outputs.isConstant() && outputs.value() < wideHeadBelow_ && !op.unused() && endsInResults(op.result());
}

// `return %logits` counts, `return @state = %x` does not.
bool isResult(const ir::Op &terminator, ir::Value value) {
  const auto &targets = terminator.attr<std::vector<std::string>>("targets");
  for (unsigned i = 0; i < terminator.operands().size(); ++i)
    if (terminator.operand(i) == value && i < targets.size() && !targets[i].empty()) return false;
  return true;
}

bool Demand::endsInResults(ir::Value value) {
  auto [it, isNew] = endsInResults_.try_emplace(value.def(), false);
  if (!isNew) return it->second;
  bool ends = llvm::all_of(value.users(), [&](ir::Op *user) {
    if (user->is("return")) return isResult(*user, value);
    switch (user->def().precision) {
    case PrecisionClass::low: return false;
    case PrecisionClass::wide:
    case PrecisionClass::any: return true;
    case PrecisionClass::normalizes: return user->is("softmax") || user->is("log_softmax");
    case PrecisionClass::follows: return llvm::all_of(user->results(), [&](ir::Value v) { return endsInResults(v); });
    }
    return false;
  });
  return endsInResults_[value.def()] = ends;
}

bool Demand::wantsLow(ir::Value value) {
  auto [it, isNew] = wantsLow_.try_emplace(value.def(), false);
  if (!isNew) return it->second;
  bool wants = llvm::any_of(value.users(), [&](ir::Op *user) {
    switch (user->def().precision) {
    case PrecisionClass::low: return !wide_.contains(user);
    case PrecisionClass::wide:
    case PrecisionClass::any: return false;
    case PrecisionClass::normalizes: return user->operand(0u) == value && wantsLow(user->result());
    case PrecisionClass::follows: return llvm::any_of(user->results(), [&](ir::Value v) { return wantsLow(v); });
    }
    return false;
  });
  return wantsLow_[value.def()] = wants;
}

} // namespace fusor::passes
