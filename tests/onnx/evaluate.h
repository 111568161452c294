// What a small model computes: on the float64 reference as it was imported, or compiled for the CPU.
#pragma once
#include "ir/reference/reference.h"
#include "tests/onnx/model_builder.h"

namespace fusor::tests {

using Numbers = std::vector<double>;

ir::RefTensor tensor(ir::DType dtype, std::vector<int64_t> shape, Numbers data);
/// Numbers that f32 holds, normal; whole ones in [0, limit) where `dtype` is an integer type.
ir::RefTensor randomTensor(ir::DType dtype, std::vector<int64_t> shape, uint64_t seed, int64_t limit = 1);

/// All results, on the reference. A test fails where the model is refused.
std::vector<ir::RefTensor> resultsOf(const ModelBuilder &model, llvm::ArrayRef<ir::RefTensor> inputs);
/// The first result as text, "1.000 2.000 ", or the error.
std::string evaluated(const ModelBuilder &model, llvm::ArrayRef<ir::RefTensor> inputs);
/// All results in f32 arithmetic of ours, with the rules that `disabled` names left out. One, empty, after a failure.
std::vector<Numbers> onCpu(const ir::Module &module, llvm::ArrayRef<ir::RefTensor> inputs,
                           llvm::ArrayRef<const char *> disabled);

} // namespace fusor::tests

#define EXPECT_PART(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)
