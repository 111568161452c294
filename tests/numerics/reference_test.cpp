// The reference against itself: every op runs, gives its inferred shape, and rounds to its dtype; two definitions of
// one op agree.
#include "ir/graph/builder.h"
#include "ir/reference/reference.h"
#include "ir/verify/verify.h"
#include "tests/numerics/every_op.h"
#include "tests/support/tolerance.h"
#include <cmath>

using namespace fusor::ir;
using namespace fusor::tests;

namespace {

RefResult run(const Module &module, const OpCase &c) {
  auto result = evaluate(*module.functions()[0], c.inputs);
  EXPECT_TRUE(static_cast<bool>(result)) << llvm::toString(result.takeError());
  return result ? std::move(*result) : RefResult();
}

class Reference : public EveryOp {};

TEST_P(Reference, RunsAndGivesTheInferredType) {
  for (Sizes sizes : {Sizes::small, Sizes::ragged})
    forEachCase(sizes, [&](const OpCase &c) {
      auto module = c.module();
      auto error = verify(*module);
      ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
      RefResult result = run(*module, c);
      auto returns = module->functions()[0]->returns();
      ASSERT_EQ(result.results.size(), returns.size());
      for (size_t i = 0; i < returns.size(); ++i) {
        const RefTensor &y = result.results[i];
        RefTensor expected = llvm::cantFail(zeros(returns[i].value.type(), {}));
        EXPECT_EQ(y.dtype, expected.dtype);
        ASSERT_EQ(y.shape, expected.shape);
        ASSERT_EQ(y.data.size(), expected.data.size());
        if (y.dtype == DType::f32) continue; // exact by design
        for (double v : y.data)
          if (!std::isnan(v)) {
            ASSERT_EQ(roundTo(y.dtype, v), v) << "not a " << name(y.dtype).str();
          }
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Table, Reference, testing::ValuesIn(opsWhere([](const OpDef &d) { return !isStructural(d); })),
                         opName);

class Expansion : public EveryOp {};

TEST_P(Expansion, EqualsThePrimitiveReference) {
  for (Sizes sizes : {Sizes::small, Sizes::ragged})
    forEachCase(sizes, [&](const OpCase &c) {
      auto module = c.module();
      RefResult primitive = run(*module, c);
      Function &function = *module->functions()[0];
      Op *op = &function.block().ops().front();
      Builder builder(*op);
      auto expanded = def().expansion(builder, op->site());
      ASSERT_EQ(expanded.size(), op->resultCount());
      llvm::SmallVector<ReturnEntry, 4> returns;
      for (unsigned i = 0; i < expanded.size(); ++i) {
        EXPECT_EQ(expanded[i].type().str(), op->result(i).type().str());
        returns.push_back({ReturnKind::result, "", expanded[i]});
      }
      function.setReturns(returns);
      op->erase();
      RefResult composite = run(*module, c);
      for (size_t i = 0; i < expanded.size(); ++i)
        EXPECT_TRUE(closeTo(composite.results[i], primitive.results[i], toleranceFor(expanded[i].dtype(), 129)));
    });
}

auto hasBoth = [](const OpDef &d) { return d.expansion && (d.reference || d.formula); };
INSTANTIATE_TEST_SUITE_P(Table, Expansion, testing::ValuesIn(opsWhere(hasBoth)), opName);

// An op that is its expansion must infer what the expansion gives.
class Composite : public EveryOp {};

TEST_P(Composite, InfersTheTypesItsExpansionGives) {
  for (Sizes sizes : {Sizes::small, Sizes::ragged})
    forEachCase(sizes, [&](const OpCase &c) {
      auto module = c.module();
      Op *op = &module->functions()[0]->block().ops().front();
      Builder builder(*op);
      auto expanded = def().expansion(builder, op->site());
      ASSERT_EQ(expanded.size(), op->resultCount());
      for (unsigned i = 0; i < expanded.size(); ++i)
        EXPECT_EQ(expanded[i].type().str(), op->result(i).type().str()) << "result " << i;
    });
}

INSTANTIATE_TEST_SUITE_P(Table, Composite,
                         testing::ValuesIn(opsWhere([](const OpDef &d) { return static_cast<bool>(d.expansion); })),
                         opName);

} // namespace
