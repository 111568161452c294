// --fp8-select auto: which linear layers are faster in FP8 here, quantisation included.
//
// Layers of one shape are one measurement: their forward product, input gradient and weight gradient in bf16 and in FP8
// (as cuBLASLt runs them, or the kernel that takes its place), each on data of its own. To FP8's time comes what
// quantising moves, at the speed of a copy: kQuantiseBytes an element of input and gradient. Where the device only
// emulates FP8, nothing is measured: no layer is faster.
#pragma once
#include "frontend/api/device.h"
#include "ir/graph/graph.h"
#include "passes/options.h"

namespace fusor::frontend {

struct Fp8Selection {
  std::map<std::string, std::string> inBf16; // layers, and why
  std::vector<std::string> notes;            // what was measured and decided, a line a shape
};

/// For the linear layers that `options.fp8` with select = "all" would take in `module`, at these symbol values.
llvm::Expected<Fp8Selection> selectFp8(const ir::Module &module, const passes::PassOptions &options,
                                       const ir::SymbolValues &symbols, const DeviceSettings &settings,
                                       const ChosenDevice &device);

/// The linear layers of one shape: x [rows, k] times weight [n, k].
struct LinearShape {
  int64_t rows = 0, n = 0, k = 0;
  std::vector<std::string> layers;
};
/// Of one layer, in microseconds.
struct LinearTimes {
  double bf16 = 0, fp8 = 0; // its products
  double quantiseUs = 0;
};
/// The selection that follows from the times of each shape.
Fp8Selection selectionOf(llvm::ArrayRef<LinearShape> shapes, llvm::ArrayRef<LinearTimes> times);
/// Those shapes, in order of the layers.
llvm::Expected<std::vector<LinearShape>> linearShapes(const ir::Module &module, const passes::PassOptions &options,
                                                      const ir::SymbolValues &symbols);

} // namespace fusor::frontend
