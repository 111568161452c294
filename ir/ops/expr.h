// A scalar expression: what a formula of the op table is for code generation. codegen/emit prints it as CUDA.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <vector>

namespace fusor::ir {

class Expr {
public:
  enum class Kind : uint8_t { input, constant, call };
  /// Operand `index` of the op.
  static Expr input(unsigned index);
  static Expr constant(double value);
  /// One of kScalarFunctions applied to `args`.
  static Expr call(llvm::StringRef function, llvm::ArrayRef<Expr> args);
  Expr(double value) : Expr(constant(value)) {} // formulas mix numbers and expressions

  Kind kind() const { return node_->kind; }
  unsigned inputIndex() const { return node_->index; }
  double constantValue() const { return node_->value; }
  llvm::StringRef function() const { return node_->function; }
  llvm::ArrayRef<Expr> args() const { return node_->args; }

private:
  struct Node {
    Kind kind;
    unsigned index = 0;
    double value = 0;
    std::string function;
    std::vector<Expr> args;
  };
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

/// Every function a formula may call: `infix` is its C operator, empty where it is a function of that name.
struct ScalarFunction {
  const char *name;
  unsigned arity;
  const char *infix;
};
inline constexpr ScalarFunction kScalarFunctions[] = {
    {"add", 2, "+"},  {"sub", 2, "-"},  {"mul", 2, "*"},     {"div", 2, "/"}, {"neg", 1, "-"},  {"lt", 2, "<"},
    {"le", 2, "<="},  {"gt", 2, ">"},   {"ge", 2, ">="},     {"eq", 2, "=="}, {"ne", 2, "!="},  {"and", 2, "&&"},
    {"or", 2, "||"},  {"not", 1, "!"},  {"select", 3, "?:"}, {"exp", 1, ""},  {"expm1", 1, ""}, {"log", 1, ""},
    {"log1p", 1, ""}, {"sqrt", 1, ""},  {"rsqrt", 1, ""},    {"sin", 1, ""},  {"cos", 1, ""},   {"tan", 1, ""},
    {"asin", 1, ""},  {"acos", 1, ""},  {"atan", 1, ""},     {"sinh", 1, ""}, {"cosh", 1, ""},  {"tanh", 1, ""},
    {"asinh", 1, ""}, {"acosh", 1, ""}, {"atanh", 1, ""},    {"erf", 1, ""},  {"abs", 1, ""},   {"floor", 1, ""},
    {"ceil", 1, ""},  {"round", 1, ""}, {"trunc", 1, ""},    {"pow", 2, ""},  {"fmod", 2, ""},  {"max", 2, ""},
    {"min", 2, ""},   {"isnan", 1, ""}, {"isinf", 1, ""}};

} // namespace fusor::ir
