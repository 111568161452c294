#include "frontend/dump/program_files.h"
#include "ir/graph/printer.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {

using runtime::DescribedLaunch, runtime::DescribedStep, runtime::Description;

namespace {

// Ops of the function by number, as the memory plan counts.
llvm::DenseMap<const ir::Op *, int> opNumbers(const ir::Function &function) {
  llvm::DenseMap<const ir::Op *, int> numbers;
  for (const ir::Op &op : function.block().ops())
    if (!op.def().isTerminator) numbers.try_emplace(&op, static_cast<int>(numbers.size()));
  return numbers;
}

llvm::json::Array namesOf(llvm::ArrayRef<ir::Value> values, const ir::ValueNames &names) {
  llvm::json::Array array;
  for (ir::Value value : values)
    if (value) array.push_back(names(value));
  return array;
}

unsigned countGemms(const ir::Op &op) {
  unsigned count = op.def().lowering == ir::Lowering::contraction;
  if (op.body())
    for (const ir::Op &inner : op.body()->ops()) count += countGemms(inner);
  return count;
}

} // namespace

llvm::json::Array stepsJson(const DumpedProgram &dumped) {
  const Description &description = dumped.description;
  const ir::ValueNames names(description.function->block());
  auto numbers = opNumbers(*description.function);
  llvm::ArrayRef<LaunchFacts> facts = dumped.facts;
  auto layers = layersOf(description);
  std::vector<std::optional<int64_t>> firstGemm(description.steps.size()); // of each step, in gemms.json
  int64_t gemms = 0;
  for (auto [step, first] : llvm::zip(description.steps, firstGemm)) {
    unsigned count = countGemms(*step.op);
    if (count > 0) first = gemms;
    gemms += count;
  }
  llvm::json::Array array;
  for (unsigned i = 0; i < description.launches.size(); ++i) {
    const DescribedLaunch &launch = description.launches[i];
    llvm::json::Object entry{{"index", i}, {"name", launch.name}};
    if (launch.kernel) entry["kernel"] = description.kernels[*launch.kernel].code.name;
    if (facts[i].ms) entry["ms"] = *facts[i].ms;
    if (facts[i].bytes > 0) entry["bytes"] = static_cast<int64_t>(facts[i].bytes);
    if (facts[i].flops > 0) entry["flops"] = facts[i].flops;
    if (auto percent = facts[i].rooflinePercent()) entry["roofline_percent"] = *percent;
    if (launch.step == DescribedLaunch::kBehindAllSteps) {
      entry["kind"] = "copy", entry["layer"] = "";
      array.push_back(std::move(entry));
      continue;
    }
    const DescribedStep &step = description.steps[launch.step];
    entry["kind"] = launch.kind == DescribedLaunch::Kind::library ? "library" : step.kind;
    entry["step"] = launch.step, entry["op"] = numbers.lookup(step.op);
    entry["fusion"] = step.op->is("fusion") && step.op->site().has("name") ? step.op->attr<std::string>("name")
                                                                           : step.op->name().str();
    entry["ir"] = irOf(*step.op);
    entry["locations"] = locationsOf(*step.op);
    entry["reads"] = namesOf(step.op->operands(), names);
    entry["writes"] = namesOf(step.op->results(), names);
    entry["layer"] = layers[launch.step];
    if (step.kernels.size() > 1) {
      llvm::json::Array set;
      for (unsigned kernel : step.kernels) set.push_back(description.kernels[kernel].code.name);
      entry["kernel_set"] = std::move(set);
    }
    if (firstGemm[launch.step]) entry["gemm"] = *firstGemm[launch.step];
    if (!step.fallback.empty()) entry["fallback"] = step.fallback;
    array.push_back(std::move(entry));
  }
  return array;
}

} // namespace fusor::frontend
