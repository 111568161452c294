#include "codegen/attention/emit_attention.h"
#include "codegen/emit/literal.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

namespace {

// Rows of a block: AttentionTile::kQueries and AttentionBackwardTile::kRows, kThreads of codegen/device.
int64_t forwardQueries(int64_t headSize) { return headSize <= 64 ? 64 : headSize <= 128 ? 32 : 16; }
int64_t backwardRows(int64_t headSize) { return headSize <= 64 ? 32 : headSize <= 128 ? 16 : 8; }
unsigned backwardThreads(int64_t headSize) { return headSize <= 128 ? 128 : 64; }

// Of codegen/device/mma_sm80.cuh: bytes of an MmaTile with 16-bit elements.
unsigned mmaTileBytes(int64_t rows, int64_t headSize) { return rows * (llvm::alignTo(headSize, 16) + 8) * 2; }

class AttentionWriter {
public:
  AttentionWriter(const FusionBody &body, KernelSet &set, const AttentionPlan &plan, std::string whyNoTensorCores)
      : body_(body), set_(set), plan_(plan), whyNoTensorCores_(std::move(whyNoTensorCores)) {}

  void forward() {
    if (whyNoTensorCores_.empty()) return forwardMma();
    KernelBuilder k(body_, set_);
    std::string lse = forwardViews(k, "attention_simt.cuh");
    k.code().raw("// the weights meet v unrounded: the IR has no rounding there");
    k.code().line("attentionForward<{0}, false>(q_view, k_view, v_view, y_view, {1}, shape{2});", plan_.headSize, lse,
                  bias(k));
    k.finish({heads(plan_.heads) * Count::ceilDiv(plan_.tq, forwardQueries(plan_.headSize)), 128,
              "online softmax on CUDA cores: " + whyNoTensorCores_});
  }

  void forwardMma() {
    KernelBuilder k(body_, set_);
    std::string lse = forwardViews(k, "attention_mma.cuh");
    k.code().line("attentionForwardMma<{0}>(q_view, k_view, v_view, y_view, {1}, shape{2});", plan_.headSize, lse,
                  bias(k));
    k.finish({.grid = heads(plan_.heads) * Count::ceilDiv(plan_.tq, 64),
              .block = 128,
              .note = "online softmax on tensor cores, 64 queries by 64 keys",
              .sharedBytes = 5 * mmaTileBytes(64, plan_.headSize),
              .blocksTogether = plan_.headSize <= 64 ? 3u : 2u});
  }

  void backward() {
    if (whyNoTensorCores_.empty()) return backwardMma();
    unsigned delta = deltaWorkspace();
    {
      KernelBuilder k(body_, set_, "delta");
      k.use("attention_backward_simt.cuh");
      shape(k);
      view(k, "y_view", plan_.y, false, plan_.tq);
      view(k, "dy_view", plan_.dy, false, plan_.tq);
      k.code().line("attentionDelta<{0}>(y_view, dy_view, {1}, shape);", plan_.headSize,
                    k.workspace(delta, "float", "delta", false));
      k.finish({Count::ceilDiv(plan_.batch * Dim(plan_.heads) * plan_.tq, 4), 128,
                "a warp a row: delta = sum(dy * y); on CUDA cores: " + whyNoTensorCores_});
    }
    int64_t rows = backwardRows(plan_.headSize);
    {
      KernelBuilder k(body_, set_, "dq");
      inputs(k, "attention_backward_simt.cuh");
      view(k, "dq_view", plan_.dq, true, plan_.tq);
      k.code().line("attentionQueryGrad<{0}, false>(q_view, k_view, v_view, dy_view, dq_view, {1}, {2}, shape);",
                    plan_.headSize, k.input(plan_.lseInput), k.workspace(delta, "float", "delta", true));
      k.finish({heads(plan_.heads) * Count::ceilDiv(plan_.tq, rows), backwardThreads(plan_.headSize),
                "a block a tile of queries"});
    }
    keyGrad("attention_backward_simt.cuh", "attentionKeyGrad<{0}, false>", delta,
            {heads(plan_.kvHeads) * Count::ceilDiv(plan_.tk, rows), backwardThreads(plan_.headSize),
             "a block a tile of keys"});
  }

  void backwardMma() {
    unsigned delta = deltaWorkspace();
    const int64_t moving = plan_.headSize <= 64 ? 64 : 32; // AttentionBackwardMma::kMoving
    const unsigned tiles = 2 * mmaTileBytes(64, plan_.headSize) + 4 * mmaTileBytes(moving, plan_.headSize);
    const unsigned together = plan_.headSize <= 64 ? 3 : 2;
    {
      KernelBuilder k(body_, set_, "dq");
      inputs(k, "attention_backward_mma.cuh");
      view(k, "y_view", plan_.y, false, plan_.tq);
      view(k, "dq_view", plan_.dq, true, plan_.tq);
      k.code().line("attentionQueryGradMma<{0}>(q_view, k_view, v_view, y_view, dy_view, dq_view, {1}, {2}, shape);",
                    plan_.headSize, k.input(plan_.lseInput), k.workspace(delta, "float", "delta", false));
      k.finish({.grid = heads(plan_.heads) * Count::ceilDiv(plan_.tq, 64),
                .block = 128,
                .note = "a block a tile of queries, on tensor cores",
                .sharedBytes = tiles + 64 * 4,
                .blocksTogether = together});
    }
    keyGrad("attention_backward_mma.cuh", "attentionKeyGradMma<{0}>", delta,
            {.grid = heads(plan_.kvHeads) * Count::ceilDiv(plan_.tk, 64),
             .block = 128,
             .note = "a block a tile of keys, on tensor cores",
             .sharedBytes = tiles + static_cast<unsigned>(4 * moving * 4),
             .blocksTogether = together});
  }

private:
  /// Shape, q, k, v and y of a forward kernel; what to call the log-sum-exp.
  std::string forwardViews(KernelBuilder &k, llvm::StringRef file) {
    k.use(file);
    shape(k);
    view(k, "q_view", plan_.q, false, plan_.tq);
    view(k, "k_view", plan_.k, false, plan_.tk);
    view(k, "v_view", plan_.v, false, plan_.tk);
    view(k, "y_view", plan_.y, true, plan_.tq);
    return plan_.lseOutput ? k.output(*plan_.lseOutput) : "(float *)nullptr";
  }

  /// dot(dy, y) of each row, between the kernels of the backward.
  unsigned deltaWorkspace() {
    set_.workspaces.push_back(Count(plan_.batch * Dim(plan_.heads) * plan_.tq * Dim(4)));
    return set_.workspaces.size() - 1;
  }

  /// The kernel of dk and dv. `function`: of the device library, {0} its head size.
  void keyGrad(llvm::StringRef file, const char *function, unsigned delta, LaunchOf launch) {
    KernelBuilder k(body_, set_, "dkv");
    inputs(k, file);
    view(k, "dk_view", plan_.dk, true, plan_.tk);
    view(k, "dv_view", plan_.dv, true, plan_.tk);
    k.code().line("{0}(q_view, k_view, v_view, dy_view, dk_view, dv_view, {1}, {2}, shape);",
                  llvm::formatv(function, plan_.headSize).str(), k.input(plan_.lseInput),
                  k.workspace(delta, "float", "delta", true));
    k.finish(std::move(launch));
  }

  Count heads(int64_t n) const { return Count(plan_.batch * Dim(n)); }

  void inputs(KernelBuilder &k, llvm::StringRef file) {
    k.use(file);
    shape(k);
    view(k, "q_view", plan_.q, false, plan_.tq);
    view(k, "k_view", plan_.k, false, plan_.tk);
    view(k, "v_view", plan_.v, false, plan_.tk);
    view(k, "dy_view", plan_.dy, false, plan_.tq);
  }

  void view(KernelBuilder &k, llvm::StringRef name, const HeadsView &view, bool isOutput, const Dim &tokens) {
    std::string pointer = isOutput ? k.output(view.index) : k.input(view.index);
    if (!view.offset.is(0)) pointer += " + " + k.dim(view.offset);
    k.code().noted(llvm::formatv("const HeadView<{0}{1}> {2} = {{{3}, {4}, {5}, {6}};", isOutput ? "" : "const ",
                                 storageType(plan_.dtype), name, pointer, k.dim(tokens * view.rowStride),
                                 k.dim(view.rowStride), plan_.headSize)
                       .str(),
                   "strides of batch, token, head");
  }

  /// The last argument of a forward kernel, after the lines that make it; "" where scores stay as they are.
  std::string bias(KernelBuilder &k) {
    if (!plan_.bias && !plan_.hidden) return "";
    std::string pointer = plan_.bias ? k.input(plan_.bias->index) : "nullptr", strides;
    if (plan_.bias && !plan_.bias->offset.is(0)) pointer += " + " + k.dim(plan_.bias->offset);
    for (unsigned i = 0; i < 4; ++i) strides += ", " + (plan_.bias ? k.dim(plan_.bias->strides[i]) : std::string("0"));
    k.code().noted(llvm::formatv("const AttentionBias bias_view = {{{0}{1},", pointer, strides).str(),
                   "strides of batch, head, query, key");
    k.code().noted(
        llvm::formatv("  {0}, {1}};", plan_.hidden ? "true" : "false", floatLiteral(plan_.hidden.value_or(0))).str(),
        "whether later keys have a score, and which");
    return ", bias_view";
  }

  void shape(KernelBuilder &k) {
    std::string mask = plan_.keyMask ? "(const u8 *)" + k.input(*plan_.keyMask) : "nullptr";
    std::string length =
        plan_.kvLength ? "(const i32 *)" + k.input(*plan_.kvLength) : "nullptr"; // little-endian: the low word
    k.code().noted(llvm::formatv("const AttentionShape shape = {{{0}, {1}, {2}, {3}, {4},", k.dim(plan_.batch),
                                 plan_.heads, plan_.kvHeads, k.dim(plan_.tq), k.dim(plan_.tk))
                       .str(),
                   "batch, heads, key heads, queries, keys");
    k.code().noted(llvm::formatv("  {0}, {1}, {2}, {3}, {4}};", floatLiteral(plan_.scale),
                                 plan_.causal && !plan_.hidden ? "true" : "false",
                                 plan_.window > 0 ? plan_.window - 1 : -1, mask, length)
                       .str(),
                   "scale, causal, keys to the left (-1: all), mask, length");
  }

  const FusionBody &body_;
  KernelSet &set_;
  const AttentionPlan &plan_;
  const std::string whyNoTensorCores_;
};

} // namespace

std::string whyNoTensorCores(const AttentionPlan &plan, const Target &target) {
  if (target.tier == ArchTier::simt) return "the kernel tier is simt";
  if (plan.dtype != DType::bf16 && plan.dtype != DType::f16)
    return "tensor cores take bf16 and f16, not " + name(plan.dtype).str();
  if (plan.headSize % 8 != 0 || plan.headSize > 128)
    return llvm::formatv("head size {0} is no multiple of 8 up to 128", plan.headSize).str();
  if (!(plan.scale > 0)) return "scale " + doubleLiteral(plan.scale) + " is not positive";
  for (const HeadsView *view : {&plan.q, &plan.k, &plan.v, &plan.y, &plan.dy, &plan.dq, &plan.dk, &plan.dv})
    if (!view->offset.divide(8) || !view->rowStride.divide(8)) return "rows do not begin at multiples of 16 bytes";
  return "";
}

llvm::Error emitAttention(const FusionBody &body, const Target &target, KernelSet &set) {
  auto plan = planAttention(body.flat);
  if (!plan) return plan.takeError();
  if (plan->dtype == DType::f64) return opError("the attention kernels accumulate in f32: none for f64");
  if (plan->headSize > 256)
    return opError("the attention kernels take head sizes up to 256, found {0}", plan->headSize);
  if (plan->kvLength && byteSize(body.block().argument(*plan->kvLength).dtype()) < 4)
    return opError("kv_length must have at least 32 bits");
  AttentionWriter writer(body, set, *plan, whyNoTensorCores(*plan, target));
  plan->backward ? writer.backward() : writer.forward();
  return llvm::Error::success();
}

} // namespace fusor::codegen
