#include "runtime/cuda/nvtx.h"
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace fusor::runtime {
namespace {

// As in nvtx3/nvtxDetail/nvtxTypes.h: numbers of functions in the tables of modules 1 ("core") and 5 ("core2").
constexpr unsigned kRangePush = 9, kRangePop = 11, kFunctions = 16, kCore = 1, kCore2 = 5, kModules = 7;
constexpr unsigned kCallbacks = 1, kVersionInfo = 3; // tables that a tool may ask for
constexpr uint32_t kVersion = 3;

using AnyFunction = void (*)();
using Push = int (*)(const char *);
using Pop = int (*)();

struct VersionInfo {
  size_t bytes;
  uint32_t version, reserved;
  void (*setToolVersion)(uint32_t);
};
struct Callbacks {
  size_t bytes;
  int (*functionTable)(unsigned module, AnyFunction ***table, unsigned *size);
};

// What a tool fills in: it lives as long as the process, as the tool does.
struct Tables {
  AnyFunction functions[kModules][kFunctions + 1] = {};
  AnyFunction *pointers[kModules][kFunctions + 1] = {};
  Tables() {
    for (unsigned module : {kCore, kCore2})
      for (unsigned i = 1; i < kFunctions; ++i) pointers[module][i] = &functions[module][i];
  }
};
Tables &tables() {
  static Tables all;
  return all;
}

int functionTable(unsigned module, AnyFunction ***table, unsigned *size) {
  if (module == 0 || module >= kModules) return 0;
  if (table) *table = tables().pointers[module];
  if (size) *size = module == kCore || module == kCore2 ? kFunctions : 1; // of others there are none here
  return 1;
}

const void *exportTable(unsigned id) {
  static const Callbacks callbacks = {sizeof(Callbacks), functionTable};
  static const VersionInfo version = {sizeof(VersionInfo), kVersion, 0, [](uint32_t) {}};
  return id == kCallbacks ? static_cast<const void *>(&callbacks) : id == kVersionInfo ? &version : nullptr;
}

} // namespace

const Nvtx *Nvtx::open(const char *path) {
  static const Nvtx opened;
  void *library = path ? dlopen(path, RTLD_LAZY) : nullptr; // never closed: it belongs to the tool
  if (!library) return nullptr;
  auto initialize = reinterpret_cast<int (*)(const void *(*)(unsigned))>(dlsym(library, "InitializeInjectionNvtx2"));
  if (!initialize || !initialize(exportTable)) return nullptr;
  const AnyFunction *core = tables().functions[kCore];
  return core[kRangePush] && core[kRangePop] ? &opened : nullptr;
}

const Nvtx *Nvtx::ofThisProcess() {
  static const Nvtx *const opened = open(std::getenv("NVTX_INJECTION64_PATH"));
  return opened;
}

void Nvtx::push(const char *name) const { reinterpret_cast<Push>(tables().functions[kCore][kRangePush])(name); }
void Nvtx::pop() const { reinterpret_cast<Pop>(tables().functions[kCore][kRangePop])(); }

} // namespace fusor::runtime
