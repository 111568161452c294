// The C++ graph builder: write a model as ordinary arithmetic, get a Module.
//
//   fusor::Builder b("mlp");
//   auto x = b.input("x", fusor::f32, {fusor::dim("B", 1, 64), 256});
//   auto w = b.param("fc.weight", fusor::f32, {512, 256}, fusor::Init::normal(0.02));
//   b.output(fusor::gelu(fusor::linear(x, w)) * 2.0, "y");
//   fusor::Module m = b.module();                  // or an error: m.error()
//
// Shapes are inferred at every call. A call that does not fit records a diagnostic with the caller's file and line and
// returns an empty Value; what is made of that is empty too and says nothing more, so one mistake is one message. All
// of them arrive together, where the module is used.
#pragma once
#include "frontend/builder/result.h"
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fusor {

enum class DType : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, f8e8m0, i64, i32, i16, i8, u64, u32, u16, u8, i1 };
inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, f8e4m3 = DType::f8e4m3,
                       f8e5m2 = DType::f8e5m2, i64 = DType::i64, i32 = DType::i32, i16 = DType::i16, i8 = DType::i8,
                       u8 = DType::u8, i1 = DType::i1;

/// The caller's line, as a default argument (std::source_location is missing in clang 14).
struct Site {
  const char *file = "";
  unsigned line = 0;
  static constexpr Site here(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

namespace frontend { // not for callers
struct GraphState;
struct DimState;
struct Access;
} // namespace frontend

/// A number, a symbol, or sums and products of them: 256, dim("B"), dim("B") * 256.
class FUSOR_API Dim {
public:
  Dim(int64_t value);
  Dim operator+(const Dim &other) const;
  Dim operator-(const Dim &other) const;
  Dim operator*(const Dim &other) const;
  bool operator==(const Dim &other) const;
  bool isNumber() const;
  /// The number; 0 where it is not one.
  int64_t number() const;
  std::string str() const;

private:
  friend struct frontend::Access;
  Dim() = default;
  std::shared_ptr<const frontend::DimState> state_;
};
/// A size known when the program runs, at least `low` and at most `high`.
FUSOR_API Dim dim(const std::string &symbol, int64_t low, int64_t high);
/// The same symbol again, where its range was said elsewhere.
FUSOR_API Dim dim(const std::string &symbol);
using Shape = std::vector<Dim>;

/// How a parameter starts. Normal values come from a counter-based generator keyed by (seed, name, element).
struct Init {
  enum Kind : uint8_t { kZeros, kConstant, kNormal } kind = kZeros;
  double value = 0;
  static Init zeros() { return {}; }
  static Init constant(double v) { return {kConstant, v}; }
  static Init normal(double deviation) { return {kNormal, deviation}; }
};

/// A tensor of the graph: a cheap handle. Empty after an error.
class FUSOR_API Value {
public:
  Value() = default;
  bool empty() const { return !def_; }
  DType dtype() const; ///< of a value that is not empty, like the next three
  unsigned rank() const;
  Shape shape() const;
  /// Dim `i`; negative counts from the end.
  Dim dim(int i) const;
  /// The name it has in the IR and in kernels.
  Value named(const std::string &name) const;
  /// "f32[B, 256]"; "<empty>" after an error.
  std::string type() const;

private:
  friend struct frontend::Access;
  std::shared_ptr<frontend::GraphState> graph_;
  void *def_ = nullptr;
};

/// One attribute of op(): {"form", "erf"}, {"axis", -1}, {"shape", fusor::Shape{b, 256}}.
struct Attr {
  std::string name;
  std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, Shape> value;
};

class Module;
struct AdamW;
class Recipe;

/// Builds one module: parameters and states shared by its functions, and the functions, the first called "forward".
class FUSOR_API Builder {
public:
  explicit Builder(const std::string &name, Site site = Site::here());

  /// An argument of the current function.
  Value input(const std::string &name, DType type, const Shape &shape, Site site = Site::here());
  /// A parameter as the current function reads it. Another function may declare the same again and reads the same
  /// values.
  Value param(const std::string &name, DType type, const Shape &shape, Init init, Site site = Site::here());
  /// A value that a function reads and replaces by update(): a cache, a counter.
  Value state(const std::string &name, DType type, const Shape &shape, Init init = {}, Site site = Site::here());
  /// A tensor that never changes; `data` holds its elements, row-major.
  Value constant(const std::string &name, DType type, const std::vector<int64_t> &shape, const void *data,
                 Site site = Site::here());
  /// A scalar.
  Value constant(double value, DType type = f32, Site site = Site::here());
  /// A parameter, state or constant declared before, as the current function reads it.
  Value read(const std::string &name, Site site = Site::here());

  /// `value` is a result of the current function.
  void output(Value value, const std::string &name = "", Site site = Site::here());
  /// `value` is the content of state `name` after the current function ran.
  void update(const std::string &name, Value value, Site site = Site::here());
  /// Ends the current function and begins another one of the same module.
  void function(const std::string &name, Site site = Site::here());

  /// 0, 1, 2, ... along the last dim.
  Value iota(const Shape &shape, DType type = i32, Site site = Site::here());
  /// The product of dims as a scalar, known when the program runs.
  Value extent(const Shape &shape, DType type = i32, Site site = Site::here());
  /// Any op of the table (`fusor ops` lists them), all its results.
  std::vector<Value> ops(const std::string &op, const std::vector<Value> &operands, const std::vector<Attr> &attrs = {},
                         Site site = Site::here());
  /// Its first result.
  Value op(const std::string &op, const std::vector<Value> &operands, const std::vector<Attr> &attrs = {},
           Site site = Site::here()) {
    return ops(op, operands, attrs, site).front();
  }

  /// The errors up to now, all of them.
  Error error() const;
  /// What was built. The builder goes on building; the module does not change with it.
  Module module() const;
  /// One step of training: forward to `loss` (a scalar), gradients, optimizer, in the precision of `recipe`.
  Module trainingStep(Value loss, const AdamW &optimizer, const Recipe &recipe, Site site = Site::here());

private:
  friend struct frontend::Access;
  std::shared_ptr<frontend::GraphState> graph_;
};

/// An operand of an operator: remembers the line it was written on, which an operator cannot.
struct Operand {
  Value value;
  double number = 0;
  Site site;
  Operand(Value v, Site s = Site::here()) : value(std::move(v)), site(s) {}
  Operand(double n, Site s = Site::here()) : number(n), site(s) {}
};
FUSOR_API Value operator+(Operand a, Operand b);
FUSOR_API Value operator-(Operand a, Operand b);
FUSOR_API Value operator*(Operand a, Operand b);
FUSOR_API Value operator/(Operand a, Operand b);
FUSOR_API Value operator-(Operand a);

// Elementwise.
FUSOR_API Value gelu(Value x, Site site = Site::here()); ///< tanh form
FUSOR_API Value geluErf(Value x, Site site = Site::here());
/// x * sigmoid(1.702 x).
FUSOR_API Value geluQuick(Value x, Site site = Site::here());
FUSOR_API Value relu(Value x, Site site = Site::here());
FUSOR_API Value silu(Value x, Site site = Site::here());
FUSOR_API Value sigmoid(Value x, Site site = Site::here());
FUSOR_API Value tanh(Value x, Site site = Site::here());
FUSOR_API Value exp(Value x, Site site = Site::here());
FUSOR_API Value log(Value x, Site site = Site::here());
FUSOR_API Value sqrt(Value x, Site site = Site::here());
FUSOR_API Value rsqrt(Value x, Site site = Site::here());
/// To FP8: what is too large becomes the largest, or where it does not saturate Inf (f8e5m2) or NaN (f8e4m3).
FUSOR_API Value cast(Value x, DType to, bool saturate = true, Site site = Site::here());
/// 0 with probability `rate`, else x / (1 - rate), by the integer scalar `seed` and the number of the place.
FUSOR_API Value dropout(Value x, Value seed, double rate, int64_t stream, Site site = Site::here());

// Over whole tensors.
FUSOR_API Value matmul(Value a, Value b, Site site = Site::here());
/// x [..., K], weight [N, K], bias [N] or empty -> [..., N]
FUSOR_API Value linear(Value x, Value weight, Value bias = {}, Site site = Site::here());
FUSOR_API Value layerNorm(Value x, Value weight, Value bias, double eps = 1e-5, Site site = Site::here());
FUSOR_API Value rmsNorm(Value x, Value weight, double eps = 1e-5, Site site = Site::here());
FUSOR_API Value softmax(Value x, int64_t axis = -1, Site site = Site::here());
FUSOR_API Value sum(Value x, std::vector<int64_t> dims = {}, bool keep = false, Site site = Site::here());
FUSOR_API Value mean(Value x, std::vector<int64_t> dims = {}, bool keep = false, Site site = Site::here());
/// table [V, D], ids [...] -> [..., D]
FUSOR_API Value embedding(Value table, Value ids, Site site = Site::here());
/// logits [..., V], integer targets [...] -> the mean loss, a scalar
FUSOR_API Value crossEntropy(Value logits, Value targets, Site site = Site::here());

struct AttentionOptions {
  int64_t heads = 1, kvHeads = 0; ///< kvHeads 0: as many as heads
  bool causal = true;
  int64_t window = 0;  ///< keys a query sees, 0: all
  double scale = 0;    ///< 0: 1 / sqrt(head size)
  Value keyMask = {};  ///< i1 [B, Tk]
  Value kvLength = {}; ///< integer scalar: keys from it on are not there yet
  Value bias = {};     ///< f32 [B, heads, Tq, Tk], any dim perhaps 1: added to the scaled scores
};
/// q [B, Tq, heads*d], k and v [B, Tk, kvHeads*d] -> [B, Tq, heads*d]
FUSOR_API Value attention(Value q, Value k, Value v, const AttentionOptions &options, Site site = Site::here());
/// x [B, T, heads*d] rotated by its positions [T]
FUSOR_API Value rope(Value x, Value positions, int64_t heads, double base = 10000, Site site = Site::here());

// Movement.
FUSOR_API Value reshape(Value x, const Shape &shape, Site site = Site::here());
FUSOR_API Value transpose(Value x, std::vector<int64_t> perm, Site site = Site::here());
FUSOR_API Value slice(Value x, const Shape &start, const Shape &size, Site site = Site::here());
FUSOR_API std::vector<Value> split(Value x, const Shape &sizes, int64_t axis = -1, Site site = Site::here());
FUSOR_API Value concat(const std::vector<Value> &parts, int64_t axis = -1, Site site = Site::here());
FUSOR_API Value gather(Value x, Value indices, int64_t axis = 0, Site site = Site::here());

} // namespace fusor
