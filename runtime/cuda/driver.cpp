#include "runtime/cuda/driver.h"
#include "runtime/execute/run_error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {

namespace {

constexpr int kOutOfMemory = 2, kUnsupportedPtxVersion = 222;
constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2;
constexpr int kCaptureRelaxed = 2; // other threads, and other libraries, go on with what they do
constexpr unsigned long long kGraphDeviceLaunch = 4;
constexpr unsigned kHostDeviceMap = 2;    // a graph that lies on the device copies from and to mapped memory only
constexpr int kMaxDynamicSharedBytes = 8; // attributes of a function: set; and what it has
constexpr int kStaticSharedBytes = 1, kLocalBytes = 3, kRegisters = 4;

llvm::Error deviceError(std::string text) { return llvm::make_error<DeviceError>(std::move(text)); }

} // namespace

llvm::Expected<CudaContextRef> CudaContext::open(int ordinal, const std::string &library) {
  DriverProbe probe = probeCudaDriver(library);
  if (!probe.usable()) return deviceError(probe.reason);
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= probe.devices.size())
    return deviceError(
        llvm::formatv("there is no device {0}: {1} found, numbered from 0", ordinal, probe.devices.size()));
  std::shared_ptr<CudaContext> context(new CudaContext());
  context->device_ = probe.devices[ordinal];
  context->driverVersion_ = probe.driverVersion;
  std::string why;
  context->library_ = Library::open(library, why);
  if (!context->library_) return deviceError(library + ": " + why);
  if (const char *missing = context->functions_.load(context->library_))
    return deviceError(
        llvm::formatv("{0} has no {1}: a driver of CUDA 11.4 or later is needed", probe.library, missing));
  if (auto error = context->retain()) return error;
  return CudaContextRef(std::move(context));
}

llvm::Expected<CudaContextRef> CudaContext::around(const DriverFunctions &functions, CudaDevice device) {
  std::shared_ptr<CudaContext> context(new CudaContext());
  context->functions_ = functions;
  context->device_ = std::move(device);
  if (auto error = context->retain()) return error;
  return CudaContextRef(std::move(context));
}

llvm::Error CudaContext::retain() {
  if (auto error = check(functions_.deviceGet(&handle_, device_.ordinal), "cuDeviceGet")) return error;
  CudaContextHandle handle = nullptr;
  if (auto error = check(functions_.primaryContextRetain(&handle, handle_), "cuDevicePrimaryCtxRetain", device_.name))
    return error;
  context_ = handle;
  return makeCurrent();
}

CudaContext::~CudaContext() {
  if (context_) functions_.primaryContextRelease(handle_);
}

llvm::Error CudaContext::makeCurrent() const {
  return check(functions_.contextSetCurrent(context_), "cuCtxSetCurrent");
}

llvm::Error CudaContext::check(int result, const char *call, const llvm::Twine &what) const {
  if (result == 0) return llvm::Error::success();
  const char *name = nullptr, *text = nullptr;
  functions_.getErrorName(result, &name);
  functions_.getErrorString(result, &text);
  std::string subject = what.str();
  if (result == kOutOfMemory)
    return llvm::make_error<OutOfMemoryError>(0, 0,
                                              llvm::formatv("{0} failed{1}: {2} has no memory left for it, {3} bytes "
                                                            "are free",
                                                            call, subject.empty() ? "" : " for " + subject,
                                                            device_.name, freeBytes()));
  return deviceError(llvm::formatv("{0} failed{1}: {2} ({3}code {4})", call, subject.empty() ? "" : " for " + subject,
                                   text ? text : "unknown error", name ? std::string(name) + ", " : "", result));
}

int64_t CudaContext::freeBytes() const {
  size_t free = 0, total = 0;
  return functions_.memoryInfo(&free, &total) == 0 ? static_cast<int64_t>(free) : 0;
}

// --- memory

llvm::Expected<DeviceMemory> DeviceMemory::allocate(const CudaContextRef &context, int64_t bytes,
                                                    const llvm::Twine &purpose) {
  DevicePointer pointer = 0;
  int result = context->driver().memoryAllocate(&pointer, std::max<int64_t>(bytes, 256));
  if (result == kOutOfMemory)
    return llvm::make_error<OutOfMemoryError>(bytes, 0,
                                              llvm::formatv("{0} has no {1} bytes left for {2}: {3} are free",
                                                            context->device().name, bytes, purpose.str(),
                                                            context->freeBytes()));
  if (auto error = context->check(result, "cuMemAlloc", purpose)) return error;
  return DeviceMemory(context, pointer, bytes);
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  CudaOwner::operator=(std::move(other));
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (handle_) context_->driver().memoryFree(handle_);
}

llvm::Expected<PinnedMemory> PinnedMemory::allocate(const CudaContextRef &context, int64_t bytes) {
  void *data = nullptr;
  int result = context->driver().hostAllocate(&data, std::max<int64_t>(bytes, 64), kHostDeviceMap);
  if (result == kOutOfMemory)
    return llvm::make_error<OutOfMemoryError>(bytes, 0,
                                              llvm::formatv("the host has no {0} bytes of pinned memory left", bytes));
  if (auto error = context->check(result, "cuMemHostAlloc")) return error;
  return PinnedMemory(context, data);
}

PinnedMemory::~PinnedMemory() {
  if (handle_) context_->driver().hostFree(handle_);
}

// --- modules

llvm::Expected<CudaModule> CudaModule::load(const CudaContextRef &context, llvm::StringRef image,
                                            llvm::StringRef name) {
  CudaModuleHandle module = nullptr;
  int result = context->driver().moduleLoadData(&module, image.data());
  if (auto error = context->check(result, "cuModuleLoadData", "kernel '" + name + "'")) {
    if (result != kUnsupportedPtxVersion) return error;
    return deviceError(llvm::formatv("{0}\nthe driver (CUDA {1}.{2}) is older than the NVRTC that made it: update the "
                                     "driver, or set FUSOR_NVRTC to an NVRTC of at most that version",
                                     llvm::toString(std::move(error)), context->driverVersion() / 1000,
                                     context->driverVersion() % 1000 / 10));
  }
  return CudaModule(context, module);
}

CudaModule::~CudaModule() {
  if (handle_) context_->driver().moduleUnload(handle_);
}

llvm::Expected<CudaFunctionHandle> CudaModule::function(llvm::StringRef name, unsigned dynamicSharedBytes) const {
  CudaFunctionHandle function = nullptr;
  const DriverFunctions &driver = context_->driver();
  if (auto error = context_->check(driver.moduleGetFunction(&function, handle_, name.str().c_str()),
                                   "cuModuleGetFunction", "kernel '" + name + "'"))
    return error;
  if (dynamicSharedBytes > 0) // with the static ones it may be more than a kernel gets unasked
    if (auto error = context_->check(
            driver.functionSetAttribute(function, kMaxDynamicSharedBytes, static_cast<int>(dynamicSharedBytes)),
            "cuFuncSetAttribute",
            llvm::formatv("{0} bytes of shared memory of kernel '{1}'", dynamicSharedBytes, name)))
      return error;
  return function;
}

KernelResources CudaModule::resources(CudaFunctionHandle function) const {
  auto attribute = [&](int which) -> std::optional<int> {
    int value = 0;
    if (context_->driver().functionGetAttribute(&value, which, function) != 0) return std::nullopt;
    return value;
  };
  return {attribute(kRegisters), attribute(kLocalBytes), attribute(kStaticSharedBytes)};
}

// --- graphs and events

CudaGraph::~CudaGraph() {
  if (handle_) context_->driver().graphExecDestroy(handle_);
}

llvm::Expected<CudaEvent> CudaEvent::create(const CudaContextRef &context, bool timed) {
  CudaEventHandle event = nullptr;
  if (auto error =
          context->check(context->driver().eventCreate(&event, timed ? 0 : kEventDisableTiming), "cuEventCreate"))
    return error;
  return CudaEvent(context, event);
}

CudaEvent::~CudaEvent() {
  if (handle_) context_->driver().eventDestroy(handle_);
}

llvm::Error CudaEvent::wait(const llvm::Twine &what) const {
  return context_->check(context_->driver().eventSynchronize(handle_), "cuEventSynchronize", what);
}

llvm::Expected<double> CudaEvent::millisecondsTo(const CudaEvent &later) const {
  float milliseconds = 0;
  if (auto error = context_->check(context_->driver().eventElapsedTime(&milliseconds, handle_, later.handle_),
                                   "cuEventElapsedTime"))
    return error;
  return milliseconds;
}

// --- streams

llvm::Expected<CudaStream> CudaStream::create(const CudaContextRef &context) {
  CudaStreamHandle stream = nullptr;
  if (auto error = context->check(context->driver().streamCreate(&stream, kStreamNonBlocking), "cuStreamCreate"))
    return error;
  return CudaStream(context, stream);
}

CudaStream::~CudaStream() {
  if (!handle_) return;
  context_->driver().streamSynchronize(handle_);
  context_->driver().streamDestroy(handle_);
}

llvm::Error CudaStream::launch(CudaFunctionHandle function, LaunchShape shape, llvm::ArrayRef<uint64_t> arguments,
                               llvm::StringRef kernel) const {
  llvm::SmallVector<void *, 16> parameters;
  for (const uint64_t &argument : arguments) parameters.push_back(const_cast<uint64_t *>(&argument));
  parameters.push_back(nullptr); // the driver counts them itself; tests need the end
  return context_->check(context_->driver().launchKernel(function, shape.grid, 1, 1, shape.block, 1, 1,
                                                         shape.dynamicSharedBytes, handle_, parameters.data(), nullptr),
                         "cuLaunchKernel",
                         llvm::Twine("kernel '") + kernel + "', " + llvm::Twine(shape.grid) + " blocks of " +
                             llvm::Twine(shape.block) + " threads");
}

llvm::Error CudaStream::upload(DevicePointer to, const void *from, int64_t bytes) const {
  if (bytes == 0) return llvm::Error::success();
  return context_->check(context_->driver().copyToDeviceAsync(to, from, bytes, handle_), "cuMemcpyHtoDAsync");
}

llvm::Error CudaStream::download(void *to, DevicePointer from, int64_t bytes) const {
  if (bytes == 0) return llvm::Error::success();
  return context_->check(context_->driver().copyToHostAsync(to, from, bytes, handle_), "cuMemcpyDtoHAsync");
}

llvm::Error CudaStream::copy(DevicePointer to, DevicePointer from, int64_t bytes) const {
  if (bytes == 0 || to == from) return llvm::Error::success();
  return context_->check(context_->driver().copyOnDeviceAsync(to, from, bytes, handle_), "cuMemcpyDtoDAsync");
}

llvm::Error CudaStream::clear(DevicePointer at, int64_t bytes) const {
  if (bytes == 0) return llvm::Error::success();
  return context_->check(context_->driver().setBytesAsync(at, 0, bytes, handle_), "cuMemsetD8Async");
}

llvm::Error CudaStream::record(const CudaEvent &event, bool inGraph) const {
  constexpr unsigned kExternal = 1;
  if (inGraph)
    return context_->check(context_->driver().eventRecordWithFlags(event.handle(), handle_, kExternal),
                           "cuEventRecordWithFlags");
  return context_->check(context_->driver().eventRecord(event.handle(), handle_), "cuEventRecord");
}

llvm::Error CudaStream::synchronize(const llvm::Twine &what) const {
  return context_->check(context_->driver().streamSynchronize(handle_), "cuStreamSynchronize", what);
}

llvm::Error CudaStream::beginCapture() const {
  return context_->check(context_->driver().streamBeginCapture(handle_, kCaptureRelaxed), "cuStreamBeginCapture");
}

llvm::Expected<CudaGraph> CudaStream::endCapture() const {
  const DriverFunctions &driver = context_->driver();
  CudaGraphHandle graph = nullptr;
  if (auto error = context_->check(driver.streamEndCapture(handle_, &graph), "cuStreamEndCapture")) return error;
  size_t nodes = 0;
  CudaGraphExecHandle exec = nullptr;
  auto error = context_->check(driver.graphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  // As one that a device could start, a graph lies on the device and its launch writes little. Not all kinds of nodes
  // may be in it. scaled on an H200, 353 kernels: 22 us a launch, 345 otherwise (when 58 ms lie between two).
  if (!error && driver.graphInstantiate(&exec, graph, kGraphDeviceLaunch) != 0)
    error =
        context_->check(driver.graphInstantiate(&exec, graph, 0), "cuGraphInstantiate", llvm::Twine(nodes) + " nodes");
  driver.graphDestroy(graph);
  if (error) return error;
  return CudaGraph(context_, exec, static_cast<int64_t>(nodes));
}

llvm::Error CudaStream::launch(const CudaGraph &graph) const {
  return context_->check(context_->driver().graphLaunch(graph.handle(), handle_), "cuGraphLaunch");
}

} // namespace fusor::runtime
