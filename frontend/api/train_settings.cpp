// What a checkpoint.json records of a run, and back.
#include "frontend/api/config_file.h"
#include "frontend/api/errors.h"
#include "frontend/api/trainer.h"

namespace fusor::frontend {

llvm::json::Object checkpointInfo(const TrainSettings &s, int64_t step) {
  return llvm::json::Object{
      {"config", toJson(s.config)},
      {"recipe",
       llvm::json::Object{{"precision", precisionName(s)},
                          {"fp8", s.fp8 ? llvm::json::Value(toJson(*s.fp8)) : llvm::json::Value(nullptr)},
                          {"batch", s.batch},
                          {"accumulate", s.accumulate},
                          {"lr", s.lr},
                          {"schedule", s.schedule == Schedule::cosine ? "cosine" : "constant"},
                          {"warmup", s.warmup},
                          {"weight_decay", s.weightDecay},
                          {"no_decay", s.noDecay},
                          {"clip_norm", s.clipNorm ? llvm::json::Value(*s.clipNorm) : llvm::json::Value(nullptr)},
                          {"data", s.data},
                          {"eval", s.heldPercent}}},
      {"step", step},
      {"seed", static_cast<int64_t>(s.seed)}};
}

std::string precisionName(const TrainSettings &s) { return s.fp8 ? "fp8" : ir::name(s.precision).str(); }

llvm::Error fromCheckpointInfo(TrainSettings &s, const llvm::json::Object &info) {
  const llvm::json::Object *config = info.getObject("config"), *recipe = info.getObject("recipe");
  auto seed = info.getInteger("seed");
  if (!config || !recipe || !seed)
    return inputError("checkpoint.json: needs \"config\", \"recipe\" and \"seed\"; was it written by `fusor train`?");
  auto loaded = configFromJson(*config, "checkpoint.json, \"config\"");
  if (!loaded) return loaded.takeError();
  s.config = *loaded;
  s.seed = static_cast<uint64_t>(*seed);
  llvm::StringRef named = recipe->getString("precision").getValueOr("");
  if (const llvm::json::Object *fp8 = recipe->getObject("fp8")) s.fp8 = fp8FromJson(*fp8);
  auto precision = named == "fp8" ? ir::DType::bf16 : ir::parseDType(named);
  if (!precision) return inputError("checkpoint.json: \"recipe\" has no known \"precision\"");
  s.precision = *precision;
  auto integer = [&](const char *key, int64_t &to) {
    if (auto value = recipe->getInteger(key)) to = *value;
  };
  auto number = [&](const char *key, double &to) {
    if (auto value = recipe->getNumber(key)) to = *value;
  };
  auto text = [&](const char *key, std::string &to) {
    if (auto value = recipe->getString(key)) to = value->str();
  };
  integer("batch", s.batch), integer("accumulate", s.accumulate), integer("warmup", s.warmup);
  number("lr", s.lr), number("weight_decay", s.weightDecay), number("eval", s.heldPercent);
  text("no_decay", s.noDecay), text("data", s.data);
  if (auto value = recipe->getNumber("clip_norm")) s.clipNorm = *value;
  s.schedule = recipe->getString("schedule").getValueOr("") == "cosine" ? Schedule::cosine : Schedule::constant;
  if (s.batch < 1 || s.accumulate < 1)
    return inputError("checkpoint.json: \"batch\" and \"accumulate\" must be positive");
  return llvm::Error::success();
}

} // namespace fusor::frontend
