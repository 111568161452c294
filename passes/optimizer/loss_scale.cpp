#include "passes/optimizer/loss_scale.h"
#include "passes/optimizer/state.h"

namespace fusor::passes {
namespace {

constexpr double kInitialScale = 65536, kGrowth = 2, kBackoff = 0.5, kGrowthInterval = 2000;
constexpr const char *kScale = "optimizer.loss_scale", *kGoodSteps = "optimizer.good_steps";

ir::Value named(ir::Value value, const char *name) {
  value.setName(name);
  return value;
}

} // namespace

bool scalesLoss(const PassOptions &options) { return options.lossScale || options.precision == ir::DType::f16; }

ir::Value lossScale(ir::Function &function, const PassOptions &options) {
  return stateOf(function, kScale, {ir::DType::f32, {}},
                 {ir::Initializer::Kind::constant, options.lossScale.value_or(kInitialScale)});
}

ir::Value adaptLossScale(ir::Function &function, ir::Builder &b, ir::Value norm, const PassOptions &options,
                         llvm::SmallVectorImpl<ir::ReturnEntry> &entries) {
  ir::Value finite =
      named(b.op("not", {b.op("or", {b.op("isnan", {norm}), b.op("isinf", {norm})})}), "gradients_are_finite");
  ir::Value scale = lossScale(function, options), good = stateOf(function, kGoodSteps, {ir::DType::i32, {}});
  ir::Value count = b.op("add", {good, b.constant(1, ir::DType::i32)});
  ir::Value grows = b.op("ge", {count, b.constant(kGrowthInterval, ir::DType::i32)});
  ir::Value zero = b.constant(0, ir::DType::i32), one = b.constant(1);
  ir::Value grown = b.op("select", {grows, b.op("mul", {scale, b.constant(kGrowth)}), scale});
  ir::Value shrunk = b.op("max", {b.op("mul", {scale, b.constant(kBackoff)}), one});
  ir::Value counted = b.op("select", {grows, zero, count});
  entries.push_back(
      {ir::ReturnKind::update, kScale, named(b.op("select", {finite, grown, shrunk}), "new.optimizer.loss_scale")});
  entries.push_back(
      {ir::ReturnKind::update, kGoodSteps, named(b.op("select", {finite, counted, zero}), "new.optimizer.good_steps")});
  return finite;
}

} // namespace fusor::passes
