// Weights that a program keeps in FP8 alone (passes/fp8/weights.h): from floats, and how much smaller they are.
#pragma once
#include "passes/fp8/weights.h"
#include "runtime/execute/program.h"

namespace fusor::frontend {

/// E4M3 data, and what it is multiplied by.
struct Fp8Weight {
  std::vector<char> data;
  float inverse = 1; // 1 / scale; scale = 448 / the largest finite |x|
};
/// The scale is finite and not 0 whatever the elements are; where all are 0 it is 1.
Fp8Weight quantiseWeight(ir::DType dtype, const void *elements, int64_t count);

/// Writes `weight` as param `name` and its scale.
llvm::Error writeFp8Weight(runtime::Program &program, llvm::StringRef name, const Fp8Weight &weight);
/// After initialize(): weights in FP8 are those that f32 parameters would start with.
llvm::Error initializeFp8Weights(runtime::Program &program, uint64_t seed);

struct WeightBytes {
  int64_t fp8 = 0, bf16 = 0; // scales included; as many elements in bf16
};
/// Of all weights in FP8 together; zeros where there is none.
llvm::Expected<WeightBytes> fp8WeightBytes(runtime::Program &program);

} // namespace fusor::frontend
