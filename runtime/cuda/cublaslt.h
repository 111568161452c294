// cuBLASLt, opened with dlopen: one matrix product with a bias, on a stream, by a plan that was chosen before.
#pragma once
#include "ir/types/dtype.h"
#include "runtime/cuda/driver.h"

namespace fusor::runtime {

/// As cublasLtMatmulAlgo_t: opaque, may be kept in a file for the same version of the library and the same device.
struct GemmAlgorithm {
  uint64_t words[8] = {};
};

/// A product with all sizes known, row-major; strides in elements.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  ir::DType typeA = ir::DType::f32, typeB = ir::DType::f32, outputType = ir::DType::f32;
  bool transposedA = false, transposedB = false;
  int64_t leadingA = 0, leadingB = 0, batchStrideA = 0, batchStrideB = 0;
  bool hasBias = false;
  bool hasScale[2] = {false, false}; // what the product is multiplied by, one with A, one with B: FP8 only
  bool fastAccumulation = false;     // FP8 only: sums keep fewer bits
  /// "256x3072x768 bf16 -> bf16, b transposed, bias": for messages, and part of cache keys.
  std::string text() const;
};

struct GemmBuffers {
  DevicePointer a = 0, b = 0, bias = 0, scales[2] = {0, 0}, output = 0;
};

struct GemmCandidate {
  GemmAlgorithm algorithm;
  int64_t workspaceBytes = 0;
};

class CublasLt {
public:
  /// Searches as for NVRTC, and in FUSOR_CUBLASLT. `newestMajor`: of CUDA, as the driver can. The error lists what was
  /// tried.
  static llvm::Expected<std::shared_ptr<const CublasLt>> load(const CudaContextRef &context, SearchLog *log = nullptr);
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;

  int64_t version() const { return version_; } ///< 130000 for 13.0.0
  std::string path() const { return library_.path(); }
  /// "algorithm 66, tile 20, stages 35, split-K 1, 0 bytes of workspace": numbers as cublasLt.h counts.
  std::string text(const GemmCandidate &candidate) const;

  /// At most `most` algorithms, the library's favourite first. Errors: DeviceError when it has none.
  llvm::Expected<std::vector<GemmCandidate>> candidates(const GemmShape &shape, int64_t workspaceBytes,
                                                        unsigned most) const;

  /// Whether `candidate`, from a file, is an algorithm of this library and device for `shape`, with its workspace.
  bool accepts(const GemmShape &shape, const GemmCandidate &candidate) const;

  /// A product at fixed addresses, ready to be put on a stream any number of times.
  class Plan {
  public:
    Plan() = default;
    Plan(Plan &&other) noexcept { *this = std::move(other); }
    Plan &operator=(Plan &&other) noexcept;
    ~Plan();
    llvm::Error run(const CudaStream &stream, DevicePointer workspace) const;
    /// Its algorithm, as CublasLt::text.
    std::string text() const { return library_->text(candidate_); }

  private:
    friend class CublasLt;
    const CublasLt *library_ = nullptr;
    GemmShape shape_;
    GemmBuffers buffers_;
    GemmCandidate candidate_;
    void *product_ = nullptr, *layouts_[3] = {};
  };
  /// Must not outlive this library.
  llvm::Expected<Plan> plan(const GemmShape &shape, const GemmBuffers &buffers, const GemmCandidate &candidate) const;

private:
  struct Functions;
  CublasLt() = default;
  llvm::Error check(int status, const char *call, const GemmShape &shape) const;
  llvm::Error describe(const GemmShape &shape, const GemmBuffers &buffers, Plan &plan) const;
  CudaContextRef context_;
  Library library_;
  std::unique_ptr<Functions> functions_;
  void *handle_ = nullptr;
  int64_t version_ = 0;
};

} // namespace fusor::runtime
