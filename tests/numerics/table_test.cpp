// The op table itself: every entry is complete, documented and has cases.
#include "ir/ops/families.h"
#include "tests/numerics/every_op.h"
#include "tests/support/recipes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace fusor::ir;
using namespace fusor::tests;

namespace {

class Entry : public EveryOp {};

TEST_P(Entry, IsComplete) {
  EXPECT_FALSE(def().summary.empty());
  EXPECT_EQ(findOp(def().name), &def());
  EXPECT_TRUE(llvm::all_of(def().name, [](char c) { return llvm::isAlnum(c) || c == '_'; }));
  if (isStructural(def())) return;
  EXPECT_TRUE(def().infer);
  EXPECT_TRUE(def().reference || def().formula || def().expansion) << "nothing says what it computes";
  EXPECT_TRUE(def().lowering != Lowering::none || def().operands.empty()) << "no kernel class";
  EXPECT_TRUE(def().lowering != Lowering::expansion || def().expansion);
  EXPECT_LT(def().sampleLow, def().sampleHigh);
}

TEST_P(Entry, HasOperandsAndAttributesThatCanBeNamed) {
  llvm::StringSet<> names;
  for (const OperandSpec &operand : def().operands) EXPECT_TRUE(names.insert(operand.name).second) << operand.name;
  for (size_t i = 0; i < def().operands.size(); ++i) {
    EXPECT_FALSE(def().operands[i].name.empty());
    EXPECT_TRUE(!def().operands[i].variadic || i + 1 == def().operands.size()) << "only the last may be variadic";
    if (i) {
      EXPECT_TRUE(def().operands[i].optional || !def().operands[i - 1].optional) << "required after optional";
    }
  }
  llvm::StringSet<> attrs;
  for (const AttrSpec &spec : def().attrs) {
    EXPECT_TRUE(attrs.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.required && spec.defaultValue) << spec.name;
    if (spec.defaultValue) {
      EXPECT_EQ(spec.defaultValue->index(), static_cast<size_t>(spec.kind)) << spec.name;
    }
    if (spec.defaultValue && !spec.choices.empty()) {
      EXPECT_TRUE(llvm::is_contained(spec.choices, std::get<std::string>(*spec.defaultValue)));
    }
    EXPECT_TRUE(!spec.range || spec.kind == AttrKind::integer || spec.kind == AttrKind::real) << spec.name;
  }
  for (unsigned i : def().untypedOperands) EXPECT_LT(i, def().operands.size());
}

// An op added without a recipe fails here; an elementwise one needs none.
TEST_P(Entry, HasCases) {
  if (isStructural(def())) return;
  size_t cases = 0;
  for (DType dtype : caseDTypes()) cases += casesOf(def(), dtype, Sizes::small).size();
  EXPECT_GT(cases, 0u) << "tests/support/recipes.cpp says nothing about '" << def().name << "'";
}

TEST_P(Entry, SaysWhatItsGradientIs) {
  // Without a rule, passes/gradient differentiates the expansion. Gradients are differentiated once; the optimizer and
  // the FP8 state are not differentiated at all.
  if (isStructural(def()) || def().gradient || def().expansion) return;
  static constexpr llvm::StringLiteral kNone[] = {"amax_update", "global_norm", "cache_write"};
  bool isGradient = llvm::StringRef(def().name).endswith("_grad");
  EXPECT_TRUE(isGradient || llvm::is_contained(kNone, def().name)) << "no gradient rule";
}

INSTANTIATE_TEST_SUITE_P(Table, Entry, testing::ValuesIn(opsWhere([](const OpDef &) { return true; })), opName);

TEST(Table, NamesAreFoundAndUnknownOnesAreNot) {
  EXPECT_EQ(findOp("gelu")->name, "gelu");
  EXPECT_EQ(findOp("Gelu"), nullptr);
  EXPECT_EXIT(opDef("gelo"), testing::ExitedWithCode(70), "there is no op called 'gelo'");
  EXPECT_GT(allOps().size(), 90u);
}

} // namespace
