// A program in a test, and a step of tiny.
#pragma once
#include "tests/gpu/support.h"
#include <gtest/gtest.h>

#define PROGRAM(name, expected)                                                                                        \
  auto name##Or = expected;                                                                                            \
  ASSERT_TRUE(bool(name##Or)) << llvm::toString(name##Or.takeError());                                                 \
  runtime::Program &name = **name##Or

namespace fusor::tests {

inline nn::GptConfig tiny() { return *nn::configuration("tiny"); }

/// The loss; -1 and a failure where there is none.
inline float step(runtime::Program &program, int64_t batch, int64_t number) {
  auto loss = trainStep(program, tiny(), batch, number);
  if (loss) return *loss;
  ADD_FAILURE() << llvm::toString(loss.takeError());
  return -1;
}

} // namespace fusor::tests
