// Gradient rules against central differences of the reference, in f64.
//
// With dy drawn, the scalar is L = sum over differentiable results of sum(dy * y). A rule's value for operand k must be
// dL/dx_k; a rule that gives nothing says that dL/dx_k is 0.
#include "ir/graph/builder.h"
#include "ir/reference/reference.h"
#include "ir/verify/verify.h"
#include "tests/numerics/every_op.h"
#include "tests/support/tolerance.h"
#include <cmath>
#include <random>

using namespace fusor::ir;
using namespace fusor::tests;

namespace {

/// A module whose function @case takes the op's operands and one dy per differentiable result, and returns the gradient
/// of each operand that has one.
struct Differentiated {
  std::unique_ptr<Module> module;
  std::vector<RefTensor> dys;                    // one per differentiable result
  llvm::SmallVector<std::optional<unsigned>> at; // operand slot -> index of its gradient among the results
};

Differentiated differentiate(const OpCase &c, DType dyType) {
  Differentiated d{c.module(), {}, {}};
  Function &function = *d.module->functions()[0];
  Op *op = &function.block().ops().front();
  std::mt19937_64 random(5);
  llvm::SmallVector<Value, 4> resultGradients(op->resultCount());
  for (unsigned i : c.differentiable) {
    TensorType type = op->result(i).type();
    if (!isFloat(type.dtype)) continue;
    type = {isFp8(type.dtype) ? DType::f32 : dyType, type.shape}; // the gradient of an FP8 value is not FP8
    resultGradients[i] = function.block().addArgument(type, "dy" + std::to_string(i));
    d.dys.push_back(llvm::cantFail(zeros(type, {})));
    for (double &v : d.dys.back().data) v = roundTo(type.dtype, static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  Builder builder(*function.block().terminator());
  auto gradients = c.def->gradient({*op, builder, resultGradients});
  llvm::SmallVector<ReturnEntry, 4> returns;
  for (unsigned i = 0; i < c.types.size(); ++i) {
    Value gradient = i < gradients.size() ? gradients[i] : Value();
    d.at.push_back(gradient ? std::optional<unsigned>(returns.size()) : std::nullopt);
    if (!gradient) continue;
    EXPECT_EQ(gradient.shape(), llvm::ArrayRef<Dim>(c.types[i]->shape)) << "gradient of operand " << i;
    EXPECT_TRUE(isFloat(gradient.dtype()));
    returns.push_back({ReturnKind::result, "", gradient});
  }
  function.setReturns(returns);
  auto error = verify(*d.module);
  EXPECT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  return d;
}

double loss(const OpCase &c, const Module &forward, const std::vector<RefTensor> &inputs, const Differentiated &d) {
  RefResult y = llvm::cantFail(evaluate(*forward.functions()[0], inputs));
  double sum = 0;
  for (size_t k = 0; k < d.dys.size(); ++k) {
    const RefTensor &result = y.results[c.differentiable[k]];
    for (int64_t i = 0; i < result.elements(); ++i) sum += d.dys[k].data[i] * result.data[i];
  }
  return sum;
}

class Gradient : public EveryOp {};

// Those that the rule is for; the others are differentiated as their expansion, see passes/gradient.
std::vector<OpCase> covered(std::vector<OpCase> cases) {
  llvm::erase_if(cases, [](const OpCase &c) {
    auto module = c.module();
    return !c.def->hasGradient(module->functions()[0]->block().ops().front().site());
  });
  return cases;
}

// The gradient of a rounding is 1, whatever finite differences say; fp8_test.cpp checks those of FP8.
bool isStraightThrough(const OpDef &def) {
  return def.name == "quantize" || def.name == "fp8_cast" || def.name == "grad_quantize" || def.name == "cast";
}

TEST_P(Gradient, MatchesFiniteDifferences) {
  if (isStraightThrough(def())) GTEST_SKIP() << "straight through by design";
  constexpr double h = 1e-5;
  std::vector<OpCase> cases = covered(casesOf(def(), DType::f64, Sizes::small));
  if (cases.empty()) GTEST_SKIP() << "takes no floats";
  for (const OpCase &c : cases) {
    Differentiated d = differentiate(c, DType::f64);
    ASSERT_FALSE(HasFailure()) << d.module->str();
    std::vector<RefTensor> inputs = c.inputs;
    inputs.insert(inputs.end(), d.dys.begin(), d.dys.end());
    RefResult gradients = llvm::cantFail(evaluate(*d.module->functions()[0], inputs));
    auto forward = c.module();
    for (size_t slot = 0, k = 0; slot < c.types.size(); ++slot) {
      if (!c.types[slot]) continue;
      std::vector<RefTensor> moved = c.inputs;
      RefTensor &x = moved[k++];
      if (x.dtype != DType::f64) {
        EXPECT_FALSE(d.at[slot] && !isFloat(x.dtype)) << "a gradient of " << name(x.dtype).str();
        continue;
      }
      for (int64_t i = 0; i < x.elements(); ++i) {
        double at = x.data[i];
        x.data[i] = at + h;
        double up = loss(c, *forward, moved, d);
        x.data[i] = at - h;
        double down = loss(c, *forward, moved, d), difference = (up - down) / (2 * h);
        x.data[i] = at;
        double rule = d.at[slot] ? gradients.results[*d.at[slot]].data[i] : 0;
        ASSERT_NEAR(rule, difference, 2e-7 * (1 + std::fabs(difference)))
            << "operand " << slot << ", element " << i << "\n"
            << c.text() << "\n"
            << d.module->str();
      }
    }
  }
}

// In low precision the rule must build a valid module too, and agree with the f64 one to the dtype's precision.
TEST_P(Gradient, BuildsForEveryFloat) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (Sizes sizes : {Sizes::small, Sizes::ragged})
      for (const OpCase &c : covered(casesOf(def(), dtype, sizes))) {
        auto result = c.module()->functions()[0]->returns()[0].value.dtype();
        if (!isFloat(result)) continue;
        Differentiated d = differentiate(c, result);
        ASSERT_FALSE(HasFailure()) << d.module->str();
      }
}

INSTANTIATE_TEST_SUITE_P(Table, Gradient, testing::ValuesIn(opsWhere([](const OpDef &d) {
                           return d.gradient && !d.gradientIsZeroAlmostEverywhere;
                         })),
                         opName);

class ZeroGradient : public EveryOp {};

TEST_P(ZeroGradient, GivesNothing) {
  for (const OpCase &c : casesOf(def(), DType::f32, Sizes::small)) {
    Differentiated d = differentiate(c, DType::f32);
    EXPECT_TRUE(d.module->functions()[0]->returns().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ZeroGradient,
                         testing::ValuesIn(opsWhere([](const OpDef &d) { return d.gradientIsZeroAlmostEverywhere; })),
                         opName);

} // namespace
