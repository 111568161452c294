// The faces of a formula agree: double value, f64 loop, f32 loop, and the expression that codegen prints.
#include "ir/ops/expr.h"
#include "ir/ops/scalar_math.h"
#include "tests/numerics/every_op.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <limits>
#include <random>

using namespace fusor::ir;
using namespace fusor::tests;

namespace {

using ScalarMeaning = double (*)(const double *);

const llvm::StringMap<ScalarMeaning> &functions() {
  static const llvm::StringMap<ScalarMeaning> table = {
      {"add", [](const double *a) { return a[0] + a[1]; }},
      {"sub", [](const double *a) { return a[0] - a[1]; }},
      {"mul", [](const double *a) { return a[0] * a[1]; }},
      {"div", [](const double *a) { return a[0] / a[1]; }},
      {"neg", [](const double *a) { return -a[0]; }},
      {"lt", [](const double *a) { return double(a[0] < a[1]); }},
      {"le", [](const double *a) { return double(a[0] <= a[1]); }},
      {"gt", [](const double *a) { return double(a[0] > a[1]); }},
      {"ge", [](const double *a) { return double(a[0] >= a[1]); }},
      {"eq", [](const double *a) { return double(a[0] == a[1]); }},
      {"ne", [](const double *a) { return double(a[0] != a[1]); }},
      {"and", [](const double *a) { return double(a[0] && a[1]); }},
      {"or", [](const double *a) { return double(a[0] || a[1]); }},
      {"not", [](const double *a) { return double(!a[0]); }},
      {"select", [](const double *a) { return a[0] != 0 ? a[1] : a[2]; }},
      {"exp", [](const double *a) { return std::exp(a[0]); }},
      {"expm1", [](const double *a) { return std::expm1(a[0]); }},
      {"log", [](const double *a) { return std::log(a[0]); }},
      {"log1p", [](const double *a) { return std::log1p(a[0]); }},
      {"sqrt", [](const double *a) { return std::sqrt(a[0]); }},
      {"rsqrt", [](const double *a) { return 1 / std::sqrt(a[0]); }},
      {"sin", [](const double *a) { return std::sin(a[0]); }},
      {"cos", [](const double *a) { return std::cos(a[0]); }},
      {"tan", [](const double *a) { return std::tan(a[0]); }},
      {"asin", [](const double *a) { return std::asin(a[0]); }},
      {"acos", [](const double *a) { return std::acos(a[0]); }},
      {"atan", [](const double *a) { return std::atan(a[0]); }},
      {"sinh", [](const double *a) { return std::sinh(a[0]); }},
      {"cosh", [](const double *a) { return std::cosh(a[0]); }},
      {"tanh", [](const double *a) { return std::tanh(a[0]); }},
      {"asinh", [](const double *a) { return std::asinh(a[0]); }},
      {"acosh", [](const double *a) { return std::acosh(a[0]); }},
      {"atanh", [](const double *a) { return std::atanh(a[0]); }},
      {"erf", [](const double *a) { return std::erf(a[0]); }},
      {"abs", [](const double *a) { return std::fabs(a[0]); }},
      {"floor", [](const double *a) { return std::floor(a[0]); }},
      {"ceil", [](const double *a) { return std::ceil(a[0]); }},
      {"round", [](const double *a) { return std::nearbyint(a[0]); }},
      {"trunc", [](const double *a) { return std::trunc(a[0]); }},
      {"pow", [](const double *a) { return std::pow(a[0], a[1]); }},
      {"fmod", [](const double *a) { return std::fmod(a[0], a[1]); }},
      {"max", [](const double *a) { return std::isnan(a[0]) || std::isnan(a[1]) ? NAN : std::max(a[0], a[1]); }},
      {"min", [](const double *a) { return std::isnan(a[0]) || std::isnan(a[1]) ? NAN : std::min(a[0], a[1]); }},
      {"isnan", [](const double *a) { return double(std::isnan(a[0])); }},
      {"isinf", [](const double *a) { return double(std::isinf(a[0])); }},
  };
  return table;
}

double valueOf(const Expr &expr, const double *inputs) {
  switch (expr.kind()) {
  case Expr::Kind::input: return inputs[expr.inputIndex()];
  case Expr::Kind::constant: return expr.constantValue();
  case Expr::Kind::call: break;
  }
  double args[4];
  for (size_t i = 0; i < expr.args().size(); ++i) args[i] = valueOf(expr.args()[i], inputs);
  auto function = functions().find(expr.function());
  EXPECT_NE(function, functions().end()) << expr.function().str();
  return function == functions().end() ? NAN : function->second(args);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }


class FormulaOf : public EveryOp {
protected:
  /// Calls check(inputs, site) for drawn and special inputs, each exact in f32, and each set of attributes.
  template <typename Check> void forEachInput(Check check) {
    for (const OpCase &c :
         casesOf(def(), def().typeClass == TypeClass::booleans ? DType::i1 : DType::f32, Sizes::small)) {
      OpSite site{def(), {}, c.attrs};
      std::mt19937 random(3);
      static constexpr double special[] = {0, -0.0, 1, -1, 0.5, HUGE_VAL, -HUGE_VAL, NAN, 1e30, -1e-30, 3e38};
      auto draw = [&](unsigned operand) -> double {
        bool condition = llvm::is_contained(def().untypedOperands, operand) || def().typeClass == TypeClass::booleans;
        if (condition) return random() % 2;
        if (random() % 3 == 0) return static_cast<float>(special[random() % std::size(special)]);
        double unit = random() / 4294967296.0;
        return static_cast<float>(def().sampleLow + (def().sampleHigh - def().sampleLow) * unit);
      };
      for (int i = 0; i < 400; ++i) {
        double inputs[4];
        for (unsigned k = 0; k < def().formula.arity; ++k) inputs[k] = draw(k);
        check(inputs, site);
        if (HasFailure()) return;
      }
    }
  }
  std::string shown(const double *inputs) {
    std::string text;
    for (unsigned k = 0; k < def().formula.arity; ++k) text += std::to_string(inputs[k]) + " ";
    return text;
  }
};

TEST_P(FormulaOf, TheF64LoopIsTheValue) {
  forEachInput([&](const double *inputs, const OpSite &site) {
    const double *columns[] = {inputs, inputs + 1, inputs + 2, inputs + 3};
    double out = -7;
    def().formula.block64(columns, &out, 1, site);
    EXPECT_TRUE(same(out, def().formula.value(inputs, site))) << shown(inputs);
  });
}

TEST_P(FormulaOf, TheExpressionIsTheValue) {
  forEachInput([&](const double *inputs, const OpSite &site) {
    llvm::SmallVector<Expr, 4> args;
    for (unsigned k = 0; k < def().formula.arity; ++k) args.push_back(Expr::input(k));
    double got = valueOf(def().formula.expr(args, site), inputs), want = def().formula.value(inputs, site);
    EXPECT_TRUE(same(got, want)) << shown(inputs) << "gives " << got << ", expected " << want;
  });
}

// Where the f32 value is finite it is close; where it overflows f32 the f64 value is at least large.
TEST_P(FormulaOf, TheF32LoopIsCloseToTheValue) {
  forEachInput([&](const double *inputs, const OpSite &site) {
    float columns[4];
    for (unsigned k = 0; k < def().formula.arity; ++k) columns[k] = static_cast<float>(inputs[k]);
    const float *in[] = {columns, columns + 1, columns + 2, columns + 3};
    float out = -7;
    def().formula.block32(in, &out, 1, site);
    double want = def().formula.value(inputs, site);
    double largest = 1;
    for (unsigned k = 0; k < def().formula.arity; ++k)
      if (std::isfinite(inputs[k])) largest = std::max(largest, std::fabs(inputs[k]));
    if (largest > 1e10) return; // intermediate overflow is f32's right
    if (std::isnan(want) || std::isinf(want))
      EXPECT_TRUE(same(out, want)) << shown(inputs) << "gives " << out << ", expected " << want;
    else
      EXPECT_LE(std::fabs(out - want), 3e-5 * std::fabs(want) + 2e-6 * largest)
          << shown(inputs) << "gives " << out << ", expected " << want;
  });
}

TEST_P(FormulaOf, LoopsOverMoreThanOneElement) {
  constexpr int64_t n = 37;
  double doubles[3][n], out64[n];
  float floats[3][n], out32[n];
  for (int k = 0; k < 3; ++k)
    for (int64_t i = 0; i < n; ++i) floats[k][i] = static_cast<float>(doubles[k][i] = (i + 3 * k) % 5 * 0.25 + 0.5);
  const double *in64[] = {doubles[0], doubles[1], doubles[2]};
  const float *in32[] = {floats[0], floats[1], floats[2]};
  Attrs attrs;
  if (def().attr("to")) attrs.set("to", DType::f32);
  OpSite site{def(), {}, attrs};
  def().formula.block64(in64, out64, n, site);
  def().formula.block32(in32, out32, n, site);
  for (int64_t i = 0; i < n; ++i) {
    double args[] = {doubles[0][i], doubles[1][i], doubles[2][i]};
    double want = def().formula.value(args, site);
    EXPECT_TRUE(same(out64[i], want)) << i;
    if (std::isfinite(want)) {
      EXPECT_NEAR(out32[i], want, 1e-4) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, FormulaOf,
                         testing::ValuesIn(opsWhere([](const OpDef &d) { return d.isElementwise(); })), opName);

TEST(ScalarFunctions, EachOneHasAMeaningAndAnArity) {
  for (const ScalarFunction &f : kScalarFunctions) EXPECT_TRUE(functions().count(f.name)) << f.name;
  EXPECT_EQ(functions().size(), std::size(kScalarFunctions));
}

} // namespace
