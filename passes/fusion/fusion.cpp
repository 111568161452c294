#include "passes/fusion/fusion.h"
#include "codegen/plan/anchors.h"
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/graph/names.h"
#include "passes/fusion/cluster_graph.h"
#include "passes/rewrite/erase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include <queue>
#include <set>

namespace fusor::passes {

using namespace ir;

namespace {

constexpr size_t kMostPointers = 24; // inputs and outputs of one kernel: each costs registers and address arithmetic
constexpr size_t kMostOps = 96;      // of a body before expansion: compile time and registers

bool isMultiTensor(const Op &op) { return op.def().lowering == Lowering::multiTensor; }

// What is in `ops` twice: the second is a copy that `recompute` made for later.
Op *twice(llvm::ArrayRef<Op *> ops) {
  for (size_t i = 1; i < ops.size(); ++i)
    for (Op *other : ops.take_front(i)) {
      bool isEqual = &other->def() == &ops[i]->def() && llvm::equal(other->operands(), ops[i]->operands()) &&
                     other->attrs() == ops[i]->attrs();
      bool isNormOf = ops[i]->is("normalize") && ops[i]->operand("rstd").op() == other;
      if (isEqual || isNormOf) return ops[i];
    }
  return nullptr;
}

// The kind a set of ops can be, or why not.
llvm::Expected<codegen::ClusterKind> acceptOps(const ClusterGraph &graph, llvm::ArrayRef<Op *> ops,
                                               const Target &target) {
  Border border = graph.border(ops);
  if (ops.size() > 1 && border.inputs.size() + border.outputs.size() > kMostPointers)
    return opError("the kernel would have {0} inputs and outputs, the limit is {1}",
                   border.inputs.size() + border.outputs.size(), kMostPointers);
  if (ops.size() > kMostOps) return opError("the body would have {0} ops, the limit is {1}", ops.size(), kMostOps);
  auto flat = codegen::flatten(border.ops, border.inputs, border.outputs);
  if (!flat) return flat.takeError();
  return codegen::accept(*flat, target);
}

class Fuser {
public:
  Fuser(Function &function, PassContext &context)
      : graph_(function), context_(context), sizes_(context.sizes(function.module())) {}

  bool run() {
    for (unsigned id : graph_.ids())
      for (unsigned other : graph_.neighbours(id))
        if (id < other) consider(id, other);
    while (!queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (version_[best.a] != best.versionA || version_[best.b] != best.versionB)
        continue; // one of them has changed since
      tryMerge(best);
    }
    recordRefusals();
    gatherMultiTensor();
    return emit();
  }

private:
  struct Candidate {
    int64_t saved;
    unsigned a, b, versionA, versionB;
    // Most bytes first; among equals the earliest pair, so that the result does not depend on hashing.
    bool operator<(const Candidate &o) const { return std::tuple(saved, o.a, o.b) < std::tuple(o.saved, a, b); }
  };

  bool canMerge(unsigned id) const { // optimizer updates are gathered by tensor, not chained
    return llvm::none_of(graph_.ops(id), [](Op *op) { return isMultiTensor(*op) || op->is("fusion"); });
  }

  void consider(unsigned a, unsigned b) {
    if (!canMerge(a) || !canMerge(b)) return;
    if (int64_t saved = graph_.savedBytes(a, b); saved > 0) queue_.push({saved, a, b, version_[a], version_[b]});
  }

  // "%y = linear+gelu"; "mul for %y" where its result has no name.
  static std::string describe(llvm::ArrayRef<Op *> ops) {
    std::string names = llvm::join(llvm::map_range(ops, [](Op *op) { return op->name(); }), "+");
    std::vector<std::string> values = valuesOf(*ops.back());
    if (values.empty()) return names;
    std::string value = spelled('%', values.front());
    return ops.back()->result().name().empty() ? names + " for " + value : value + " = " + names;
  }

  void record(Decision::Kind kind, const Candidate &c, std::string reason) {
    Decision decision{kind,
                      "fusion",
                      graph_.function().name().str(),
                      describe(graph_.ops(c.a)) + " with " + describe(graph_.ops(c.b)),
                      graph_.ops(c.b).front()->location(),
                      std::move(reason),
                      graph_.savedBytes(c.a, c.b, sizes_)};
    for (unsigned id : {c.a, c.b})
      for (std::string &value : valuesOf(*graph_.ops(id).back()))
        if (!llvm::is_contained(decision.values, value)) decision.values.push_back(std::move(value));
    if (kind == Decision::Kind::refused)
      refusals_.push_back({c, std::move(decision)});
    else
      context_.record(std::move(decision));
  }

  // Of two clusters as they are at last: what refused them while they were smaller says nothing about these kernels.
  void recordRefusals() {
    for (auto &[c, decision] : refusals_)
      if (version_[c.a] == c.versionA && version_[c.b] == c.versionB) context_.record(std::move(decision));
  }

  void tryMerge(const Candidate &c) {
    if (auto third = graph_.between(c.a, c.b))
      return record(Decision::Kind::refused, c, "another kernel lies between them: " + describe(graph_.ops(*third)));
    Ops ops = graph_.ops(c.a);
    ops.append(graph_.ops(c.b).begin(), graph_.ops(c.b).end());
    if (Op *copy = twice(ops))
      return record(Decision::Kind::refused, c, copy->name().str() + " is computed again in order to be late");
    auto kind = acceptOps(graph_, ops, context_.options().target);
    if (!kind) return record(Decision::Kind::refused, c, llvm::toString(kind.takeError()));
    if (!context_.spend("fusion", ops.back())) return;
    record(Decision::Kind::taken, c, ("one " + codegen::name(*kind) + " kernel").str());
    graph_.merge(c.a, c.b);
    ++version_[c.a];
    ++version_[c.b];
    for (unsigned other : graph_.neighbours(c.a)) consider(std::min(c.a, other), std::max(c.a, other));
  }

  // The adamw whose new parameter is all that `ops` read, if they are what its kernel can do besides: casts, and on a
  // GPU FP8 casts, their transposes and amaxes.
  Op *updateBefore(llvm::ArrayRef<Op *> ops) const {
    Op *update = nullptr;
    for (Op *op : ops) {
      bool isFp8 = op->is("fp8_cast") || op->is("amax") || codegen::isTurnedCast(*op);
      if (!op->is("cast") && !(isFp8 && context_.options().target.kind == DeviceKind::cuda)) return nullptr;
      if (op->is("transpose")) op = op->operand(0u).op();
      Op *from = op->operand(0u).op();
      if (!from || !from->is("adamw") || op->operand(0u) != from->result(0) || (update && from != update))
        return nullptr;
      update = from;
    }
    return update;
  }

  // All adamw ops that differ in nothing but shape, each with what follows from its new parameter, become one cluster,
  // and all amax_updates of one recipe.
  void gatherMultiTensor() {
    for (unsigned id : graph_.ids()) {
      Op *update = updateBefore(graph_.ops(id));
      if (update && !graph_.wouldCycle(*graph_.clusterOf(update), id) && context_.spend("fusion"))
        graph_.merge(*graph_.clusterOf(update), id);
    }
    llvm::MapVector<std::string, unsigned, std::map<std::string, unsigned>> leader;
    for (unsigned id : graph_.ids()) {
      const Op &first = *graph_.ops(id).front();
      if (!first.is("adamw") && !first.is("amax_update")) continue;
      std::string key;
      if (first.is("amax_update"))
        key = llvm::formatv("{0} {1} {2}", first.name(), str(first.attrValue("algo")), str(first.attrValue("margin")));
      for (Op *op : graph_.ops(id)) {
        if (op->is("amax_update")) break; // their dtypes may differ
        key += " ";
        key += op->name().str();
        for (const Attrs::Entry &entry : op->attrs().entries()) key += " " + entry.name + "=" + str(entry.value);
        for (Value operand : op->operands()) key += operand ? " " + name(operand.dtype()).str() : " -";
        for (unsigned i = 4; i < op->operands().size(); ++i) key += llvm::formatv(" {0}", op->operand(i).def()).str();
      }
      auto [it, isNew] = leader.insert({key, id});
      if (!isNew && !graph_.wouldCycle(it->second, id) && context_.spend("fusion")) graph_.merge(it->second, id);
    }
  }

  // --- building the fusion ops

  bool emit() {
    Function &function = graph_.function();
    bool changed = false;
    for (const Ops &unit : graph_.order()) {
      Op *anchor = unit.front();
      if (erased_.contains(anchor)) continue;                  // a view that lives on inside a body only
      if (!graph_.clusterOf(anchor) || anchor->is("fusion")) { // a view, a generator, the return, an earlier fusion
        function.block().moveBefore(anchor, nullptr);
        continue;
      }
      emitFusion(unit);
      changed = true;
    }
    auto remaining = function.block().opPointers();
    for (Op *op : llvm::reverse(remaining))
      if (op->unused() && !op->def().hasSideEffectOrder && !op->is("fusion")) op->erase();
    return changed;
  }

  codegen::ClusterKind kindOf(const Ops &unit) {
    if (isMultiTensor(*unit.front())) return codegen::ClusterKind::multiTensor;
    auto kind = acceptOps(graph_, unit, context_.options().target);
    if (kind) return *kind;
    // The run time evaluates it through its reference, and reports that too.
    context_.record(Decision::Kind::fallback, "kernel", *unit.front(), llvm::toString(kind.takeError()));
    return codegen::ClusterKind::pointwise;
  }

  void emitFusion(const Ops &unit) {
    Border border = graph_.border(unit);
    codegen::ClusterKind kind = kindOf(unit);
    Block &block = graph_.function().block();
    Attrs attrs{{"name", chainName(unit)}, {"kind", codegen::name(kind).str()}};
    Op *fused = block.insert(std::make_unique<Op>(opDef("fusion"), border.inputs, llvm::ArrayRef<TensorType>(), attrs,
                                                  unit.front()->location()));
    Block &body = fused->makeBody();
    ValueMap map;
    for (Value input : border.inputs) map[input.def()] = body.addArgument(input.type(), input.name());
    for (Op *op : border.ops) cloneInto(body, *op, map);
    llvm::SmallVector<Value, 4> yielded;
    for (Value output : border.outputs) yielded.push_back(map.lookup(output.def()));
    body.insert(std::make_unique<Op>(opDef("yield"), yielded, llvm::ArrayRef<TensorType>(), Attrs(), Location()));
    for (Value output : border.outputs) {
      Value result = fused->addResult(output.type(), output.name());
      output.replaceAllUsesWith(result);
    }
    for (Op *op : llvm::reverse(border.ops)) {
      if (!llvm::is_contained(unit, op) && !op->unused()) continue;
      erased_.insert(op);
      op->erase();
    }
  }

  ClusterGraph graph_;
  PassContext &context_;
  SymbolValues sizes_; // of decisions
  std::priority_queue<Candidate> queue_;
  std::vector<std::pair<Candidate, Decision>> refusals_;
  llvm::DenseMap<unsigned, unsigned> version_;
  llvm::SmallPtrSet<Op *, 32> erased_;
};

} // namespace

std::string chainName(llvm::ArrayRef<Op *> ops) {
  llvm::SmallVector<llvm::StringRef, 8> words;
  for (Op *op : ops)
    if (!op->is("cast") && !llvm::is_contained(words, op->name())) words.push_back(op->name());
  if (words.empty()) words.push_back(ops.front()->name());
  if (words.size() > 5) words.resize(5);
  return llvm::join(words, "_");
}

bool nameFusion(Op &fusion, const Target &target) {
  auto flat = codegen::flatten(fusion);
  if (!flat) return llvm::consumeError(flat.takeError()), false;
  auto kind = codegen::accept(*flat, target);
  if (!kind) return llvm::consumeError(kind.takeError()), false;
  auto ops = fusion.body()->opPointers();
  fusion.setAttr("name", chainName(llvm::ArrayRef<Op *>(ops).drop_back())); // without its yield
  fusion.setAttr("kind", codegen::name(*kind).str());
  return true;
}

llvm::Expected<bool> fusion(Module &module, PassContext &context) {
  bool changed = false;
  for (const auto &function : module.functions()) {
    changed |= eraseAllDead(function->block()); // a cluster has outputs, and a view that nobody reads is in none
    changed |= Fuser(*function, context).run();
  }
  return changed;
}

} // namespace fusor::passes
