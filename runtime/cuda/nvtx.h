// Named ranges of the host's time that NVIDIA's tools show beside the device's: NVTX, without its header or library.
//
// A tool (Nsight Systems) sets NVTX_INJECTION64_PATH to a library of its own before it starts a program. Whoever has
// ranges to tell opens it, calls its InitializeInjectionNvtx2, and gets functions filled in that push and pop a range.
// Without a tool nothing is opened, and a range costs a comparison with null.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace fusor::runtime {

class Nvtx {
public:
  /// The tool of this process, opened at the first call; null where there is none, or it wants no ranges.
  static const Nvtx *ofThisProcess();
  /// The tool in the library `path`; a second one takes the first one's place. For tests.
  static const Nvtx *open(const char *path);

  void push(const char *name) const;
  void pop() const;
};

/// A range from here to the end of the scope. `nvtx` may be null.
class NvtxRange {
public:
  NvtxRange(const Nvtx *nvtx, const llvm::Twine &name) : nvtx_(nvtx) {
    if (nvtx_) nvtx_->push(name.str().c_str());
  }
  NvtxRange(const NvtxRange &) = delete;
  ~NvtxRange() {
    if (nvtx_) nvtx_->pop();
  }

private:
  const Nvtx *nvtx_;
};

} // namespace fusor::runtime
