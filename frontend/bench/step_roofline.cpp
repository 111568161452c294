#include "frontend/bench/step_roofline.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {
namespace {

constexpr unsigned kRounds = 3;

// f(the dtype that products of `op` are computed in), for each op in it that has some.
void forEachProduct(const ir::Op &op, llvm::function_ref<void(ir::DType)> f) {
  if (op.body())
    for (const ir::Op &inner : op.body()->ops()) forEachProduct(inner, f);
  bool multiplies = op.def().lowering == ir::Lowering::contraction || op.def().lowering == ir::Lowering::attention;
  if (multiplies) f(op.operand(0u).dtype());
}

std::string nameOfProducts(ir::DType type) { return ir::isFp8(type) ? "fp8" : ir::name(type).str(); }

} // namespace

llvm::Expected<StepRoofline> measureStepRoofline(const runtime::Description &description,
                                                 const DeviceSettings &settings, const ChosenDevice &device) {
  llvm::SmallVector<ir::DType, 3> precisions;
  auto add = [&](ir::DType type) {
    if (type == ir::DType::f8e5m2) type = ir::DType::f8e4m3; // as fast
    bool isMeasurable = type == ir::DType::f32 || type == ir::DType::bf16 || type == ir::DType::f16 ||
                        (type == ir::DType::f8e4m3 && device.target.hasFp8Library()); // emulated, it has no best
    if (isMeasurable && !llvm::is_contained(precisions, type)) precisions.push_back(type);
  };
  for (const runtime::DescribedStep &step : description.steps) forEachProduct(*step.op, add);
  if (precisions.empty()) precisions.push_back(ir::DType::f32);
  StepRoofline measured;
  for (ir::DType precision : precisions) {
    auto roofline = bench::measureRoofline(precision, settings, device, kRounds);
    if (!roofline) return roofline.takeError();
    measured.bytesPerMs = std::max(measured.bytesPerMs, roofline->bytesPerMs);
    measured.flopsPerMs[nameOfProducts(precision)] = roofline->flopsPerMs;
  }
  return measured;
}

std::vector<LaunchFacts> launchFacts(const runtime::Description &description, llvm::ArrayRef<runtime::StepTime> times,
                                     const StepRoofline &roofline) {
  std::vector<LaunchFacts> facts(description.launches.size());
  bool areTimed = times.size() == facts.size();
  llvm::DenseSet<unsigned> seen;
  for (unsigned i = 0; i < facts.size(); ++i) {
    const runtime::DescribedLaunch &launch = description.launches[i];
    LaunchFacts &fact = facts[i];
    if (areTimed) fact.ms = times[i].ms;
    std::string type;
    if (launch.step == runtime::DescribedLaunch::kBehindAllSteps) {
      fact.bytes = 2 * static_cast<double>(launch.bytes);
    } else if (seen.insert(launch.step).second) {
      const runtime::DescribedStep &step = description.steps[launch.step];
      fact.bytes = static_cast<double>(step.bytes), fact.flops = step.flops;
      forEachProduct(*step.op, [&](ir::DType t) { type = type.empty() ? nameOfProducts(t) : type; });
    }
    auto peak = roofline.flopsPerMs.find(type);
    if (!fact.ms || *fact.ms <= 0 || roofline.bytesPerMs <= 0 || fact.bytes <= 0) continue;
    if (fact.flops > 0 && peak == roofline.flopsPerMs.end()) continue; // that precision was not measured
    fact.leastMs = fact.bytes / roofline.bytesPerMs;
    if (fact.flops > 0) fact.leastMs = std::max(*fact.leastMs, fact.flops / peak->second);
  }
  return facts;
}

} // namespace fusor::frontend
