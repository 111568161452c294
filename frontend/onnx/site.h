// One node as its expansion sees it: inputs, attributes, the version it is written for, and where results go.
#pragma once
#include "frontend/onnx/folder.h"
#include "frontend/onnx/index_bounds.h"
#include "frontend/onnx/writer.h"

namespace fusor::onnx {

class Attribute;
class Node;

/// A value of the file's graph. It is made in the IR when something reads it.
struct Slot {
  std::string name;
  std::optional<Known> known;
  std::optional<Data> data;
  ir::Value value;
  bool isBroken = false; // its node was refused: what reads it is not looked at
  bool isNibble = false; // i8 or u8 that is int4 or uint4 in the file
};

/// The IR value of `slot`, made now where it was only known.
Term materialize(Writer &writer, Slot &slot);
/// Its type; absent for a broken one.
std::optional<ir::TensorType> typeOf(const Slot &slot);

class NodeSite {
public:
  NodeSite(Writer &writer, Folder &folder, const Node &node, int64_t version, llvm::ArrayRef<Slot *> inputs,
           llvm::StringRef modelFolder);

  Writer &writer() const { return writer_; }
  int64_t version() const { return version_; }
  const Node &node() const { return node_; }

  // --- inputs

  /// Those given; one left out in the middle counts.
  unsigned inputCount() const { return inputs_.size(); }
  bool has(unsigned i) {
    if (i < 32) askedInputs_ |= 1u << i;
    return i < inputs_.size() && inputs_[i];
  }
  /// Input `i`; a failure where it is not given.
  Term in(unsigned i);
  /// Input `i`, or empty.
  Term optionalIn(unsigned i) { return has(i) ? in(i) : Term(); }
  /// Type of input `i` without making it.
  ir::TensorType type(unsigned i);
  /// Whether input `i` is int4 or uint4; one that nobody asked is refused if it is.
  bool isNibble(unsigned i) {
    if (i < 32) askedNibbles_ |= 1u << i;
    return i < inputs_.size() && inputs_[i] && inputs_[i]->isNibble;
  }
  /// The content of input `i` as sizes or indices, which must be known at import: `what` it is says the failure.
  std::optional<std::vector<ir::Dim>> dims(unsigned i, llvm::StringRef what);
  std::optional<std::vector<int64_t>> integers(unsigned i, llvm::StringRef what);
  std::optional<std::vector<double>> reals(unsigned i, llvm::StringRef what);
  /// The content of input `i` where the file itself has it; asking is no failure.
  std::optional<std::vector<double>> constant(unsigned i);
  /// Input `i` where it is small integers known at import, perhaps sizes; else null.
  const Known *known(unsigned i);
  /// Input `i` is indices into a dim of `size`; or elements `first`, `first + every`, ... are. Fails where the file
  /// itself has one that is outside; those of a graph input are checked at each run.
  void checkIndices(unsigned i, const ir::Dim &size, unsigned first = 0, unsigned every = 1);
  llvm::ArrayRef<IndexBound> indexBounds() const { return indexBounds_; }

  // --- attributes; one that is never asked for is refused

  bool hasAttr(llvm::StringRef name);
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  /// 0 or 1; a failure where it is neither.
  bool flag(llvm::StringRef name, bool otherwise);
  double real(llvm::StringRef name, double otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  std::vector<int64_t> list(llvm::StringRef name);
  std::vector<double> realList(llvm::StringRef name);
  std::optional<Data> tensor(llvm::StringRef name);
  void ignore(llvm::StringRef name) { asked_.insert(name); }
  /// Attribute or number `axis` counted from the front; a failure where it is not a dim of `rank`.
  unsigned axis(int64_t axis, unsigned rank);
  /// The same for several, each once.
  std::vector<int64_t> axes(llvm::ArrayRef<int64_t> axes, unsigned rank);

  // --- results

  bool wants(unsigned i) const;
  unsigned outputCount() const;
  void out(unsigned i, Term term);
  void outKnown(unsigned i, Known known);
  void outData(unsigned i, Data data);
  void outNibble(unsigned i, Term term);
  std::vector<Slot> &outputs() { return outputs_; }

  template <typename... Args> Term fail(const char *format, Args &&...args) {
    return writer_.fail(format, std::forward<Args>(args)...);
  }
  bool failed() const { return writer_.failed(); }
  /// Fails where an attribute or an input was given that the expansion did not ask for.
  void checkAllRead();

private:
  const Attribute *find(llvm::StringRef name, int32_t type);
  Writer &writer_;
  Folder &folder_;
  const Node &node_;
  int64_t version_;
  llvm::SmallVector<Slot *, 4> inputs_;
  llvm::StringRef modelFolder_;
  std::vector<Slot> outputs_;
  std::vector<IndexBound> indexBounds_;
  llvm::StringSet<> asked_;
  uint32_t askedInputs_ = 0, askedNibbles_ = 0;
};

} // namespace fusor::onnx
