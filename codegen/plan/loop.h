// LoopPlan: a cluster as a loop over [rows, columns].
//
// The domain is the largest shape in the body, d0 x d1 x ... x dn; its first `rowDims` dims are the rows, the others
// the columns (usually the last dim alone). Each value covers one of four spans of it:
//   full    one element per (row, column)      x, the result of x - mean(x)
//   row     one element per row                mean(x, -1) kept as [..., 1], targets [B, T]
//   column  one element per column             a bias [C]
//   scalar  one element                        a learning rate, a constant
//
// Worked example: layer_norm_grad of [B, T, C] with its parameter gradients
//   main     load dy, x (full), mean, rstd (row), w (column); h = (x - mean) * rstd; d = dy * w; s1 = rowsum(d) ...; dx
//   = ... sums     colsum(dy * h) -> column, colsum(dy) -> column finish   over columns: dweight, dbias (here nothing
//   but the store)
// A row reduction may feed anything after it. A column sum or a full sum is complete only when all rows are done, so
// what is computed from it is in `finish`, a second loop over the columns (or one scalar step).
//
// Determinism: rows are summed in chunks whose size depends on shapes alone, partial sums are added in ascending order.
#pragma once
#include "codegen/plan/cluster.h"

namespace fusor::codegen {

enum class Span : uint8_t { full, row, column, scalar };

/// Element (d0, ..., dn) of the domain lies at offset + sum(strides[i] * d_i) of input `input`, in elements. Where
/// `gather` is set, the first operand is a table: row number indices(d) * rowStride is added, and an index outside [0,
/// rows) gives 0 (negative indices count from the end).
struct Access {
  unsigned input = 0;
  ir::Dim offset = 0;
  llvm::SmallVector<ir::Dim, 4> strides;
  struct Gather {
    unsigned indices = 0; // an input of integers
    ir::Dim offset = 0;
    llvm::SmallVector<ir::Dim, 4> strides;
    ir::Dim rowStride = 0, rows = 0;
  };
  std::optional<Gather> gather;
  /// True when this is the domain itself in row-major order: element i of the domain is element i of the input.
  bool contiguous = false;
};

/// One step of a loop body, in order. Narrow results (bf16, f16, FP8) are rounded to `result.dtype()` where they are
/// made; arithmetic is f32 (f64 for f64 and for integers).
struct LoopStep {
  enum class Kind : uint8_t {
    load,      // access
    constant,  // op "constant"
    extent,    // op "extent": product of dims, as a number
    iota,      // op "iota": the domain index iotaDim, plus 0
    random,    // op "random_uniform": element number `access`(d) of a stream keyed by the seed, an input's scalar
    formula,   // op is elementwise (its table entry has the formula; cast too): operands are earlier steps
    spread,    // op "broadcast": its operand's value over a wider span
    rowReduce, // op is sum, reduce_max or reduce_min over the columns
    sum,       // in finish: the completed column or full sum number `sumIndex`
  } kind = Kind::load;
  ir::Op *op = nullptr; // of the flat body; null for load and sum
  ir::Value result;     // the value of the flat body this step makes
  Span span = Span::full;
  Access access;        // load; of random: where in the stream (strides over the domain), input = the seed
  unsigned iotaDim = 0; // iota: which dim of the domain counts
  unsigned sumIndex = 0;
};

/// A reduction over rows: of a full value to [columns], or of a full or row value to a scalar. `op` is sum, reduce_max
/// or reduce_min.
struct RowsSum {
  ir::Op *op = nullptr;
  ir::Value of;             // made in main
  ir::Value result;         // its value in the flat body
  Span span = Span::column; // column or scalar
};

struct LoopStore {
  unsigned output = 0; // which result of the cluster
  ir::Value value;
  Span span = Span::full;
  /// Where element d goes in the output: usually contiguous over the value's own span.
  Access access; // `input` unused
  /// The output is transpose(reshape(value)), [columns, rows], of a full FP8 value: element (row, column) goes to
  /// column * rows + row. Kernels gather tiles of it (loop/transposed_stores.h), whoever loops plainly has `access`.
  bool isTransposed = false;
};

struct LoopPlan {
  ir::Shape domain;
  unsigned rowDims = 0;
  ir::Dim rows = 1, columns = 1; // products of the two parts of the domain
  std::vector<LoopStep> main;
  std::vector<RowsSum> sums;
  std::vector<LoopStep> finish;        // spans column and scalar
  std::vector<LoopStore> stores;       // of main values
  std::vector<LoopStore> finishStores; // of sums and finish values

  bool hasRowReduction() const;
  bool hasTransposedStore() const;
  ClusterKind kind() const; // pointwise, row or column
};

/// Plans ops of `cluster` as one loop. Where `accumulator` is given, that value (a GEMM's result) is not computed here:
/// its uses load from it (access.input = kAccumulator). The error is the reason it cannot be one loop, phrased for
/// `fusor explain`: "a column sum feeds ops over the whole [B, T, C]".
llvm::Expected<LoopPlan> planLoop(const FlatCluster &cluster, ir::Value accumulator = {});
inline constexpr unsigned kAccumulator = ~0u;
/// Limits of transposed results: of one kernel, and of columns of all of them together where a block gathers whole rows
/// of them, 16 at least.
inline constexpr unsigned kMostTransposedStores = 4;
inline constexpr int64_t kMostTransposedRowColumns = 4096;

/// An input whose buffer may be that of an output: same place, same size, read by the thread that writes it, before.
struct Overwrite {
  unsigned input, output;
};
/// `body` has the cluster's inputs as arguments.
llvm::SmallVector<Overwrite, 4> overwritable(const LoopPlan &plan, const ir::Block &body);

/// Bytes of device memory a cluster reads and writes once, symbols at their upper ranges. What fusion minimises.
int64_t borderBytes(const FlatCluster &cluster, const ir::SymbolValues &symbols);

} // namespace fusor::codegen
