// What the files about a program are written from: its description, its times, and what a device could do.
#pragma once
#include "frontend/bench/step_roofline.h"
#include "passes/context.h"
#include "runtime/execute/program.h"
#include "llvm/Support/JSON.h"

namespace fusor::frontend {

struct DumpedProgram {
  const runtime::Description &description;
  llvm::ArrayRef<passes::Decision> decisions;
  std::string precision; // of the run: "bf16", "fp8"
  bool isCpu = false;
  std::vector<LaunchFacts> facts; // of each launch, in order
};

/// Of each step the layer it belongs to: "blocks.0" where it writes %blocks.0.qkv; empty for what is in no numbered
/// layer. Where no written value says so, what the step computes inside, then what it reads, decides; of several layers
/// the one of more than half. Values without a name, as in ONNX models, are in the layer of their neighbours.
std::vector<std::string> layersOf(const runtime::Description &description);
/// "model.fir:4:8" of the op and of those in its body, each once, in order.
llvm::json::Array locationsOf(const ir::Op &op);
/// What the op computes, one small op a line.
std::string irOf(const ir::Op &op);

/// Indented, with a line end.
std::string jsonText(llvm::json::Value value);

} // namespace fusor::frontend
