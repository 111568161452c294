#include "codegen/emit/emit.h"
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/errors.h"
#include "frontend/api/fp8_calibration.h"
#include "frontend/api/module_state.h"
#include "frontend/builder/graph_state.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <functional>

namespace fusor {
namespace frontend {

struct StepState {
  std::vector<Tensor> results;
  Error error;
};

struct ProgramState {
  std::unique_ptr<runtime::Program> program;
  std::string device, recipe;
  std::string defaultFunction; // empty: there are several
  uint64_t seed = 0;
  int64_t steps = 0; // runs of the training step
  /// Measures FP8 scales on the inputs of the first run; empty: they are what they are.
  std::function<llvm::Error(llvm::ArrayRef<runtime::TensorView>)> calibrate;
  Error error; // the first one

  static Program handle(std::shared_ptr<ProgramState> state) {
    Program program;
    program.state_ = std::move(state);
    return program;
  }
  /// Notes the first error.
  Error fail(llvm::Error e) {
    Error made = toPublic(std::move(e));
    if (!error) error = made;
    return made;
  }
  llvm::Expected<std::vector<Tensor>> run(llvm::StringRef function, const std::vector<Named> &inputs);
};

namespace {

runtime::TensorView view(const Tensor &t) {
  return {toIr(t.dtype()), llvm::SmallVector<int64_t, 4>(t.shape().begin(), t.shape().end()), t.data()};
}

} // namespace

llvm::Expected<std::vector<Tensor>> ProgramState::run(llvm::StringRef name, const std::vector<Named> &inputs) {
  const ir::Function *function = program->module().function(name);
  if (!function) return inputError("the program has no function @{0}", name);
  std::vector<runtime::TensorView> views;
  auto arguments = function->block().arguments();
  for (ir::Value argument : arguments) {
    auto given = llvm::find_if(inputs, [&](const Named &n) { return n.first == argument.name(); });
    if (given == inputs.end())
      return inputError("@{0}: input '{1}' ({2}) is missing", name, argument.name(), argument.type().str());
    views.push_back(view(given->second));
  }
  for (const Named &n : inputs)
    if (llvm::none_of(arguments, [&](ir::Value a) { return a.name() == n.first; }))
      return inputError("@{0} has no input '{1}'; it has {2}", name, n.first,
                        llvm::join(llvm::map_range(arguments, [](ir::Value a) { return a.name().str(); }), ", "));
  auto symbols = program->bindSymbols(name, views);
  if (!symbols) return symbols.takeError();
  auto types = program->resultTypes(name, *symbols);
  if (!types) return types.takeError();
  std::vector<Tensor> results;
  std::vector<runtime::TensorView> outputs;
  for (const runtime::TensorView &type : *types) {
    results.emplace_back(fromIr(type.dtype), std::vector<int64_t>(type.shape.begin(), type.shape.end()));
    outputs.push_back(view(results.back()));
  }
  if (calibrate && name == "train_step") {
    if (auto error = calibrate(views)) return error;
    calibrate = nullptr;
  }
  if (auto error = program->run(name, views, outputs)) return error;
  return results;
}

} // namespace frontend

using frontend::ProgramState;

double Step::loss() const {
  if (!state_ || state_->results.empty() || state_->results[0].elements() < 1) return std::nan("");
  return state_->results[0].at(0);
}
Tensor Step::result(size_t i) const { return state_ && i < state_->results.size() ? state_->results[i] : Tensor(); }
Error Step::error() const { return state_ ? state_->error : Error(); }

Step Program::run(const std::vector<Named> &inputs) { return run(state_->defaultFunction, inputs); }

Step Program::run(const std::string &function, const std::vector<Named> &inputs) {
  auto made = std::make_shared<frontend::StepState>();
  Step step;
  step.state_ = made;
  if (state_->error) {
    made->error = state_->error;
    return step;
  }
  if (function.empty()) {
    made->error = state_->fail(frontend::inputError("the program has several functions: run(\"NAME\", inputs)"));
    return step;
  }
  auto results = state_->run(function, inputs);
  if (!results) {
    made->error = state_->fail(results.takeError());
    return step;
  }
  made->results = std::move(*results);
  step.index = ++state_->steps;
  return step;
}

Error Program::save(const std::string &folder) {
  if (state_->error) return state_->error;
  return frontend::toPublic(
      frontend::saveCheckpoint(*state_->program, folder,
                               llvm::json::Object{{"config", nullptr},
                                                  {"recipe", llvm::json::Object{{"precision", state_->recipe}}},
                                                  {"step", state_->steps},
                                                  {"seed", static_cast<int64_t>(state_->seed)}}));
}

Error Program::load(const std::string &folder) {
  if (state_->error) return state_->error;
  auto info = frontend::readCheckpointInfo(folder);
  if (!info) return frontend::toPublic(info.takeError());
  std::vector<std::string> missing;
  if (auto error = frontend::loadCheckpoint(*state_->program, folder, {}, &missing))
    return frontend::toPublic(std::move(error));
  if (llvm::none_of(missing, frontend::isFp8State)) state_->calibrate = nullptr;
  state_->steps = info->getInteger("step").getValueOr(0);
  return {};
}

Result<Tensor> Program::get(const std::string &name) {
  auto type = state_->program->persistentType(name);
  if (!type) return frontend::toPublic(type.takeError());
  Tensor tensor(frontend::fromIr(type->dtype), std::vector<int64_t>(type->shape.begin(), type->shape.end()));
  auto error = state_->program->readPersistent(name, {tensor.as<char>(), static_cast<size_t>(tensor.bytes())});
  if (error) return frontend::toPublic(std::move(error));
  return tensor;
}

Error Program::set(const std::string &name, const Tensor &value) {
  auto type = state_->program->persistentType(name);
  if (!type) return frontend::toPublic(type.takeError());
  if (type->typeText() != frontend::view(value).typeText())
    return {ErrorKind::input, llvm::formatv("'{0}' is {1}, the new content is {2}", name, type->typeText(),
                                            frontend::view(value).typeText())};
  return frontend::toPublic(
      state_->program->writePersistent(name, {value.as<char>(), static_cast<size_t>(value.bytes())}));
}

Error Program::setLearningRate(double lr) {
  Tensor value(f32, {});
  *value.as<float>() = static_cast<float>(lr);
  return set("optimizer.lr", value);
}

std::vector<Kernel> Program::kernels() const {
  std::vector<Kernel> kernels;
  llvm::StringMap<std::string> sources; // of the kernels that codegen made, by name
  const ir::Target &target = state_->program->target();
  if (target.kind == ir::DeviceKind::cuda) {
    auto made = codegen::kernelsOf(state_->program->module(), target);
    for (codegen::DistinctKernel &k : made.kernels) sources[k.kernel.name] = std::move(k.kernel.source);
  }
  for (const runtime::KernelInfo &k : state_->program->kernels())
    kernels.push_back({k.function, k.name, k.kind, k.ops, sources.lookup(k.name)});
  return kernels;
}

std::vector<std::string> Program::fallbacks() const {
  std::vector<std::string> texts;
  for (const runtime::Fallback &f : state_->program->fallbacks()) texts.push_back(f.where + ": " + f.reason);
  return texts;
}

std::string Program::str() const { return state_->program->module().str(); }
std::string Program::device() const { return state_->device; }
int64_t Program::peakBytes() const { return state_->program->peakBytes(); }

Result<Program> compile(const Module &module, const Device &device, const CompileOptions &options) {
  if (Error error = module.error()) return error;
  const frontend::ModuleState &source = frontend::ModuleState::of(module);
  auto chosen = frontend::chooseDevice(device.name());
  if (!chosen) return frontend::toPublic(chosen.takeError());
  frontend::CompileRequest request(frontend::DeviceSettings{
      .threads = options.threads, .strict = options.strict, .cacheDir = options.cacheDir, .dumpDir = options.dumpDir});
  request.pipeline = source.pipeline;
  request.passes = source.options;
  if (source.options.fp8 && source.options.fp8->select == "auto")
    return Error(ErrorKind::input, "select = \"auto\" is the command line's: it measures at one batch size");
  auto compiled = frontend::compileModule(source.module->clone(), *chosen, request);
  if (!compiled) return frontend::toPublic(compiled.takeError());
  auto state = std::make_shared<ProgramState>();
  state->program = std::move(compiled->program);
  state->device = chosen->name;
  state->recipe = source.options.fp8 ? "fp8" : ir::name(source.options.precision).str();
  state->seed = options.seed;
  const ir::Module &lowered = state->program->module();
  if (source.pipeline == passes::PipelineKind::train)
    state->defaultFunction = "train_step";
  else if (lowered.functions().size() == 1)
    state->defaultFunction = lowered.functions()[0]->name().str();
  else if (lowered.function("forward"))
    state->defaultFunction = "forward";
  if (source.options.fp8 && source.options.fp8->calibrate)
    state->calibrate = [program = state->program.get(), held = module, chosen = *chosen, request,
                        function = state->defaultFunction](llvm::ArrayRef<runtime::TensorView> inputs) {
      return frontend::calibrateFp8(*program, frontend::ModuleState::of(held).module->clone(), chosen, request,
                                    function, inputs);
    };
  if (auto error = state->program->initialize(options.seed)) return frontend::toPublic(std::move(error));
  return ProgramState::handle(std::move(state));
}

} // namespace fusor
