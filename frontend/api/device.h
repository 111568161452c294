// From "auto", "cpu", "cuda:1" to a device that is there.
#pragma once
#include "ir/types/target.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::frontend {

/// Where and how a program runs; nothing of it changes what is computed but for the order of sums.
struct DeviceSettings {
  std::string device = "auto";             // auto, cpu, cuda, cuda:N
  ir::ArchTier tier = ir::ArchTier::sm90a; // the best kernels to use on a GPU
  unsigned threads = 0;                    // of the CPU; 0: all
  bool strict = false;                     // a fallback is an error
  bool check = false;                      // each kernel beside its body in float64
  bool deterministic = false;              // nothing is timed to choose
  bool ownGemm = false;                    // generated GEMMs instead of the library's
  std::string cacheDir = {}, dumpDir = {}; // empty: the default folder; nowhere
  std::string dumpInputs = {};             // a regular expression: kernels whose inputs a dump has; empty: none
};

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
