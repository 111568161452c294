// What the files about a program are written from: its description, its times, and what a device could do.
#pragma once
#include "frontend/bench/roofline.h"
#include "passes/context.h"
#include "runtime/execute/program.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace fusor::frontend {

/// What the device did best just now, by the type that products are computed in.
struct MeasuredRoofline {
  double bytesPerMs = 0;                    // 0: not measured
  std::map<std::string, double> flopsPerMs; // "bf16", "f32"
};

/// What is known of a launch: bytes and flops of its step, by the first launch of several.
struct LaunchFacts {
  std::optional<double> ms, rooflinePercent;
  double bytes = 0, flops = 0;
};

struct DumpedProgram {
  const runtime::Description &description;
  llvm::ArrayRef<runtime::StepTime> times; // of each launch, in order; empty where none were measured
  llvm::ArrayRef<passes::Decision> decisions;
  MeasuredRoofline roofline;
  std::string precision; // of the run: "bf16", "fp8"
  bool isCpu = false;
  std::vector<LaunchFacts> facts = {}; // of each launch, see launchFacts
};

/// What the rest of `dumped` says of them, in the order of the launches.
std::vector<LaunchFacts> launchFacts(const DumpedProgram &dumped);

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
