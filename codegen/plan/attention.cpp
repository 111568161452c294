#include "codegen/plan/access.h"
#include "codegen/plan/anchors.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

// [B, T, heads * d] of an input, perhaps a split of a wider row.
llvm::Expected<HeadsView> headsInput(Value v) {
  if (!isLeaf(v)) return opError("attention would have to compute its operand {0}", v.type().str());
  auto access = leafAccess(v);
  if (!access) return access.takeError();
  Dim rowStride = access->strides[1];
  if (access->gather || !access->strides[2].is(1) || access->strides[0] != v.shape()[1] * rowStride)
    return opError("attention reads rows of one stride, {0} is laid out otherwise", v.type().str());
  return HeadsView{access->input, access->offset, rowStride};
}

// [B, H, Tq, Tk] of an input, each dim perhaps 1: what is repeated has stride 0.
llvm::Expected<BiasView> biasInput(Value v) {
  if (!isLeaf(v)) return opError("attention would have to compute its bias {0}", v.type().str());
  auto access = leafAccess(v);
  if (!access) return access.takeError();
  if (access->gather) return opError("attention does not gather its bias {0}", v.type().str());
  BiasView view{access->input, access->offset, {}};
  for (unsigned i = 0; i < 4; ++i) view.strides[i] = v.shape()[i].is(1) ? Dim(0) : access->strides[i];
  return view;
}

// `v` as an output: returned itself, or one part of a returned concat along the last dim. The kernel writes it once.
llvm::Expected<HeadsView> headsOutput(const FlatCluster &cluster, Value v) {
  auto returns = cluster.function->returns();
  llvm::SmallVector<HeadsView, 2> places;
  for (unsigned i = 0; i < returns.size(); ++i) {
    Value out = returns[i].value;
    if (out == v) places.push_back(HeadsView{i, 0, v.shape()[2]});
    if (!out.op() || !out.op()->is("concat") || out.op()->site().axis("axis", 3) != 2) continue;
    Dim offset = 0;
    for (Value part : out.op()->operands()) {
      if (part == v) places.push_back(HeadsView{i, offset, out.shape()[2]});
      offset = offset + part.shape()[2];
    }
  }
  if (places.size() == 1) return places[0];
  return opError(places.empty() ? "result {0} of attention is not stored" : "result {0} of attention is stored twice",
                 v.type().str());
}

// Everything around the anchor is split of inputs and concat of results; anything else is another kernel's work.
llvm::Error checkSurroundings(const FlatCluster &cluster) {
  for (const Op &op : cluster.function->block().ops()) {
    bool isOutputConcat =
        op.is("concat") && llvm::all_of(op.operands(), [&](Value v) { return v.op() == cluster.anchor; });
    if (&op == cluster.anchor || op.def().isTerminator || isOutputConcat || isLeaf(op.result())) continue;
    return opError("attention takes nothing but split and concat into its kernel, not {0}", op.name());
  }
  for (const ReturnEntry &entry : cluster.function->returns()) {
    const Op *op = entry.value.op();
    if (op != cluster.anchor && !(op && op->is("concat")))
      return opError("attention's kernel does not store {0} {1}", op ? op->name() : "input", entry.value.type().str());
  }
  // Each result has one place: returned, or one part of one concat along the last dim.
  for (Value result : cluster.anchor->results()) {
    auto uses = result.users().size(); // an entry a use
    if (uses > 1) return opError("attention's kernel stores {0} in one place, not in {1}", result.type().str(), uses);
  }
  for (const Op &op : cluster.function->block().ops())
    if (op.is("concat") && op.site().axis("axis", op.result().rank()) != 2)
      return opError("attention's kernel stores parts of the last dim, not of another");
  return llvm::Error::success();
}

std::optional<unsigned> scalarInput(Value v) {
  return v && v.isArgument() ? std::optional<unsigned>(v.index()) : std::nullopt;
}

} // namespace

llvm::Expected<AttentionPlan> planAttention(const FlatCluster &cluster) {
  if (!cluster.anchor || cluster.anchor->def().lowering != Lowering::attention)
    return opError("there is no attention in the cluster");
  if (auto error = checkSurroundings(cluster)) return error;
  auto returns = cluster.function->returns();
  for (unsigned i = 0; i < returns.size(); ++i) // two equal attentions, merged: the kernel would write only one of them
    for (unsigned j = 0; j < i; ++j)
      if (returns[i].value == returns[j].value) return opError("two results of the cluster are one value");
  const Op &op = *cluster.anchor;
  AttentionPlan plan;
  plan.backward = op.is("attention_grad");
  unsigned first = plan.backward ? 1 : 0;
  Value q = op.operand(first), k = op.operand(first + 1), v = op.operand(first + 2);
  plan.dtype = q.dtype();
  plan.batch = q.shape()[0], plan.tq = q.shape()[1], plan.tk = k.shape()[1];
  plan.heads = op.attr<int64_t>("heads");
  plan.kvHeads = op.attr<int64_t>("kv_heads") ? op.attr<int64_t>("kv_heads") : plan.heads;
  plan.headSize = q.shape()[2].value() / plan.heads;
  plan.scale = op.site().has("scale") ? op.attr<double>("scale") : 1.0 / std::sqrt(static_cast<double>(plan.headSize));
  plan.causal = op.attr<bool>("causal"), plan.window = op.attr<int64_t>("window");
  if (op.site().has("hidden")) plan.hidden = op.attr<double>("hidden");

  Value mask = op.operand(plan.backward ? 6 : 3), length = op.operand(plan.backward ? 7 : 4);
  plan.keyMask = scalarInput(mask), plan.kvLength = scalarInput(length);
  if ((mask && !plan.keyMask) || (length && !plan.kvLength))
    return opError("key_mask and kv_length must be inputs of the cluster");

  if (Value bias = plan.backward ? Value() : op.operand(5)) {
    auto view = biasInput(bias);
    if (!view) return view.takeError();
    plan.bias = *view;
  }
  std::vector<std::tuple<HeadsView *, Value, bool>> views = {
      {&plan.q, q, false}, {&plan.k, k, false}, {&plan.v, v, false}};
  if (plan.backward) {
    views.push_back({&plan.dy, op.operand(0u), false});
    views.push_back({&plan.y, op.operand(4), false});
    HeadsView *gradients[] = {&plan.dq, &plan.dk, &plan.dv};
    for (unsigned i = 0; i < 3; ++i) views.push_back({gradients[i], op.result(i), true});
    if (!op.operand(5).isArgument()) return opError("lse must be an input of the cluster");
    plan.lseInput = op.operand(5).index();
  } else {
    views.push_back({&plan.y, op.result(0), true});
    for (unsigned i = 0; i < returns.size(); ++i)
      if (returns[i].value == op.result(1)) plan.lseOutput = i;
  }
  for (auto [view, value, isOutput] : views) {
    auto found = isOutput ? headsOutput(cluster, value) : headsInput(value);
    if (!found) return found.takeError();
    *view = *found;
  }
  return plan;
}

} // namespace fusor::codegen
