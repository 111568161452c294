// A constant right operand of products in the order in which GEMM kernels read it, packed by the first product that
// needs it. All sizes of a program share it: with few rows a product reads its weight as often as it packs it.
#pragma once
#include "runtime/cpu/aligned_memory.h"
#include "runtime/cpu/gemm/gemm.h"

namespace fusor::runtime {

class PackedWeight {
public:
  /// B of `args` packed; null where the machine has no memory for it.
  const float *of(const GemmArgs &args, Isa isa) {
    if (!isPacked_) {
      isPacked_ = true;
      memory_ = AlignedMemory(packedFloats(args.K, args.N) * 4);
      if (memory_) packWholeB(args, reinterpret_cast<float *>(memory_.data()), isa);
    }
    return reinterpret_cast<const float *>(memory_.data());
  }
  /// The constant has another content now.
  void forget() { isPacked_ = false, memory_ = AlignedMemory(); }

private:
  AlignedMemory memory_;
  bool isPacked_ = false;
};

} // namespace fusor::runtime
