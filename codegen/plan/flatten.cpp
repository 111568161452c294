// Big ops become small ones: expansions are expanded, a GEMM gives up its bias and rounding, equal ops are merged.
#include "codegen/plan/cluster.h"
#include "ir/graph/builder.h"
#include "ir/ops/graph_value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

bool isAnchor(const Op &op) {
  switch (op.def().lowering) {
  case Lowering::contraction:
  case Lowering::attention:
  case Lowering::scatter: return true;
  case Lowering::multiTensor: return !op.def().expansion; // adamw is a formula per element, global_norm is not
  default: return false;
  }
}

bool isComposite(const Op &op) { return op.def().expansion && op.def().lowering != Lowering::attention; }

void replaceAndErase(Op &op, llvm::ArrayRef<Value> replacements) {
  for (unsigned i = 0; i < op.resultCount(); ++i) op.result(i).replaceAllUsesWith(replacements[i]);
  op.erase();
}

// Composites may expand to composites (layer_norm -> mean -> sum), so until nothing changes.
void expandComposites(Block &block) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Op *op : block.opPointers()) {
      if (!isComposite(*op)) continue;
      Builder builder(*op);
      builder.setLocation(op->location());
      replaceAndErase(*op, op->def().expansion(builder, op->site()));
      changed = true;
    }
  }
}

// linear x, w, bias : bf16   ->   cast (add (linear x, w : f32), (cast bias : f32)) : bf16
Op *exposeAccumulator(Op *op) {
  Value result = op->result();
  DType wide = computeType(op->operand(0u).dtype());
  Value bias = op->is("linear") ? op->operand(2) : Value();
  if (!bias && result.dtype() == wide) return op;
  Builder builder(*op);
  builder.setLocation(op->location());
  Attrs attrs = op->attrs();
  attrs.erase("out");
  if (op->operand(0u).dtype() != wide) attrs.set("out", wide);
  Op *anchor = builder.make(op->name(), {op->operand(0u), op->operand(1)}, attrs);
  anchor->result().setName((result.name() + ".acc").str());
  Value value = anchor->result();
  if (bias) value = builder.op("add", {value, builder.cast(bias, wide)});
  replaceAndErase(*op, {builder.cast(value, result.dtype())});
  return anchor;
}

void removeDead(Block &block) {
  auto ops = block.opPointers(); // named: llvm::reverse keeps iterators into it
  for (Op *op : llvm::reverse(ops))
    if (!op->def().hasSideEffectOrder && op->unused()) op->erase();
}

// Equal ops on equal operands are one: layer_norm_grad and layer_norm_param_grad share (x - mean) * rstd.
void mergeEqual(Block &block) {
  llvm::StringMap<Op *> seen;
  for (Op *op : block.opPointers()) {
    if (op->def().hasSideEffectOrder) continue;
    std::string key = op->name().str();
    for (Value operand : op->operands()) key += llvm::formatv(" {0}", operand.def()).str();
    for (const Attrs::Entry &entry : op->attrs().entries()) key += " " + entry.name + "=" + str(entry.value);
    auto [it, isNew] = seen.try_emplace(key, op);
    if (isNew) continue;
    for (unsigned i = 0; i < op->resultCount(); ++i) op->result(i).replaceAllUsesWith(it->second->result(i));
    op->erase();
  }
}

llvm::Expected<FlatCluster> finish(FlatCluster cluster) {
  Block &block = cluster.function->block();
  expandComposites(block);
  mergeEqual(block);
  removeDead(block);
  for (Op *op : block.opPointers()) {
    if (!isAnchor(*op)) continue;
    if (cluster.anchor)
      return opError("{0} and {1} cannot be in one cluster: each is a kernel of its own", cluster.anchor->name(),
                     op->name());
    cluster.anchor = op->def().lowering == Lowering::contraction ? exposeAccumulator(op) : op;
  }
  return cluster;
}

} // namespace

llvm::StringRef name(ClusterKind kind) {
  static constexpr const char *names[] = {"pointwise", "row",     "column",       "contraction",
                                          "attention", "scatter", "multi_tensor", "movement"};
  return names[static_cast<unsigned>(kind)];
}

std::optional<ClusterKind> parseClusterKind(llvm::StringRef text) {
  for (unsigned i = 0; i <= static_cast<unsigned>(ClusterKind::movement); ++i)
    if (name(static_cast<ClusterKind>(i)) == text) return static_cast<ClusterKind>(i);
  return std::nullopt;
}

llvm::Expected<FlatCluster> flatten(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<Value> inputs,
                                    llvm::ArrayRef<Value> outputs) {
  FlatCluster cluster;
  cluster.module = std::make_unique<Module>("cluster");
  cluster.function = &cluster.module->addFunction("body");
  Block &block = cluster.function->block();
  llvm::DenseMap<ValueDef *, Value> map;
  for (Value input : inputs) map[input.def()] = block.addArgument(input.type(), input.name());
  Builder builder(block);
  for (Op *op : ops) {
    if (op->def().isTerminator) continue;
    llvm::SmallVector<Value, 8> operands;
    for (Value operand : op->operands()) operands.push_back(operand ? map.lookup(operand.def()) : Value());
    builder.setLocation(op->location());
    Op *copy = builder.make(op->name(), operands, op->attrs());
    for (unsigned i = 0; i < op->resultCount(); ++i) {
      copy->result(i).setName(op->result(i).name());
      map[op->result(i).def()] = copy->result(i);
    }
  }
  llvm::SmallVector<ReturnEntry, 4> returns;
  for (Value output : outputs) returns.push_back({ReturnKind::result, "", map.lookup(output.def())});
  cluster.function->setReturns(returns);
  return finish(std::move(cluster));
}

llvm::Expected<FlatCluster> flatten(const Op &fusion) {
  auto arguments = fusion.body()->arguments();
  return flatten(fusion.body()->opPointers(), arguments, fusion.body()->terminator()->operands());
}

} // namespace fusor::codegen
