// A LoopPlan as a list of instructions over registers of lanes: what the blocked interpreter runs.
//
// A register covers a span of the block at hand: full (rows x columns), row, column or scalar. Formulas of the op table
// become one instruction per scalar function of their Expr; equal instructions are merged. Instructions on scalars and
// columns run once per launch, the others once per block, in order.
//   gelu(x + bias)   full   v0 = load x            (no instruction where x is f32 and contiguous: v0 is x's memory)
//                    column v1 = load bias
//                    full   v2 = add v0, v1
//                    full   v3 = mul v2, v2 ...
#pragma once
#include "runtime/cpu/loop/access_map.h"
#include "runtime/cpu/loop/storage.h"
#include "llvm/ADT/DenseMap.h"

namespace fusor::runtime {

using codegen::Span;

struct LaneRegister {
  Span span = Span::full;
  Lane lane = Lane::f32;
  enum class Home : uint8_t {
    slot,        // full, row: a slot of the thread's scratch
    shared,      // scalar, column: bytes `offset` of the launch's shared memory
    input,       // elements of input `port`, as they lie in memory
    output,      // computed where it is stored
    accumulator, // the GEMM's result
  } home = Home::slot;
  unsigned slot = 0;
  int64_t offset = 0; // shared: bytes; input, output: elements
  unsigned port = 0;
  int64_t rowStride = 0; // input, output: elements between rows
};

struct LaneInstruction {
  enum class Kind : uint8_t {
    load,     // lanes from memory: loads[index]
    constant, // `number`
    sum,      // a completed sum over rows: sums[index]
    unary,    // Fn1 `fn` of a
    binary,   // Fn2 `fn` of a, b
    select,   // a ? b : c
    toF64,
    toF32,
    round,     // a to `dtype`; fn 1: what is too large for FP8 becomes Inf or NaN
    splat,     // a of a narrower span
    iota,      // (index / inner) % extent of the row or column
    random,    // loads[index] says where in the stream
    rowReduce, // Reduce `fn` of a over the columns
  } kind = Kind::load;
  uint8_t fn = 0;
  ir::DType dtype = ir::DType::f32;
  int dst = -1, a = -1, b = -1, c = -1;
  unsigned index = 0;
  double number = 0;
  int64_t inner = 1, extent = 1;
};

struct LaneLoad {
  unsigned input = 0;
  ir::DType dtype = ir::DType::f32;
  AccessMap map;
  bool isGather = false;
  unsigned indices = 0;
  ir::DType indicesType = ir::DType::i32;
  AccessMap indexMap;
  int64_t tableRowStride = 0, tableRows = 0;
  int64_t stream = 0; // of random
};

struct LaneStore {
  int reg = -1;
  unsigned output = 0;
  ir::DType dtype = ir::DType::f32;
  Span span = Span::full;
  AccessMap map;
};

struct LaneSum {
  int reg = -1;
  lanes::Reduce reduce = lanes::Reduce::sum;
  Span span = Span::column;
  int64_t partialOffset =
      0; // bytes into the shared memory: [chunks][columns] lanes, or [chunks * column tiles] doubles
};

/// The instructions of one phase: the main loop, or what follows the sums over rows.
struct LaneProgram {
  std::vector<LaneRegister> registers;
  std::vector<LaneInstruction> scalars, columns, block;
  std::vector<LaneLoad> loads;
  std::vector<LaneStore> stores;
  unsigned slots[2] = {0, 0}; // full registers alive at once, by lane
  unsigned rowSlots = 0;
  int64_t sharedBytes = 0;
};

/// What the builder must know beyond the plan.
struct LaneContext {
  const LoopExtents &extents;
  const ir::SymbolValues &symbols;
  llvm::ArrayRef<ir::DType> inputs, outputs;
  /// For each output the inputs that lie in the same memory (in-place).
  llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> overlaps;
  /// The loop runs over flat arrays of any length: every access is element i, or a scalar.
  bool isFlat = false;
  int64_t firstSharedByte = 0;
};

LaneProgram buildMain(const codegen::LoopPlan &plan, const LaneContext &context, std::vector<LaneSum> &sums);
LaneProgram buildFinish(const codegen::LoopPlan &plan, const LaneContext &context, llvm::ArrayRef<LaneSum> sums);

} // namespace fusor::runtime
