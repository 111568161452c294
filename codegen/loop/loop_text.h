// The steps of a LoopPlan as C: loads, formulas and stores at a place. The kernel classes decide which steps go into
// which loop; this spells them.
//
// A thread has `width` neighbouring columns at a time. With width 1 everything is a scalar: `const float h1 = load(h +
// i);`. Else what varies over columns is loaded into an array (`float h8[8]; loadVector(h + i, h8);`), computed in a
// loop over lane `e` (`y8[e] = ...`) and stored from an array.
#pragma once
#include "codegen/emit/kernel_builder.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/plan/loop.h"

namespace fusor::codegen {

/// The element a thread is at: identifiers, or expressions in parentheses. `flat` is row * columns + column, or empty.
struct Place {
  std::string row = "row", column = "c", flat;
};

/// The largest number of columns a thread can take at once for loads and stores of up to 16 bytes: 1 where columns are
/// not a fixed multiple.
int vectorWidth(const LoopPlan &plan, const KernelBuilder &k);

class LoopText {
public:
  LoopText(KernelBuilder &k, const LoopPlan &plan, int width) : k_(k), plan_(plan), width_(width) {}

  int width() const { return width_; }
  void setPlace(Place place) { place_ = std::move(place); }
  const Place &place() const { return place_; }
  /// Where code goes from now on.
  void setWriter(CodeWriter &w) { w_ = &w; }
  CodeWriter &w() { return *w_; }
  /// The GEMM's product: a variable (in an epilogue), or the pointer to an f32 copy of it.
  void setAccumulator(std::string variable, std::string pointer) {
    accumulator_ = std::move(variable), accumulatorPointer_ = std::move(pointer);
  }
  /// Pointers by other means than parameters (multi-tensor kernels have them in a table).
  void setPointers(llvm::ArrayRef<std::string> inputs, llvm::ArrayRef<std::string> outputs) {
    inputs_.assign(inputs.begin(), inputs.end()), outputs_.assign(outputs.begin(), outputs.end());
  }
  /// The margin says `shape` for the dims of what is no scalar: the loop is one over tensors of several shapes.
  void setShapeInMargin(std::string shape) { shapeInMargin_ = std::move(shape); }

  /// True for steps with one value a column: arrays when width > 1.
  bool isWide(Span span) const { return width_ > 1 && (span == Span::full || span == Span::column); }
  /// The operand text of a value: "h8[e]", "mean", "0.5f".
  std::string spell(ir::Value v) const;
  void bind(ir::Value v, std::string text) { spelled_[v.def()] = std::move(text); }
  bool isBound(ir::Value v) const { return spelled_.count(v.def()); }
  /// The value will be assigned to `text` when it is computed.
  void assignTo(ir::Value v, std::string text) { targets_[v.def()] = std::move(text); }
  std::string target(ir::Value v) const { return targets_.lookup(v.def()); }
  void forget(ir::Value v) { spelled_.erase(v.def()), targets_.erase(v.def()); }

  /// A new identifier for `v`, ending in the width where it is an array: "h8".
  std::string variableFor(ir::Value v, Span span);
  /// Declares and loads. Wide ones fill a new array.
  void load(const LoopStep &step);
  /// Fills `array` of `width` elements, which exists.
  void loadInto(const LoopStep &step, llvm::StringRef array);
  /// Of the first element of a load that isVector(): "x + row * 768 + c".
  std::string addressOf(const LoopStep &step) { return pointer(step.access) + " + " + index(step.access); }
  /// Any step but loads, row reductions and sums; inside the lane loop where wide. Constants write nothing.
  void compute(const LoopStep &step);
  /// What must stand before all loops: the key of a random stream.
  void prepare(const LoopStep &step);
  /// A wide value from its array, or any other from its scalar (inside the lane loop for `perLane`).
  void storeArray(const LoopStore &store, llvm::StringRef array);
  void storeScalar(const LoopStore &store);
  /// True when the array's elements are neighbours in memory, aligned for one access.
  bool isVector(const Access &access) const;

  /// "for (int e = 0; e < 8; ++e) {", or nothing for width 1.
  std::optional<CodeWriter::Block> laneLoop();
  /// Element number of `access` at the place; `lane` is added to the column.
  std::string index(const Access &access, llvm::StringRef lane = "");

  bool usedRow = false, usedColumn = false; // whether the place was needed

private:
  std::string terms(const ir::Dim &offset, llvm::ArrayRef<ir::Dim> strides, llvm::StringRef lane,
                    llvm::ArrayRef<std::string> more = {});
  std::string gatherRow(const LoopStep &step, llvm::StringRef lane);
  std::string column(llvm::StringRef lane) const {
    return lane.empty() ? place_.column : "(" + place_.column + " + " + lane.str() + ")";
  }
  std::string pointer(const Access &access);
  std::string pointer(const LoopStore &store);
  void define(ir::Value v, ir::DType type, std::string text);
  std::string inMargin(ir::Value v) const;
  bool isOnlyStored(ir::Value v) const;
  ir::DType typeOf(ir::Value v) const { return v.dtype(); }

  KernelBuilder &k_;
  const LoopPlan &plan_;
  int width_;
  Place place_;
  CodeWriter *w_ = nullptr;
  std::string accumulator_, accumulatorPointer_, shapeInMargin_;
  std::vector<std::string> inputs_, outputs_;
  llvm::DenseMap<const ir::ValueDef *, std::string> spelled_, targets_, keys_;
};

} // namespace fusor::codegen
