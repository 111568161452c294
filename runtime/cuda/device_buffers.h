// The memory that all buckets of a program share.
#pragma once
#include "runtime/cuda/driver.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::runtime {

struct DeviceBuffers {
  DeviceMemory arena, workspace, gemmWorkspace;
  DeviceMemory persistents;
  llvm::StringMap<int64_t> offsetOf; // of persistent values in `persistents`
  unsigned version = 1;              // rises when one of them moves
  DevicePointer persistent(llvm::StringRef name) const { return persistents.address() + offsetOf.find(name)->second; }
};

} // namespace fusor::runtime
