#include "codegen/plan/anchors.h"
#include "frontend/dump/program_files.h"
#include "ir/ops/flops.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/products.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::frontend {

using runtime::DescribedLaunch, runtime::DescribedStep, runtime::Description;

namespace {

std::string computeName(const ir::Op &op) {
  ir::DType a = op.operand(0u).dtype(), b = op.operand(1).dtype();
  return a == b && !ir::isFp8(a) ? ir::name(a).str() : llvm::formatv("{0} x {1}", ir::name(a), ir::name(b)).str();
}

bool isAbout(const passes::Decision &d, const ir::Op &op) {
  return d.op == op.name() && llvm::is_contained(d.values, op.result().name());
}

std::string whyNotFp8(const DumpedProgram &dumped, const ir::Op &op) {
  if (dumped.precision != "fp8") return "the run's precision is " + dumped.precision + ", --precision fp8 asks for it";
  for (const passes::Decision &d : dumped.decisions) {
    if (d.kind != passes::Decision::Kind::refused || (d.rule != "gemm" && d.rule != "fp8") || !isAbout(d, op)) continue;
    llvm::StringRef reason = d.reason;
    if (d.rule == "gemm" && reason.contains(": ")) reason = reason.split(": ").second; // sizes and types stand first
    return reason.str();
  }
  if (!op.is("linear") && !op.is("linear_input_grad") && !op.is("linear_weight_grad"))
    return "FP8 is for linear layers, this is '" + op.name().str() + "'";
  return "its operands are not quantised";
}

std::string algorithmOf(const DumpedProgram &dumped, const DescribedStep &step) {
  if (!step.algorithm.empty()) return step.algorithm;
  if (!step.fallback.empty()) return "reference: " + step.fallback;
  if (dumped.isCpu) return "cpu: tiles in f32, widened from what they are stored in";
  for (unsigned kernel : step.kernels) return "own: " + dumped.description.kernels[kernel].code.name;
  return "none: a size is 0";
}

// m, n, k and batch of the one product of a cluster.
void addSizes(llvm::json::Object &entry, const DescribedStep &step, const ir::SymbolValues &symbols) {
  auto flat = codegen::flatten(*step.op);
  if (!flat) return llvm::consumeError(flat.takeError());
  auto plan = codegen::planContraction(*flat);
  if (!plan) return llvm::consumeError(plan.takeError());
  for (const auto &[name, dim] : {std::pair{"m", &plan->m}, {"n", &plan->n}, {"k", &plan->k}, {"batch", &plan->batch}})
    if (auto value = dim->evaluate(symbols)) entry[name] = *value;
}

// Its time: of the library's call, else of all launches of the step.
std::optional<double> timeOf(unsigned number, const Description &description, llvm::ArrayRef<LaunchFacts> facts) {
  std::optional<double> library, all;
  for (unsigned i = 0; i < facts.size(); ++i) {
    if (description.launches[i].step != number || !facts[i].ms) continue;
    if (description.launches[i].kind == DescribedLaunch::Kind::library) library = *facts[i].ms;
    all = all.value_or(0) + *facts[i].ms;
  }
  return library ? library : all;
}

void addGemms(const DumpedProgram &dumped, const ir::Op &op, unsigned number, llvm::ArrayRef<LaunchFacts> facts,
              llvm::ArrayRef<std::string> layers, llvm::json::Array &gemms) {
  if (op.body())
    for (const ir::Op &inner : op.body()->ops()) addGemms(dumped, inner, number, facts, layers, gemms);
  if (op.def().lowering != ir::Lowering::contraction) return;
  const DescribedStep &step = dumped.description.steps[number];
  llvm::json::Array operands;
  for (ir::Value v : op.operands())
    if (v) operands.push_back(v.type().str());
  bool isFp8 = ir::isFp8(op.operand(0u).dtype());
  llvm::StringRef result = op.result().name();
  if (result.empty()) result = step.op->result().name(); // of the whole fusion
  llvm::json::Object entry{{"index", gemms.size()},
                           {"op", op.name()},
                           {"result", result},
                           {"role", passes::roleOf(op)},
                           {"layer", layers[number]},
                           {"step", number},
                           {"operands", std::move(operands)},
                           {"type", op.result().type().str()},
                           {"compute", computeName(op)},
                           {"fp8", isFp8},
                           {"algorithm", algorithmOf(dumped, step)}};
  if (!isFp8) entry["why_not_fp8"] = whyNotFp8(dumped, op);
  if (!step.fallback.empty()) entry["fallback"] = step.fallback;
  addSizes(entry, step, dumped.description.symbols);
  double flops = ir::contractionFlops(op, dumped.description.symbols);
  if (flops > 0) entry["flops"] = flops;
  if (auto ms = timeOf(number, dumped.description, facts)) {
    entry["ms"] = *ms;
    constexpr double kTflopPerMs = 1e9;
    if (*ms > 0 && flops > 0) entry["tflops"] = flops / *ms / kTflopPerMs;
  }
  gemms.push_back(std::move(entry));
}

} // namespace

llvm::json::Array gemmsJson(const DumpedProgram &dumped) {
  llvm::json::Array gemms;
  llvm::ArrayRef<LaunchFacts> facts = dumped.facts;
  auto layers = layersOf(dumped.description);
  for (unsigned i = 0; i < dumped.description.steps.size(); ++i)
    addGemms(dumped, *dumped.description.steps[i].op, i, facts, layers, gemms);
  return gemms;
}

} // namespace fusor::frontend
