#include "passes/fusion/cluster_graph.h"
#include "passes/memory/memory_plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <queue>

namespace fusor::passes {

using namespace ir;

namespace {

// The value whose memory `value` is, looking through views.
Value source(Value value) {
  while (value.op() && ClusterGraph::isView(*value.op())) value = value.op()->operand(0u);
  return value;
}

// Calls visit with every op that reads `value`, directly or through views.
void forEachReader(Value value, llvm::function_ref<void(Op *)> visit) {
  for (Op *user : value.users()) {
    if (!ClusterGraph::isView(*user))
      visit(user);
    else
      forEachReader(user->result(), visit);
  }
}

} // namespace

ClusterGraph::ClusterGraph(Function &function) : function_(function), symbols_(middleOfRanges(function.module())) {
  unsigned position = 0;
  for (Op &op : function.block().ops()) {
    position_[&op] = position++;
    if (op.def().isTerminator || isView(op) || isGenerator(op)) continue;
    clusterOf_[&op] = clusters_.size();
    clusters_.push_back({{&op}});
  }
}

llvm::SmallVector<unsigned, 0> ClusterGraph::ids() const {
  llvm::SmallVector<unsigned, 0> ids;
  for (unsigned i = 0; i < clusters_.size(); ++i)
    if (clusters_[i].alive) ids.push_back(i);
  return ids;
}

std::optional<unsigned> ClusterGraph::clusterOf(const Op *op) const {
  auto it = clusterOf_.find(op);
  return it == clusterOf_.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

Op *ClusterGraph::producer(Value value) { return source(value).op(); }

Border ClusterGraph::border(llvm::ArrayRef<Op *> ops) const {
  llvm::SmallPtrSet<Op *, 32> inside(ops.begin(), ops.end());
  llvm::SmallVector<Op *, 16> work(ops.begin(), ops.end());
  while (!work.empty()) { // views of what is computed inside, and generators, come along
    for (Value operand : work.pop_back_val()->operands()) {
      Op *op = operand ? operand.op() : nullptr;
      if (!op || inside.contains(op)) continue;
      Op *computes = producer(operand);
      if (isGenerator(*op) || (isView(*op) && computes && (inside.contains(computes) || isGenerator(*computes)))) {
        inside.insert(op);
        work.push_back(op);
      }
    }
  }
  Border border;
  border.ops.assign(inside.begin(), inside.end());
  llvm::sort(border.ops, [&](Op *a, Op *b) { return position_.lookup(a) < position_.lookup(b); });
  llvm::SmallPtrSet<ValueDef *, 16> seen;
  for (Op *op : border.ops) {
    for (Value operand : op->operands())
      if (operand && !(operand.op() && inside.contains(operand.op())) && seen.insert(operand.def()).second)
        border.inputs.push_back(operand);
    if (!clusterOf_.count(op)) continue; // a view or generator used outside too exists there on its own
    for (Value result : op->results()) {
      bool isOutput = false;
      forEachReader(result, [&](Op *reader) { isOutput |= !inside.contains(reader); });
      if (isOutput) border.outputs.push_back(result);
    }
  }
  return border;
}

void ClusterGraph::forEachRead(unsigned id, llvm::function_ref<void(Value)> visit) const {
  for (Op *op : clusters_[id].ops)
    for (Value operand : op->operands())
      if (operand) visit(source(operand));
}

llvm::SmallSetVector<unsigned, 8> ClusterGraph::consumers(unsigned id) const {
  llvm::SmallSetVector<unsigned, 8> result;
  for (Op *op : clusters_[id].ops)
    for (Value value : op->results())
      forEachReader(value, [&](Op *user) {
        if (auto cluster = clusterOf(user); cluster && *cluster != id) result.insert(*cluster);
      });
  return result;
}

llvm::SmallSetVector<unsigned, 8> ClusterGraph::neighbours(unsigned id) const {
  llvm::SmallSetVector<unsigned, 8> result = consumers(id);
  forEachRead(id, [&](Value value) {
    if (value.op())
      if (auto cluster = clusterOf(value.op()); cluster && *cluster != id) result.insert(*cluster);
    if (value.rank() == 0) return; // a shared scalar is no reason to be one kernel
    forEachReader(value, [&](Op *user) {
      if (auto cluster = clusterOf(user); cluster && *cluster != id) result.insert(*cluster);
    });
  });
  return result;
}

int64_t ClusterGraph::savedBytes(unsigned a, unsigned b, const SymbolValues &symbols) const {
  int64_t saved = 0;
  auto bytes = [&](Value value) { return byteSize(value.type(), symbols).value_or(0); };
  llvm::SmallPtrSet<ValueDef *, 16> readByA, readByB;
  forEachRead(a, [&](Value v) { readByA.insert(v.def()); });
  forEachRead(b, [&](Value v) { readByB.insert(v.def()); });
  auto isIn = [&](Op *op, unsigned id) {
    auto c = clusterOf(op);
    return c && *c == id;
  };
  for (auto [from, to, reads] : {std::tuple{a, b, &readByB}, {b, a, &readByA}})
    for (Op *op : clusters_[from].ops)
      for (Value v : op->results()) {
        if (!reads->contains(v.def())) continue;
        saved += bytes(v); // not read again
        bool elsewhere = false;
        forEachReader(v, [&](Op *user) { elsewhere |= !isIn(user, a) && !isIn(user, b); });
        if (!elsewhere) saved += bytes(v); // not written either
      }
  for (ValueDef *def : readByA) {
    Value v(def);
    bool ownedByEither = v.op() && (isIn(v.op(), a) || isIn(v.op(), b));
    if (!ownedByEither && readByB.contains(def)) saved += bytes(v);
  }
  return saved;
}

std::optional<unsigned> ClusterGraph::between(unsigned a, unsigned b) const {
  for (auto [from, to] : {std::pair{a, b}, {b, a}}) { // from -> third -> ... -> to
    llvm::SmallSetVector<unsigned, 32> reached;
    for (unsigned next : consumers(from))
      if (next != to) reached.insert(next);
    for (unsigned i = 0; i < reached.size(); ++i)
      for (unsigned next : consumers(reached[i])) {
        if (next == to) return reached[i];
        if (next != from) reached.insert(next);
      }
  }
  return std::nullopt;
}

void ClusterGraph::merge(unsigned a, unsigned b) {
  for (Op *op : clusters_[b].ops) clusterOf_[op] = a;
  clusters_[a].ops.append(clusters_[b].ops.begin(), clusters_[b].ops.end());
  llvm::sort(clusters_[a].ops, [&](Op *x, Op *y) { return position_.lookup(x) < position_.lookup(y); });
  clusters_[b] = {{}, false};
}

std::vector<Ops> ClusterGraph::order() const {
  std::vector<Ops> units;
  llvm::DenseMap<const Op *, unsigned> unitOf;
  for (Op &op : function_.block().ops()) {
    auto cluster = clusterOf(&op);
    if (cluster && &op != ops(*cluster).front()) continue;
    if (cluster)
      for (Op *member : ops(*cluster)) unitOf[member] = units.size();
    else
      unitOf[&op] = units.size();
    units.push_back(cluster ? ops(*cluster) : Ops{&op});
  }
  std::vector<llvm::SmallSetVector<unsigned, 4>> after(units.size());
  std::vector<unsigned> waiting(units.size(), 0);
  for (unsigned u = 0; u < units.size(); ++u)
    for (Op *op : units[u])
      for (Value operand : op->operands())
        if (Op *from = operand ? operand.op() : nullptr) {
          // A cluster takes views of its own values inside, so it does not wait for them.
          Op *viewed = producer(operand);
          if (clusterOf(op) && viewed && clusterOf(viewed) == clusterOf(op)) continue;
          if (unsigned f = unitOf[from]; f != u && after[f].insert(u)) ++waiting[u];
        }
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (unsigned u = 0; u < units.size(); ++u)
    if (waiting[u] == 0) ready.push(u);
  std::vector<Ops> sorted;
  while (!ready.empty()) {
    unsigned u = ready.top();
    ready.pop();
    sorted.push_back(units[u]);
    for (unsigned next : after[u])
      if (--waiting[next] == 0) ready.push(next);
  }
  return sorted;
}

} // namespace fusor::passes
