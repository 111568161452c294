// A dump folder of two ops, written by hand to docs/dump.md: one linear and a gelu that became one kernel.
#pragma once
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/FileSystem.h"

namespace fusor::tests {

class SmallDump {
public:
  SmallDump() {
    for (const char *name : {"modules", "kernels", "kernels/linear_gelu__f32"})
      if (llvm::sys::fs::create_directory(folder.path(name)))
        llvm::report_fatal_error("no folder in the test's folder");
    folder.write("dump.json",
                 R"({"format": 1, "verb": "run", "function": "forward", "config": "two.fir", "precision": "f32",
      "device": "NVIDIA H200", "arch": "sm_90a", "tier": "sm80", "symbols": {"B": 16}, "peak_bytes": 4096,
      "step_ms": 0.5, "roofline": {"bytes_per_ms": 4e9, "flops_per_ms": {"f32": 6e10}, "source": "measured copy"}})");
    folder.write("modules/index.json", R"([
      {"index": 0, "pass": "simplify", "why": "first", "changed": false, "ms": 0.1},
      {"index": 1, "pass": "fusion", "why": "to kernels", "changed": true, "file": "02_fusion.fir", "ms": 1.5, "ops": 1,
       "added": 4, "removed": 2}])");
    folder.write("modules/00_input.fir", R"(module @two
dim B in 1..64
param @blocks.0.fc.weight : f32[8, 4]
func @forward(%x: f32[B, 4]) -> f32[B, 8] {
  %blocks.0.fc = linear %x, @blocks.0.fc.weight : f32[B, 8]
  %y = gelu %blocks.0.fc : f32[B, 8]
  return %y
}
)");
    folder.write("modules/02_fusion.fir", R"(module @two
dim B in 1..64
param @blocks.0.fc.weight : f32[8, 4]
func @forward(%x: f32[B, 4]) -> f32[B, 8] {
  %y = fusion @linear_gelu(%x, %weight = @blocks.0.fc.weight) {kind = contraction} : f32[B, 8] {
    %blocks.0.fc = linear %x, %weight : f32[B, 8]
    %y = gelu %blocks.0.fc : f32[B, 8]
    yield %y
  }
  return %y
}
)");
    folder.write("kernels/linear_gelu__f32/kernel.cu",
                 "// the library\n\nint shared;\n// ---- linear_gelu__f32 ----\nextern \"C\" __global__ void k() {}\n");
    folder.write("kernels/linear_gelu__f32/kernel.json", R"json({"name": "linear_gelu__f32", "kind": "contraction",
      "ir": "%y = gelu %h\n", "locations": ["two.cpp:7"], "grid": "ceil(B / 8)", "grid_blocks": 2, "block": 128,
      "registers": 40, "spill_bytes": 0, "uses": [0], "bytes_read": 640, "bytes_written": 512, "bytes_saved": 1024,
      "arguments": [{"name": "x", "kind": "input", "index": 0, "value": "%x", "type": "f32[B, 4]"}]})json");
    folder.write("steps.json", R"([{"index": 0, "kernel": "linear_gelu__f32", "kind": "contraction",
      "name": "linear_gelu__f32", "fusion": "linear_gelu", "ir": "%h = linear %x\n%y = gelu %h", "reads": ["%x"],
      "writes": ["%y"], "layer": "blocks.0", "bytes": 1152, "flops": 1024, "ms": 0.25, "gemm": 0}])");
    folder.write("gemms.json", R"([{"index": 0, "op": "linear", "result": "%h", "role": "forward", "operands":
      ["f32[B, 4]", "f32[8, 4]"], "type": "f32[B, 8]", "m": 16, "n": 8, "k": 4, "compute": "f32", "fp8": false,
      "why_not_fp8": "computes in f32", "algorithm": "own: gemm_simt", "ms": 0.25}])");
    folder.write("fusions.json", R"([
      {"kind": "taken", "rule": "fusion", "function": "forward", "subject": "%blocks.0.fc = linear with %y = gelu",
       "values": ["blocks.0.fc", "y"], "location": "two.cpp:7", "reason": "one contraction kernel", "bytes_saved": 1024},
      {"kind": "near miss", "rule": "fold", "function": "evaluate", "subject": "%y = gelu", "values": ["y"], "reason": "elsewhere"}])");
    folder.write("plan.json", R"({"function": "forward", "peak_bytes": 4096, "live_bytes": [1024], "buffers": [
      {"values": [{"name": "y", "type": "f32[B, 8]"}], "place": "output", "offset": 0, "bytes": 512, "first": 0,
       "last": 1, "why": "a result"}]})");
    folder.write("trace.json", R"({"traceEvents": [{"ph": "X", "pid": 1, "name": "fusion", "ts": 0, "dur": 9},
      {"ph": "X", "pid": 2, "name": "linear_gelu__f32", "ts": 2000, "dur": 250}]})");
  }

  std::string path() const { return folder.path().substr(0, folder.path().size() - 1); } // no slash at the end
  TemporaryFolder folder;
};

} // namespace fusor::tests
