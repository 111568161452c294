// Embedding and cross entropy: where token ids enter and the loss leaves.
#include "ir/ops/families.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_builder.h"

namespace fusor::ir {
namespace {

using Values = llvm::SmallVector<Value, 2>;

// --- embedding: table [V, D], ids [...] -> [..., D]

llvm::Expected<ResultTypes> inferEmbedding(const OpSite &site) {
  const TensorType &table = site.type(0), &ids = site.type(1);
  if (table.rank() != 2) return opError("table must be [V, D], is {0}", table.str());
  if (!isInteger(ids.dtype)) return opError("ids must be integers, are {0}", ids.str());
  Shape shape = ids.shape;
  shape.push_back(table.dim(1));
  return ResultTypes{table.withShape(std::move(shape))};
}

Values expandEmbedding(Builder &b, const OpSite &site) { return {b.op("gather", {site.operand(0), site.operand(1)})}; }

llvm::SmallVector<Value, 4> embeddingGradient(const GradientSite &g) {
  Value table = g.op.operand(0u);
  Value dtable = g.builder.op("embedding_grad", {g.gradient(), g.op.operand(1)}, {{"rows", Shape{table.shape()[0]}}});
  return {g.builder.cast(dtable, computeType(table.dtype())), Value()};
}

llvm::Expected<ResultTypes> inferEmbeddingGrad(const OpSite &site) {
  const TensorType &dy = site.type(0), &ids = site.type(1);
  if (!isInteger(ids.dtype)) return opError("ids must be integers, are {0}", ids.str());
  if (dy.rank() == 0 || llvm::ArrayRef<Dim>(dy.shape).drop_back() != llvm::ArrayRef<Dim>(ids.shape))
    return opError("dy must be [..., D] for ids [...]: {0} and {1}", dy.str(), ids.str());
  const Shape &rows = site.attr<Shape>("rows");
  if (rows.size() != 1) return opError("rows must be one dim, is [{0}]", str(llvm::ArrayRef<Dim>(rows)));
  return ResultTypes{{computeType(dy.dtype), {rows[0], dy.dim(-1)}}};
}

Values expandEmbeddingGrad(Builder &b, const OpSite &site) {
  Graph dy = wide(b, site.operand(0));
  Shape shape{site.attr<Shape>("rows")[0], site.type(0).dim(-1)};
  return {b.op("scatter_add", {dy, site.operand(1)}, {{"shape", shape}})};
}

// --- cross entropy over the last dim, mean over the targets that are not ignore_index

llvm::Expected<TensorType> checkTargets(const OpSite &site, unsigned logitsAt) {
  const TensorType &logits = site.type(logitsAt), &targets = site.type(logitsAt + 1);
  if (!isFloat(logits.dtype) || logits.rank() == 0)
    return opError("logits must be floats [..., V], are {0}", logits.str());
  if (!isInteger(targets.dtype) || llvm::ArrayRef<Dim>(logits.shape).drop_back() != llvm::ArrayRef<Dim>(targets.shape))
    return opError("targets must be integers [...] for logits [..., V]: {0} and {1}", targets.str(), logits.str());
  TensorType kept{computeType(logits.dtype), logits.shape};
  kept.shape.back() = Dim(1);
  return kept;
}

llvm::Expected<ResultTypes> inferCrossEntropy(const OpSite &site) {
  auto kept = checkTargets(site, 0);
  if (!kept) return kept.takeError();
  TensorType scalar{kept->dtype, {}};
  return ResultTypes{scalar, *kept, scalar};
}

struct Targets {
  Graph hit;   // i1 [..., V]: this is the target's column
  Graph valid; // i1 [..., 1]: the target counts
};
Targets targetsOf(Builder &b, Value targets, Value logits, int64_t ignore) {
  Shape kept(logits.shape().begin(), logits.shape().end()), row{kept.back()};
  kept.back() = Dim(1);
  Value t = b.op("reshape", {targets}, {{"shape", kept}});
  Value column = b.op("iota", {}, {{"shape", row}, {"dtype", t.dtype()}});
  return {Graph(b, column) == Graph(b, t), Graph(b, t) != Graph(b, b.constant(static_cast<double>(ignore), t.dtype()))};
}

Values expandCrossEntropy(Builder &b, const OpSite &site) {
  Graph x = wide(b, site.operand(0));
  auto [hit, valid] = targetsOf(b, site.operand(1), site.operand(0), site.integer("ignore_index"));
  Graph top = x.max(-1);
  Graph lse = log(exp(x - top).sum(-1)) + top;
  Graph picked = select(hit, x, 0.0).sum(-1);
  Graph loss = select(valid, lse - picked, 0.0).sum({}, false);
  Graph counted = valid.cast(x.value().dtype()).sum({}, false);
  return {loss / max(counted, 1.0), lse, counted};
}

llvm::SmallVector<Value, 4> crossEntropyGradient(const GradientSite &g) {
  if (!g.gradient()) return {Value(), Value()};
  return {g.builder.op("cross_entropy_grad",
                       {g.gradient(), g.op.operand(0u), g.op.operand(1), g.op.result(1), g.op.result(2)}, g.op.attrs()),
          Value()};
}

llvm::Expected<ResultTypes> inferCrossEntropyGrad(const OpSite &site) {
  auto kept = checkTargets(site, 1);
  if (!kept) return kept.takeError();
  if (site.type(0).rank() != 0 || site.type(4).rank() != 0)
    return opError("dloss and count must be scalars: {0} and {1}", site.type(0).str(), site.type(4).str());
  if (site.type(3).shape != kept->shape) return opError("lse must be {0}, is {1}", kept->str(), site.type(3).str());
  return ResultTypes{site.type(1)};
}

// (softmax - one-hot) * dloss / count, 0 where the target is ignored.
Values expandCrossEntropyGrad(Builder &b, const OpSite &site) {
  Graph dloss = wide(b, site.operand(0)), x = wide(b, site.operand(1)), lse = wide(b, site.operand(3)),
        counted = wide(b, site.operand(4));
  auto [hit, valid] = targetsOf(b, site.operand(2), site.operand(1), site.integer("ignore_index"));
  Graph weight = select(valid, dloss / max(counted, 1.0), 0.0);
  Graph p = exp(x - lse);
  return {((p - hit.cast(x.value().dtype())) * weight).cast(site.type(1).dtype)};
}

} // namespace

llvm::ArrayRef<OpDef> lossOps() {
  static const std::vector<OpDef> ops = {
      op("embedding")
          .summary("rows of table at ids; zeros where an id is outside")
          .operands({"table", "ids"})
          .lowering(Lowering::expansion)
          .infer(inferEmbedding)
          .expansion(expandEmbedding)
          .gradient(embeddingGradient),
      op("embedding_grad")
          .summary("for each of rows table rows the sum of dy over the positions that read it, in ascending order")
          .precision(PrecisionClass::any)
          .operands({"dy", "ids"})
          .required("rows", AttrKind::shape)
          .note("of the table")
          .lowering(Lowering::expansion)
          .infer(inferEmbeddingGrad)
          .expansion(expandEmbeddingGrad),
      op("cross_entropy")
          .summary("mean over counted targets of -log softmax(logits)[target]")
          .precision(PrecisionClass::any)
          .operands({"logits", "targets"})
          .results({"loss", "lse", "count"})
          .integer("ignore_index", -100)
          .note("targets that do not count")
          .lowering(Lowering::expansion)
          .infer(inferCrossEntropy)
          .expansion(expandCrossEntropy)
          .gradient(crossEntropyGradient),
      op("cross_entropy_grad")
          .summary("logits gradient of cross_entropy")
          .precision(PrecisionClass::any)
          .operands({"dloss", "logits", "targets", "lse", "count"})
          .results({"dlogits"})
          .integer("ignore_index", -100)
          .note("as of the cross_entropy")
          .lowering(Lowering::expansion)
          .infer(inferCrossEntropyGrad)
          .expansion(expandCrossEntropyGrad),
  };
  return ops;
}

} // namespace fusor::ir
