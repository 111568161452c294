// The memory that all buckets of a program share.
#pragma once
#include "passes/memory/memory_plan.h"
#include "runtime/cuda/driver.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::runtime {

struct DeviceBuffers {
  DeviceMemory arena, workspace, gemmWorkspace;
  DeviceMemory persistents;
  llvm::StringMap<int64_t> offsetOf; // of persistent values in `persistents`
  unsigned version = 1;              // rises when one of them moves
  DevicePointer persistent(llvm::StringRef name) const { return persistents.address() + offsetOf.find(name)->second; }

  /// Makes arena and workspaces large enough for `plan`; those that move take all bindings with them. `libraryBytes`:
  /// of cuBLASLt's workspace. Errors: OutOfMemoryError with the plan; also where its peak is over `limitBytes`, 0 for
  /// none.
  llvm::Error reserve(const CudaContextRef &context, const CudaStream &stream, const passes::MemoryPlan &plan,
                      int64_t libraryBytes, int64_t limitBytes);
};

/// An OutOfMemoryError with the planned peak, who needs what of it and what would lower it; other errors as they are.
llvm::Error withPlan(llvm::Error error, const passes::MemoryPlan &plan);

} // namespace fusor::runtime
