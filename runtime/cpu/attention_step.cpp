#include "runtime/cpu/attention_step.h"
#include "ir/graph/bug.h"
#include "runtime/cpu/gemm/gemm.h"
#include "runtime/cpu/lanes/dispatch.h"
#include "runtime/cpu/loop/storage.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/scratch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace fusor::runtime {

using namespace ir;

namespace {

constexpr int64_t kQueries = 64;   // of one block
constexpr int64_t kFewQueries = 2; // decoding: products with so few rows are dot products
constexpr float kInf = std::numeric_limits<float>::infinity();

// f32 rows with a distance between them.
struct Matrix {
  float *data = nullptr;
  int64_t stride = 0;
  float *row(int64_t i) const { return data + i * stride; }
};

} // namespace

// The scratch and the products of one task.
class AttentionStep::Task {
public:
  Task(const AttentionStep &step, const StepMemory &memory, int64_t scratchFloats)
      : step_(step), memory_(memory), k_(lanes::kernelsFor(step.isa_)),
        next_(reinterpret_cast<float *>(threadScratch(ScratchUse::attention, (scratchFloats + 64) * 4))) {}

  float *take(int64_t floats) {
    float *p = next_;
    next_ += llvm::alignTo(floats, 16);
    return p;
  }
  /// Tokens [first, first + count) of one head, in f32: where they lie, or widened into scratch.
  Matrix read(const View &view, bool isOutput, int64_t tokens, int64_t batch, int64_t head, int64_t first,
              int64_t count) {
    char *data = isOutput ? memory_.outputs[view.index] : const_cast<char *>(memory_.inputs[view.index]);
    int64_t at = view.offset + (batch * tokens + first) * view.rowStride + head * step_.d_;
    if (step_.dtype_ == DType::f32) return {reinterpret_cast<float *>(data) + at, view.rowStride};
    Matrix m{take(count * step_.d_), step_.d_};
    for (int64_t i = 0; i < count; ++i)
      loadLanes(k_, step_.dtype_, data, at + i * view.rowStride, 1, m.row(i), step_.d_);
    return m;
  }
  /// Where rows of a result are computed: in the output itself, or in scratch that `write` rounds and stores.
  Matrix resultRows(const View &view, int64_t tokens, int64_t batch, int64_t head, int64_t first, int64_t count) {
    if (step_.dtype_ != DType::f32) return {take(count * step_.d_), step_.d_};
    return read(view, true, tokens, batch, head, first, count);
  }
  void write(const View &view, int64_t tokens, int64_t batch, int64_t head, int64_t first, int64_t count,
             const Matrix &m) {
    if (step_.dtype_ == DType::f32) return;
    int64_t at = view.offset + (batch * tokens + first) * view.rowStride + head * step_.d_;
    for (int64_t i = 0; i < count; ++i) {
      roundLanes(k_, step_.dtype_, m.row(i), m.row(i), step_.d_);
      storeLanes(k_, step_.dtype_, m.row(i), memory_.outputs[view.index], at + i * view.rowStride, 1, step_.d_);
    }
  }
  /// C[m, n] = op(A) op(B) (+ C)
  void product(int64_t m, int64_t n, int64_t k, const Matrix &a, bool transA, const Matrix &b, bool transB,
               const Matrix &c, bool add) {
    if (m <= kFewQueries && !transA) return fewRows(m, n, k, a, b, transB, c, add);
    GemmArgs args;
    args.M = m, args.N = n, args.K = k;
    args.A = a.data, args.lda = a.stride, args.transA = transA;
    args.B = b.data, args.ldb = b.stride, args.transB = transB;
    args.C = c.data, args.ldc = c.stride, args.beta = add ? 1.0f : 0.0f;
    gemmTile(args, {0, 0, m, n}, step_.isa_);
  }
  /// Row `query` of the scores becomes -inf where it may not see; returns what it may see within `keys`.
  Range mask(float *scores, int64_t batch, int64_t query, const Range &keys, int64_t length) const {
    Range seen = step_.keysOf(query, query, length);
    seen = {std::clamp(seen.begin, keys.begin, keys.end) - keys.begin,
            std::clamp(seen.end, keys.begin, keys.end) - keys.begin};
    seen.end = std::max(seen.begin, seen.end);
    if (step_.keyMask_) {
      const char *mask = memory_.inputs[*step_.keyMask_] + batch * step_.tk_ + keys.begin;
      for (int64_t j = seen.begin; j < seen.end; ++j)
        if (!mask[j]) scores[j] = -kInf;
    }
    return seen;
  }
  /// The final scores of one query and keys first ... first + n - 1, of q k: scaled, later keys filled, with the bias.
  void finish(float *s, int64_t batch, int64_t head, int64_t query, int64_t first, int64_t n, int64_t length) const {
    auto *times = k_.f32.binary[static_cast<int>(lanes::Fn2::mul)][static_cast<int>(lanes::Mode::rightScalar)];
    times(s, &step_.scale_, s, n);
    if (step_.hidden_)
      std::fill(s + std::clamp<int64_t>(query + length - step_.tq_ + 1 - first, 0, n), s + n, *step_.hidden_);
    if (!step_.bias_) return;
    const Bias &b = *step_.bias_;
    const float *bias = reinterpret_cast<const float *>(memory_.inputs[b.index]) + b.offset + batch * b.strides[0] +
                        head * b.strides[1] + query * b.strides[2] + first * b.strides[3];
    auto *plus = k_.f32.binary[static_cast<int>(lanes::Fn2::add)];
    if (b.strides[3] == 1)
      plus[static_cast<int>(lanes::Mode::vectors)](s, bias, s, n);
    else if (b.strides[3] == 0)
      plus[static_cast<int>(lanes::Mode::rightScalar)](s, bias, s, n);
    else
      for (int64_t j = 0; j < n; ++j) s[j] += bias[j * b.strides[3]];
  }
  const lanes::Kernels &kernels() const { return k_; }

private:
  void fewRows(int64_t m, int64_t n, int64_t k, const Matrix &a, const Matrix &b, bool transB, const Matrix &c,
               bool add) {
    for (int64_t i = 0; i < m; ++i) {
      float *y = c.row(i);
      if (!add) std::memset(y, 0, n * 4);
      if (transB)
        for (int64_t j = 0; j < n; ++j) y[j] += k_.rows.dot(a.row(i), b.row(j), k);
      else
        for (int64_t t = 0; t < k; ++t) k_.rows.axpy(a.row(i)[t], b.row(t), y, n);
    }
  }
  const AttentionStep &step_;
  const StepMemory &memory_;
  const lanes::Kernels &k_;
  float *next_;
};

AttentionStep::AttentionStep(const codegen::AttentionPlan &plan, const SymbolValues &symbols,
                             llvm::ArrayRef<DType> inputs, Isa isa)
    : isBackward_(plan.backward), causal_(plan.causal), dtype_(plan.dtype), heads_(plan.heads), kvHeads_(plan.kvHeads),
      d_(plan.headSize), window_(plan.window), scale_(static_cast<float>(plan.scale)), lseOutput_(plan.lseOutput),
      keyMask_(plan.keyMask), kvLength_(plan.kvLength), lseInput_(plan.lseInput), isa_(isa) {
  auto valueOf = [&](const Dim &dim) {
    auto value = dim.evaluate(symbols);
    if (!value) FUSOR_BUG("{0} has no value when attention is planned", dim.str());
    return *value;
  };
  batch_ = valueOf(plan.batch), tq_ = valueOf(plan.tq), tk_ = valueOf(plan.tk);
  auto viewOf = [&](const codegen::HeadsView &v) { return View{v.index, valueOf(v.offset), valueOf(v.rowStride)}; };
  q_ = viewOf(plan.q), k_ = viewOf(plan.k), v_ = viewOf(plan.v), y_ = viewOf(plan.y);
  if (isBackward_) dy_ = viewOf(plan.dy), dq_ = viewOf(plan.dq), dk_ = viewOf(plan.dk), dv_ = viewOf(plan.dv);
  if (kvLength_) lengthType_ = inputs[*kvLength_];
  if (plan.hidden) hidden_ = static_cast<float>(*plan.hidden);
  if (plan.bias) {
    bias_ = Bias{plan.bias->index, valueOf(plan.bias->offset), {}};
    for (unsigned i = 0; i < 4; ++i) bias_->strides[i] = valueOf(plan.bias->strides[i]);
  }
}

int64_t AttentionStep::length(const StepMemory &memory) const {
  if (!kvLength_) return tk_;
  return std::min(static_cast<int64_t>(loadElement(lengthType_, memory.inputs[*kvLength_], 0)), tk_);
}

AttentionStep::Range AttentionStep::keysOf(int64_t firstQuery, int64_t lastQuery, int64_t length) const {
  Range keys{0, std::max<int64_t>(0, length)};
  if (causal_ && !hidden_) keys.end = std::clamp<int64_t>(lastQuery + length - tq_ + 1, 0, keys.end);
  if (window_ > 0) keys.begin = std::clamp<int64_t>(firstQuery + length - tq_ - window_ + 1, 0, keys.end);
  return keys;
}

void AttentionStep::run(const StepMemory &memory, Workers &workers) const {
  if (isBackward_) {
    workers.forEach(batch_ * kvHeads_, [&](int64_t task) { backward(memory, task / kvHeads_, task % kvHeads_); });
    return;
  }
  int64_t blocks = llvm::divideCeil(tq_, kQueries);
  workers.forEach(batch_ * heads_ * blocks, [&](int64_t task) {
    forward(memory, task / blocks / heads_, task / blocks % heads_, task % blocks * kQueries);
  });
}

void AttentionStep::forward(const StepMemory &memory, int64_t batch, int64_t head, int64_t first) const {
  int64_t rows = std::min(kQueries, tq_ - first), length = this->length(memory), kvHead = head / (heads_ / kvHeads_);
  Range keys = keysOf(first, first + rows - 1, length);
  int64_t n = keys.size();
  Task task(*this, memory, rows * (2 * d_ + n + 16) + 2 * (n * d_ + 16) + 64);
  Matrix q = task.read(q_, false, tq_, batch, head, first, rows),
         k = task.read(k_, false, tk_, batch, kvHead, keys.begin, n),
         v = task.read(v_, false, tk_, batch, kvHead, keys.begin, n);
  Matrix p{task.take(rows * n), n}, y = task.resultRows(y_, tq_, batch, head, first, rows);
  float sums[kQueries];
  task.product(rows, n, d_, q, false, k, true, p, false);
  const lanes::Kernels &kernels = task.kernels();
  const bool finishes = bias_ || hidden_;
  const float scale = finishes ? 1.0f : scale_;
  for (int64_t i = 0; i < rows; ++i) {
    float *s = p.row(i);
    if (finishes) task.finish(s, batch, head, first + i, keys.begin, n, length);
    Range seen = task.mask(s, batch, first + i, keys, length);
    float top = kernels.f32.reduce[static_cast<int>(scale < 0 ? lanes::Reduce::min : lanes::Reduce::max)](
                    s + seen.begin, seen.size()) *
                scale;
    bool seesNone = seen.size() == 0 || top == -kInf;
    sums[i] = seesNone ? 0 : kernels.rows.expSum(s + seen.begin, scale, top, s + seen.begin, seen.size());
    std::memset(s, 0, (seesNone ? n : seen.begin) * 4);
    if (!seesNone) std::memset(s + seen.end, 0, (n - seen.end) * 4);
    if (lseOutput_)
      reinterpret_cast<float *>(memory.outputs[*lseOutput_])[(batch * heads_ + head) * tq_ + first + i] =
          seesNone ? -kInf : std::log(sums[i]) + top;
  }
  task.product(rows, d_, n, p, false, v, false, y, false);
  auto *times = kernels.f32.binary[static_cast<int>(lanes::Fn2::mul)][static_cast<int>(lanes::Mode::rightScalar)];
  for (int64_t i = 0; i < rows; ++i) {
    float inverse = sums[i] > 0 ? 1.0f / sums[i] : 0.0f;
    times(y.row(i), &inverse, y.row(i), d_);
  }
  task.write(y_, tq_, batch, head, first, rows, y);
}

void AttentionStep::backward(const StepMemory &memory, int64_t batch, int64_t kvHead) const {
  int64_t length = this->length(memory), group = heads_ / kvHeads_;
  Task task(*this, memory, 4 * (tk_ * d_ + 16) + kQueries * (2 * tk_ + 5 * d_ + 32) + 256);
  Matrix k = task.read(k_, false, tk_, batch, kvHead, 0, tk_), v = task.read(v_, false, tk_, batch, kvHead, 0, tk_);
  Matrix dk = task.resultRows(dk_, tk_, batch, kvHead, 0, tk_), dv = task.resultRows(dv_, tk_, batch, kvHead, 0, tk_);
  for (int64_t j = 0; j < tk_; ++j) std::memset(dk.row(j), 0, d_ * 4), std::memset(dv.row(j), 0, d_ * 4);
  Matrix p{task.take(kQueries * tk_), 0}, ds{task.take(kQueries * tk_), 0};
  const lanes::Kernels &kernels = task.kernels();
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t first = 0; first < tq_; first += kQueries) {
      int64_t rows = std::min(kQueries, tq_ - first);
      Range keys = keysOf(first, first + rows - 1, length);
      int64_t n = keys.size();
      p.stride = ds.stride = n;
      Task block = task; // its reads share the scratch after what the task keeps
      Matrix q = block.read(q_, false, tq_, batch, head, first, rows),
             dy = block.read(dy_, false, tq_, batch, head, first, rows),
             y = block.read(y_, false, tq_, batch, head, first, rows),
             dq = block.resultRows(dq_, tq_, batch, head, first, rows);
      Matrix keysK{k.row(keys.begin), k.stride}, keysV{v.row(keys.begin), v.stride};
      block.product(rows, n, d_, q, false, keysK, true, p, false);
      block.product(rows, n, d_, dy, false, keysV, true, ds, false);
      const auto *lse =
          reinterpret_cast<const float *>(memory.inputs[lseInput_]) + (batch * heads_ + head) * tq_ + first;
      for (int64_t i = 0; i < rows; ++i) {
        float *pi = p.row(i), *dsi = ds.row(i);
        Range seen = block.mask(pi, batch, first + i, keys, length);
        if (lse[i] == -kInf) seen.end = seen.begin;
        kernels.rows.expSum(pi + seen.begin, scale_, lse[i], pi + seen.begin, seen.size());
        float mean = kernels.rows.dot(dy.row(i), y.row(i), d_); // sum over keys of p * dp
        for (int64_t j = seen.begin; j < seen.end; ++j) dsi[j] = pi[j] * (dsi[j] - mean) * scale_;
        for (float *row : {pi, dsi}) {
          std::memset(row, 0, seen.begin * 4);
          std::memset(row + seen.end, 0, (n - seen.end) * 4);
        }
      }
      block.product(rows, d_, n, ds, false, keysK, false, dq, false);
      block.write(dq_, tq_, batch, head, first, rows, dq);
      block.product(n, d_, rows, ds, true, q, false, {dk.row(keys.begin), dk.stride}, true);
      block.product(n, d_, rows, p, true, dy, false, {dv.row(keys.begin), dv.stride}, true);
    }
  task.write(dk_, tk_, batch, kvHead, 0, tk_, dk);
  task.write(dv_, tk_, batch, kvHead, 0, tk_, dv);
}

} // namespace fusor::runtime
