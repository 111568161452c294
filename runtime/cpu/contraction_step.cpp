#include "runtime/cpu/contraction_step.h"
#include "ir/graph/bug.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/scratch.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace fusor::runtime {

using namespace ir;

namespace {

constexpr int64_t kWidenElements = 65536; // of one task
constexpr int64_t kFewRows = 2;           // products with so few rows do not pay for packing B
constexpr int64_t kManyRows = 512;        // with more, packing B in each run is a small part of it

int64_t valueOf(const Dim &dim, const SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  if (!value) FUSOR_BUG("{0} has no value when its GEMM is planned", dim.str());
  return *value;
}

} // namespace

ContractionStep::ContractionStep(const codegen::ContractionPlan &plan, const SymbolValues &symbols,
                                 const LoopKernel::Options &options, std::shared_ptr<PackedWeight> packed)
    : m_(valueOf(plan.m, symbols)), n_(valueOf(plan.n, symbols)), k_(valueOf(plan.k, symbols)),
      batch_(valueOf(plan.batch, symbols)), isF64_(plan.a.dtype == DType::f64), tiling_(m_, n_, k_), isa_(options.isa),
      packed_(m_ > kFewRows && m_ <= kManyRows ? std::move(packed) : nullptr) {
  tileRows_ = m_ && n_ ? tiling_.tile(0).rows : 1;
  rowTiles_ = llvm::divideCeil(m_, tileRows_);
  LoopKernel::Options epilogue = options;
  epilogue.chunks = std::max<int64_t>(1, batch_ * rowTiles_);
  epilogue_ = std::make_unique<LoopKernel>(plan.epilogue, symbols, epilogue);
  isDirect_ = !isF64_ && epilogue_->onlyStoresAccumulator();
  sharedBytes_ = epilogue_->sharedBytes();
  a_ = operand(plan.a, m_, k_, symbols);
  b_ = operand(plan.b, k_, n_, symbols);
}

ContractionStep::Operand ContractionStep::operand(const codegen::ContractionPlan::Operand &plan, int64_t rows,
                                                  int64_t columns, const SymbolValues &symbols) {
  Operand o{
      plan.input, plan.dtype, plan.transposed, valueOf(plan.leadingStride, symbols), valueOf(plan.batchStride, symbols),
      0};
  o.elements = o.batchStride ? batch_ * o.batchStride : rows * columns;
  if (!isLaneType(o.dtype)) {
    o.wideOffset = sharedBytes_;
    sharedBytes_ += llvm::alignTo(o.elements * 4, 64);
  }
  return o;
}

const char *ContractionStep::widened(const Operand &operand, const StepMemory &memory, Workers &workers) const {
  const char *data = memory.inputs[operand.input];
  if (operand.wideOffset < 0) return data;
  char *wide = memory.shared + operand.wideOffset;
  const lanes::Kernels &kernels = lanes::kernelsFor(isa_);
  workers.forEach(llvm::divideCeil(operand.elements, kWidenElements), [&](int64_t task) {
    int64_t first = task * kWidenElements;
    loadLanes(kernels, operand.dtype, data, first, 1, wide + first * 4,
              std::min(kWidenElements, operand.elements - first));
  });
  return wide;
}

void ContractionStep::run(const StepMemory &memory, Workers &workers) const {
  epilogue_->prepare(memory, workers);
  Sources from{widened(a_, memory, workers), widened(b_, memory, workers), nullptr};
  if (packed_) {
    GemmArgs args;
    args.N = n_, args.K = k_, args.B = reinterpret_cast<const float *>(from.b), args.ldb = b_.leading;
    args.transB = b_.transposed;
    from.packed = packed_->of(args, isa_);
  }
  int64_t tiles = m_ && n_ ? tiling_.tiles() : 0;
  workers.forEach(batch_ * tiles,
                  [&](int64_t task) { runTile(memory, from, task / tiles, tiling_.tile(task % tiles)); });
  epilogue_->finish(memory, workers);
}

void ContractionStep::runTile(const StepMemory &memory, Sources from, int64_t batch, const GemmTile &tile) const {
  int64_t size = isF64_ ? 8 : 4;
  from.a += batch * a_.batchStride * size;
  from.b += batch * b_.batchStride * size;
  if (isDirect_) return product(from, tile, memory.outputs[0] + ((batch * m_ + tile.row) * n_ + tile.col) * size, n_);
  char *c = threadScratch(ScratchUse::tile, tile.rows * tile.cols * size);
  product(from, tile, c, tile.cols);
  LoopRectangle at;
  at.row = batch * m_ + tile.row, at.rows = tile.rows;
  at.column = tile.col, at.columns = tile.cols;
  at.chunk = batch * rowTiles_ + tile.row / tileRows_;
  at.accumulator = c;
  at.accumulatorStride = tile.cols;
  epilogue_->block(memory, at);
}

void ContractionStep::product(const Sources &from, const GemmTile &tile, char *c, int64_t ldc) const {
  const auto &[a, b, packed] = from;
  if (isF64_) { // rare and small: ordinary loops, k innermost but one
    const auto *A = reinterpret_cast<const double *>(a), *B = reinterpret_cast<const double *>(b);
    auto *C = reinterpret_cast<double *>(c);
    for (int64_t i = 0; i < tile.rows; ++i) {
      double *row = C + i * ldc;
      std::fill_n(row, tile.cols, 0.0);
      for (int64_t k = 0; k < k_; ++k) {
        double x = a_.transposed ? A[k * a_.leading + tile.row + i] : A[(tile.row + i) * a_.leading + k];
        for (int64_t j = 0; j < tile.cols; ++j)
          row[j] += x * (b_.transposed ? B[(tile.col + j) * b_.leading + k] : B[k * b_.leading + tile.col + j]);
      }
    }
    return;
  }
  const auto *A = reinterpret_cast<const float *>(a), *B = reinterpret_cast<const float *>(b);
  auto *C = reinterpret_cast<float *>(c);
  if (m_ <= kFewRows && b_.transposed && !a_.transposed) { // decoding: read the weights once, in place
    auto *dot = lanes::kernelsFor(isa_).rows.dot;
    for (int64_t j = 0; j < tile.cols; ++j)
      for (int64_t i = 0; i < tile.rows; ++i)
        C[i * ldc + j] = dot(A + (tile.row + i) * a_.leading, B + (tile.col + j) * b_.leading, k_);
    return;
  }
  GemmArgs args;
  args.M = tile.rows, args.N = tile.cols, args.K = k_;
  args.A = A + (a_.transposed ? tile.row : tile.row * a_.leading);
  args.lda = a_.leading, args.transA = a_.transposed;
  args.B = B + (b_.transposed ? tile.col * b_.leading : tile.col);
  args.ldb = b_.leading, args.transB = b_.transposed;
  args.C = C, args.ldc = ldc;
  if (packed) args.packedB = packed, args.packedCols = n_, args.packedFirst = tile.col;
  gemmTile(args, {0, 0, tile.rows, tile.cols}, isa_);
}

} // namespace fusor::runtime
