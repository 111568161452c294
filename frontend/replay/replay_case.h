// A kernel folder of a dump, read back: what a step launched, on what, and what came out.
#pragma once
#include "codegen/emit/kernel.h"
#include "frontend/api/tensor_files.h"
#include "ir/graph/graph.h"
#include <map>

namespace fusor::frontend {

/// The text of a kernel: as it is now, and as fusor wrote it.
struct KernelText {
  std::string now, original;
  bool isEdited() const { return now != original; }
};

/// One launch of the step, all sizes known.
struct ReplayedLaunch {
  std::string kernel;
  unsigned grid = 0, block = 0, sharedBytes = 0;
  std::vector<codegen::KernelArg> arguments;
};

/// The arrays of codegen/device/multi_tensor.cuh but for the addresses.
struct ReplayedTable {
  std::vector<codegen::TensorTable::Pointer> pointers; // [column][tensor]
  std::vector<int64_t> sizes;                          // of the tensors, then perhaps their columns
  std::vector<int64_t> chunks;
  size_t tensors = 0;
};

struct ReplayCase {
  std::string name;                        // of the kernel whose folder it is
  std::map<std::string, KernelText> texts; // of all kernels of the step: others are in the folders beside
  std::unique_ptr<ir::Module> module;      // the step's op as the only function, called `name`
  ir::SymbolValues symbols;
  std::vector<HostTensor> inputs, outputs; // as the run had them
  std::vector<int64_t> workspaces;         // bytes of each
  std::vector<char> product;               // what workspace 0 starts with; empty where it is a kernel's own
  std::optional<unsigned> productOutput;   // the output that is there before the kernels, where a library made one
  std::vector<ReplayedLaunch> launches;
  std::optional<ReplayedTable> table;

  const ir::Function &function() const { return *module->functions().front(); }
};

/// Reads DIR/kernels/NAME. Errors: the user's, with the file and what is missing in it; without inputs, how to have
/// them.
llvm::Expected<ReplayCase> readReplayCase(llvm::StringRef folder);

/// The text alone, for what needs no inputs. Errors as above.
llvm::Expected<KernelText> readKernelText(llvm::StringRef folder);

} // namespace fusor::frontend
