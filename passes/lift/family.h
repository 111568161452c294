// What the families of lift share: what one says about an op, and the questions they all ask.
#pragma once
#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "passes/rewrite/constant.h"
#include "llvm/Support/FormatVariadic.h"
#include <functional>
#include <optional>

namespace fusor::passes {

/// Nothing of its kind is here; or it is, but for one condition; or a value can be written in another way.
struct Finding {
  using Write = std::function<ir::Value(ir::Builder &)>;
  std::string refusal;
  ir::Value replaced; // by what `write` gives, a value of the same type
  Write write;
  std::string what = {}; // of several things that the family makes, which
  /// What the form computes `replaced` from. In between lies what the big op does not write and read.
  llvm::SmallVector<ir::Value, 4> inputs = {};

  static Finding none() { return {}; }
  template <typename... Args> static Finding refused(const char *reason, Args &&...args) {
    return {llvm::formatv(reason, std::forward<Args>(args)...).str(), {}, {}};
  }
  static Finding found(ir::Value replaced, Write write, std::string what = "") {
    return {"", replaced, std::move(write), std::move(what)};
  }
  /// The same with what it is worth: the form makes `last` of `inputs`.
  Finding worth(ir::Value last, llvm::ArrayRef<ir::Value> inputs) && {
    if (!replaced) replaced = last;
    this->inputs.assign(inputs.begin(), inputs.end());
    return std::move(*this);
  }
};

struct Family {
  llvm::StringRef name;
  Finding (*find)(ir::Op &op);
};

Finding findNorm(ir::Op &op);       // x / sqrt(mean(x x) + eps), and the same of x - mean(x)
Finding findNormWeight(ir::Op &op); // a norm without weight, times a vector
Finding findGelu(ir::Op &op);       // 0.5 x (1 + erf(x / sqrt 2)), 0.5 x (1 + tanh(...))
Finding findSilu(ir::Op &op);       // x sigmoid(x); quick gelu: x sigmoid(1.702 x)
Finding findSoftmax(ir::Op &op);    // exp(x - max) / sum, and softmax between two reshapes
Finding findLinear(ir::Op &op);     // a product with a stored weight, plus a bias
Finding findRotary(ir::Op &op);     // x cos + (-x2, x1) sin
Finding findAttention(ir::Op &op);  // softmax(q k^T scale + mask) v

// --- values

/// The number of a value with one element that is known now: a constant, or arithmetic on such, a few ops deep.
std::optional<double> scalarOf(ir::Value value);
/// Equal but for a few roundings in `dtype`.
bool isNear(double value, double wanted, ir::DType dtype);
/// The scalar operand of a binary op and the other one; absent where no operand is a scalar.
std::optional<std::pair<double, ir::Value>> scalarAndOther(const ir::Op &op);
/// The op that makes `value` as its first result, where it is called `name`; else null.
ir::Op *madeBy(ir::Value value, llvm::StringRef name);
/// The only reader, where it is called `name`; else null.
ir::Op *onlyReader(ir::Value value, llvm::StringRef name);
/// f32 and f64: what big ops compute in, so small ops in them round no less often.
bool isWide(ir::Value value);
/// `x` where value is a cast of x that a big op does by itself: bf16 -> f32. Else `value`.
ir::Value beforeWidening(ir::Value value);
/// One number for each place of the last dim of `like`: [C], [1, C].
bool isVectorFor(ir::Value value, ir::Value like);
/// As [C].
ir::Value asVector(ir::Builder &b, ir::Value value);
/// The dim that `op` reduces alone and keeps as 1.
std::optional<int64_t> onlyReducedDim(const ir::Op &op);
/// Bytes of all values between `inputs` and `last`, each written once and read once by each op on the way.
int64_t bytesBetween(llvm::ArrayRef<ir::Value> inputs, ir::Value last, const ir::SymbolValues &sizes);
/// Whether `op` reduces the last dim alone and keeps it as 1.
bool reducesLastDim(const ir::Op &op);

} // namespace fusor::passes
