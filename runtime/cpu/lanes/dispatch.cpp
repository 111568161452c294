#include "runtime/cpu/lanes/dispatch.h"
#include "llvm/Support/ErrorHandling.h"

namespace fusor::runtime::lanes {

const Kernels &kernelsFor(Isa isa) {
  switch (isa) {
  case Isa::Baseline: return baseline::kernels;
#ifdef FUSOR_CPU_X86
  case Isa::Avx2: return avx2::kernels;
  case Isa::Avx512: return avx512::kernels;
#else
  default: break;
#endif
  }
  llvm_unreachable("an instruction set that isSupported() refuses");
}

} // namespace fusor::runtime::lanes
