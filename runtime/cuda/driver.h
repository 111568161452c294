// NVIDIA's driver as far as a Program needs it: a table of functions found with dlopen, and owners of what it hands
// out.
//
//   auto context = CudaContext::open(0);                          // Expected<std::shared_ptr<const CudaContext>>
//   auto memory = DeviceMemory::allocate(*context, bytes);        // OutOfMemoryError when it does not suffice
//   auto stream = CudaStream::create(*context);
//   stream->launch(kernel, {grid, block, shared}, arguments);
//
// Every call that fails is a DeviceError that names the call, the driver's words and the code. An owner frees what it
// holds when it goes; all of them keep the context alive.
#pragma once
#include "runtime/cuda/driver_functions.h"
#include "runtime/cuda/driver_probe.h"
#include "runtime/cuda/library_search.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <utility>

namespace fusor::runtime {

/// An address in device memory; 0 is none.
using DevicePointer = uint64_t;

/// A device's primary context, the one that other libraries in the process use too.
class CudaContext {
public:
  /// Errors: DeviceError with the reason why there is no such device. `library` is for tests.
  static llvm::Expected<std::shared_ptr<const CudaContext>> open(int ordinal,
                                                                 const std::string &library = "libcuda.so.1");
  /// Around functions that somebody else has: a device made of host memory, in tests.
  static llvm::Expected<std::shared_ptr<const CudaContext>> around(const DriverFunctions &functions, CudaDevice device);
  ~CudaContext();
  CudaContext(const CudaContext &) = delete;

  const CudaDevice &device() const { return device_; }
  int driverVersion() const { return driverVersion_; } ///< 13000 for 13.0
  const DriverFunctions &driver() const { return functions_; }

  /// Makes this the calling thread's context: at the start of each use, because others may have set theirs.
  llvm::Error makeCurrent() const;
  /// Success, or a DeviceError: "cuLaunchKernel failed for WHAT: ... (CUDA_ERROR_..., code N)"; an OutOfMemoryError
  /// where that is the reason.
  llvm::Error check(int result, const char *call, const llvm::Twine &what = "") const;
  /// Bytes that can still be allocated, of all; 0 when the driver does not say.
  int64_t freeBytes() const;

private:
  CudaContext() = default;
  llvm::Error retain();
  Library library_;
  DriverFunctions functions_;
  CudaDevice device_;
  int driverVersion_ = 0, handle_ = 0;
  CudaContextHandle context_ = nullptr;
};
using CudaContextRef = std::shared_ptr<const CudaContext>;

/// What all owners below are: a handle, and the context it belongs to. Movable.
template <typename Handle> class CudaOwner {
public:
  CudaOwner() = default;
  CudaOwner(CudaOwner &&other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, Handle())) {}
  CudaOwner &operator=(CudaOwner &&other) noexcept {
    std::swap(context_, other.context_), std::swap(handle_, other.handle_);
    return *this;
  }
  explicit operator bool() const { return handle_ != Handle(); }
  Handle handle() const { return handle_; }

protected:
  CudaOwner(CudaContextRef context, Handle handle) : context_(std::move(context)), handle_(handle) {}
  CudaContextRef context_;
  Handle handle_ = Handle();
};

class DeviceMemory : public CudaOwner<DevicePointer> {
public:
  /// Aligned to 256 bytes; contents are whatever was there. Errors: OutOfMemoryError that says `purpose`, DeviceError.
  static llvm::Expected<DeviceMemory> allocate(const CudaContextRef &context, int64_t bytes,
                                               const llvm::Twine &purpose);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&) = default;
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();
  DevicePointer address() const { return handle_; }
  int64_t bytes() const { return bytes_; }

private:
  DeviceMemory(CudaContextRef context, DevicePointer pointer, int64_t bytes)
      : CudaOwner(std::move(context), pointer), bytes_(bytes) {}
  int64_t bytes_ = 0;
};

/// The host's memory that the device copies from and to without a detour.
class PinnedMemory : public CudaOwner<void *> {
public:
  static llvm::Expected<PinnedMemory> allocate(const CudaContextRef &context, int64_t bytes);
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory &&) = default;
  PinnedMemory &operator=(PinnedMemory &&) = default;
  ~PinnedMemory();
  char *data() const { return static_cast<char *>(handle_); }

private:
  using CudaOwner::CudaOwner;
};

/// What a loaded kernel takes of a multiprocessor; absent where the driver does not say.
struct KernelResources {
  std::optional<int> registers;         ///< of a thread
  std::optional<int> localBytes;        ///< of a thread: spilled registers and arrays, in device memory
  std::optional<int> staticSharedBytes; ///< of a block
};

/// A kernel of a loaded module.
class CudaModule : public CudaOwner<CudaModuleHandle> {
public:
  /// A cubin, or PTX text that ends in a zero. `name` of the kernel is for messages.
  static llvm::Expected<CudaModule> load(const CudaContextRef &context, llvm::StringRef image, llvm::StringRef name);
  CudaModule() = default;
  CudaModule(CudaModule &&) = default;
  CudaModule &operator=(CudaModule &&) = default;
  ~CudaModule();
  /// `dynamicSharedBytes`: more than 48 KiB, static ones included, must be asked for once.
  llvm::Expected<CudaFunctionHandle> function(llvm::StringRef name, unsigned dynamicSharedBytes) const;
  KernelResources resources(CudaFunctionHandle function) const;

private:
  using CudaOwner::CudaOwner;
};

class CudaGraph : public CudaOwner<CudaGraphExecHandle> {
public:
  CudaGraph() = default;
  CudaGraph(CudaGraph &&) = default;
  CudaGraph &operator=(CudaGraph &&) = default;
  ~CudaGraph();
  int64_t nodes() const { return nodes_; }

private:
  friend class CudaStream;
  CudaGraph(CudaContextRef context, CudaGraphExecHandle exec, int64_t nodes)
      : CudaOwner(std::move(context), exec), nodes_(nodes) {}
  int64_t nodes_ = 0;
};

class CudaEvent : public CudaOwner<CudaEventHandle> {
public:
  /// With the time it happens, or only to wait for.
  static llvm::Expected<CudaEvent> create(const CudaContextRef &context, bool timed);
  CudaEvent() = default;
  CudaEvent(CudaEvent &&) = default;
  CudaEvent &operator=(CudaEvent &&) = default;
  ~CudaEvent();
  /// Until it has happened. What went wrong on the device before it surfaces here.
  llvm::Error wait(const llvm::Twine &what = "") const;
  /// Milliseconds from this to `later`; both have happened.
  llvm::Expected<double> millisecondsTo(const CudaEvent &later) const;

private:
  using CudaOwner::CudaOwner;
};

struct LaunchShape {
  unsigned grid = 1, block = 32, dynamicSharedBytes = 0;
};

/// What is put in is done in order, while the host goes on.
class CudaStream : public CudaOwner<CudaStreamHandle> {
public:
  static llvm::Expected<CudaStream> create(const CudaContextRef &context);
  CudaStream() = default;
  CudaStream(CudaStream &&) = default;
  CudaStream &operator=(CudaStream &&) = default;
  ~CudaStream();

  /// Arguments of 8 bytes each: pointers and i64. They are copied by the call.
  llvm::Error launch(CudaFunctionHandle function, LaunchShape shape, llvm::ArrayRef<uint64_t> arguments,
                     llvm::StringRef kernel) const;
  /// `from` and `to` of the host must stay until the stream is here.
  llvm::Error upload(DevicePointer to, const void *from, int64_t bytes) const;
  llvm::Error download(void *to, DevicePointer from, int64_t bytes) const;
  llvm::Error copy(DevicePointer to, DevicePointer from, int64_t bytes) const;
  llvm::Error clear(DevicePointer at, int64_t bytes) const;
  /// In a capture it becomes a node of the graph, and happens each time that is launched.
  llvm::Error record(const CudaEvent &event, bool inGraph = false) const;
  /// Until all is done. What went wrong on the device since the last call surfaces here.
  llvm::Error synchronize(const llvm::Twine &what = "") const;

  /// Between these two, launches and copies are recorded and not done.
  llvm::Error beginCapture() const;
  llvm::Expected<CudaGraph> endCapture() const;
  llvm::Error launch(const CudaGraph &graph) const;

private:
  using CudaOwner::CudaOwner;
};

} // namespace fusor::runtime
