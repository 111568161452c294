#include "runtime/cuda/cublaslt.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

namespace fusor::runtime {

using ir::DType;

// As in cublasLt.h of CUDA 11 and later: statuses are enums with 0 for success, descriptors are opaque pointers.
struct CublasLt::Functions {
  size_t (*getVersion)() = nullptr;
  int (*create)(void **handle) = nullptr;
  int (*destroy)(void *handle) = nullptr;
  int (*productCreate)(void **product, int computeType, int scaleType) = nullptr;
  int (*productDestroy)(void *product) = nullptr;
  int (*productSet)(void *product, int attribute, const void *value, size_t bytes) = nullptr;
  int (*layoutCreate)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) = nullptr;
  int (*layoutDestroy)(void *layout) = nullptr;
  int (*layoutSet)(void *layout, int attribute, const void *value, size_t bytes) = nullptr;
  int (*preferenceCreate)(void **preference) = nullptr;
  int (*preferenceDestroy)(void *preference) = nullptr;
  int (*preferenceSet)(void *preference, int attribute, const void *value, size_t bytes) = nullptr;
  int (*heuristic)(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int most,
                   void *results, int *found) = nullptr;
  int (*multiply)(void *handle, void *product, const void *alpha, const void *a, void *aLayout, const void *b,
                  void *bLayout, const void *beta, const void *c, void *cLayout, void *d, void *dLayout,
                  const void *algorithm, void *workspace, size_t workspaceBytes, CudaStreamHandle stream) = nullptr;

  int (*checkAlgorithm)(void *handle, void *product, void *a, void *b, void *c, void *d, const void *algorithm,
                        void *result) = nullptr;
  int (*algorithmGet)(const void *algorithm, int attribute, void *value, size_t bytes, size_t *written) = nullptr;

  const char *load(const Library &library) {
    const char *missing = nullptr;
    auto find = [&](const char *name, auto *&function) {
      if (!library.find(name, function) && !missing) missing = name;
    };
    find("cublasLtGetVersion", getVersion);
    find("cublasLtCreate", create);
    find("cublasLtDestroy", destroy);
    find("cublasLtMatmulDescCreate", productCreate);
    find("cublasLtMatmulDescDestroy", productDestroy);
    find("cublasLtMatmulDescSetAttribute", productSet);
    find("cublasLtMatrixLayoutCreate", layoutCreate);
    find("cublasLtMatrixLayoutDestroy", layoutDestroy);
    find("cublasLtMatrixLayoutSetAttribute", layoutSet);
    find("cublasLtMatmulPreferenceCreate", preferenceCreate);
    find("cublasLtMatmulPreferenceDestroy", preferenceDestroy);
    find("cublasLtMatmulPreferenceSetAttribute", preferenceSet);
    find("cublasLtMatmulAlgoGetHeuristic", heuristic);
    find("cublasLtMatmul", multiply);
    find("cublasLtMatmulAlgoCheck", checkAlgorithm);
    library.find("cublasLtMatmulAlgoConfigGetAttribute", algorithmGet); // for dumps only: may be absent
    return missing;
  }
};

namespace {

struct HeuristicResult { // cublasLtMatmulHeuristicResult_t
  GemmAlgorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

constexpr int kCompute32F = 68, kTypeF32 = 0, kTypeF16 = 2, kTypeBf16 = 14, kTypeE4m3 = 28, kTypeE5m2 = 29;
constexpr int kProductTransposeA = 3, kProductTransposeB = 4, kProductEpilogue = 7, kProductBiasPointer = 8;
constexpr int kProductScaleA = 17, kProductScaleB = 18, kProductFastAccumulation = 25;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferWorkspaceBytes = 1, kPreferReductionSchemes = 3;
constexpr uint32_t kReduceInComputeType =
    2; // split-K partial sums in a workspace, added in one order: equal bits each run
constexpr int32_t kEpilogueBias = 4;

// Any aligned addresses: for a choice only which there are counts.
const GemmBuffers kSomewhere = {.a = 256, .b = 256, .bias = 256, .scales = {256, 256}, .output = 256};

int typeOf(DType type) {
  switch (type) {
  case DType::bf16: return kTypeBf16;
  case DType::f16: return kTypeF16;
  case DType::f8e4m3: return kTypeE4m3;
  case DType::f8e5m2: return kTypeE5m2;
  default: return kTypeF32;
  }
}

} // namespace

std::string GemmShape::text() const {
  std::string inputs = ir::name(typeA).str();
  if (typeB != typeA) inputs += " x " + ir::name(typeB).str();
  std::string text = llvm::formatv("{0}x{1}x{2} {3} -> {4}", m, n, k, inputs, ir::name(outputType));
  if (batch != 1) text += llvm::formatv(", {0} times ({1}, {2} apart)", batch, batchStrideA, batchStrideB);
  text += llvm::formatv(", a{0} {1}, b{2} {3}", transposedA ? " transposed" : "", leadingA,
                        transposedB ? " transposed" : "", leadingB);
  if (hasBias) text += ", bias";
  if (hasScale[0] || hasScale[1]) text += hasScale[0] && hasScale[1] ? ", two scales" : ", a scale";
  return fastAccumulation ? text + ", fast accumulation" : text;
}

llvm::Expected<std::shared_ptr<const CublasLt>> CublasLt::load(const CudaContextRef &context, SearchLog *log) {
  LibrarySearch search;
  if (auto path = llvm::sys::Process::GetEnv("FUSOR_CUBLASLT")) search.explicitPath = *path;
  int newest = context->driverVersion() / 1000;
  for (int major : {13, 12, 11})
    if (newest == 0 || major <= newest) search.fileNames.push_back("libcublasLt.so." + std::to_string(major));
  search.fileNames.push_back("libcublasLt.so");
  SearchLog tried;
  for (const std::string &place : libraryPlaces(search)) {
    std::shared_ptr<CublasLt> lt(new CublasLt());
    std::string why;
    lt->library_ = Library::open(place, why);
    if (!lt->library_) {
      tried.push_back({place, why});
      continue;
    }
    lt->functions_ = std::make_unique<Functions>();
    if (const char *missing = lt->functions_->load(lt->library_)) {
      tried.push_back({place, std::string("has no ") + missing});
      continue;
    }
    lt->context_ = context;
    if (auto error = context->makeCurrent()) return error;
    if (int status = lt->functions_->create(&lt->handle_)) {
      tried.push_back({place, llvm::formatv("cublasLtCreate failed, status {0}", status)});
      continue;
    }
    lt->version_ = static_cast<int64_t>(lt->functions_->getVersion());
    tried.push_back({lt->library_.path(), llvm::formatv("loaded, cuBLASLt {0}", lt->version_)});
    if (log) *log = std::move(tried);
    return std::shared_ptr<const CublasLt>(std::move(lt));
  }
  if (log) *log = tried;
  return llvm::make_error<DeviceError>(
      "found no cuBLASLt; install a CUDA toolkit or PyPI's nvidia-cublas, or use --blas own" + searchText(tried));
}

CublasLt::~CublasLt() {
  if (handle_) functions_->destroy(handle_);
}

llvm::Error CublasLt::check(int status, const char *call, const GemmShape &shape) const {
  if (status == 0) return llvm::Error::success();
  return llvm::make_error<DeviceError>(llvm::formatv("{0} failed for {1}: status {2}", call, shape.text(), status));
}

// The library thinks in columns: our row-major [m, n] is its [n, m], so D' = B' * A'.
llvm::Error CublasLt::describe(const GemmShape &s, const GemmBuffers &buffers, Plan &plan) const {
  plan.library_ = this;
  plan.shape_ = s;
  if (auto error =
          check(functions_->productCreate(&plan.product_, kCompute32F, kTypeF32), "cublasLtMatmulDescCreate", s))
    return error;
  auto set = [&](int attribute, const void *value, size_t bytes) {
    return check(functions_->productSet(plan.product_, attribute, value, bytes), "cublasLtMatmulDescSetAttribute", s);
  };
  int32_t first = s.transposedB, second = s.transposedA; // 0 as it is, 1 transposed
  if (auto error = set(kProductTransposeA, &first, sizeof first)) return error;
  if (auto error = set(kProductTransposeB, &second, sizeof second)) return error;
  if (s.hasBias) {
    if (auto error = set(kProductEpilogue, &kEpilogueBias, sizeof kEpilogueBias)) return error;
    if (auto error = set(kProductBiasPointer, &buffers.bias, sizeof buffers.bias)) return error;
  }
  for (int i = 0; i < 2; ++i) // which of the two is which does not matter: the product is multiplied by both
    if (s.hasScale[i])
      if (auto error = set(i ? kProductScaleB : kProductScaleA, &buffers.scales[i], sizeof(DevicePointer)))
        return error;
  if (s.fastAccumulation) {
    int8_t on = 1;
    if (auto error = set(kProductFastAccumulation, &on, sizeof on)) return error;
  }
  struct {
    DType type;
    int64_t rows, columns, leading, batchStride;
  } layouts[3] = {{s.typeB, s.transposedB ? s.k : s.n, s.transposedB ? s.n : s.k, s.leadingB, s.batchStrideB},
                  {s.typeA, s.transposedA ? s.m : s.k, s.transposedA ? s.k : s.m, s.leadingA, s.batchStrideA},
                  {s.outputType, s.n, s.m, s.n, s.m * s.n}};
  for (unsigned i = 0; i < 3; ++i) {
    const auto &l = layouts[i];
    if (auto error = check(functions_->layoutCreate(&plan.layouts_[i], typeOf(l.type), l.rows, l.columns, l.leading),
                           "cublasLtMatrixLayoutCreate", s))
      return error;
    if (s.batch == 1) continue;
    auto count = static_cast<int32_t>(s.batch);
    int status = functions_->layoutSet(plan.layouts_[i], kLayoutBatchCount, &count, sizeof count);
    if (status == 0)
      status = functions_->layoutSet(plan.layouts_[i], kLayoutBatchStride, &l.batchStride, sizeof l.batchStride);
    if (auto error = check(status, "cublasLtMatrixLayoutSetAttribute", s)) return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<GemmCandidate>> CublasLt::candidates(const GemmShape &shape, int64_t workspaceBytes,
                                                                unsigned most) const {
  Plan plan;
  if (auto error = describe(shape, kSomewhere, plan)) return error;
  void *preference = nullptr;
  if (auto error = check(functions_->preferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", shape))
    return error;
  auto destroy = llvm::make_scope_exit([&] { functions_->preferenceDestroy(preference); });
  uint64_t bytes = workspaceBytes;
  int status = functions_->preferenceSet(preference, kPreferWorkspaceBytes, &bytes, sizeof bytes);
  if (status == 0)
    status = functions_->preferenceSet(preference, kPreferReductionSchemes, &kReduceInComputeType,
                                       sizeof kReduceInComputeType);
  if (auto error = check(status, "cublasLtMatmulPreferenceSetAttribute", shape)) return error;
  std::vector<HeuristicResult> results(most);
  int found = 0;
  status = functions_->heuristic(handle_, plan.product_, plan.layouts_[0], plan.layouts_[1], plan.layouts_[2],
                                 plan.layouts_[2], preference, static_cast<int>(most), results.data(), &found);
  if (auto error = check(status, "cublasLtMatmulAlgoGetHeuristic", shape)) return error;
  std::vector<GemmCandidate> candidates;
  for (int i = 0; i < found; ++i)
    if (results[i].status == 0)
      candidates.push_back({results[i].algorithm, static_cast<int64_t>(results[i].workspaceBytes)});
  if (candidates.empty())
    return llvm::make_error<DeviceError>("cuBLASLt has no algorithm for " + shape.text() + "; use --blas own");
  return candidates;
}

std::string CublasLt::text(const GemmCandidate &candidate) const {
  std::string text;
  // CUBLASLT_ALGO_CONFIG_ID, TILE_ID, STAGES_ID, SPLITK_NUM
  for (auto [attribute, label] : {std::pair{0, "algorithm"}, {1, "tile"}, {6, "stages"}, {2, "split-K"}}) {
    int32_t value = 0;
    size_t written = 0;
    if (functions_->algorithmGet &&
        functions_->algorithmGet(&candidate.algorithm, attribute, &value, sizeof value, &written) == 0)
      text += llvm::formatv("{0} {1}, ", label, value);
  }
  return text + std::to_string(candidate.workspaceBytes) + " bytes of workspace";
}

bool CublasLt::accepts(const GemmShape &shape, const GemmCandidate &candidate) const {
  Plan plan;
  if (auto error = describe(shape, kSomewhere, plan)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  HeuristicResult result = {};
  int status = functions_->checkAlgorithm(handle_, plan.product_, plan.layouts_[0], plan.layouts_[1], plan.layouts_[2],
                                          plan.layouts_[2], &candidate.algorithm, &result);
  return status == 0 && result.status == 0 && static_cast<int64_t>(result.workspaceBytes) <= candidate.workspaceBytes;
}

llvm::Expected<CublasLt::Plan> CublasLt::plan(const GemmShape &shape, const GemmBuffers &buffers,
                                              const GemmCandidate &candidate) const {
  Plan plan;
  if (auto error = describe(shape, buffers, plan)) return error;
  plan.buffers_ = buffers;
  plan.candidate_ = candidate;
  return plan;
}

CublasLt::Plan &CublasLt::Plan::operator=(Plan &&other) noexcept {
  std::swap(library_, other.library_), std::swap(product_, other.product_), std::swap(layouts_, other.layouts_);
  shape_ = other.shape_, buffers_ = other.buffers_, candidate_ = other.candidate_;
  return *this;
}

CublasLt::Plan::~Plan() {
  if (product_) library_->functions_->productDestroy(product_);
  for (void *layout : layouts_)
    if (layout) library_->functions_->layoutDestroy(layout);
}

llvm::Error CublasLt::Plan::run(const CudaStream &stream, DevicePointer workspace) const {
  const float one = 1, zero = 0;
  auto at = [](DevicePointer pointer) { return reinterpret_cast<void *>(pointer); };
  return library_->check(library_->functions_->multiply(
                             library_->handle_, product_, &one, at(buffers_.b), layouts_[0], at(buffers_.a),
                             layouts_[1], &zero, at(buffers_.output), layouts_[2], at(buffers_.output), layouts_[2],
                             &candidate_.algorithm, at(workspace), candidate_.workspaceBytes, stream.handle()),
                         "cublasLtMatmul", shape_);
}

} // namespace fusor::runtime
