// Runs a module as IR text on the CPU and through the float64 reference, fused and unfused, with one and two threads.
#pragma once
#include "ir/graph/graph.h"
#include "ir/reference/initial_values.h"
#include "ir/reference/reference.h"
#include "runtime/execute/program.h"
#include "gtest/gtest.h"

namespace fusor::test {

struct CpuCase {
  std::string text; // a module; every function of it is run
  ir::SymbolValues symbols;
  double low = -2, high = 2; // of float inputs and persistent values
  int64_t integers = 8;      // integer inputs are in [0, integers)
  double tolerance = 2e-5;   // of f32 and f64 results, relative to the largest value; narrower types have their own
  bool mayFallBack = false;  // else a reference fallback fails the test
};

std::unique_ptr<ir::Module> parseOrFail(llvm::StringRef text);

/// A tensor in memory.
struct HostTensor {
  runtime::TensorView view;
  std::vector<char> bytes;
  HostTensor() = default;
  HostTensor(ir::DType dtype, llvm::ArrayRef<int64_t> shape);
  HostTensor(const HostTensor &other);
  HostTensor &operator=(const HostTensor &other);
  double at(int64_t i) const { return ir::loadElement(view.dtype, bytes.data(), i); }
  void set(int64_t i, double v) { ir::storeElement(view.dtype, bytes.data(), i, v); }
};

struct RunResult {
  std::vector<HostTensor> results;
  llvm::StringMap<std::vector<char>> persistents; // after the run
};

/// Compiles and runs `function` once.
RunResult runOnCpu(const ir::Module &module, llvm::StringRef function, const std::vector<HostTensor> &inputs,
                   const llvm::StringMap<std::vector<char>> &persistents, const ir::SymbolValues &symbols,
                   unsigned threads, bool mayFallBack);

/// Everything: unfused and fused, bits equal for 1 and 2 threads, values near the reference's.
void expectMatchesReference(const CpuCase &test);

} // namespace fusor::test
