#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace fusor::runtime {

/// The instruction sets for which the hot CPU loops are compiled, slowest first. One binary carries all of them and
/// picks at run time, so that a build made anywhere runs anywhere.
enum class Isa {
  Baseline, ///< what the compiler assumes with no flags: SSE2 on x86-64, NEON on aarch64
  Avx2,     ///< AVX2 and FMA
  Avx512,   ///< AVX-512 F, BW, DQ, VL and FMA
};

/// "baseline", "avx2", "avx512".
llvm::StringRef isaName(Isa isa);

/// Whether this processor (and the operating system, which must save the wide registers) can run `isa`.
bool isSupported(Isa isa);

/// The fastest supported one. Results differ in the last bits between instruction sets (FMA rounds once).
Isa bestIsa();

/// All supported ones, slowest first; tests run each of them.
llvm::SmallVector<Isa, 3> supportedIsas();

} // namespace fusor::runtime
