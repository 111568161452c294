// What code generation hands to the run time: kernels as text, and how to launch them.
//
//   fusion @add_gelu(%h, %b)  ->  KernelSet { kernels = [main, perhaps finishing ones, in launch order],
//                                             workspaces = [bytes each] }
//
// A kernel is one self-contained CUDA text (device library pieces, then one `extern "C" __global__` function). Sizes
// that depend on symbols (batch, sequence) are `Count`s, evaluated by the run time for each bucket.
#pragma once
#include "codegen/emit/count.h"
#include "ir/types/type.h"
#include <vector>

namespace fusor::codegen {

/// One parameter of a kernel, in the order of the parameter list.
struct KernelArg {
  enum class Kind : uint8_t {
    input,         // device pointer: operand number `index` of the fusion. Aligned to 16 bytes, like all pointers here
    output,        // device pointer: result number `index`
    workspace,     // device pointer: workspace number `index` of the KernelSet
    symbol,        // i64: the value of `symbol`
    tablePointers, // the four arrays of KernelSet::table in device memory, see codegen/device/multi_tensor.cuh:
    tableSizes,    //   u64[pointers][tensors], i64[tensors], i64[tensors + 1]; the last one
    tableChunks,   //   is a number,
    tableCount,    //   i64: how many tensors
  } kind = Kind::input;
  unsigned index = 0;
  std::string symbol;
  std::string name; // of the parameter in the text
};

struct Kernel {
  std::string name;   // also of the `extern "C"` function
  std::string source; // complete: no #include
  std::vector<KernelArg> args;
  Count grid = 1;           // blocks; 0: nothing to launch
  unsigned block = 32;      // threads
  unsigned sharedBytes = 0; // dynamic shared memory
  /// This kernel only copies input `first` to output `second`: skip it where the memory planner made them one buffer.
  std::optional<std::pair<unsigned, unsigned>> skipWhereAliased;
};

/// The tensors of a multi-tensor kernel. The run time builds the arrays of multi_tensor.cuh from this once.
struct TensorTable {
  struct Pointer {
    bool isOutput = false;
    unsigned index = 0; // input or output number
  };
  struct Tensor {
    std::vector<Pointer> pointers; // one per operand of the body, the same count for all tensors
    ir::Dim elements;
    int64_t columns = 0; // of a matrix in tiles
  };
  std::vector<Tensor> tensors;
  int64_t chunkElements = 0; // a block's share; the grid is the sum over tensors of chunks()
  int64_t tileSide = 0;      // matrices in tiles of side x side; behind the sizes stand the tensors' columns

  /// Of tensor `t`, which has `elements`.
  int64_t chunks(size_t t, int64_t elements) const {
    auto ceilDiv = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    if (tileSide == 0) return ceilDiv(elements, chunkElements);
    int64_t columns = tensors[t].columns;
    return ceilDiv(elements / columns, tileSide) * ceilDiv(columns, tileSide);
  }
};

/// Input `input` may be the same buffer as output `output`: each thread reads its element before it writes it.
struct InPlace {
  unsigned input, output;
};

/// All kernels of one fusion.
struct KernelSet {
  std::string name;              // of the main kernel, e.g. add_gelu__bf16_11008
  std::vector<Kernel> kernels;   // in launch order
  std::vector<Count> workspaces; // bytes of each; contents need not survive the set
  std::optional<TensorTable> table;
  std::vector<InPlace> inPlace;
  std::string ir;                          // what it implements, one op a line
  ir::Dim bytesRead = 0, bytesWritten = 0; // of device memory, each tensor once
  ir::Dim bytesSaved = 0;                  // against one kernel per op
  ir::Dim flops = 0;
};

} // namespace fusor::codegen
