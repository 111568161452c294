// Runs a LoopPlan: blocks of rows in parallel, each through all instructions while it is in the cache.
//
//   prepare   scalars and columns, once
//   blocks    [rows, columns] in blocks of about 2048 elements; sums over rows go to partial results, one per chunk of
//   rows finish    partial results are added in ascending order, then what follows from them
//
// Which rows form a block and a chunk depends on the sizes alone, so the bits are the same for any number of threads.
// A contraction runs `blocks` itself, tile by tile, with the GEMM's result as the accumulator.
#pragma once
#include "runtime/cpu/lanes/dispatch.h"
#include "runtime/cpu/loop/lane_program.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

/// A rectangle of the domain, and where the GEMM's result for it is.
struct LoopRectangle {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
  int64_t chunk = 0; // which partial result its rows add to
  const char *accumulator = nullptr;
  int64_t accumulatorStride = 0; // elements between its rows
};

class LoopKernel {
public:
  struct Options {
    llvm::ArrayRef<ir::DType> inputs, outputs;
    /// For each output the inputs in the same memory; empty: none.
    llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> overlaps = {};
    bool isFlat = false;
    /// How many partial results there are; 0: chosen here. A contraction has one for each of its rows of tiles.
    int64_t chunks = 0;
    Isa isa = bestIsa();
  };
  LoopKernel(const codegen::LoopPlan &plan, const ir::SymbolValues &symbols, const Options &options);

  /// Whether a plan may run as one flat array: no reductions but to a scalar, and every access is element i or a
  /// scalar.
  static bool canBeFlat(const codegen::LoopPlan &plan);

  int64_t sharedBytes() const { return sharedBytes_; }
  int64_t rows() const { return extents_.rows; }
  int64_t columns() const { return extents_.columns; }
  bool hasSums() const { return !sums_.empty(); }
  /// True when the loop is nothing but "store the accumulator, as it is, to output 0".
  bool onlyStoresAccumulator() const;

  void run(const StepMemory &memory, Workers &workers) const;

  void prepare(const StepMemory &memory, Workers &workers) const;
  void block(const StepMemory &memory, const LoopRectangle &rectangle) const;
  void finish(const StepMemory &memory, Workers &workers) const;

  /// Of a flat kernel: elements [first, first + count) of arrays.
  void flat(const StepMemory &memory, int64_t first, int64_t count) const;

private:
  friend class BlockRun;
  void columnPhase(const LaneProgram &program, const StepMemory &memory, Workers &workers, bool sums) const;
  void combineScalarSums(const StepMemory &memory) const;

  LoopExtents extents_;
  const lanes::Kernels *kernels_;
  LaneProgram main_, finish_;
  std::vector<LaneSum> sums_;
  bool isFlat_ = false, hasRowReduce_ = false;
  int64_t chunkRows_ = 1, chunks_ = 0;
  int64_t tileColumns_ = 1, columnTiles_ = 1;
  int64_t sharedBytes_ = 0, accumulatorBytes_ = 4;
};

} // namespace fusor::runtime
