#include "codegen/emit/kernel_files.h"
#include "frontend/dump/program_files.h"
#include "ir/graph/printer.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace fusor::frontend {

using runtime::DescribedKernel, runtime::DescribedLaunch, runtime::DescribedStep, runtime::Description;

namespace {

// The first step that launches kernel `number`, and as which of its set.
std::pair<const DescribedStep *, unsigned> firstUse(const Description &description, unsigned number) {
  for (const DescribedStep &step : description.steps)
    for (unsigned i = 0; i < step.kernels.size(); ++i)
      if (step.kernels[i] == number) return {&step, i};
  return {nullptr, 0};
}

// What an input or output is in the first use: its value in the last module, and its type.
void addValue(llvm::json::Object &argument, const codegen::KernelArg &arg, const DescribedStep &step,
              const ir::ValueNames &names) {
  ir::Value value;
  if (arg.kind == codegen::KernelArg::Kind::input && arg.index < step.inputs.size()) value = step.inputs[arg.index];
  if (arg.kind == codegen::KernelArg::Kind::output) value = step.op->result(arg.index);
  if (!value) return;
  argument["value"] = names(value);
  argument["type"] = value.type().str();
}

} // namespace

llvm::json::Object kernelJson(const DumpedProgram &dumped, unsigned number) {
  const Description &description = dumped.description;
  const DescribedKernel &kernel = description.kernels[number];
  llvm::json::Object object = codegen::kernelJson(kernel.code);
  if (!kernel.edited.empty()) object["edited"] = true;
  auto [step, place] = firstUse(description, number);
  if (!step) return object;
  const codegen::KernelSet &set = step->set;
  object["kind"] = step->kind, object["ir"] = irOf(*step->op), object["locations"] = locationsOf(*step->op);
  const ir::ValueNames names(description.function->block());
  for (auto [argument, arg] : llvm::zip(*object.getArray("arguments"), set.kernels[place].args))
    addValue(*argument.getAsObject(), arg, *step, names);
  if (auto blocks = set.kernels[place].grid.evaluate(description.symbols)) object["grid_blocks"] = *blocks;
  if (kernel.registers) object["registers"] = *kernel.registers;
  if (kernel.spillBytes) object["spill_bytes"] = *kernel.spillBytes;
  if (kernel.staticSharedBytes) object["static_shared_bytes"] = *kernel.staticSharedBytes;
  if (step->kernels.size() > 1) {
    llvm::json::Array all;
    for (unsigned other : step->kernels) all.push_back(description.kernels[other].code.name);
    object["kernel_set"] = std::move(all);
    object["place_in_set"] = place;
  }
  // Of the whole set: its first kernel stands for it.
  if (place == 0)
    for (const auto &[name, dim] : {std::pair{"bytes_read", &set.bytesRead},
                                    {"bytes_written", &set.bytesWritten},
                                    {"bytes_saved", &set.bytesSaved},
                                    {"flops", &set.flops}})
      if (auto value = dim->evaluate(description.symbols)) object[name] = *value;

  llvm::json::Array uses;
  double ms = 0, percent = 0;
  unsigned timed = 0, rated = 0;
  llvm::ArrayRef<LaunchFacts> facts = dumped.facts;
  for (unsigned i = 0; i < description.launches.size(); ++i) {
    const DescribedLaunch &launch = description.launches[i];
    // On a CPU a step of several kernels is one entry: all of them are used there.
    bool isUsed = launch.kernel == number || (launch.kind == DescribedLaunch::Kind::host && launch.kernel &&
                                              llvm::is_contained(description.steps[launch.step].kernels, number));
    if (!isUsed) continue;
    uses.push_back(i);
    if (launch.kernel != number) continue;
    if (facts[i].ms) ms += *facts[i].ms, ++timed;
    if (auto share = facts[i].rooflinePercent()) percent += *share, ++rated;
  }
  object["uses"] = std::move(uses);
  if (timed > 0) object["ms"] = ms / timed;
  if (rated > 0) object["roofline_percent"] = percent / rated;
  return object;
}

} // namespace fusor::frontend
