// From "auto", "cpu", "cuda:1" to a device that is there.
#pragma once
#include "ir/types/target.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::frontend {

struct ChosenDevice {
  ir::Target target;
  int ordinal = 0;  // of a GPU
  std::string name; // "cpu", "cuda:0"
  std::string note; // why it is not the one a user may have expected; empty mostly
};

/// Errors: usage for a text that names no device; DeviceError (exit 69) for one that is not there, with what was
/// searched.
/// `limit`: the best kernels to use on a GPU; simt is what every GPU can.
llvm::Expected<ChosenDevice> chooseDevice(llvm::StringRef text, ir::ArchTier limit = ir::ArchTier::sm90a);

} // namespace fusor::frontend
