#include "passes/lift/lift.h"
#include "ir/graph/bug.h"
#include "ir/graph/printer.h"
#include "passes/lift/family.h"
#include "passes/rewrite/erase.h"
#include "passes/rewrite/rule.h"
#include "passes/simplify/simplify.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::passes {
namespace {

// Norms before what reads them; `linear` takes no product that attention wants: its weights are stored.
const Family kFamilies[] = {
    {"norm", findNorm},       {"norm-weight", findNormWeight}, {"gelu", findGelu},     {"silu", findSilu},
    {"softmax", findSoftmax}, {"linear", findLinear},          {"rotary", findRotary}, {"attention", findAttention},
};

// Every rewrite leaves fewer small ops; this is far more than any graph has.
constexpr unsigned kMostLiftSweeps = 100000;

class Lifter {
public:
  Lifter(ir::Function &function, PassContext &context) : function_(function), context_(context) {}

  bool run() {
    bool changed = false;
    for (unsigned sweeps = 0; sweep(); ++sweeps) {
      changed = true;
      if (sweeps == kMostLiftSweeps) FUSOR_BUG("lift does not come to rest in @{0}", function_.name());
    }
    return changed;
  }
  /// What the last sweep refused.
  void record() {
    for (const Refusal &r : refusals_) context_.record(Decision::Kind::nearMiss, r.rule, *r.op, r.reason, r.bytes);
  }

private:
  struct Refusal {
    ir::Op *op;
    std::string rule, reason;
    int64_t bytes;
  };

  bool sweep() {
    bool changed = false;
    erased_.clear();
    refusals_.clear(); // what another sweep still refuses is recorded
    for (ir::Op *op : function_.block().opPointers())
      for (const Family &family : kFamilies) {
        if (erased_.contains(op)) break;
        if (context_.enabled(("lift-" + family.name).str())) changed |= apply(family, *op);
      }
    return changed;
  }

  bool apply(const Family &family, ir::Op &op) {
    Finding finding = family.find(op);
    if (finding.refusal.empty() && !finding.write) return false;
    const std::string rule = ("lift-" + family.name).str();
    const int64_t bytes = finding.inputs.empty() || !context_.options().explain
                              ? 0
                              : bytesBetween(finding.inputs, finding.replaced, context_.sizes(function_.module()));
    if (!finding.refusal.empty() && context_.options().explain)
      refusals_.push_back({&op, rule, finding.refusal, bytes});
    if (!finding.write || !context_.spend(rule, &op)) return false;
    ir::Value old = finding.replaced;
    ir::Op &root = *old.op();
    context_.record(Decision::Kind::taken, rule, root, finding.what.empty() ? family.name.str() : finding.what, bytes);
    ir::Builder builder(root);
    builder.setLocation(root.location());
    ir::Value value = finding.write(builder);
    if (value.type() != old.type())
      FUSOR_BUG("lift of {0} gives {1} for {2}", family.name, value.type().str(), ir::printOp(root));
    if (value.op() && value.name().empty()) value.setName(old.name());
    old.replaceAllUsesWith(value);
    llvm::SmallVector<std::string, 2> constants;
    for (ir::Value operand : op.operands())
      if (operand && storedConstant(operand)) constants.push_back(operand.name().str());
    eraseDead(root, [&](ir::Op &dead) {
      erased_.insert(&dead);
      llvm::erase_if(refusals_, [&](const auto &refusal) { return refusal.op == &dead; });
    });
    // Not even until the end: models are large.
    for (const std::string &name : constants) eraseUnread(function_.module(), name);
    return true;
  }

  ir::Function &function_;
  PassContext &context_;
  llvm::DenseSet<const ir::Op *> erased_;
  std::vector<Refusal> refusals_;
};

llvm::StringSet<> constantsRead(const ir::Module &module) {
  llvm::StringSet<> names;
  for (const auto &function : module.functions())
    for (ir::Value read : function->reads())
      if (!read.unused() && module.persistent(read.name())->kind == ir::PersistentKind::constant)
        names.insert(read.name());
  for (const auto &persistent : module.persistents())
    for (const std::string &source : persistent->deriveFrom) names.insert(source);
  return names;
}

} // namespace

llvm::Expected<bool> lift(ir::Module &module, PassContext &context) {
  bool changed = false;
  if (!context.enabled("lift")) return changed;
  const llvm::StringSet<> before = constantsRead(module);
  for (const auto &function : module.functions())
    for (;;) {
      Lifter lifter(*function, context);
      const bool lifted = lifter.run();
      changed |= lifted;
      // What moved the operands of small ops now often moves there and back.
      if (lifted && rewriteToFixpoint(*function, movementRules(), context)) continue;
      lifter.record();
      break;
    }
  const llvm::StringSet<> after = constantsRead(module);
  for (const auto &constant : before) // a weight and its transposed copy would both be kept
    if (!after.contains(constant.getKey())) module.erasePersistent(constant.getKey());
  return changed;
}

} // namespace fusor::passes
