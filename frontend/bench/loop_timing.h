// A function in a loop that runs ahead of its results, as training has it.
#pragma once
#include "runtime/execute/program.h"

namespace fusor::frontend::bench {

struct LoopTimes {
  std::vector<double> ms;     // from the end of one run to the end of the next
  std::vector<double> hostUs; // to start a run, without making its inputs; none where start() does all of it
};

/// `iterations` runs behind `warmup` others: states go on. Results of the last are in `outputs`.
llvm::Expected<LoopTimes> timeLoop(runtime::Program &program, llvm::StringRef function,
                                   llvm::ArrayRef<runtime::TensorView> inputs,
                                   llvm::ArrayRef<runtime::TensorView> outputs, int64_t warmup, int64_t iterations);

} // namespace fusor::frontend::bench
