// Which of cuBLASLt's algorithms runs a product: the fastest of several, measured once and kept in the cache.
#pragma once
#include "runtime/cache/cache.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/execute/program.h"
#include <map>

namespace fusor::runtime {

struct GemmChoices {
  unsigned timed = 0, fromCache = 0, adopted = 0;
  std::vector<std::string> notes;
};

class GemmChooser {
public:
  /// `cache` may be null. `timing` false: the library's favourite, untimed.
  GemmChooser(CudaContextRef context, std::shared_ptr<const CublasLt> library, Cache *cache, bool timing)
      : context_(std::move(context)), library_(std::move(library)), cache_(cache), timing_(timing) {}

  const CublasLt &library() const { return *library_; }
  /// Most bytes of workspace that an algorithm may ask for: what NVIDIA advises for sm_90.
  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  /// The same for equal shapes. Reads `a`, `b` and the bias, writes a buffer of its own. `stream` must be idle.
  llvm::Expected<GemmCandidate> choose(const GemmShape &shape, const GemmBuffers &buffers, const CudaStream &stream,
                                       DevicePointer workspace);
  const GemmChoices &choices() const { return choices_; }

  /// What has been chosen, for a checkpoint; and what one says, which goes before the cache and before measuring.
  GemmPlans plans() const;
  void adopt(const GemmPlans &plans);

private:
  llvm::Expected<GemmCandidate> fastest(const GemmShape &shape, GemmBuffers buffers, const CudaStream &stream,
                                        DevicePointer workspace, llvm::ArrayRef<GemmCandidate> candidates);
  std::optional<GemmCandidate> kept(const GemmShape &shape);
  std::string environment() const;
  CacheKey keyOf(const GemmShape &shape) const;
  CudaContextRef context_;
  std::shared_ptr<const CublasLt> library_;
  Cache *cache_;
  bool timing_, isCacheClosed_ = false; // the latter: a plan could not be written, which was said
  std::map<std::string, GemmCandidate> known_;
  std::map<std::string, std::string> adopted_; // text of candidates by shape
  GemmChoices choices_;
};

} // namespace fusor::runtime
