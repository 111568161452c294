// A folder with an ONNX model and sets of inputs and reference outputs, as ../shared/onnx and examples have them.
#pragma once
#include "frontend/api/tensor_files.h"
#include "frontend/onnx/import.h"
#include "passes/options.h"
#include <map>

namespace fusor::tests {

/// ../shared/onnx/NAME; empty where it is not there.
std::string sharedOnnx(llvm::StringRef name);
/// The folders in `folder`, or those whose name begins with `prefix`, sorted.
std::vector<std::string> foldersIn(llvm::StringRef folder, llvm::StringRef prefix = "");

/// `model` (a folder with model.onnx) on the CPU, with the inputs of folder `set`; for the sizes of these alone where
/// it cannot be read with symbols.
llvm::Expected<std::vector<frontend::HostTensor>> runModelFolder(llvm::StringRef model, llvm::StringRef set,
                                                                 passes::PassOptions options = {});

/// How many ops of each kind simplify and lift leave of `model`.
std::map<std::string, unsigned> liftedOps(const ir::Module &model);

} // namespace fusor::tests
