// Plans of clusters with an anchor: GEMM, attention, scatter, many tensors, and single movement ops.
#pragma once
#include "codegen/plan/loop.h"
#include <array>

namespace fusor::codegen {

/// C[m, n] = sum over k of A[m, k] * B[k, n], `batch` times, accumulated in f32 (f64 for f64), then the epilogue.
struct ContractionPlan {
  struct Operand {
    unsigned input = 0;
    ir::DType dtype = ir::DType::f32;
    bool transposed = false; // stored [k, m] (A) or [n, k] (B)
    ir::Dim leadingStride;   // elements between rows as stored
    ir::Dim batchStride = 0; // 0 where it is shared by all batches
  };
  Operand a, b;
  ir::Dim m, n, k, batch = 1;
  /// A loop over [batch * m, n] whose accumulator input is the product. Always present: at least it stores the result.
  LoopPlan epilogue;
};

/// One of q, k, v, dy, y (or a result): [B, T, heads * d] inside a wider row, e.g. a packed QKV projection.
struct HeadsView {
  unsigned index = 0; // input or output number of the cluster
  ir::Dim offset = 0; // elements to the first
  ir::Dim rowStride;  // elements between tokens; between sequences it is T * rowStride
};

/// What is added to the scores: element (batch, head, query, key) at offset + their product with the strides, which are
/// 0 where it is repeated. Of f32.
struct BiasView {
  unsigned index = 0; // input number of the cluster
  ir::Dim offset = 0;
  std::array<ir::Dim, 4> strides;
};

struct AttentionPlan {
  bool backward = false;
  ir::DType dtype = ir::DType::f32;
  ir::Dim batch, tq, tk;
  int64_t heads = 1, kvHeads = 1, headSize = 1;
  double scale = 1;
  bool causal = false;
  std::optional<double> hidden; // with causal: what the scores of later keys become; absent: they are not there
  int64_t window = 0;
  HeadsView q, k, v;                         // inputs
  HeadsView y;                               // output (forward) or input (backward)
  std::optional<unsigned> lseOutput;         // forward: output number, absent when nobody reads it
  unsigned lseInput = 0;                     // backward
  HeadsView dy, dq, dk, dv;                  // backward: input, outputs
  std::optional<unsigned> keyMask, kvLength; // inputs
  std::optional<BiasView> bias;              // forward only
};

/// table[index[i], :] += updates[i, :] in ascending i, f32; rows = the table's rows, columns = elements of one row.
struct ScatterPlan {
  unsigned updates = 0, indices = 0, output = 0;
  ir::DType updatesType = ir::DType::f32, indicesType = ir::DType::i32, outputType = ir::DType::f32;
  ir::Dim count, rows, columns;
};

/// The same loop body over many tensors (adamw with casts and amaxes), one number from many tensors (global_norm), or
/// the scales of many tensors (amax_update: inputs history, scale, amax; outputs history, scale, 1 / scale; one tensor
/// is one history).
struct MultiTensorPlan {
  struct Tensor {
    llvm::SmallVector<unsigned, 6> inputs; // cluster inputs, in the order of the body's per-tensor inputs; scalars last
    llvm::SmallVector<unsigned, 6> outputs; // cluster outputs, in the order of the body's results
    ir::Dim elements;
    // Of a matrix whose FP8 casts are results transposed too, in the order of `turned`; rows and columns are multiples
    // of 4.
    llvm::SmallVector<unsigned, 1> turnedOutputs = {};
    int64_t columns = 0;
  };
  llvm::SmallVector<unsigned, 1> turned; // which results of the body
  /// One tensor's body: arguments are the per-tensor inputs, then the shared scalars. Absent for global_norm.
  FlatCluster body;
  LoopPlan loop; // over the elements of the first tensor; only its steps matter, not its domain. Sums are the amaxes
  std::vector<Tensor> tensors;
  llvm::SmallVector<unsigned, 4> sharedInputs; // cluster inputs that every tensor reads: step, lr, grad_scale
  bool isGlobalNorm = false, isAmaxUpdate = false;
};

/// Strided copies: for every index i of `extents`, out[outOffset + i . outStrides] = in[inOffset + i . inStrides].
struct StridedCopy {
  unsigned input = 0;
  ir::Shape extents;
  ir::Dim inOffset = 0, outOffset = 0;
  llvm::SmallVector<ir::Dim, 4> inStrides, outStrides;
};
struct MovementPlan {
  std::optional<double> fill; // the output is filled with this first
  std::optional<unsigned>
      startsFrom; // the output starts as a copy of this input (in place where the planner aliases them)
  std::vector<StridedCopy> copies;
  /// cache_write: the scalar input whose value times `dynamicStride` is added to outOffset; rows outside [0,
  /// dynamicLimit) are dropped.
  std::optional<unsigned> dynamicOffset;
  ir::Dim dynamicStride = 0, dynamicLimit = 0;
  unsigned dynamicDim = 0;                // which dim of extents the limit applies to
  llvm::SmallVector<unsigned, 2> outputs; // output number of each copy (split has several), or one for all
};

/// out[b, c, r] = in[offset + b * inBatch + r * inRow + c], out being contiguous: what goes through tiles.
struct TransposePlan {
  unsigned input = 0, output = 0;
  ir::Dim batch = 1, rows, columns, offset = 0, inRow, inBatch = 0;
};

llvm::Expected<ContractionPlan> planContraction(const FlatCluster &cluster);
llvm::Expected<AttentionPlan> planAttention(const FlatCluster &cluster);
llvm::Expected<ScatterPlan> planScatter(const FlatCluster &cluster);
llvm::Expected<MultiTensorPlan> planMultiTensor(const ir::Op &fusion);
/// A transpose of an FP8 cast that a multi-tensor kernel can store beside the cast.
bool isTurnedCast(const ir::Op &op);
llvm::Expected<MovementPlan> planMovement(const FlatCluster &cluster);
/// Where the whole of `plan` is one transpose of matrices.
std::optional<TransposePlan> planTranspose(const MovementPlan &plan);

} // namespace fusor::codegen
