// A libcuda with two devices, for the tests of driver_probe; FUSOR_FAKE_CUINIT makes cuInit fail with that code.
#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" {
int cuInit(unsigned) {
  const char *result = std::getenv("FUSOR_FAKE_CUINIT");
  return result ? std::atoi(result) : 0;
}
int cuDriverGetVersion(int *version) { return *version = 12080, 0; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal + 40, 0; }
int cuDeviceGetName(char *name, int length, int device) {
  std::strncpy(name, device == 40 ? "Fake GPU 0" : "Fake GPU 1", length);
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = size_t(device) << 30, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 75: *value = device == 40 ? 9 : 7; return 0;
  case 76: *value = device == 40 ? 0 : 5; return 0;
  default: *value = attribute; return 0;
  }
}
int cuGetErrorName(int code, const char **name) { return *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : nullptr, 0; }
int cuGetErrorString(int code, const char **text) {
  return *text = code == 100 ? "no CUDA-capable device is detected" : nullptr, 0;
}
}
