#include "runtime/cpu/isa.h"

#include "llvm/Support/ErrorHandling.h"

namespace fusor::runtime {

llvm::StringRef isaName(Isa isa) {
  switch (isa) {
  case Isa::Baseline: return "baseline";
  case Isa::Avx2: return "avx2";
  case Isa::Avx512: return "avx512";
  }
  llvm_unreachable("no such instruction set");
}

bool isSupported(Isa isa) {
  switch (isa) {
  case Isa::Baseline: return true;
#ifdef FUSOR_CPU_X86
  case Isa::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case Isa::Avx512:
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && isSupported(Isa::Avx2);
#else
  case Isa::Avx2:
  case Isa::Avx512: return false;
#endif
  }
  llvm_unreachable("no such instruction set");
}

llvm::SmallVector<Isa, 3> supportedIsas() {
  llvm::SmallVector<Isa, 3> supported;
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512})
    if (isSupported(isa)) supported.push_back(isa);
  return supported;
}

Isa bestIsa() {
  if (isSupported(Isa::Avx512)) return Isa::Avx512;
  if (isSupported(Isa::Avx2)) return Isa::Avx2;
  return Isa::Baseline;
}

} // namespace fusor::runtime
