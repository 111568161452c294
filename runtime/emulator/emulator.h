// Runs CUDA text of the simt tier on the host, so that kernels are executed where there is no GPU:
//
//   auto module = Emulator("folder").compile(source);                // Expected<EmulatedModule>; 1-2 s, then cached
//   GuardedBuffer x = GuardedBuffer::of<float>(values), y(n * sizeof(float));
//   Error failed = module->run("scale", {.grid = {2}, .block = {128}}, x, y, n);   // n: the exact parameter type
//   ArrayRef<float> result = y.as<float>();
//
// The text is compiled as host C++ behind shim.h. Threads are fibers. Each warp runs up to its next block barrier
// before the next warp starts, and the lanes of a warp one after another up to their next shuffle: the schedule under
// which a missing __syncthreads or __syncwarp shows. Even blocks take warps and lanes in ascending order, odd blocks
// descending, so a race is seen in both directions as soon as there are two blocks.
//
// Reported as errors: threads at different barriers, deadlock, lanes missing from a shuffle mask, a write outside a
// GuardedBuffer or the dynamic shared memory. Built with AddressSanitizer, kernels are too, and overflows abort with a
// report at the access; without it the guard bytes tell after the launch.
//
// Tensor cores: the text's macro FUSOR_EMULATOR is set, and the instructions of codegen/device/mma_sm80.cuh are those
// of shim_mma.h. A cp.async arrives as late as it may in even blocks (when it is waited for), at once in odd ones: a
// missing wait shows in the first, a tile overwritten while others read it in the second.
//
// Limits: no other inline PTX, no clusters or cooperative launches, no textures; one launch at a time per process.
#pragma once

#include "runtime/emulator/guarded_buffer.h"
#include "runtime/emulator/hooks.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <type_traits>

namespace fusor::emulator {

// In which order a block's warps, and a warp's lanes, take their turns.
enum class Order { Alternate, Ascending, Descending };

struct LaunchShape {
  Dim3 grid = {}, block = {};
  size_t sharedBytes = 0; // dynamic shared memory
  Order order = Order::Alternate;
};

// A compiled source. Copies share the loaded library.
class EmulatedModule {
public:
  // The names of the __global__ functions, in source order.
  llvm::ArrayRef<std::string> kernels() const;

  // arguments[i] points at the value of parameter i, as for cuLaunchKernel.
  llvm::Error launch(llvm::StringRef kernel, const LaunchShape &shape, llvm::ArrayRef<void *> arguments) const;

  // The same with values; a GuardedBuffer stands for its data pointer and has its guards checked after the launch.
  // A scalar must have exactly the parameter's type: run(..., (long long)n).
  template <class... Arguments>
  llvm::Error run(llvm::StringRef kernel, const LaunchShape &shape, Arguments &&...arguments) const {
    void *pointers[] = {addressOf(arguments)..., nullptr};
    if (llvm::Error error = launch(kernel, shape, llvm::makeArrayRef(pointers, sizeof...(Arguments)))) return error;
    llvm::Error damage = llvm::Error::success();
    int index = 0;
    ((damage = llvm::joinErrors(std::move(damage), checkGuards(kernel, index++, arguments))), ...);
    return damage;
  }

private:
  friend class Emulator;
  struct Library;
  std::shared_ptr<const Library> library;

  template <class T> static void *addressOf(T &argument) {
    if constexpr (std::is_same_v<std::remove_cv_t<T>, GuardedBuffer>)
      return const_cast<void *>(static_cast<const void *>(argument.address()));
    else
      return const_cast<void *>(static_cast<const void *>(&argument));
  }
  template <class T> static llvm::Error checkGuards(llvm::StringRef kernel, int index, const T &argument) {
    if constexpr (std::is_same_v<T, GuardedBuffer>)
      return argument.check("kernel '" + kernel.str() + "', argument " + std::to_string(index));
    else
      return llvm::Error::success();
  }
};

// The compiler that turns CUDA text into a library. $CXX, then g++, then clang++ (under AddressSanitizer: the compiler
// that built this, because the library has to share its run time). Libraries are kept in `folder`, under the hash of
// all that went into them: it must be this user's own.
class Emulator {
public:
  explicit Emulator(std::string folder) : folder(std::move(folder)) {}
  llvm::Expected<EmulatedModule> compile(llvm::StringRef source) const;

private:
  std::string folder;
};

} // namespace fusor::emulator
