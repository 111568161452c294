#include "runtime/cuda/driver_functions.h"
#include "runtime/cuda/library_search.h"

namespace fusor::runtime {

const char *DriverFunctions::load(const Library &library) {
  const char *missing = nullptr;
  auto find = [&](const char *name, auto *&function) {
    if (!library.find(name, function) && !missing) missing = name;
  };
  find("cuGetErrorName", getErrorName);
  find("cuGetErrorString", getErrorString);
  find("cuDeviceGet", deviceGet);
  find("cuDevicePrimaryCtxRetain", primaryContextRetain);
  find("cuDevicePrimaryCtxRelease_v2", primaryContextRelease);
  find("cuCtxSetCurrent", contextSetCurrent);
  find("cuMemGetInfo_v2", memoryInfo);
  find("cuMemAlloc_v2", memoryAllocate);
  find("cuMemFree_v2", memoryFree);
  find("cuMemHostAlloc", hostAllocate);
  find("cuMemFreeHost", hostFree);
  find("cuMemcpyHtoDAsync_v2", copyToDeviceAsync);
  find("cuMemcpyDtoHAsync_v2", copyToHostAsync);
  find("cuMemcpyDtoDAsync_v2", copyOnDeviceAsync);
  find("cuMemsetD8Async", setBytesAsync);
  find("cuModuleLoadData", moduleLoadData);
  find("cuModuleGetFunction", moduleGetFunction);
  find("cuModuleUnload", moduleUnload);
  find("cuFuncSetAttribute", functionSetAttribute);
  find("cuFuncGetAttribute", functionGetAttribute);
  find("cuLaunchKernel", launchKernel);
  find("cuStreamCreate", streamCreate);
  find("cuStreamDestroy_v2", streamDestroy);
  find("cuStreamSynchronize", streamSynchronize);
  find("cuStreamBeginCapture_v2", streamBeginCapture);
  find("cuStreamEndCapture", streamEndCapture);
  find("cuEventCreate", eventCreate);
  find("cuEventDestroy_v2", eventDestroy);
  find("cuEventRecord", eventRecord);
  find("cuEventRecordWithFlags", eventRecordWithFlags);
  find("cuEventSynchronize", eventSynchronize);
  find("cuEventElapsedTime", eventElapsedTime);
  find("cuGraphInstantiateWithFlags", graphInstantiate);
  find("cuGraphGetNodes", graphGetNodes);
  find("cuGraphLaunch", graphLaunch);
  find("cuGraphExecDestroy", graphExecDestroy);
  find("cuGraphDestroy", graphDestroy);
  return missing;
}

} // namespace fusor::runtime
