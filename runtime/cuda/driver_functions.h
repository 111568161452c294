// The functions of libcuda.so.1 that fusor calls, with their types as in cuda.h of CUDA 11.4 and later: results are
// enums with 0 for success, a device is an int, device addresses are 64-bit, the rest are opaque pointers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fusor::runtime {

class Library;

using CudaContextHandle = struct CUctx_st *;
using CudaModuleHandle = struct CUmod_st *;
using CudaFunctionHandle = struct CUfunc_st *;
using CudaStreamHandle = struct CUstream_st *;
using CudaEventHandle = struct CUevent_st *;
using CudaGraphHandle = struct CUgraph_st *;
using CudaGraphExecHandle = struct CUgraphExec_st *;

struct DriverFunctions {
  int (*getErrorName)(int result, const char **) = nullptr;
  int (*getErrorString)(int result, const char **) = nullptr;
  int (*deviceGet)(int *device, int ordinal) = nullptr;
  int (*primaryContextRetain)(CudaContextHandle *, int device) = nullptr;
  int (*primaryContextRelease)(int device) = nullptr;
  int (*contextSetCurrent)(CudaContextHandle) = nullptr;
  int (*memoryInfo)(size_t *free, size_t *total) = nullptr;
  int (*memoryAllocate)(uint64_t *, size_t) = nullptr;
  int (*memoryFree)(uint64_t) = nullptr;
  int (*hostAllocate)(void **, size_t, unsigned flags) = nullptr;
  int (*hostFree)(void *) = nullptr;
  int (*copyToDeviceAsync)(uint64_t to, const void *from, size_t, CudaStreamHandle) = nullptr;
  int (*copyToHostAsync)(void *to, uint64_t from, size_t, CudaStreamHandle) = nullptr;
  int (*copyOnDeviceAsync)(uint64_t to, uint64_t from, size_t, CudaStreamHandle) = nullptr;
  int (*setBytesAsync)(uint64_t at, unsigned char value, size_t, CudaStreamHandle) = nullptr;
  int (*moduleLoadData)(CudaModuleHandle *, const void *image) = nullptr;
  int (*moduleGetFunction)(CudaFunctionHandle *, CudaModuleHandle, const char *name) = nullptr;
  int (*moduleUnload)(CudaModuleHandle) = nullptr;
  int (*functionSetAttribute)(CudaFunctionHandle, int attribute, int value) = nullptr;
  int (*functionGetAttribute)(int *value, int attribute, CudaFunctionHandle) = nullptr;
  int (*launchKernel)(CudaFunctionHandle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes, CudaStreamHandle, void **parameters,
                      void **extra) = nullptr;
  int (*streamCreate)(CudaStreamHandle *, unsigned flags) = nullptr;
  int (*streamDestroy)(CudaStreamHandle) = nullptr;
  int (*streamSynchronize)(CudaStreamHandle) = nullptr;
  int (*streamBeginCapture)(CudaStreamHandle, int mode) = nullptr;
  int (*streamEndCapture)(CudaStreamHandle, CudaGraphHandle *) = nullptr;
  int (*eventCreate)(CudaEventHandle *, unsigned flags) = nullptr;
  int (*eventDestroy)(CudaEventHandle) = nullptr;
  int (*eventRecord)(CudaEventHandle, CudaStreamHandle) = nullptr;
  int (*eventRecordWithFlags)(CudaEventHandle, CudaStreamHandle, unsigned flags) = nullptr;
  int (*eventSynchronize)(CudaEventHandle) = nullptr;
  int (*eventElapsedTime)(float *milliseconds, CudaEventHandle, CudaEventHandle) = nullptr;
  int (*graphInstantiate)(CudaGraphExecHandle *, CudaGraphHandle, unsigned long long flags) = nullptr;
  int (*graphGetNodes)(CudaGraphHandle, void *nodes, size_t *count) = nullptr;
  int (*graphLaunch)(CudaGraphExecHandle, CudaStreamHandle) = nullptr;
  int (*graphExecDestroy)(CudaGraphExecHandle) = nullptr;
  int (*graphDestroy)(CudaGraphHandle) = nullptr;

  /// Fills all of them; the name of the first that `library` lacks, or null.
  const char *load(const Library &library);
};

} // namespace fusor::runtime
