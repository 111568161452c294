#include "frontend/api/dump.h"
#include "frontend/api/compile_module.h"
#include "ir/ops/op_def.h"
#include "llvm/Support/JSON.h"

namespace fusor::frontend {
namespace {

llvm::StringRef roleOf(const ir::Op &op) {
  if (op.is("linear_input_grad")) return "input gradient";
  if (op.is("linear_weight_grad")) return "weight gradient";
  return "forward";
}

void addGemms(const ir::Block &block, const ir::SymbolValues &symbols, llvm::json::Array &gemms) {
  for (const ir::Op &op : block.ops()) {
    if (op.body()) addGemms(*op.body(), symbols, gemms);
    if (op.def().lowering != ir::Lowering::contraction) continue;
    llvm::json::Array operands;
    for (ir::Value v : op.operands())
      if (v) operands.push_back(v.type().str());
    gemms.push_back(llvm::json::Object{{"op", op.name()},
                                       {"result", op.result().name()},
                                       {"role", roleOf(op)},
                                       {"operands", std::move(operands)},
                                       {"type", op.result().type().str()},
                                       {"compute", ir::name(op.operand(0u).dtype())},
                                       {"fp8", ir::isFp8(op.operand(0u).dtype())}});
  }
}

std::string jsonText(llvm::json::Value value) { return llvm::formatv("{0:2}\n", value).str(); }

/// Steps one after the other: the CPU runs them in order.
llvm::json::Object traceOf(llvm::ArrayRef<runtime::StepTime> steps) {
  llvm::json::Array events;
  double startUs = 0;
  for (const runtime::StepTime &step : steps) {
    events.push_back(llvm::json::Object{{"name", step.name},
                                        {"cat", step.kind},
                                        {"ph", "X"},
                                        {"pid", 0},
                                        {"tid", 0},
                                        {"ts", startUs},
                                        {"dur", step.ms * 1000}});
    startUs += step.ms * 1000;
  }
  return llvm::json::Object{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

} // namespace

llvm::Error dumpProgram(runtime::Program &program, llvm::StringRef function, const ir::SymbolValues &symbols,
                        llvm::StringRef folder) {
  auto plan = program.plan(function, symbols);
  if (!plan) return plan.takeError();
  if (auto error = writeDump(folder, "plan.json", plan->json())) return error;
  llvm::json::Array gemms;
  addGemms(program.module().function(function)->block(), symbols, gemms);
  if (auto error = writeDump(folder, "gemms.json", jsonText(std::move(gemms)))) return error;
  auto steps = program.stepTimes();
  if (steps.empty()) return llvm::Error::success();
  return writeDump(folder, "trace.json", jsonText(traceOf(steps)));
}

} // namespace fusor::frontend
