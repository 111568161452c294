#include "frontend/onnx/site.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

Term materialize(Writer &writer, Slot &slot) {
  if (!slot.value) {
    if (slot.data)
      slot.value = writer.data(*slot.data, slot.name).value();
    else if (slot.known)
      slot.value = writer.known(*slot.known, slot.name).value();
  }
  return {writer, slot.value};
}

std::optional<ir::TensorType> typeOf(const Slot &slot) {
  if (slot.value) return slot.value.type();
  if (slot.data) return ir::TensorType{slot.data->dtype, {slot.data->shape.begin(), slot.data->shape.end()}};
  if (slot.known) return ir::TensorType{slot.known->dtype, {slot.known->shape.begin(), slot.known->shape.end()}};
  return std::nullopt;
}

NodeSite::NodeSite(Writer &writer, Folder &folder, const Node &node, int64_t version, llvm::ArrayRef<Slot *> inputs,
                   llvm::StringRef modelFolder)
    : writer_(writer), folder_(folder), node_(node), version_(version), inputs_(inputs.begin(), inputs.end()),
      modelFolder_(modelFolder), outputs_(node.output_size()) {
  while (!inputs_.empty() && !inputs_.back()) inputs_.pop_back();
}

// --- inputs

Term NodeSite::in(unsigned i) {
  if (!has(i)) return fail("input {0} is missing", i);
  return materialize(writer_, *inputs_[i]);
}

ir::TensorType NodeSite::type(unsigned i) {
  if (has(i))
    if (auto type = typeOf(*inputs_[i])) return *type;
  fail("input {0} is missing", i);
  return {};
}

std::optional<std::vector<Dim>> NodeSite::dims(unsigned i, llvm::StringRef what) {
  if (!has(i)) return fail("input {0} ({1}) is missing", i, what), std::nullopt;
  Slot &slot = *inputs_[i];
  if (auto type = typeOf(slot); type && type->rank() > 1)
    return fail("{0} must be a vector, is {1}", what, type->str()), std::nullopt;
  if (!slot.known && slot.data) slot.known = knownOf(*slot.data);
  if (slot.known) return slot.known->elements;
  if (!slot.value) return fail("{0} must be a small tensor of integers", what), std::nullopt;
  auto content = folder_.evaluate(slot.value);
  if (!content) return fail("{0} {1}", what, llvm::toString(content.takeError())), std::nullopt;
  if (!ir::isInteger((*content)->dtype) && (*content)->dtype != DType::i1)
    return fail("{0} must be integers, are {1}", what, ir::name((*content)->dtype)), std::nullopt;
  std::vector<Dim> dims;
  for (double element : (*content)->data) {
    int64_t value = element >= 9223372036854775807.0    ? std::numeric_limits<int64_t>::max()
                    : element <= -9223372036854775808.0 ? std::numeric_limits<int64_t>::min()
                                                        : static_cast<int64_t>(element);
    dims.push_back(Dim(value));
  }
  return dims;
}

std::optional<std::vector<int64_t>> NodeSite::integers(unsigned i, llvm::StringRef what) {
  auto sizes = dims(i, what);
  if (!sizes) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim &dim : *sizes) {
    if (!dim.isConstant()) return fail("{0} must be numbers, found {1}", what, shown(dim.str())), std::nullopt;
    values.push_back(dim.value());
  }
  return values;
}

std::optional<std::vector<double>> NodeSite::reals(unsigned i, llvm::StringRef what) {
  if (!has(i)) return fail("input {0} ({1}) is missing", i, what), std::nullopt;
  Slot &slot = *inputs_[i];
  if (slot.known && !slot.known->isConstant()) return fail("{0} depends on the sizes of inputs", what), std::nullopt;
  Term term = materialize(writer_, slot);
  if (!term) return std::nullopt;
  auto content = folder_.evaluate(term.value());
  if (!content) return fail("{0} {1}", what, llvm::toString(content.takeError())), std::nullopt;
  return (*content)->data;
}

std::optional<std::vector<double>> NodeSite::constant(unsigned i) {
  if (!has(i)) return std::nullopt;
  const Slot &slot = *inputs_[i];
  std::vector<double> values;
  if (slot.data && slot.data->elements() <= kFoldingElements) {
    for (int64_t e = 0, n = slot.data->elements(); e < n; ++e)
      values.push_back(ir::loadElement(slot.data->dtype, slot.data->bytes->data(), e));
    return values;
  }
  if (!slot.known || !slot.known->isConstant()) return std::nullopt;
  for (const Dim &dim : slot.known->elements) values.push_back(static_cast<double>(dim.value()));
  return values;
}

const Known *NodeSite::known(unsigned i) {
  if (!has(i)) return nullptr;
  Slot &slot = *inputs_[i];
  if (!slot.known && slot.data) slot.known = knownOf(*slot.data);
  return slot.known ? &*slot.known : nullptr;
}

void NodeSite::checkIndices(unsigned i, const Dim &size, unsigned first, unsigned every) {
  if (!has(i)) return;
  if (auto argument = argumentBehind(inputs_[i]->value)) indexBounds_.push_back({*argument, size, first, every});
  auto indices = size.isConstant() ? constant(i) : std::nullopt;
  if (!indices) return;
  auto n = static_cast<double>(size.value());
  for (size_t e = first; e < indices->size(); e += every)
    if (double index = (*indices)[e]; !(index >= -n && index < n)) {
      fail("index {0} is outside of a dim of {1}", index, size.str());
      return;
    }
}

// --- attributes

namespace {

enum AttributeType : int32_t {
  kFloat = 1,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs
};

const char *describe(int32_t type) {
  static constexpr const char *names[] = {
      "nothing",           "a number",           "an integer",        "a string", "a tensor", "a graph",
      "a list of numbers", "a list of integers", "a list of strings", "tensors",  "graphs"};
  return type >= 0 && type < static_cast<int32_t>(std::size(names)) ? names[type] : "something else";
}

// As the file says, or where it does not (old files) by the field that is filled.
int32_t typeOf(const Attribute &a) {
  if (a.type() != 0) return a.type();
  if (a.has_i()) return kInt;
  if (a.has_f()) return kFloat;
  if (a.has_s()) return kString;
  if (a.has_t()) return kTensor;
  if (a.has_g()) return kGraph;
  if (a.ints_size()) return kInts;
  if (a.floats_size()) return kFloats;
  if (a.strings_size()) return kStrings;
  return 0;
}

} // namespace

const Attribute *NodeSite::find(llvm::StringRef name, int32_t type) {
  asked_.insert(name);
  const Attribute *found = nullptr;
  for (const Attribute &a : node_.attribute())
    if (llvm::StringRef(a.name()) == name) {
      if (found) return fail("attribute '{0}' is given twice", name), nullptr;
      found = &a;
    }
  if (!found) return nullptr;
  int32_t given = typeOf(*found);
  bool isEmptyList = given == 0 && (type == kInts || type == kFloats || type == kStrings);
  if (given != type && !isEmptyList)
    return fail("attribute '{0}' must be {1}, is {2}", name, describe(type), describe(given)), nullptr;
  return found;
}

bool NodeSite::hasAttr(llvm::StringRef name) {
  return llvm::any_of(node_.attribute(), [&](const Attribute &a) { return llvm::StringRef(a.name()) == name; });
}
int64_t NodeSite::integer(llvm::StringRef name, int64_t otherwise) {
  const Attribute *a = find(name, kInt);
  return a ? a->i() : otherwise;
}
bool NodeSite::flag(llvm::StringRef name, bool otherwise) {
  int64_t value = integer(name, otherwise);
  if (value != 0 && value != 1) fail("attribute '{0}' must be 0 or 1, is {1}", name, value);
  return value == 1;
}
double NodeSite::real(llvm::StringRef name, double otherwise) {
  const Attribute *a = find(name, kFloat);
  return a ? a->f() : otherwise;
}
std::string NodeSite::text(llvm::StringRef name, llvm::StringRef otherwise) {
  const Attribute *a = find(name, kString);
  return a ? a->s() : otherwise.str();
}
std::vector<int64_t> NodeSite::list(llvm::StringRef name) {
  const Attribute *a = find(name, kInts);
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : std::vector<int64_t>();
}
std::vector<double> NodeSite::realList(llvm::StringRef name) {
  const Attribute *a = find(name, kFloats);
  return a ? std::vector<double>(a->floats().begin(), a->floats().end()) : std::vector<double>();
}
std::optional<Data> NodeSite::tensor(llvm::StringRef name) {
  const Attribute *a = find(name, kTensor);
  if (!a) return std::nullopt;
  auto data = readTensor(a->t(), modelFolder_);
  if (!data) return fail("the tensor of attribute '{0}' {1}", name, llvm::toString(data.takeError())), std::nullopt;
  return *data;
}

void NodeSite::checkAllRead() {
  for (unsigned i = 0; i < std::min(32u, inputCount()); ++i)
    if (inputs_[i] && !(askedInputs_ >> i & 1)) {
      fail("input {0} is not one of this operator at this version", i);
      return;
    }
  for (const Attribute &a : node_.attribute())
    if (!a.ref_attr_name().empty()) {
      fail("attribute '{0}' refers to attribute '{1}' of a function, and this is in none", shown(a.name()),
           shown(a.ref_attr_name()));
      return;
    }
  for (unsigned i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] && inputs_[i]->isNibble && !(i < 32 && (askedNibbles_ >> i & 1))) {
      fail("input {0} is of a 4-bit type, which is not supported here", i);
      return;
    }
  for (const Attribute &a : node_.attribute())
    if (!asked_.contains(a.name())) {
      fail("attribute '{0}' is not supported at this version", shown(a.name()));
      return;
    }
}

unsigned NodeSite::axis(int64_t axis, unsigned rank) {
  int64_t r = rank;
  if (axis < -r || axis >= r) {
    fail("axis {0} is not a dim of a tensor with {1}", axis, rank);
    return 0;
  }
  return axis < 0 ? axis + r : axis;
}

std::vector<int64_t> NodeSite::axes(llvm::ArrayRef<int64_t> given, unsigned rank) {
  std::vector<int64_t> result;
  for (int64_t a : given) {
    int64_t at = axis(a, rank);
    if (failed()) return {};
    if (llvm::is_contained(result, at)) return fail("axis {0} is given twice", a), std::vector<int64_t>();
    result.push_back(at);
  }
  return result;
}

// --- results

unsigned NodeSite::outputCount() const { return outputs_.size(); }
bool NodeSite::wants(unsigned i) const { return i < outputs_.size() && !node_.output(static_cast<int>(i)).empty(); }
void NodeSite::out(unsigned i, Term term) {
  if (i < outputs_.size()) outputs_[i].value = term.value();
}
void NodeSite::outKnown(unsigned i, Known known) {
  if (i < outputs_.size()) outputs_[i].known = std::move(known);
}
void NodeSite::outData(unsigned i, Data data) {
  if (i >= outputs_.size()) return;
  outputs_[i].isNibble = data.isNibble;
  outputs_[i].data = std::move(data);
}
void NodeSite::outNibble(unsigned i, Term term) {
  out(i, term);
  if (i < outputs_.size()) outputs_[i].isNibble = true;
}

} // namespace fusor::onnx
