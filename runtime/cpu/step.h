// One step of a CPU program: a cluster with all sizes known.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <memory>

namespace fusor::runtime {

class Workers;

/// Where a step's operands and results are in this run.
struct StepMemory {
  llvm::ArrayRef<const char *> inputs;
  llvm::ArrayRef<char *> outputs;
  char *shared = nullptr; // Step::sharedBytes() of work space, aligned to 64; its content is lost between steps
};

class Step {
public:
  virtual ~Step() = default;
  virtual void run(const StepMemory &memory, Workers &workers) const = 0;
  virtual int64_t sharedBytes() const { return 0; }
};

} // namespace fusor::runtime
