// Inputs and outputs of a run as .npy files: input_<i>_<name>.npy, output_<i>_<name>.npy, where characters of the name
// outside A-Za-z0-9_.- are '_'. Types that NumPy lacks are raw bits: .bf16.npy (uint16), .e4m3fn.npy and .e5m2.npy
// (uint8).
#pragma once
#include "ir/graph/graph.h"
#include "runtime/execute/tensor_view.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace fusor::frontend {

/// A tensor with its bytes.
struct HostTensor {
  ir::DType dtype = ir::DType::f32;
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<char> bytes;
  runtime::TensorView view() { return {dtype, shape, bytes.data()}; }
  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / ir::byteSize(dtype); }
};

/// "input_0_x" of (input, 0, "x").
std::string tensorFileStem(llvm::StringRef kind, unsigned index, llvm::StringRef name);
/// The file STEM with one of the endings in `folder`; empty where there is none.
std::string findTensorFile(llvm::StringRef folder, llvm::StringRef stem);

/// The raw bits of a file as `wanted`, where the file's ending or type says so. The error names both types.
llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path, ir::DType wanted);
/// Writes FOLDER/STEM with the ending of its type.
llvm::Error writeTensorFile(llvm::StringRef folder, llvm::StringRef stem, const HostTensor &tensor);

/// How far `found` is from `expected`. An element agrees where both are NaN or |found - expected| <= atol + rtol
/// |expected|.
struct Comparison {
  bool agrees = true;
  int64_t mismatches = 0, first = -1; // element number of the first that does not agree
  double worst = 0;                   // largest |found - expected|
  double found = 0, expected = 0;     // at `first`
};
Comparison compare(const HostTensor &found, const HostTensor &expected, double atol, double rtol);

} // namespace fusor::frontend
