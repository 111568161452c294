#include "frontend/api/fp8_state.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>

namespace fusor::frontend {
namespace {

constexpr const char *kScale = ".scale", *kHistory = ".amax_history";

std::vector<std::string> updatedTensors(const ir::Module &module) {
  std::vector<std::string> tensors;
  const ir::Function *step = module.function("train_step");
  if (!step) return tensors;
  for (const ir::ReturnEntry &entry : step->returns()) {
    llvm::StringRef name = entry.name;
    if (entry.kind != ir::ReturnKind::update || !name.consume_back(kScale)) continue;
    if (module.persistent((name + kHistory).str())) tensors.push_back(name.str());
  }
  return tensors;
}

llvm::Expected<std::vector<float>> readFloats(runtime::Program &program, const std::string &name) {
  auto type = program.persistentType(name);
  if (!type) return type.takeError();
  std::vector<float> values(type->elements());
  if (auto error = program.readPersistent(name, {reinterpret_cast<char *>(values.data()), values.size() * 4}))
    return error;
  return values;
}

llvm::json::Value number(float value) {
  return std::isfinite(value) ? llvm::json::Value(static_cast<double>(value)) : llvm::json::Value(nullptr);
}

} // namespace

llvm::json::Object toJson(const passes::DelayedScaling &r) {
  llvm::json::Object object{{"format", r.format == passes::Fp8Format::hybrid ? "hybrid" : "e4m3"},
                            {"amax_history", r.amaxHistory},
                            {"amax_algo", r.amaxAlgo == passes::AmaxAlgo::max ? "max" : "most_recent"},
                            {"margin", r.margin},
                            {"wgrad", r.wgrad},
                            {"skip_non_finite", r.skipNonFinite},
                            {"calibrate", r.calibrate},
                            {"select", r.select}};
  if (!r.inBf16) return object;
  llvm::json::Object layers;
  for (const auto &[layer, why] : *r.inBf16) layers[layer] = why;
  object["in_bf16"] = std::move(layers);
  return object;
}

passes::DelayedScaling fp8FromJson(const llvm::json::Object &object) {
  passes::DelayedScaling r;
  if (auto format = object.getString("format"))
    r.format = *format == "e4m3" ? passes::Fp8Format::e4m3 : passes::Fp8Format::hybrid;
  if (auto algo = object.getString("amax_algo"))
    r.amaxAlgo = *algo == "most_recent" ? passes::AmaxAlgo::mostRecent : passes::AmaxAlgo::max;
  if (auto length = object.getInteger("amax_history")) r.amaxHistory = *length;
  if (auto margin = object.getInteger("margin")) r.margin = *margin;
  if (auto wgrad = object.getBoolean("wgrad")) r.wgrad = *wgrad;
  if (auto skip = object.getBoolean("skip_non_finite")) r.skipNonFinite = *skip;
  if (auto calibrate = object.getBoolean("calibrate")) r.calibrate = *calibrate;
  if (auto select = object.getString("select")) r.select = select->str();
  if (const llvm::json::Object *layers = object.getObject("in_bf16")) {
    r.inBf16.emplace();
    for (const auto &entry : *layers) (*r.inBf16)[entry.first.str()] = entry.second.getAsString().getValueOr("").str();
  }
  return r;
}

llvm::Expected<std::vector<Fp8State>> readFp8State(runtime::Program &program, bool onlyFirstLayer) {
  std::vector<Fp8State> states;
  std::string layer;
  for (const std::string &tensor : updatedTensors(program.module())) {
    std::string own = llvm::StringRef(tensor).rsplit('.').first.str();
    if (layer.empty()) layer = own;
    if (onlyFirstLayer && own != layer) continue;
    auto scale = readFloats(program, tensor + kScale);
    if (!scale) return scale.takeError();
    auto history = readFloats(program, tensor + kHistory);
    if (!history) return history.takeError();
    states.push_back({tensor, scale->front(), std::move(*history)});
  }
  return states;
}

Fp8StatsReader::Fp8StatsReader(const runtime::Program &program) {
  for (std::string &tensor : updatedTensors(program.module())) stats_.push_back({std::move(tensor), 0, 0});
}

void Fp8StatsReader::addResults(llvm::SmallVectorImpl<runtime::TensorView> &results) {
  for (Fp8Stats &stats : stats_) {
    results.push_back({ir::DType::f32, {}, &stats.clipped});
    results.push_back({ir::DType::f32, {}, &stats.underflow});
  }
}

llvm::Expected<Fp8Trace> Fp8Trace::open(llvm::StringRef path, runtime::Program &program) {
  Fp8Trace trace(program);
  std::error_code code;
  trace.path_ = path.str();
  trace.out_ = std::make_unique<llvm::raw_fd_ostream>(path, code);
  if (code) return llvm::make_error<runtime::FileError>(runtime::FileError::Action::Write, path, code);
  trace.amaxes_.resize(updatedTensors(program.module()).size());
  return trace;
}

void Fp8Trace::addResults(llvm::SmallVectorImpl<runtime::TensorView> &results) {
  for (float &amax : amaxes_) results.push_back({ir::DType::f32, {}, &amax});
}

llvm::Error Fp8Trace::write(int64_t step, double loss) {
  auto states = readFp8State(*program_);
  if (!states) return states.takeError();
  llvm::json::Object object;
  for (size_t i = 0; i < states->size(); ++i) {
    const Fp8State &s = (*states)[i];
    llvm::json::Array history;
    for (float amax : s.history) history.push_back(number(amax));
    object[s.tensor] = llvm::json::Object{
        {"amax", number(amaxes_[i])}, {"scale", number(s.scale)}, {"amax_history", std::move(history)}};
  }
  llvm::json::Object line{{"step", step},
                          {"loss", std::isfinite(loss) ? llvm::json::Value(loss) : llvm::json::Value(nullptr)},
                          {"state", std::move(object)}};
  *out_ << llvm::json::Value(std::move(line)) << '\n';
  out_->flush();
  if (!out_->has_error()) return llvm::Error::success();
  std::error_code code = out_->error();
  out_->clear_error();
  return llvm::make_error<runtime::FileError>(runtime::FileError::Action::Write, path_, code);
}

} // namespace fusor::frontend
