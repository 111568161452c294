// Elementwise ops. One lambda each: double -> reference, F32 -> CPU loops, Expr -> CUDA, Graph -> gradients.
// Adding one here is all it takes: it is parsed, verified, differentiated, fused, emitted, documented and tested.
#include "ir/ops/families.h"
#include "ir/ops/op_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {

llvm::Expected<ResultTypes> inferElementwise(const OpSite &site) {
  llvm::SmallVector<llvm::ArrayRef<Dim>, 4> shapes;
  std::string given;
  for (unsigned i = 0; i < site.operands.size(); ++i) {
    shapes.push_back(site.type(i).shape);
    given += (i ? ", " : "") + site.def.operands[i].name + " is " + site.type(i).str();
  }
  auto shape = broadcastShapes(shapes);
  if (!shape) return opError("operands must broadcast to one shape: {0}", given);
  unsigned typed = 0;
  while (llvm::is_contained(site.def.untypedOperands, typed)) ++typed;
  for (unsigned i : site.def.untypedOperands)
    if (site.type(i).dtype != DType::i1)
      return opError("operand '{0}' must be i1, is {1}", site.def.operands[i].name, site.type(i).str());
  return ResultTypes{{site.def.yieldsBoolean ? DType::i1 : site.type(typed).dtype, std::move(*shape)}};
}

namespace {

llvm::Expected<ResultTypes> inferCast(const OpSite &site) {
  auto to = site.attr<DType>("to");
  if (!site.flag("saturate") && to != DType::f8e4m3 && to != DType::f8e5m2)
    return opError("saturate = false is of casts to f8e4m3 and f8e5m2, this one is to {0}", name(to));
  return ResultTypes{{to, site.type(0).shape}};
}

constexpr double kSqrtHalf = 0.70710678118654752440, kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715,
                 kQuickGelu = 1.702;

// The derivative of gelu at x. tanh form: with u = c (x + k x^3): 0.5 (1 + tanh u) + 0.5 x (1 - tanh^2 u) u'.
template <typename T> T geluSlope(T x, const OpSite &site) {
  if (site.word("form") == "tanh") {
    T t = tanh(kSqrt2OverPi * (x + kGeluCubic * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kSqrt2OverPi * (1.0 + 3.0 * kGeluCubic * x * x);
  }
  if (site.word("form") == "quick") {
    T s = 1.0 / (1.0 + exp(-kQuickGelu * x));
    return s * (1.0 + kQuickGelu * x * (1.0 - s));
  }
  return 0.5 * (1.0 + erf(x * kSqrtHalf)) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

auto half(Graph a) { return a * 0.5; }
std::array<Graph, 2> both(Graph a, Graph b) { return {a, b}; }

} // namespace

llvm::ArrayRef<OpDef> elementwiseOps() {
  static const std::vector<OpDef> ops = {
      // --- arithmetic
      op("add")
          .summary("a + b")
          .commutative()
          .types(TypeClass::numbers)
          .formula([](auto a, auto b) { return a + b; })
          .gradient([](auto, auto, auto dy) { return both(dy, dy); }),
      op("sub")
          .summary("a - b")
          .types(TypeClass::numbers)
          .formula([](auto a, auto b) { return a - b; })
          .gradient([](auto, auto, auto dy) { return both(dy, -dy); }),
      op("mul")
          .summary("a * b")
          .commutative()
          .types(TypeClass::numbers)
          .formula([](auto a, auto b) { return a * b; })
          .gradient([](auto a, auto b, auto dy) { return both(dy * b, dy * a); }),
      op("div")
          .summary("a / b; integers truncate")
          .types(TypeClass::numbers)
          .samples(0.5, 3)
          .formula([](auto a, auto b) { return a / b; })
          .gradient([](auto a, auto b, auto dy) { return both(dy / b, -(dy * a / (b * b))); }),
      op("pow")
          .summary("a to the power b")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(0.5, 3)
          .formula([](auto a, auto b) { return pow(a, b); })
          .gradient([](auto a, auto b, auto dy) { return both(dy * b * pow(a, b - 1.0), dy * pow(a, b) * log(a)); }),
      op("mod")
          .summary("remainder of a / b with the sign of a")
          .types(TypeClass::numbers)
          .samples(0.5, 3)
          .formula([](auto a, auto b) { return fmod(a, b); })
          .gradient([](auto a, auto b, auto dy) { return both(dy, -(dy * trunc(a / b))); }),
      op("max")
          .choice()
          .summary("the larger; NaN if either is")
          .commutative()
          .types(TypeClass::numbers)
          .formula([](auto a, auto b) { return max(a, b); })
          .gradient([](auto a, auto b, auto dy) {
            return both(select(a > b, dy, select(a == b, half(dy), 0.0)),
                        select(b > a, dy, select(a == b, half(dy), 0.0)));
          }),
      op("min")
          .choice()
          .summary("the smaller; NaN if either is")
          .commutative()
          .types(TypeClass::numbers)
          .formula([](auto a, auto b) { return min(a, b); })
          .gradient([](auto a, auto b, auto dy) {
            return both(select(a < b, dy, select(a == b, half(dy), 0.0)),
                        select(b < a, dy, select(a == b, half(dy), 0.0)));
          }),
      op("neg")
          .summary("-x")
          .choice()
          .types(TypeClass::numbers)
          .formula([](auto x) { return -x; })
          .gradient([](auto, auto dy) { return -dy; }),
      op("abs")
          .choice()
          .summary("|x|")
          .types(TypeClass::numbers)
          .formula([](auto x) { return abs(x); })
          .gradient([](auto x, auto dy) { return select(x > 0.0, dy, select(x < 0.0, -dy, 0.0)); }),
      op("sign")
          .summary("-1, 0 or 1")
          .types(TypeClass::numbers)
          .formula([](auto x) { return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x)); })
          .zeroGradient(),
      op("reciprocal")
          .summary("1 / x")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(0.5, 3)
          .formula([](auto x) { return 1.0 / x; })
          .gradient([](auto x, auto dy) { return -(dy / (x * x)); }),

      // --- rounding
      op("floor")
          .summary("the integer at or below")
          .types(TypeClass::floats)
          .formula([](auto x) { return floor(x); })
          .zeroGradient(),
      op("ceil")
          .summary("the integer at or above")
          .types(TypeClass::floats)
          .formula([](auto x) { return ceil(x); })
          .zeroGradient(),
      op("round")
          .summary("the nearest integer, half to even")
          .types(TypeClass::floats)
          .formula([](auto x) { return round(x); })
          .zeroGradient(),
      op("trunc")
          .summary("towards zero")
          .types(TypeClass::floats)
          .formula([](auto x) { return trunc(x); })
          .zeroGradient(),

      // --- exponentials and roots
      op("exp")
          .summary("e to the x")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .formula([](auto x) { return exp(x); })
          .gradient([](auto x, auto dy) { return dy * exp(x); }),
      op("expm1")
          .summary("exp(x) - 1, exact near 0")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .formula([](auto x) { return expm1(x); })
          .gradient([](auto x, auto dy) { return dy * exp(x); }),
      op("log")
          .summary("natural logarithm")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(0.2, 4)
          .formula([](auto x) { return log(x); })
          .gradient([](auto x, auto dy) { return dy / x; }),
      op("log1p")
          .summary("log(1 + x), exact near 0")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(-0.5, 4)
          .formula([](auto x) { return log1p(x); })
          .gradient([](auto x, auto dy) { return dy / (1.0 + x); }),
      op("sqrt")
          .summary("square root")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(0.2, 4)
          .formula([](auto x) { return sqrt(x); })
          .gradient([](auto x, auto dy) { return dy * 0.5 * rsqrt(x); }),
      op("rsqrt")
          .summary("1 / sqrt(x)")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(0.2, 4)
          .formula([](auto x) { return rsqrt(x); })
          .gradient([](auto x, auto dy) { return dy * -0.5 * rsqrt(x) / x; }),

      // --- trigonometry
      op("sin")
          .summary("sine of radians")
          .types(TypeClass::floats)
          .formula([](auto x) { return sin(x); })
          .gradient([](auto x, auto dy) { return dy * cos(x); }),
      op("cos")
          .summary("cosine of radians")
          .types(TypeClass::floats)
          .formula([](auto x) { return cos(x); })
          .gradient([](auto x, auto dy) { return -(dy * sin(x)); }),
      op("tan")
          .summary("tangent of radians")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(-1, 1)
          .formula([](auto x) { return tan(x); })
          .gradient([](auto x, auto dy) { return dy / (cos(x) * cos(x)); }),
      op("asin")
          .summary("arc sine")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(-0.8, 0.8)
          .formula([](auto x) { return asin(x); })
          .gradient([](auto x, auto dy) { return dy * rsqrt(1.0 - x * x); }),
      op("acos")
          .summary("arc cosine")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(-0.8, 0.8)
          .formula([](auto x) { return acos(x); })
          .gradient([](auto x, auto dy) { return -(dy * rsqrt(1.0 - x * x)); }),
      op("atan")
          .summary("arc tangent")
          .types(TypeClass::floats)
          .formula([](auto x) { return atan(x); })
          .gradient([](auto x, auto dy) { return dy / (1.0 + x * x); }),
      op("sinh")
          .summary("hyperbolic sine")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .formula([](auto x) { return sinh(x); })
          .gradient([](auto x, auto dy) { return dy * cosh(x); }),
      op("cosh")
          .summary("hyperbolic cosine")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .formula([](auto x) { return cosh(x); })
          .gradient([](auto x, auto dy) { return dy * sinh(x); }),
      op("tanh")
          .summary("hyperbolic tangent")
          .types(TypeClass::floats)
          .formula([](auto x) { return tanh(x); })
          .gradient([](auto x, auto dy) {
            auto t = tanh(x);
            return dy * (1.0 - t * t);
          }),
      op("asinh")
          .summary("inverse hyperbolic sine")
          .types(TypeClass::floats)
          .formula([](auto x) { return asinh(x); })
          .gradient([](auto x, auto dy) { return dy * rsqrt(1.0 + x * x); }),
      op("acosh")
          .summary("inverse hyperbolic cosine")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(1.3, 4)
          .formula([](auto x) { return acosh(x); })
          .gradient([](auto x, auto dy) { return dy * rsqrt(x * x - 1.0); }),
      op("atanh")
          .summary("inverse hyperbolic tangent")
          .precision(PrecisionClass::wide)
          .types(TypeClass::floats)
          .samples(-0.8, 0.8)
          .formula([](auto x) { return atanh(x); })
          .gradient([](auto x, auto dy) { return dy / (1.0 - x * x); }),
      op("erf")
          .summary("error function")
          .types(TypeClass::floats)
          .formula([](auto x) { return erf(x); })
          .gradient([](auto x, auto dy) { return dy * 1.1283791670955125739 * exp(-(x * x)); }),

      // --- activations
      op("sigmoid")
          .summary("1 / (1 + exp(-x))")
          .types(TypeClass::floats)
          .samples(-6, 6)
          .formula([](auto x) { return 1.0 / (1.0 + exp(-x)); })
          .gradient([](auto x, auto dy) {
            auto s = 1.0 / (1.0 + exp(-x));
            return dy * s * (1.0 - s);
          }),
      op("relu")
          .summary("max(x, 0)")
          .types(TypeClass::numbers)
          .formula([](auto x) { return max(x, 0.0); })
          .gradient([](auto x, auto dy) { return select(x > 0.0, dy, 0.0); }),
      op("leaky_relu")
          .summary("x, or alpha * x below 0")
          .types(TypeClass::floats)
          .real("alpha", 0.01)
          .note("slope below 0")
          .formula([](auto x, const OpSite &site) { return select(x > 0.0, x, x * site.real("alpha")); })
          .gradient([](auto x, auto dy, const OpSite &site) { return select(x > 0.0, dy, dy * site.real("alpha")); }),
      op("elu")
          .summary("x, or alpha * (exp(x) - 1) below 0")
          .types(TypeClass::floats)
          .real("alpha", 1.0)
          .note("minus the limit at -inf")
          .formula([](auto x, const OpSite &site) { return select(x > 0.0, x, expm1(x) * site.real("alpha")); })
          .gradient([](auto x, auto dy, const OpSite &site) {
            return select(x > 0.0, dy, dy * exp(x) * site.real("alpha"));
          }),
      op("softplus")
          .summary("log(1 + exp(x)), safe for large x")
          .types(TypeClass::floats)
          .samples(-6, 6)
          .formula([](auto x) { return max(x, 0.0) + log1p(exp(-abs(x))); })
          .gradient([](auto x, auto dy) { return dy / (1.0 + exp(-x)); }),
      op("silu")
          .summary("x * sigmoid(x)")
          .types(TypeClass::floats)
          .samples(-8, 8)
          .formula([](auto x) { return x / (1.0 + exp(-x)); })
          .gradient([](auto x, auto dy) {
            auto s = 1.0 / (1.0 + exp(-x));
            return dy * s * (1.0 + x * (1.0 - s));
          }),
      op("gelu")
          .summary("Gaussian error linear unit")
          .types(TypeClass::floats)
          .word("form", {"tanh", "erf", "quick"})
          .note("the tanh approximation, exact through erf, or x * sigmoid(1.702 x)")
          .samples(-6, 6)
          .formula([](auto x, const OpSite &site) {
            if (site.word("form") == "tanh") return 0.5 * x * (1.0 + tanh(kSqrt2OverPi * (x + kGeluCubic * x * x * x)));
            if (site.word("form") == "quick") return x / (1.0 + exp(-kQuickGelu * x));
            return 0.5 * x * (1.0 + erf(x * kSqrtHalf));
          })
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            return {g.builder.op("gelu_grad", {g.gradient(), g.op.operand(0u)}, g.op.attrs())};
          }),
      op("gelu_grad")
          .summary("dy times the derivative of gelu at x")
          .operands({"dy", "x"})
          .types(TypeClass::floats)
          .word("form", {"tanh", "erf", "quick"})
          .note("as of the gelu it belongs to")
          .samples(-6, 6)
          .formula([](auto dy, auto x, const OpSite &site) { return dy * geluSlope(x, site); }),

      // --- comparison, logic, choice
      op("lt")
          .summary("a < b")
          .types(TypeClass::numbers)
          .boolean()
          .formula([](auto a, auto b) { return a < b; })
          .zeroGradient(),
      op("le")
          .summary("a <= b")
          .types(TypeClass::numbers)
          .boolean()
          .formula([](auto a, auto b) { return a <= b; })
          .zeroGradient(),
      op("gt")
          .summary("a > b")
          .types(TypeClass::numbers)
          .boolean()
          .formula([](auto a, auto b) { return a > b; })
          .zeroGradient(),
      op("ge")
          .summary("a >= b")
          .types(TypeClass::numbers)
          .boolean()
          .formula([](auto a, auto b) { return a >= b; })
          .zeroGradient(),
      op("eq").summary("a == b").commutative().boolean().formula([](auto a, auto b) { return a == b; }).zeroGradient(),
      op("ne").summary("a != b").commutative().boolean().formula([](auto a, auto b) { return a != b; }).zeroGradient(),
      op("and")
          .summary("both")
          .commutative()
          .types(TypeClass::booleans)
          .boolean()
          .formula([](auto a, auto b) { return a && b; })
          .zeroGradient(),
      op("or")
          .summary("either")
          .commutative()
          .types(TypeClass::booleans)
          .boolean()
          .formula([](auto a, auto b) { return a || b; })
          .zeroGradient(),
      op("not")
          .summary("the opposite")
          .types(TypeClass::booleans)
          .boolean()
          .formula([](auto x) { return !x; })
          .zeroGradient(),
      op("isnan")
          .summary("whether x is not a number")
          .types(TypeClass::floats)
          .boolean()
          .formula([](auto x) { return isnan(x); })
          .zeroGradient(),
      op("isinf")
          .summary("whether x is infinite")
          .types(TypeClass::floats)
          .boolean()
          .formula([](auto x) { return isinf(x); })
          .zeroGradient(),
      op("select")
          .choice()
          .summary("a where the condition holds, else b")
          .operands({"condition", "a", "b"})
          .untyped({0})
          .formula([](auto c, auto a, auto b) { return select(c, a, b); })
          .gradient([](auto c, auto, auto, auto dy) {
            return std::array<Graph, 3>{Graph(), select(c, dy, 0.0), select(c, 0.0, dy)};
          }),
      op("clamp")
          .summary("x limited to [low, high]")
          .types(TypeClass::floats)
          .real("low", -HUGE_VAL)
          .note("smallest result")
          .real("high", HUGE_VAL)
          .note("largest result")
          .formula([](auto x, const OpSite &site) { return min(max(x, site.real("low")), site.real("high")); })
          .gradient([](auto x, auto dy, const OpSite &site) {
            return select(x >= site.real("low") && x <= site.real("high"), dy, 0.0);
          }),

      // --- dtype
      op("cast")
          .summary("the value rounded to another dtype")
          .precision(PrecisionClass::any)
          .required("to", AttrKind::dtype)
          .note("dtype of the result")
          .flag("saturate", true)
          .note("FP8 alone: what is too large becomes the largest, else Inf in f8e5m2 and NaN in f8e4m3")
          .formula([](auto x) { return x; })
          .infer(inferCast)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> {
            Value x = g.op.operand(0u);
            return {isFloat(x.dtype()) ? g.builder.cast(g.gradient(), x.dtype()) : Value()};
          }),
  };
  return ops;
}

} // namespace fusor::ir
