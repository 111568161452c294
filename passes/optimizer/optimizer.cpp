#include "passes/optimizer/optimizer.h"
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "passes/optimizer/loss_scale.h"
#include "passes/optimizer/state.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"

namespace fusor::passes {
namespace {

struct Gradient {
  std::string name; // of the param
  ir::Value value;
};

// Takes the gradients out of `entries`.
std::vector<Gradient> takeGradients(llvm::SmallVectorImpl<ir::ReturnEntry> &entries) {
  std::vector<Gradient> gradients;
  for (const ir::ReturnEntry &entry : entries)
    if (entry.kind == ir::ReturnKind::gradient) gradients.push_back({entry.name, entry.value});
  llvm::erase_if(entries, [](const ir::ReturnEntry &e) { return e.kind == ir::ReturnKind::gradient; });
  return gradients;
}

ir::Value named(ir::Value value, const llvm::Twine &name) {
  value.setName(name.str());
  return value;
}

// accum + d / N
void accumulate(ir::Function &function, ir::Builder &b, std::vector<Gradient> &gradients, int64_t parts) {
  for (Gradient &g : gradients) {
    ir::Value sum = stateOf(function, "accum." + g.name, {ir::DType::f32, g.value.type().shape});
    ir::Value share = b.op("div", {b.cast(g.value, ir::DType::f32), b.constant(static_cast<double>(parts))});
    g.value = named(b.op("add", {sum, share}), "accum." + g.name);
  }
}

ir::Value globalNorm(ir::Builder &b, llvm::ArrayRef<Gradient> gradients) {
  llvm::SmallVector<ir::Value, 8> values;
  for (const Gradient &g : gradients) values.push_back(g.value);
  return named(b.op("global_norm", values), "grad_norm");
}

// min(1, max / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_
ir::Value clipScale(ir::Builder &b, ir::Value norm, double maxNorm) {
  ir::Value ratio = b.op("div", {b.constant(maxNorm), b.op("add", {norm, b.constant(1e-6)})});
  return named(b.op("min", {ratio, b.constant(1)}), "grad_scale");
}

// What the gradients are multiplied by and whether the step happens; null where it is 1 and always.
struct Acceptance {
  ir::Value gradScale, apply;
};

Acceptance acceptance(ir::Function &function, ir::Builder &b, llvm::ArrayRef<Gradient> gradients,
                      const PassOptions &options, llvm::SmallVectorImpl<ir::ReturnEntry> &entries) {
  Acceptance result;
  bool scaled = scalesLoss(options);
  if (!scaled && !options.optimizer.clipNorm) return result;
  ir::Value norm = globalNorm(b, gradients);
  ir::Value inverse;
  if (scaled) {
    result.apply = adaptLossScale(function, b, norm, options, entries);
    inverse = b.op("div", {b.constant(1), lossScale(function, options)});
    norm = b.op("mul", {norm, inverse});
  }
  if (options.optimizer.clipNorm) result.gradScale = clipScale(b, norm, *options.optimizer.clipNorm);
  if (scaled) result.gradScale = result.gradScale ? b.op("mul", {result.gradScale, inverse}) : inverse;
  return result;
}

void update(ir::Function &function, ir::Builder &b, llvm::ArrayRef<Gradient> gradients, const PassOptions &options,
            llvm::Regex *noDecay, llvm::SmallVectorImpl<ir::ReturnEntry> &entries) {
  const AdamW &settings = options.optimizer;
  auto returns = [&](llvm::StringRef target, ir::Value value) {
    entries.push_back({ir::ReturnKind::update, target.str(), value});
  };
  ir::Value lr =
      stateOf(function, "optimizer.lr", {ir::DType::f32, {}}, {ir::Initializer::Kind::constant, settings.lr});
  ir::Value oldStep = stateOf(function, "adamw.step", {ir::DType::i32, {}});
  ir::Value step = b.op("add", {oldStep, b.constant(1, ir::DType::i32)});
  Acceptance accepted = acceptance(function, b, gradients, options, entries);
  if (accepted.apply) step = b.op("select", {accepted.apply, step, oldStep});
  returns("adamw.step", named(step, "new.adamw.step"));
  for (const Gradient &g : gradients) {
    std::string m = "adamw.m." + g.name, v = "adamw.v." + g.name;
    ir::TensorType moment{ir::DType::f32, g.value.type().shape};
    bool decays = !noDecay || !noDecay->match(g.name);
    ir::Op *adamw = b.make("adamw",
                           {function.read(g.name), g.value, stateOf(function, m, moment), stateOf(function, v, moment),
                            step, lr, accepted.gradScale, accepted.apply},
                           {{"beta1", settings.beta1},
                            {"beta2", settings.beta2},
                            {"eps", settings.eps},
                            {"weight_decay", decays ? settings.weightDecay : 0.0}});
    const std::string targets[] = {g.name, m, v};
    for (unsigned i = 0; i < 3; ++i) returns(targets[i], named(adamw->result(i), "new." + targets[i]));
  }
}

// The function that only adds to the accumulators.
void addAccumulateFunction(ir::Module &module, const ir::Function &step, int64_t parts) {
  ir::Function &function = module.addFunction("accumulate");
  ir::ValueMap map;
  ir::cloneInto(function, step, map);
  auto entries = function.returns();
  auto gradients = takeGradients(entries);
  ir::Builder b(function.block());
  accumulate(function, b, gradients, parts);
  for (const Gradient &g : gradients) entries.push_back({ir::ReturnKind::update, "accum." + g.name, g.value});
  function.setReturns(entries, function.block().terminator()->location());
}

llvm::Error wrong(const llvm::Twine &message, llvm::StringRef hint = "") {
  return llvm::make_error<PassError>(ir::Location(), message.str(), hint.str());
}

} // namespace

llvm::Expected<bool> optimizer(ir::Module &module, PassContext &context) {
  const PassOptions &options = context.options();
  ir::Function *function = module.function("train_step");
  if (!function) return wrong("there is no function @train_step to optimise", "run the gradient pass before");
  if (options.accumulate < 1) return wrong(llvm::formatv("accumulate must be at least 1, is {0}", options.accumulate));
  std::optional<llvm::Regex> noDecay;
  if (!options.optimizer.noDecay.empty()) {
    noDecay.emplace(options.optimizer.noDecay);
    std::string problem;
    if (!noDecay->isValid(problem))
      return wrong(llvm::formatv("'{0}' is no regular expression: {1}", options.optimizer.noDecay, problem));
  }
  auto entries = function->returns();
  if (llvm::none_of(entries, [](const ir::ReturnEntry &e) { return e.kind == ir::ReturnKind::gradient; })) return false;

  bool accumulates = options.accumulate > 1;
  if (accumulates) addAccumulateFunction(module, *function, options.accumulate);
  auto gradients = takeGradients(entries);
  ir::Builder b(function->block());
  b.setLocation(function->block().terminator()->location());
  if (accumulates) accumulate(*function, b, gradients, options.accumulate);
  update(*function, b, gradients, options, noDecay ? &*noDecay : nullptr, entries);
  for (const Gradient &g : gradients)
    if (accumulates)
      entries.push_back({ir::ReturnKind::update, "accum." + g.name,
                         b.op("broadcast", {b.constant(0)}, {{"shape", g.value.type().shape}})});
  function->setReturns(entries, function->block().terminator()->location());
  return true;
}

} // namespace fusor::passes
