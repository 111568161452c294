#include "runtime/cuda/device_buffers.h"
#include "runtime/execute/run_error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {

namespace {

std::string whatLowers(const passes::MemoryPlan &plan) {
  return llvm::formatv("@{0} needs {1} bytes; a smaller batch, --accumulate N or --recompute full lower it\n{2}",
                       plan.function, plan.peakBytes(), plan.text(5));
}

} // namespace

llvm::Error withPlan(llvm::Error error, const passes::MemoryPlan &plan) {
  if (!error) return error;
  return llvm::handleErrors(std::move(error), [&](const OutOfMemoryError &e) -> llvm::Error {
    return llvm::make_error<OutOfMemoryError>(plan.peakBytes(), 0, e.message() + "; " + whatLowers(plan));
  });
}

llvm::Error DeviceBuffers::reserve(const CudaContextRef &context, const CudaStream &stream,
                                   const passes::MemoryPlan &plan, int64_t libraryBytes, int64_t limitBytes) {
  if (limitBytes && plan.peakBytes() > limitBytes)
    return llvm::make_error<OutOfMemoryError>(plan.peakBytes(), limitBytes,
                                              llvm::formatv("over the limit of {0} bytes: ", limitBytes).str() +
                                                  whatLowers(plan));
  auto grow = [&](DeviceMemory &held, int64_t bytes, llvm::StringRef purpose) -> llvm::Error {
    if (held ? held.bytes() >= bytes : bytes == 0) return llvm::Error::success();
    if (held)
      if (auto error = stream.synchronize()) return error;
    ++version;
    held = DeviceMemory(); // the old one goes first: often both do not fit
    auto memory = DeviceMemory::allocate(context, bytes, purpose);
    if (!memory) return memory.takeError();
    held = std::move(*memory);
    return llvm::Error::success();
  };
  auto error = grow(arena, plan.arenaBytes, "the arena");
  if (!error) error = grow(workspace, plan.workspaceBytes, "workspaces");
  if (!error) error = grow(gemmWorkspace, libraryBytes, "cuBLASLt");
  return withPlan(std::move(error), plan);
}

} // namespace fusor::runtime
