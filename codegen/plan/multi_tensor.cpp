#include "codegen/plan/anchors.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr unsigned kFirstShared = 4; // adamw's operands from here on are scalars that all tensors share

// One adamw and the casts of its new parameter: what is done to one tensor.
struct Group {
  Op *adamw = nullptr;
  llvm::SmallVector<Op *, 2> casts;
};

llvm::Expected<std::vector<Group>> groupsOf(const Block &body) {
  std::vector<Group> groups;
  llvm::DenseMap<Op *, unsigned> groupOf;
  for (Op *op : body.opPointers()) {
    if (op->def().isTerminator) continue;
    if (op->is("adamw")) {
      groupOf[op] = groups.size();
      groups.push_back({op, {}});
    } else if (Op *source = op->is("cast") ? op->operand(0u).op() : nullptr; source && groupOf.count(source)) {
      groups[groupOf[source]].casts.push_back(op);
    } else {
      return opError("{0} is no part of a multi-tensor kernel", op->name());
    }
  }
  return groups;
}

// Tensors are updated by one kernel when only their shapes differ.
std::string signature(const Group &group) {
  std::string text;
  for (Value operand : group.adamw->operands()) text += operand ? name(operand.dtype()).str() + " " : "- ";
  for (const Attrs::Entry &entry : group.adamw->attrs().entries()) text += entry.name + "=" + str(entry.value) + " ";
  for (Op *cast : group.casts)
    text += llvm::formatv("{0}:{1} ", cast->operand(0u).index(), name(cast->result().dtype())).str();
  return text;
}

llvm::SmallVector<Value, 4> resultsOf(const Group &group) {
  llvm::SmallVector<Value, 4> results;
  for (Value v : group.adamw->results()) results.push_back(v);
  for (Op *cast : group.casts) results.push_back(cast->result());
  return results;
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
  for (Value operand : first.adamw->operands())
    if (operand) inputs.push_back(operand);
  for (unsigned i = kFirstShared; i < first.adamw->operands().size(); ++i)
    if (Value shared = first.adamw->operand(i)) plan.sharedInputs.push_back(shared.index());
  llvm::SmallVector<Op *, 4> ops{first.adamw};
  ops.append(first.casts.begin(), first.casts.end());
  auto flat = flatten(ops, inputs, resultsOf(first));
  if (!flat) return flat.takeError();
  plan.body = std::move(*flat);
  auto loop = planLoop(plan.body);
  if (!loop) return loop.takeError();
  plan.loop = std::move(*loop);

  auto yielded = body.terminator()->operands();
  for (const Group &group : *groups) {
    if (signature(group) != signature(first))
      return opError("adamw of {0} differs from the others in more than its shape", group.adamw->operand(0u).name());
    MultiTensorPlan::Tensor tensor;
    tensor.elements = group.adamw->operand(0u).type().elements();
    for (unsigned i = 0; i < kFirstShared; ++i) {
      if (!group.adamw->operand(i).isArgument()) return opError("adamw reads its tensors from memory");
      tensor.inputs.push_back(group.adamw->operand(i).index());
    }
    for (unsigned i = kFirstShared; i < group.adamw->operands().size(); ++i)
      if (group.adamw->operand(i) != first.adamw->operand(i))
        return opError("the tensors of a multi-tensor kernel share step, learning rate and gradient scale");
    for (Value result : resultsOf(group)) {
      auto it = llvm::find(yielded, result);
      if (it == yielded.end()) return opError("a result of adamw is not stored");
      tensor.outputs.push_back(it - yielded.begin());
    }
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

} // namespace fusor::codegen
