// The persistent values of a program on a device: parameters, states, constants and derived values, one allocation.
#pragma once
#include "runtime/cpu/parallel.h"
#include "runtime/cuda/device_buffers.h"
#include "runtime/cuda/transfer.h"
#include "runtime/execute/program.h"

namespace fusor::runtime {

class DeviceState {
public:
  /// `buffers` are the program's; allocate() fills their part of it.
  DeviceState(const ir::Module &module, CudaContextRef context, DeviceBuffers &buffers)
      : module_(module), context_(std::move(context)), buffers_(buffers) {}

  /// A place for each, and the content of constants. Errors: OutOfMemoryError; a shape whose symbols have no value.
  llvm::Error allocate(const CompileOptions &options, const CudaStream &stream);
  /// Initial values of params and states: computed by `threads` threads (0: all) while earlier ones are copied.
  llvm::Error initialize(uint64_t seed, unsigned threads, const CudaStream &stream);
  /// A value of a few bytes (a learning rate) does not wait for the device; others do.
  llvm::Error write(llvm::StringRef name, llvm::ArrayRef<char> bytes, const CudaStream &stream);
  llvm::Error read(llvm::StringRef name, llvm::MutableArrayRef<char> bytes, const CudaStream &stream) const;

private:
  llvm::Error fill(const ir::Persistent &persistent, uint64_t seed, Workers &workers, const CudaStream &stream);
  const ir::Module &module_;
  CudaContextRef context_;
  DeviceBuffers &buffers_;
  llvm::StringMap<int64_t> bytesOf_;
  UploadRing small_{8};
  std::unique_ptr<UploadRing> large_; // while initial values are on their way
};

} // namespace fusor::runtime
