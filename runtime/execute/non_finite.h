// Where a NaN or an Inf comes from, found by CompileOptions::check.
#pragma once
#include "ir/types/dtype.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <vector>

namespace fusor::runtime {

/// The first op that makes a NaN or an Inf of finite operands, by itself: `fusor run CASE.fir --inputs DIR` repeats it.
struct NonFiniteOp {
  struct Input {
    std::string name;
    ir::DType dtype;
    llvm::SmallVector<int64_t, 4> shape;
    std::vector<char> bytes;
  };
  std::string text;   // "@main: log %x gives -inf for element 3 of %l, in kernel 'log_add'   (model.fir:4:8)"
  std::string module; // a function of that op alone, as text
  std::vector<Input> inputs;
};

} // namespace fusor::runtime
