// Parameterises a test by the op table: TEST_P(Suite, ...) runs once an op and is named after it.
#pragma once
#include "tests/support/cases.h"
#include "gtest/gtest.h"

namespace fusor::tests {

class EveryOp : public testing::TestWithParam<const ir::OpDef *> {
protected:
  const ir::OpDef &def() const { return *GetParam(); }
  /// Calls `check` with each case of the op, of every dtype it takes.
  template <typename Check> void forEachCase(Sizes sizes, Check check) {
    for (ir::DType dtype : caseDTypes())
      for (const OpCase &c : casesOf(def(), dtype, sizes)) {
        check(c);
        if (HasFatalFailure() || HasFailure()) {
          ADD_FAILURE() << "in this case:\n" << c.text();
          return; // one failing case an op is enough to read
        }
      }
  }
};

template <typename Keep> std::vector<const ir::OpDef *> opsWhere(Keep keep) {
  std::vector<const ir::OpDef *> ops;
  for (const ir::OpDef *def : ir::allOps())
    if (keep(*def)) ops.push_back(def);
  return ops;
}

inline std::string opName(const testing::TestParamInfo<const ir::OpDef *> &info) { return info.param->name; }

} // namespace fusor::tests
