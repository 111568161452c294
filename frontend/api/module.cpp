#include "frontend/api/errors.h"
#include "frontend/api/module_state.h"
#include "frontend/builder/graph_state.h"
#include "frontend/text/parser.h"

namespace fusor {
using frontend::ModuleState;

std::string Recipe::name() const {
  static constexpr const char *names[] = {"f32", "bf16", "f16", "fp8"};
  return names[held_.index()];
}

namespace frontend {

Module ModuleState::handle(std::shared_ptr<const ModuleState> state) {
  Module module;
  module.state_ = std::move(state);
  return module;
}

Module ModuleState::failed(Error error) {
  auto state = std::make_shared<ModuleState>();
  state->error = std::move(error);
  return handle(std::move(state));
}

llvm::Expected<std::unique_ptr<ir::Module>> ModuleState::lowered(const ir::Target &target) const {
  auto copy = module->clone();
  passes::PassOptions own = options;
  own.target = target;
  passes::PassContext context(own);
  if (auto error = passes::runPipeline(*copy, pipeline, context)) return error;
  return copy;
}

} // namespace frontend

Result<Module> Module::parse(const std::string &text, const std::string &fileName) {
  auto parsed = frontend::parseModule(text, fileName);
  if (!parsed) return frontend::toPublic(parsed.takeError());
  auto state = std::make_shared<ModuleState>();
  state->module = std::move(*parsed);
  return ModuleState::handle(std::move(state));
}

Error Module::error() const { return state_ ? state_->error : Error(ErrorKind::input, "an empty Module"); }

std::string Module::str() const {
  if (!state_ || !state_->module) return "";
  if (state_->pipeline == passes::PipelineKind::infer) return state_->module->str();
  auto lowered = state_->lowered({});
  if (!lowered) return "// " + llvm::toString(lowered.takeError()) + "\n" + state_->module->str();
  return (*lowered)->str();
}

Module Builder::module() const {
  auto built = frontend::finish(*this);
  if (!built) return ModuleState::failed(frontend::toPublic(built.takeError()));
  auto state = std::make_shared<ModuleState>();
  state->module = std::move(*built);
  return ModuleState::handle(std::move(state));
}

Module Builder::trainingStep(Value loss, const AdamW &optimizer, const Recipe &recipe, Site site) {
  frontend::GraphState &graph = *graph_;
  if (!loss.empty() && (loss.rank() != 0 || !ir::isFloat(frontend::toIr(loss.dtype()))))
    graph.fail(site, "the loss must be a float scalar, is " + loss.type());
  // Building goes on after this call, so the loss is a result of this module alone.
  auto returnsBefore = graph.returns;
  graph.returns.clear();
  output(loss, "loss", site); // first: it is what the gradient starts from
  graph.returns.insert(graph.returns.end(), returnsBefore.begin(), returnsBefore.end());
  auto state = std::make_shared<ModuleState>();
  auto built = frontend::finish(*this);
  graph.returns = std::move(returnsBefore);
  if (!built) return ModuleState::failed(frontend::toPublic(built.takeError()));
  state->module = std::move(*built);
  state->pipeline = passes::PipelineKind::train;
  state->options.function = graph.function->name().str();
  if (const Fp8 *fp8 = recipe.fp8()) {
    const DelayedScaling &given = fp8->scaling;
    state->options.precision = ir::DType::bf16;
    state->options.fp8 = passes::DelayedScaling{
        .format = given.format == hybrid ? passes::Fp8Format::hybrid : passes::Fp8Format::e4m3,
        .amaxHistory = given.amaxHistory,
        .amaxAlgo = given.amaxAlgo == AmaxAlgo::max ? passes::AmaxAlgo::max : passes::AmaxAlgo::mostRecent,
        .margin = given.margin,
        .wgrad = given.fp8Wgrad,
        .skipNonFinite = given.skipNonFinite,
        .calibrate = given.calibrate,
        .select = given.select};
  } else {
    state->options.precision = *ir::parseDType(recipe.name());
  }
  passes::AdamW &adamw = state->options.optimizer;
  adamw.lr = optimizer.lr, adamw.beta1 = optimizer.beta1, adamw.beta2 = optimizer.beta2, adamw.eps = optimizer.eps;
  adamw.weightDecay = optimizer.weightDecay, adamw.noDecay = optimizer.noDecay;
  if (optimizer.clipNorm > 0) adamw.clipNorm = optimizer.clipNorm;
  return ModuleState::handle(std::move(state));
}

} // namespace fusor
