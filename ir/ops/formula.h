// One generic lambda, four number types:
//   double      the float64 reference           F32     the CPU backend's loops
//   Expr        a tree that codegen prints      Graph   ops in a function (gradients, expansions)
// The functions below are what a formula may call; each has an overload for every number type.
#pragma once
#include "ir/ops/graph_value.h"
#include "ir/ops/op_def.h"
#include "ir/ops/scalar_math.h"
#include <array>

namespace fusor::ir {

/// Operands broadcast to one shape; dtypes agree (but for untyped operands); the result has that dtype, or i1.
llvm::Expected<ResultTypes> inferElementwise(const OpSite &site);

#define FUSOR_UNARY(NAME)                                                                                              \
  inline Expr NAME(const Expr &x) { return Expr::call(#NAME, {x}); }                                                   \
  inline Graph NAME(Graph x) { return x.unary(#NAME); }
FUSOR_UNARY(exp)
FUSOR_UNARY(expm1) FUSOR_UNARY(log) FUSOR_UNARY(log1p) FUSOR_UNARY(sqrt) FUSOR_UNARY(rsqrt) FUSOR_UNARY(sin)
    FUSOR_UNARY(cos) FUSOR_UNARY(tan) FUSOR_UNARY(asin) FUSOR_UNARY(acos) FUSOR_UNARY(atan) FUSOR_UNARY(sinh)
        FUSOR_UNARY(cosh) FUSOR_UNARY(tanh) FUSOR_UNARY(asinh) FUSOR_UNARY(acosh) FUSOR_UNARY(atanh) FUSOR_UNARY(erf)
            FUSOR_UNARY(abs) FUSOR_UNARY(floor) FUSOR_UNARY(ceil) FUSOR_UNARY(round) FUSOR_UNARY(trunc)
                FUSOR_UNARY(isnan) FUSOR_UNARY(isinf)
#undef FUSOR_UNARY

#define FUSOR_BINARY(NAME)                                                                                             \
  inline Expr NAME(const Expr &a, const Expr &b) { return Expr::call(#NAME, {a, b}); }                                 \
  inline Graph NAME(Graph a, Graph b) { return Graph::binary(#NAME, a, b); }                                           \
  inline Graph NAME(Graph a, double b) { return Graph::binary(#NAME, a, a.number(b)); }                                \
  inline Graph NAME(double a, Graph b) { return Graph::binary(#NAME, b.number(a), b); }
                    FUSOR_BINARY(pow) FUSOR_BINARY(fmod) FUSOR_BINARY(max) FUSOR_BINARY(min)
#undef FUSOR_BINARY

#define FUSOR_OPERATOR(SYMBOL, NAME)                                                                                   \
  inline Expr operator SYMBOL(const Expr &a, const Expr &b) { return Expr::call(#NAME, {a, b}); }                      \
  inline Graph operator SYMBOL(Graph a, Graph b) { return Graph::binary(#NAME, a, b); }                                \
  inline Graph operator SYMBOL(Graph a, double b) { return Graph::binary(#NAME, a, a.number(b)); }                     \
  inline Graph operator SYMBOL(double a, Graph b) { return Graph::binary(#NAME, b.number(a), b); }
                        FUSOR_OPERATOR(+, add) FUSOR_OPERATOR(-, sub) FUSOR_OPERATOR(*, mul) FUSOR_OPERATOR(/, div)
                            FUSOR_OPERATOR(<, lt) FUSOR_OPERATOR(<=, le) FUSOR_OPERATOR(>, gt) FUSOR_OPERATOR(>=, ge)
                                FUSOR_OPERATOR(==, eq) FUSOR_OPERATOR(!=, ne) FUSOR_OPERATOR(&&, and)
                                    FUSOR_OPERATOR(||, or)
#undef FUSOR_OPERATOR
                                        inline Expr
                                        operator-(const Expr &x) {
  return Expr::call("neg", {x});
}
inline Graph operator-(Graph x) { return x.unary("neg"); }
inline Expr operator!(const Expr &x) { return Expr::call("not", {x}); }
inline Graph operator!(Graph x) { return x.unary("not"); }

inline Expr select(const Expr &c, const Expr &a, const Expr &b) { return Expr::call("select", {c, a, b}); }
inline Graph select(Graph c, Graph a, Graph b) { return Graph::select(c, a, b); }
inline Graph select(Graph c, Graph a, double b) { return Graph::select(c, a, a.number(b)); }
inline Graph select(Graph c, double a, Graph b) { return Graph::select(c, b.number(a), b); }

namespace detail {
// How often the lambda takes a number. Checked with plain doubles first: `auto` accepts an OpSite too, and would then
// be instantiated with one.
template <typename F> constexpr bool takesSite() {
  return !std::is_invocable_v<F, double> && !std::is_invocable_v<F, double, double> &&
         !std::is_invocable_v<F, double, double, double> && !std::is_invocable_v<F, double, double, double, double>;
}
template <typename F> constexpr unsigned arity() {
  if constexpr (takesSite<F>()) {
    if constexpr (std::is_invocable_v<F, double, const OpSite &>)
      return 1;
    else if constexpr (std::is_invocable_v<F, double, double, const OpSite &>)
      return 2;
    else
      return 3;
  } else {
    if constexpr (std::is_invocable_v<F, double>)
      return 1;
    else if constexpr (std::is_invocable_v<F, double, double>)
      return 2;
    else if constexpr (std::is_invocable_v<F, double, double, double>)
      return 3;
    else
      return 4;
  }
}
template <typename F, typename T, size_t... I>
auto apply(const T *args, const OpSite &site, std::index_sequence<I...>) {
  if constexpr (takesSite<F>())
    return F{}(args[I]..., site);
  else
    return F{}(args[I]...);
}
inline float lane(F32 x) { return x.v; }
inline double lane(double x) { return x; }
inline float lane(bool x) { return x; }

template <typename F, typename Number, typename T>
void block(const T *const *in, T *out, int64_t n, const OpSite &site) {
  [&]<size_t... I>(std::index_sequence<I...> indices) {
    const T *const columns[] = {in[I]...};
    for (int64_t i = 0; i < n; ++i) {
      const Number args[] = {Number(columns[I][i])...};
      out[i] = static_cast<T>(lane(apply<F>(args, site, indices)));
    }
  }
  (std::make_index_sequence<arity<F>()>());
}
} // namespace detail

template <typename F> Formula makeFormula() {
  using Indices = std::make_index_sequence<detail::arity<F>()>;
  Formula formula;
  formula.arity = detail::arity<F>();
  formula.value = [](const double *args, const OpSite &site) {
    return static_cast<double>(detail::apply<F>(args, site, Indices()));
  };
  formula.expr = [](llvm::ArrayRef<Expr> args, const OpSite &site) {
    return Expr(detail::apply<F>(args.data(), site, Indices()));
  };
  formula.block32 = detail::block<F, F32, float>;
  formula.block64 = detail::block<F, double, double>;
  return formula;
}

/// The gradient of a formula is computed in f32 (f64 for f64 operands) and rounded once to each operand's type.
template <typename F> llvm::SmallVector<Value, 4> makeGradient(const GradientSite &site) {
  auto args = gradientArguments(site); // operands and dy, widened
  auto gradients = [&] {
    if constexpr (std::is_invocable_v<F, Graph, Graph>)
      return F{}(args[0], args[1]);
    else if constexpr (std::is_invocable_v<F, Graph, Graph, Graph>)
      return F{}(args[0], args[1], args[2]);
    else if constexpr (std::is_invocable_v<F, Graph, Graph, Graph, Graph>)
      return F{}(args[0], args[1], args[2], args[3]);
    else if constexpr (std::is_invocable_v<F, Graph, Graph, const OpSite &>)
      return F{}(args[0], args[1], site.op.site());
    else
      return F{}(args[0], args[1], args[2], site.op.site());
  }();
  if constexpr (std::is_same_v<decltype(gradients), Graph>)
    return narrowGradients(site, {gradients});
  else
    return narrowGradients(site, llvm::ArrayRef<Graph>(gradients.data(), gradients.size()));
}

} // namespace fusor::ir
