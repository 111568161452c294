#include "passes/pipeline.h"
#include "passes/fp8/fold.h"
#include "passes/fp8/insert.h"
#include "passes/fp8/split.h"
#include "passes/fp8/statistics.h"
#include "passes/fp8/tn.h"
#include "passes/fp8/update.h"
#include "passes/fp8/weights.h"
#include "passes/fusion/fusion.h"
#include "passes/gradient/gradient.h"
#include "passes/layout/layout.h"
#include "passes/lift/lift.h"
#include "passes/optimizer/derive.h"
#include "passes/optimizer/optimizer.h"
#include "passes/pack/pack.h"
#include "passes/precision/precision.h"
#include "passes/recompute/recompute.h"
#include "passes/schedule/schedule.h"
#include "passes/simplify/simplify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace fusor::passes {
namespace {

struct Step {
  Pass pass;
  bool infer, train;
};

// DESIGN section 5 has the full order. A slot is empty until its pass lands.
const Step kSteps[] = {
    {{"simplify", simplify, "first: everything below sees less"}, true, true},
    {{"lift", lift, "before anything looks for big ops: imports are small ops"}, true, true},
    {{"pack", packProjections, "when attention is one op: who reads its projections is known"}, true, true},
    {{"precision", precision, "on the forward function: the backward one follows from its dtypes"}, true, true},
    {{"fp8-insert", fp8Insert,
      "when it is known which GEMMs are in bf16; the gradient rules then take the right copies"},
     true,
     true},
    {{"gradient", gradient, "before the optimizer, which consumes `grad @w`"}, false, true},
    {{"optimizer", optimizer, "the last pass that adds mathematics: everything below sees the whole step"},
     false,
     true},
    {{"fp8-update", fp8Update, "when forward and backward have made all their amaxes, before unused ones are dropped"},
     true,
     true},
    {{"simplify", simplify, "gradient rules widen, move and name more than they need"}, true, true},
    {{"derive", derive, "when all casts of parameters are there, and their updates"}, true, true},
    {{"fp8-fold", fp8Fold, "the last that needs quantised tensors as such: kernels see data, scales and ordinary ops"},
     true,
     true},
    {{"fp8-weights", fp8Weights, "when products of FP8 and copies in bf16 can be seen: either's weight is replaced"},
     true,
     false},
    {{"recompute", recompute,
      "after the last pass that merges equal ops, before transposed copies: they stand behind what is computed again"},
     false,
     true},
    {{"fp8-tn", fp8Tn, "when products are plain FP8: a library's need transposed copies, which `layout` sees"},
     true,
     true},
    {{"layout", layout, "after the last op is made: gives each reader what it can read through"}, true, true},
    {{"fusion", fusion, "last: every op becomes part of a cluster, and codegen and the run time see clusters only"},
     true,
     true},
    {{"schedule", schedule, "when kernels are fixed: which runs first decides how long values live"}, true, true},
    {{"fp8-split", fp8Split, "when the peak is known: a kernel there gives up what another can make"}, false, true},
    {{"fp8-statistics", fp8Statistics, "when copies that can go from the peak have gone: what is left pays for FP8"},
     false,
     true},
    // memory (lifetimes of that order) is planned by the run time for each bucket, see passes/memory
};

std::vector<Pass> select(bool Step::*member) {
  std::vector<Pass> passes;
  for (const Step &step : kSteps)
    if (step.*member) passes.push_back(step.pass);
  return passes;
}

} // namespace

std::optional<PipelineKind> parsePipelineKind(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<PipelineKind>>(name)
      .Case("infer", PipelineKind::infer)
      .Case("train", PipelineKind::train)
      .Default(std::nullopt);
}

llvm::ArrayRef<Pass> pipeline(PipelineKind kind) {
  static const std::vector<Pass> infer = select(&Step::infer), train = select(&Step::train);
  return kind == PipelineKind::infer ? infer : train;
}

llvm::ArrayRef<Pass> allPasses() {
  static const std::vector<Pass> all = [] {
    std::vector<Pass> passes;
    for (const Step &step : kSteps)
      if (llvm::none_of(passes, [&](const Pass &p) { return p.name == step.pass.name; })) passes.push_back(step.pass);
    return passes;
  }();
  return all;
}

const Pass *findPass(llvm::StringRef name) {
  auto passes = allPasses();
  const auto *it = llvm::find_if(passes, [&](const Pass &pass) { return pass.name == name; });
  return it == passes.end() ? nullptr : it;
}

llvm::Error runPipeline(ir::Module &module, PipelineKind kind, PassContext &context, PassObserver observer) {
  return runPasses(module, pipeline(kind), context, observer);
}

llvm::Error runPasses(ir::Module &module, llvm::ArrayRef<std::string> names, PassContext &context,
                      PassObserver observer) {
  std::vector<Pass> passes;
  for (llvm::StringRef name : names) {
    const Pass *pass = findPass(name);
    if (!pass) {
      auto known = llvm::map_range(allPasses(), [](const Pass &p) { return p.name; });
      return llvm::make_error<PassError>(ir::Location(), llvm::formatv("there is no pass called '{0}'", name).str(),
                                         "passes are " + llvm::join(known, ", "));
    }
    passes.push_back(*pass);
  }
  return runPasses(module, passes, context, observer);
}

} // namespace fusor::passes
