// An entry of the op table: everything the system knows about one op.
//
// There are three ways to define an op, the first that fits:
//   formula     elementwise: one generic lambda gives the float64 value, the CPU loop, the CUDA text and the graph (see
//   formula.h) expansion   composite: a function that builds it from other ops; shape, reference and code follow
//   primitive   explicit hooks: infer, reference, gradient, and the kernel class that lowers it
// Parser, printer, verifier, `fusor ops`, docs, property tests, gradient checks and fuzzers are loops over the table.
// Where others would write `switch (op)`, add a property here.
#pragma once
#include "ir/graph/graph.h"
#include "ir/ops/expr.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::ir {

class Builder;

struct OperandSpec {
  std::string name;
  bool optional = false; // printed as name = %x
  bool variadic = false; // any number of values; only as the last operand
};

struct AttrSpec {
  std::string name;
  AttrKind kind;
  std::optional<AttrValue> defaultValue;
  bool required = false;                          // neither required nor default: it may be absent, ask site.has()
  std::vector<std::string> choices;               // of a word
  std::optional<std::pair<double, double>> range; // of a number, inclusive
  std::string summary = {};
};

/// Which class of kernels implements an op. codegen and the CPU backend have one folder a class.
enum class Lowering : uint8_t {
  none,        // return, yield, fusion, constants: no kernel of their own
  pointwise,   // one output element from the same element of each operand (broadcast)
  view,        // reshape: the same bytes under another shape
  indexMap,    // one output element from one computed position: slice, transpose, concat, pad, broadcast, gather, iota
  reduction,   // over leading dims (column), trailing dims (row), or others
  contraction, // GEMM
  attention,
  scatter,     // deterministic accumulation by index: embedding_grad
  multiTensor, // over lists of tensors: global_norm, adamw
  expansion,   // only through its expansion
};
llvm::StringRef name(Lowering lowering);

/// What passes/precision does with an op where contractions compute in bf16 or f16.
enum class PrecisionClass : uint8_t {
  follows,    // in the low dtype as soon as one operand is, as all operands share a dtype: elementwise, movement
  low,        // always in the low dtype: contractions, attention
  wide,       // always in f32: sums, exponentials
  normalizes, // operand 0 decides; other operands and the statistics stay f32; attribute `out` gives the result's dtype
  any,        // takes operands as they come and widens inside: losses, casts, optimizers
};

/// Which operand types an elementwise op takes.
enum class TypeClass : uint8_t { floats, numbers, booleans, any };

/// An op applied to operands, before or after it exists as an Op.
struct OpSite {
  const OpDef &def;
  llvm::ArrayRef<Value> operands;
  const Attrs &attrs;

  /// Operand `i`, null when absent.
  Value operand(unsigned i) const { return i < operands.size() ? operands[i] : Value(); }
  const TensorType &type(unsigned i) const { return operands[i].type(); }
  bool has(llvm::StringRef attr) const { return attrs.find(attr) != nullptr; }
  /// The attribute or its default; our bug when there is neither.
  const AttrValue &attrValue(llvm::StringRef name) const;
  template <typename T> const T &attr(llvm::StringRef name) const { return std::get<T>(attrValue(name)); }
  int64_t integer(llvm::StringRef name) const { return attr<int64_t>(name); }
  double real(llvm::StringRef name) const { return attr<double>(name); }
  bool flag(llvm::StringRef name) const { return attr<bool>(name); }
  llvm::StringRef word(llvm::StringRef name) const { return attr<std::string>(name); }
  /// Attribute `axis` counted from the front: -1 becomes rank - 1.
  unsigned axis(llvm::StringRef name, unsigned rank) const;
};

using ResultTypes = llvm::SmallVector<TensorType, 2>;

/// A tensor of the float64 reference: elements as doubles, row-major, already rounded to `dtype` where that is narrower
/// than f32.
struct RefTensor {
  DType dtype = DType::f32;
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<double> data;
  double scale = 1; // of a tensor quantised per tensor: value = data / scale

  int64_t elements() const { return static_cast<int64_t>(data.size()); }
  int64_t dim(int i) const { return shape[i < 0 ? shape.size() + i : i]; }
};

/// One evaluation by the reference interpreter: outputs have their shape and are zero.
struct RefCall {
  OpSite site;
  llvm::ArrayRef<const RefTensor *> inputs; // null where an optional operand is absent
  llvm::MutableArrayRef<RefTensor> outputs;
  const SymbolValues &symbols;
};

/// What a gradient rule sees. It returns one Value per operand; a null Value means no gradient flows there.
struct GradientSite {
  Op &op;
  Builder &builder;
  llvm::ArrayRef<Value> resultGradients; // null where a result does not influence the loss
  Value gradient(unsigned i = 0) const { return resultGradients[i]; }
};

/// The hooks made from a formula's lambda.
struct Formula {
  unsigned arity = 0;
  double (*value)(const double *args, const OpSite &site) = nullptr;
  Expr (*expr)(llvm::ArrayRef<Expr> args, const OpSite &site) = nullptr;
  /// out[i] = f(in[0][i], in[1][i], ...) for i < n, in the precision the CPU backend computes in.
  void (*block32)(const float *const *in, float *out, int64_t n, const OpSite &site) = nullptr;
  void (*block64)(const double *const *in, double *out, int64_t n, const OpSite &site) = nullptr;
  explicit operator bool() const { return value != nullptr; }
};

struct OpDef {
  std::string name;
  std::string summary;
  std::vector<OperandSpec> operands;
  std::vector<std::string> results = {"y"};
  std::vector<AttrSpec> attrs;

  Lowering lowering = Lowering::none;
  TypeClass typeClass = TypeClass::any; // of an elementwise op
  PrecisionClass precision = PrecisionClass::follows;
  bool isCommutative = false;
  bool isTerminator = false;
  bool takesQuantised = false;     // operands may carry a scale; elsewhere they must be dequantised first
  bool hasSideEffectOrder = false; // never merged or removed
  bool yieldsBoolean = false;      // elementwise: comparisons and predicates
  bool isChoice = false; // elementwise: the result is one of the operands or its negative, and needs no rounding
  /// Operands that are conditions (i1), indices, or f32 whatever the others are (an attention's bias): they take part in
  /// no dtype rule and get no gradient.
  std::vector<unsigned> untypedOperands;
  /// The range that property tests draw each operand from.
  double sampleLow = -2, sampleHigh = 2;
  /// Set when the gradient cannot be checked at kinks, e.g. relu at 0, round: the gradient tests stay away from them or
  /// skip.
  bool gradientIsZeroAlmostEverywhere = false;

  Formula formula;
  llvm::Expected<ResultTypes> (*infer)(const OpSite &) = nullptr;
  void (*reference)(const RefCall &) = nullptr;
  llvm::SmallVector<Value, 4> (*gradient)(const GradientSite &) = nullptr;
  /// Of a rule that does not cover every form: those it does cover; the others are differentiated as their expansion.
  bool (*gradientCovers)(const OpSite &) = nullptr;
  llvm::SmallVector<Value, 2> (*expansion)(Builder &, const OpSite &) = nullptr;
  /// True where the op reads what it overwrites at the same place only (in-place is legal for operand 0).
  bool inPlaceOperand0 = false;

  bool isElementwise() const { return static_cast<bool>(formula); }
  bool hasGradient(const OpSite &site) const { return gradient && (!gradientCovers || gradientCovers(site)); }
  const AttrSpec *attr(llvm::StringRef name) const;
  /// The number of required operands.
  unsigned requiredOperands() const;
  bool isVariadic() const { return !operands.empty() && operands.back().variadic; }
};

/// The entry called `name`, or null.
const OpDef *findOp(llvm::StringRef name);
/// The entry called `name`; a name that is not in the table is our bug.
const OpDef &opDef(llvm::StringRef name);
/// All entries in table order.
llvm::ArrayRef<const OpDef *> allOps();

/// A cast to FP8 that lets what is too large become Inf or NaN.
bool isUnsaturatedCast(const OpSite &site);

/// An error whose text continues "'add' ...": formatted, without location.
template <typename... Args> llvm::Error opError(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace fusor::ir
