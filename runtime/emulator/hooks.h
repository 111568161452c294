// What a compiled kernel and the scheduler say to each other. Included by both sides: the shim inside the .so, and
// scheduler.cpp in the test binary. Plain data and C function pointers only.
#pragma once

namespace fusor::emulator {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// What one CUDA thread knows about itself. The scheduler points the .so's `fusor_emulator_lane` at it before it
// resumes.
struct Lane {
  Dim3 threadIndex, blockIndex, blockShape, gridShape;
  unsigned index = 0;            // 0..31 within its warp
  void *dynamicShared = nullptr; // extern __shared__ memory of the block
};

enum class WarpOp : int { Sync, Shuffle, Ballot, Matrix };

// Called by kernel code, on a fiber; they return when the scheduler says so. `line` is the line in the CUDA text.
struct Hooks {
  void (*blockBarrier)(int line);
  // Waits for all lanes of `mask`; returns the 32 lanes' values (only those of `mask` are meaningful). To be read
  // before the next exchange of this lane.
  const unsigned long long *(*exchange)(WarpOp op, unsigned mask, unsigned long long value, int line);
  void (*fail)(const char *message, int line); // does not return
};

} // namespace fusor::emulator
