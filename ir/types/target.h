// What a device can do, as a plain value: filled by the run time or by hand, read by passes and codegen.
#pragma once
#include <cstdint>
#include <string>

namespace fusor::ir {

enum class DeviceKind : uint8_t { cpu, cuda };
/// Kernel tiers: `simt` runs on any GPU (CUDA cores), `sm80` has mma.sync and cp.async, `sm90a` has wgmma and TMA.
enum class ArchTier : uint8_t { simt, sm80, sm90a };

/// cuBLASLt's FP8 products have multiples of this as columns and as terms of a sum.
inline constexpr int64_t kFp8Multiple = 16;

struct Target {
  DeviceKind kind = DeviceKind::cpu;
  std::string arch = "cpu";       // "sm_90a" on CUDA
  ArchTier tier = ArchTier::simt; // the best tier to generate for
  bool hasFp8 = false;            // FP8 tensor cores; otherwise FP8 is emulated
  bool hasCublasLt = false;       // GEMMs may be library calls
  int64_t sharedBytesPerBlock = 48 * 1024;
  unsigned multiprocessors = 1;

  /// A library takes FP8 products; before sm_100 both operands of cuBLASLt's lie along the sum.
  bool hasFp8Library() const { return hasFp8 && hasCublasLt; }
};

} // namespace fusor::ir
