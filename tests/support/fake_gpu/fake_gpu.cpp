#include "tests/support/fake_gpu/fake_gpu.h"
#include "tests/support/test_emulator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>
#include <map>

// What the driver's opaque handles point to.
namespace fusor::runtime {
struct CUmod_st {
  emulator::EmulatedModule module;
  std::map<std::string, CUfunc_st *> functions;
};
struct CUfunc_st {
  CUmod_st *module;
  std::string name;
};
struct CUstream_st {
  CUgraph_st *capturing = nullptr;
};
struct CUgraph_st {
  std::vector<std::function<int()>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::function<int()>> nodes;
};
} // namespace fusor::runtime

namespace fusor::tests {

using namespace runtime;

namespace {

FakeGpu *current = nullptr;
std::map<uint64_t, size_t> allocations;
constexpr int kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500, kLaunchFailed = 719;

// The code of call `name`: 0, or what the test wants it to fail with.
int begin(const char *name) { return current->failing == name ? current->failingCode : 0; }

int perform(CUstream_st *stream, std::function<int()> work) {
  if (!stream->capturing) return work();
  stream->capturing->nodes.push_back(std::move(work));
  return 0;
}

bool inside(uint64_t at, size_t bytes) {
  auto it = allocations.upper_bound(at);
  if (it == allocations.begin()) return false;
  --it;
  return at + bytes <= it->first + it->second;
}

int copyBytes(void *to, const void *from, size_t bytes) {
  std::memmove(to, from, bytes);
  return 0;
}
void *host(uint64_t address) { return reinterpret_cast<void *>(address); }

int allocate(uint64_t *address, size_t bytes) {
  if (int code = begin("cuMemAlloc")) return code;
  if (current->allocatedBytes + static_cast<int64_t>(bytes) > current->memoryBytes) return kOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes); // NaN in every type
  *address = reinterpret_cast<uint64_t>(memory);
  allocations[*address] = bytes;
  current->allocatedBytes += bytes, ++current->openHandles;
  return 0;
}

int release(uint64_t address) {
  auto it = allocations.find(address);
  if (it == allocations.end()) return kNotFound;
  current->allocatedBytes -= it->second, --current->openHandles;
  allocations.erase(it);
  std::free(host(address));
  return 0;
}

int loadModule(CudaModuleHandle *module, const void *image) {
  if (int code = begin("cuModuleLoadData")) return code;
  auto emulated = testEmulator().compile(static_cast<const char *>(image));
  if (!emulated) {
    llvm::errs() << "emulator: " << llvm::toString(emulated.takeError()) << "\n";
    return kInvalidImage;
  }
  ++current->openHandles;
  *module = new CUmod_st{*emulated, {}};
  return 0;
}

int launchKernel(CudaFunctionHandle function, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned, unsigned,
                 unsigned shared, CudaStreamHandle stream, void **parameters, void **) {
  if (int code = begin("cuLaunchKernel")) return code;
  if (gridX == 0 || blockX == 0) return 1;
  // As the driver does, parameters are copied by the call. All are 8 bytes; how many is not said, so a generous number
  // of pointers would be read past the end: the launch passes them in an array that ends in null.
  std::vector<uint64_t> values;
  for (unsigned i = 0; parameters[i]; ++i) values.push_back(*static_cast<uint64_t *>(parameters[i]));
  return perform(stream, [=]() mutable {
    std::vector<void *> pointers;
    for (uint64_t &value : values) pointers.push_back(&value);
    emulator::LaunchShape shape;
    shape.grid = {gridX}, shape.block = {blockX}, shape.sharedBytes = shared;
    current->calls.push_back(llvm::formatv("launch {0} {1}x{2}", function->name, gridX, blockX));
    if (auto error = function->module->module.launch(function->name, shape, pointers)) {
      llvm::errs() << "emulator: " << llvm::toString(std::move(error)) << "\n";
      return kLaunchFailed;
    }
    return 0;
  });
}

} // namespace

FakeGpu::FakeGpu() { current = this; }
FakeGpu::~FakeGpu() { current = nullptr; }

CudaDevice FakeGpu::device() const {
  CudaDevice device;
  device.name = "Fake GPU";
  device.major = 7, device.minor = 5;
  device.multiprocessors = 4;
  device.memoryBytes = memoryBytes;
  device.sharedBytesPerBlock = 64 * 1024;
  return device;
}

int FakeGpu::count(llvm::StringRef prefix) const {
  return static_cast<int>(llvm::count_if(calls, [&](llvm::StringRef call) { return call.startswith(prefix); }));
}

DriverFunctions FakeGpu::functions() const {
  DriverFunctions f;
  f.getErrorName = [](int code, const char **name) {
    return *name = code == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : nullptr, 0;
  };
  f.getErrorString = [](int code, const char **text) {
    return *text = code == kLaunchFailed ? "unspecified launch failure" : nullptr, 0;
  };
  f.deviceGet = [](int *device, int ordinal) { return *device = ordinal, 0; };
  f.primaryContextRetain = [](CudaContextHandle *context, int) {
    return *context = reinterpret_cast<CudaContextHandle>(current), 0;
  };
  f.primaryContextRelease = [](int) { return 0; };
  f.contextSetCurrent = [](CudaContextHandle) { return begin("cuCtxSetCurrent"); };
  f.memoryInfo = [](size_t *free, size_t *total) {
    *total = current->memoryBytes, *free = current->memoryBytes - current->allocatedBytes;
    return 0;
  };
  f.memoryAllocate = allocate;
  f.memoryFree = release;
  f.hostAllocate = [](void **data, size_t bytes, unsigned) {
    *data = std::malloc(bytes);
    ++current->openHandles;
    return 0;
  };
  f.hostFree = [](void *data) {
    std::free(data);
    --current->openHandles;
    return 0;
  };
  f.copyToDeviceAsync = [](uint64_t to, const void *from, size_t bytes, CudaStreamHandle stream) {
    if (!inside(to, bytes)) return 1;
    return perform(stream, [=] {
      current->calls.push_back("upload " + std::to_string(bytes));
      return copyBytes(host(to), from, bytes);
    });
  };
  f.copyToHostAsync = [](void *to, uint64_t from, size_t bytes, CudaStreamHandle stream) {
    if (!inside(from, bytes)) return 1;
    return perform(stream, [=] {
      current->calls.push_back("download " + std::to_string(bytes));
      return copyBytes(to, host(from), bytes);
    });
  };
  f.copyOnDeviceAsync = [](uint64_t to, uint64_t from, size_t bytes, CudaStreamHandle stream) {
    if (!inside(to, bytes) || !inside(from, bytes)) return 1;
    return perform(stream, [=] {
      current->calls.push_back("copy " + std::to_string(bytes));
      return copyBytes(host(to), host(from), bytes);
    });
  };
  f.setBytesAsync = [](uint64_t at, unsigned char value, size_t bytes, CudaStreamHandle stream) {
    if (!inside(at, bytes)) return 1;
    return perform(stream, [=] { return std::memset(host(at), value, bytes), 0; });
  };
  f.moduleLoadData = loadModule;
  f.moduleGetFunction = [](CudaFunctionHandle *function, CudaModuleHandle module, const char *name) {
    if (!llvm::is_contained(module->module.kernels(), name)) return kNotFound;
    CUfunc_st *&known = module->functions[name];
    if (!known) known = new CUfunc_st{module, name};
    *function = known;
    return 0;
  };
  f.moduleUnload = [](CudaModuleHandle module) {
    for (auto &[name, function] : module->functions) delete function;
    delete module;
    --current->openHandles;
    return 0;
  };
  f.functionSetAttribute = [](CudaFunctionHandle, int, int) { return 0; };
  f.functionGetAttribute = [](int *value, int attribute, CudaFunctionHandle) {
    return *value = attribute == 4 ? 40 : 0, 0; // 40 registers, no local and no static shared memory
  };
  f.launchKernel = launchKernel;
  f.streamCreate = [](CudaStreamHandle *stream, unsigned) {
    return ++current->openHandles, *stream = new CUstream_st, 0;
  };
  f.streamDestroy = [](CudaStreamHandle stream) { return --current->openHandles, delete stream, 0; };
  f.streamSynchronize = [](CudaStreamHandle stream) { return stream->capturing ? 900 : begin("cuStreamSynchronize"); };
  f.streamBeginCapture = [](CudaStreamHandle stream, int) {
    current->calls.push_back("capture");
    return stream->capturing = new CUgraph_st, 0;
  };
  f.streamEndCapture = [](CudaStreamHandle stream, CudaGraphHandle *graph) {
    return *graph = std::exchange(stream->capturing, nullptr), ++current->openHandles, 0;
  };
  f.eventCreate = [](CudaEventHandle *event, unsigned) {
    return ++current->openHandles, *event = reinterpret_cast<CudaEventHandle>(current), 0;
  };
  f.eventDestroy = [](CudaEventHandle) { return --current->openHandles, 0; };
  f.eventRecord = [](CudaEventHandle, CudaStreamHandle) { return 0; };
  f.eventRecordWithFlags = [](CudaEventHandle, CudaStreamHandle stream, unsigned) {
    return perform(stream, [] { return 0; });
  };
  f.eventSynchronize = [](CudaEventHandle) { return begin("cuEventSynchronize"); };
  f.eventElapsedTime = [](float *milliseconds, CudaEventHandle, CudaEventHandle) { return *milliseconds = 0.5f, 0; };
  f.graphInstantiate = [](CudaGraphExecHandle *exec, CudaGraphHandle graph, unsigned long long) {
    if (int code = begin("cuGraphInstantiate")) return code;
    return *exec = new CUgraphExec_st{graph->nodes}, ++current->openHandles, 0;
  };
  f.graphGetNodes = [](CudaGraphHandle graph, void *, size_t *count) { return *count = graph->nodes.size(), 0; };
  f.graphLaunch = [](CudaGraphExecHandle exec, CudaStreamHandle) {
    if (int code = begin("cuGraphLaunch")) return code;
    current->calls.push_back("graph " + std::to_string(exec->nodes.size()));
    for (const auto &node : exec->nodes)
      if (int code = node()) return code;
    return 0;
  };
  f.graphExecDestroy = [](CudaGraphExecHandle exec) { return delete exec, --current->openHandles, 0; };
  f.graphDestroy = [](CudaGraphHandle graph) { return delete graph, --current->openHandles, 0; };
  return f;
}

} // namespace fusor::tests
