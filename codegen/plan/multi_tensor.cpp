#include "codegen/plan/anchors.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr unsigned kFirstShared = 4; // adamw's operands from here on are scalars that all tensors share

// One adamw and what follows from its new parameter, casts and an amax, and FP8 casts transposed: what is done to one
// tensor.
struct Group {
  Op *adamw = nullptr;
  llvm::SmallVector<Op *, 2> followers;
  llvm::SmallVector<Op *, 1> turned;
};

bool canFollow(const Op &op) {
  return (op.is("cast") && !isUnsaturatedCast(op.site())) || op.is("fp8_cast") || op.is("amax");
}

llvm::Expected<std::vector<Group>> groupsOf(const Block &body) {
  std::vector<Group> groups;
  llvm::DenseMap<Op *, unsigned> groupOf;
  for (Op *op : body.opPointers()) {
    if (op->def().isTerminator) continue;
    if (op->is("adamw")) {
      groupOf[op] = groups.size();
      groups.push_back({op, {}, {}});
    } else if (Op *source = canFollow(*op) ? op->operand(0u).op() : nullptr; source && groupOf.count(source)) {
      groups[groupOf[source]].followers.push_back(op);
    } else if (Op *cast = isTurnedCast(*op) ? op->operand(0u).op()->operand(0u).op() : nullptr;
               cast && groupOf.count(cast)) {
      groups[groupOf[cast]].turned.push_back(op);
    } else {
      return opError("{0} is no part of a multi-tensor kernel", op->name());
    }
  }
  return groups;
}

// Numbers among resultsOf().
llvm::SmallVector<unsigned, 1> turnedOf(const Group &group) {
  llvm::SmallVector<unsigned, 1> numbers;
  for (const Op *op : group.turned) {
    auto at = llvm::find(group.followers, op->operand(0u).op());
    numbers.push_back(group.adamw->resultCount() + (at - group.followers.begin()));
  }
  return numbers;
}

// Tensors are updated by one kernel when only their shapes differ.
std::string signature(const Group &group) {
  std::string text;
  for (Value operand : group.adamw->operands()) text += operand ? name(operand.dtype()).str() + " " : "- ";
  for (const Attrs::Entry &entry : group.adamw->attrs().entries()) text += entry.name + "=" + str(entry.value) + " ";
  for (Op *op : group.followers)
    text += llvm::formatv("{0}:{1}:{2} ", op->name(), op->operand(0u).index(), name(op->result().dtype())).str();
  for (unsigned number : turnedOf(group)) text += llvm::formatv("turned:{0} ", number).str();
  return text;
}

llvm::SmallVector<Value, 4> resultsOf(const Group &group) {
  llvm::SmallVector<Value, 4> results;
  for (Value v : group.adamw->results()) results.push_back(v);
  for (Op *op : group.followers) results.push_back(op->result());
  return results;
}

// What a tensor has for itself: adamw's first operands, then the scales of its casts.
llvm::SmallVector<Value, 6> inputsOf(const Group &group) {
  llvm::SmallVector<Value, 6> inputs;
  for (unsigned i = 0; i < kFirstShared; ++i) inputs.push_back(group.adamw->operand(i));
  for (Op *op : group.followers)
    if (op->is("fp8_cast") && !llvm::is_contained(inputs, op->operand(1))) inputs.push_back(op->operand(1));
  return inputs;
}

// Updates that differ in nothing but history length and dtype.
llvm::Expected<MultiTensorPlan> planAmaxUpdates(const Block &body) {
  MultiTensorPlan plan;
  plan.isAmaxUpdate = true;
  auto yielded = body.terminator()->operands();
  const Op &first = body.ops().front();
  for (const Op &op : body.ops()) {
    if (op.def().isTerminator) continue;
    if (!op.is("amax_update")) return opError("{0} is no part of the kernel that updates scales", op.name());
    for (const char *attr : {"algo", "margin"})
      if (op.attrValue(attr) != first.attrValue(attr)) return opError("scales are updated with one {0}", attr);
    MultiTensorPlan::Tensor tensor;
    tensor.elements = op.operand(0u).type().elements();
    for (Value operand : op.operands()) {
      if (!operand.isArgument()) return opError("amax_update reads its tensors from memory");
      tensor.inputs.push_back(operand.index());
    }
    for (Value result : op.results()) {
      auto it = llvm::find(yielded, result);
      if (it == yielded.end()) return opError("a result of amax_update is not stored");
      tensor.outputs.push_back(it - yielded.begin());
    }
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

} // namespace

// Four elements are a word of bytes both ways.
bool isTurnedCast(const Op &op) {
  if (!op.is("transpose") || !op.operand(0u).op() || !op.operand(0u).op()->is("fp8_cast")) return false;
  if (op.attr<std::vector<int64_t>>("perm") != std::vector<int64_t>{1, 0}) return false;
  return llvm::all_of(op.result().shape(), [](const Dim &d) { return d.isConstant() && d.value() % 4 == 0; });
}

llvm::Expected<MultiTensorPlan> planMultiTensor(const Op &fusion) {
  const Block &body = *fusion.body();
  MultiTensorPlan plan;
  if (body.ops().front().is("global_norm")) {
    const Op &norm = body.ops().front();
    if (body.ops().size() != 2) return opError("global_norm is a kernel of its own");
    plan.isGlobalNorm = true;
    for (Value operand : norm.operands()) plan.tensors.push_back({{operand.index()}, {}, operand.type().elements()});
    return plan;
  }
  if (body.ops().front().is("amax_update")) return planAmaxUpdates(body);
  auto groups = groupsOf(body);
  if (!groups) return groups.takeError();
  if (groups->empty()) return opError("there is no adamw in the cluster");

  const Group &first = groups->front();
  llvm::SmallVector<Value, 8> inputs; // per-tensor inputs, then the shared scalars
  for (Value input : inputsOf(first)) inputs.push_back(input);
  for (unsigned i = kFirstShared; i < first.adamw->operands().size(); ++i) {
    Value shared = first.adamw->operand(i);
    if (!shared) continue;
    inputs.push_back(shared);
    plan.sharedInputs.push_back(shared.index());
  }
  llvm::SmallVector<Op *, 4> ops{first.adamw};
  ops.append(first.followers.begin(), first.followers.end());
  auto flat = flatten(ops, inputs, resultsOf(first));
  if (!flat) return flat.takeError();
  plan.body = std::move(*flat);
  auto loop = planLoop(plan.body);
  if (!loop) return loop.takeError();
  plan.loop = std::move(*loop);
  plan.turned = turnedOf(first);

  auto yielded = body.terminator()->operands();
  for (const Group &group : *groups) {
    if (signature(group) != signature(first))
      return opError("adamw of {0} differs from the others in more than its shape", group.adamw->operand(0u).name());
    MultiTensorPlan::Tensor tensor;
    tensor.elements = group.adamw->operand(0u).type().elements();
    for (Value input : inputsOf(group)) {
      if (!input.isArgument()) return opError("adamw reads its tensors from memory");
      tensor.inputs.push_back(input.index());
    }
    for (unsigned i = kFirstShared; i < group.adamw->operands().size(); ++i)
      if (group.adamw->operand(i) != first.adamw->operand(i))
        return opError("the tensors of a multi-tensor kernel share step, learning rate and gradient scale");
    auto numberOf = [&](Value result) -> llvm::Expected<unsigned> {
      auto it = llvm::find(yielded, result);
      if (it == yielded.end()) return opError("a result of adamw is not stored");
      return it - yielded.begin();
    };
    for (Value result : resultsOf(group)) {
      auto number = numberOf(result);
      if (!number) return number.takeError();
      tensor.outputs.push_back(*number);
    }
    for (Op *op : group.turned) {
      auto number = numberOf(op->result());
      if (!number) return number.takeError();
      tensor.turnedOutputs.push_back(*number);
      tensor.columns = op->result().shape()[0].value();
    }
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

} // namespace fusor::codegen
