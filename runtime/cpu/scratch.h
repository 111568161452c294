// Memory of the thread at hand, kept from call to call: inner loops must not allocate.
#pragma once
#include <cstdint>

namespace fusor::runtime {

/// At least `bytes` of this thread's scratch, aligned to 64; what was in it is lost. There are a few independent ones,
/// so that a GEMM tile can be kept while an epilogue runs.
enum class ScratchUse : uint8_t { lanes, tile, attention };
char *threadScratch(ScratchUse use, int64_t bytes);

} // namespace fusor::runtime
