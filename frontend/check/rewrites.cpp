#include "frontend/check/rewrites.h"
#include "ir/graph/literal.h"
#include "ir/graph/printer.h"
#include "ir/reference/initial_values.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace fusor::frontend {

namespace {

constexpr int64_t kMostElements = 4096; // of a value that are kept, evenly spread
// Relative to a tensor's largest value. The reference keeps f32 exact, so only another order of sums shows.
constexpr double kTolerance = 1e-6;

struct Sample {
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<double> elements;
  double allowed = 0;
  std::string op;
};

int64_t strideOf(int64_t elements) { return std::max<int64_t>(1, elements / kMostElements); }

Sample sampleOf(const ir::RefTensor &tensor, std::string op) {
  Sample sample{tensor.shape, {}, runtime::allowedDifference(tensor, kTolerance), std::move(op)};
  for (int64_t i = 0; i < tensor.elements(); i += strideOf(tensor.elements()))
    sample.elements.push_back(tensor.data[i]);
  return sample;
}

/// Named values of an evaluation, and its plain results as "result 0".
using Samples = llvm::StringMap<Sample>;

llvm::Expected<ir::RefState> initialState(const ir::Module &module, const ir::SymbolValues &symbols, uint64_t seed) {
  ir::RefState state;
  for (const auto &p : module.persistents()) {
    if (p->kind != ir::PersistentKind::param && p->kind != ir::PersistentKind::state) continue;
    auto tensor = ir::zeros(p->type, symbols);
    if (!tensor) return tensor.takeError();
    tensor->data = ir::initialValues(*p, seed, tensor->elements());
    state[p->name] = std::move(*tensor);
  }
  return state;
}

std::string resultName(size_t i) { return "result " + std::to_string(i); }

class Comparer {
public:
  explicit Comparer(const RewriteCheck &check) : check_(check) {}

  llvm::Error learn() {
    auto module = check_.load();
    if (!module) return module.takeError();
    std::string name = check_.function;
    if (check_.pipeline == passes::PipelineKind::train) {
      passes::PassOptions none = optionsWith(0);
      passes::PassContext context(none);
      if (auto error = passes::runPipeline(**module, check_.pipeline, context)) return error;
    }
    const ir::Function *function = (*module)->function(name);
    if (!function) return llvm::createStringError(llvm::inconvertibleErrorCode(), "there is no @" + name + " to check");
    auto state = initialState(**module, check_.symbols, check_.seed);
    if (!state) return state.takeError();
    auto see = [&](const ir::Op &op, llvm::ArrayRef<const ir::RefTensor *>, llvm::ArrayRef<ir::RefTensor> outputs) {
      for (unsigned i = 0; i < outputs.size(); ++i)
        if (!op.result(i).name().empty())
          before_.try_emplace(op.result(i).name(), sampleOf(outputs[i], ir::printOp(op)));
    };
    auto result = ir::evaluate(*function, check_.inputs, *state, check_.symbols, see);
    if (!result) return result.takeError();
    for (size_t i = 0; i < result->results.size(); ++i)
      before_[resultName(i)] = sampleOf(result->results[i], "@" + name);
    return llvm::Error::success();
  }

  /// With the first `fuel` rewrites, or all. `context` tells the rest.
  llvm::Expected<std::optional<ChangedValue>> compare(const passes::PassOptions &options,
                                                      passes::PassContext &context) const {
    auto module = check_.load();
    if (!module) return module.takeError();
    if (auto error = passes::runPipeline(**module, check_.pipeline, context)) return error;
    const ir::Function *function = (*module)->function(check_.function);
    if (!function) return llvm::createStringError(llvm::inconvertibleErrorCode(), "passes removed @" + check_.function);
    auto state = initialState(**module, check_.symbols, check_.seed);
    if (!state) return state.takeError();
    std::optional<ChangedValue> changed;
    auto see = [&](const ir::Op &op, llvm::ArrayRef<const ir::RefTensor *>, llvm::ArrayRef<ir::RefTensor> outputs) {
      for (unsigned i = 0; i < outputs.size() && !changed; ++i) {
        changed = differs(op.result(i).name(), outputs[i]);
        if (!changed) continue;
        changed->value = ("%" + op.result(i).name()).str();
        changed->after = ir::printOp(op), changed->location = op.location();
        for (const ir::Op &outer : function->block().ops())
          if (outer.body() && outer.body() == op.block())
            changed->kernel = "@" + std::get<std::string>(outer.attrValue("name"));
      }
    };
    auto result = ir::evaluate(*function, check_.inputs, *state, check_.symbols, see);
    if (!result) return result.takeError();
    for (size_t i = 0; i < result->results.size() && !changed; ++i)
      if ((changed = differs(resultName(i), result->results[i])))
        changed->value = resultName(i), changed->after = "@" + check_.function;
    return changed;
  }

  passes::PassOptions optionsWith(std::optional<int64_t> fuel) const {
    passes::PassOptions options = check_.options;
    options.precision = ir::DType::f32, options.lossScale.reset(), options.fp8.reset();
    options.printAfter.clear();
    options.fuel = fuel;
    return options;
  }

private:
  std::optional<ChangedValue> differs(llvm::StringRef name, const ir::RefTensor &after) const {
    auto it = name.empty() ? before_.end() : before_.find(name);
    if (it == before_.end() || llvm::makeArrayRef(it->second.shape) != llvm::makeArrayRef(after.shape))
      return std::nullopt;
    const Sample &before = it->second;
    for (size_t k = 0; k < before.elements.size(); ++k) {
      int64_t i = static_cast<int64_t>(k) * strideOf(after.elements());
      double want = before.elements[k], got = after.data[i];
      if (want == got || (std::isnan(want) && std::isnan(got)) || std::abs(want - got) <= before.allowed) continue;
      ChangedValue changed;
      changed.before = before.op, changed.element = i;
      changed.want = want, changed.got = got, changed.allowed = before.allowed;
      return changed;
    }
    return std::nullopt;
  }

  const RewriteCheck &check_;
  Samples before_;
};

} // namespace

ir::RefTensor referenceTensor(const runtime::TensorView &view) {
  ir::TensorType type{view.dtype, {}};
  for (int64_t size : view.shape) type.shape.push_back(ir::Dim(size));
  return runtime::readTensor(type, static_cast<const char *>(view.data), {});
}

std::string ChangedValue::text() const {
  std::string where = kernel.empty() ? "" : " in kernel " + kernel;
  return llvm::formatv("{0}{1} is {2} at element {3} after the passes; before them it is {4}, and {5} may differ\n"
                       "  before: {6}\n  after:  {7}{8}",
                       value, where, ir::realLiteral(got), element, ir::realLiteral(want), ir::realLiteral(allowed),
                       before, after, location.known() ? "   (" + location.str() + ")" : "")
      .str();
}

llvm::Expected<std::optional<ChangedValue>> firstChanged(const RewriteCheck &check) {
  Comparer comparer(check);
  if (auto error = comparer.learn()) return error;
  passes::PassOptions options = comparer.optionsWith(check.options.fuel);
  passes::PassContext context(options);
  return comparer.compare(options, context);
}

llvm::Expected<std::optional<GuiltyRewrite>> bisectRewrites(const RewriteCheck &check) {
  Comparer comparer(check);
  if (auto error = comparer.learn()) return error;
  passes::PassOptions all = comparer.optionsWith(check.options.fuel);
  passes::PassContext whole(all);
  auto change = comparer.compare(all, whole);
  if (!change) return change.takeError();
  if (!*change) return std::optional<GuiltyRewrite>();
  GuiltyRewrite guilty;
  guilty.total = whole.rewrites(), guilty.change = **change;
  int64_t good = 0, bad = guilty.total;
  while (bad - good > 1) {
    int64_t middle = good + (bad - good) / 2;
    passes::PassOptions some = comparer.optionsWith(middle);
    passes::PassContext context(some);
    auto differs = comparer.compare(some, context);
    if (!differs) return differs.takeError();
    (*differs ? bad : good) = middle;
  }
  passes::PassOptions last = comparer.optionsWith(bad);
  passes::PassContext context(last);
  auto differs = comparer.compare(last, context);
  if (!differs) return differs.takeError();
  guilty.number = bad;
  if (*differs) guilty.change = **differs;
  if (context.lastRewrite()) guilty.rewrite = *context.lastRewrite();
  return std::optional<GuiltyRewrite>(std::move(guilty));
}

llvm::Error checkRewrites(const RewriteCheck &check, bool bisects) {
  if (!bisects) {
    auto changed = firstChanged(check);
    if (!changed) return changed.takeError();
    if (!*changed) return llvm::Error::success();
    return llvm::make_error<runtime::CheckError>("passes changed a value: " + (*changed)->text() +
                                                 "\n  --bisect finds the rewrite that did it");
  }
  auto guilty = bisectRewrites(check);
  if (!guilty) return guilty.takeError();
  if (!*guilty) return llvm::Error::success();
  const GuiltyRewrite &g = **guilty;
  std::string at = g.rewrite.subject;
  if (!g.rewrite.function.empty()) at = "@" + g.rewrite.function + ": " + at;
  if (g.rewrite.location.known()) at += "   (" + g.rewrite.location.str() + ")";
  return llvm::make_error<runtime::CheckError>(
      llvm::formatv("rewrite {0} of {1} changed a value: rule '{2}'\n  of      {3}\n{4}\n  without it: --fuel {5}, or "
                    "--disable-rule {2}",
                    g.number, g.total, g.rewrite.rule, at, g.change.text(), g.number - 1)
          .str());
}

} // namespace fusor::frontend
