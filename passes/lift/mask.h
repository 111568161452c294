// What is done to the scores between the softmax and the product of q and k, and how attention takes it.
//
//   select(triangle, s, -inf), s + triangle of 0 and -inf          causal = true
//   select(triangle, s, -10000)                                    causal = true, hidden = -10000
//   select(keys, s, -inf)           keys [B, Tk]                   key_mask
//   s + anything, select(c, s, -inf or the lowest number)          bias
#pragma once
#include "passes/lift/family.h"
#include <limits>

namespace fusor::passes {

/// Scores where something is done to them: [front..., tq, tk], and what they are multiplied with afterwards.
struct ScoresAt {
  ir::Shape front;
  ir::Dim tq, tk;
  double factor = 1;
};

/// Everything that is done to the scores, the last first: so they are met on the way from the softmax to the product.
class Masks {
public:
  /// Takes in `scores` + `mask`. "" or why attention cannot do that.
  std::string add(ir::Value mask, const ScoresAt &scores);
  /// The same for select(condition, fill, scores), or with `seen` select(condition, scores, fill).
  std::string select(ir::Value condition, ir::Value fill, bool seen, const ScoresAt &scores);

  bool causal() const { return causal_; }
  /// What the scores of later keys become; absent: they are not there.
  std::optional<double> hidden() const { return hidden_; }
  /// The key mask as attention takes it, [batch, tk], true where a key is seen; null where there is none. `front`: the
  /// dims in front of q's last two, batch and perhaps heads.
  ir::Value keyMask(ir::Builder &b, llvm::ArrayRef<ir::Dim> front, const ir::Dim &tk) const;
  /// All that is added, as [batch, heads, tq, tk] with dims of 1 where it is repeated; null where there is nothing.
  ir::Value bias(ir::Builder &b, llvm::ArrayRef<ir::Dim> front, ir::DType dtype) const;

private:
  /// value * factor; or 0 where the condition is `seen`, elsewhere the fill.
  struct Bias {
    ScoresAt scores;
    ir::Value value, condition;
    bool seen = false;
    double fill = 0;
    double magnitude() const;
  };
  std::string take(Bias bias);
  bool takeTriangle(ir::Value mask, const ScoresAt &scores);
  std::string selectLater(double fill, const ScoresAt &scores, const ir::Op &at);
  bool isKeyMask(llvm::ArrayRef<ir::Dim> front, const ir::Dim &tk) const;
  ir::Value written(ir::Builder &b, const Bias &bias, llvm::ArrayRef<ir::Dim> front, ir::DType dtype) const;

  bool causal_ = false;
  std::optional<double> hidden_;
  std::optional<Bias> keys_; // i1, -inf where a key is not seen
  llvm::SmallVector<Bias, 2> biases_;
  // A later key's score is this number rather than -inf: it counts as not there beside biases that are far from it.
  std::optional<Bias> causalAsBias_;
  double mostInside_ = std::numeric_limits<double>::infinity(); // what may be added before what was met
};

} // namespace fusor::passes
