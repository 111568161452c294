#include "passes/fp8/fold.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/recipe.h"
#include "passes/rewrite/erase.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::DType, ir::Value;

bool isQuantised(const ir::Persistent &p) {
  return p.kind == ir::PersistentKind::derived && p.deriveOp == "quantize" &&
         p.type.granularity != ir::Granularity::none;
}

class Folder {
public:
  explicit Folder(ir::Function &function) : function_(function) {
    for (Value read : function.reads()) {
      const ir::Persistent &p = *function.module().persistent(read.name());
      if (!isQuantised(p)) continue;
      read.setType(p.type.withDType(p.type.dtype));
      parts_[read.def()] = {read, function.read(p.deriveFrom[1])};
    }
  }

  bool run() {
    bool changed = !parts_.empty();
    for (ir::Op *op : function_.block().opPointers()) changed |= fold(*op);
    if (changed) eraseAllDead(function_.block());
    return changed;
  }

private:
  struct Parts {
    Value data, scale;
  };

  bool fold(ir::Op &op) {
    ir::Builder b(op);
    b.setLocation(op.location());
    if (op.is("grad_quantize")) {
      op.result().replaceAllUsesWith(op.operand(0u));
      op.erase();
      return true;
    }
    if (op.is("quantize")) return foldQuantize(op, b);
    if (op.def().isTerminator) return foldReturn(op);
    if (!llvm::any_of(op.operands(), [&](Value v) { return v && parts_.count(v.def()); })) return false;
    if (op.is("dequantize"))
      replace(op, b.cast(unscaled(b, b.cast(data(op, 0), DType::f32), {op.operand(0u)}), op.attr<DType>("to")));
    else if (op.def().lowering == ir::Lowering::contraction)
      return foldGemm(op, b);
    else if (op.operands().size() == 1 && op.resultCount() == 1) // moves elements: the scale is the same
      parts_[op.result().def()] = {b.op(op.name(), {data(op, 0)}, op.attrs()), parts_[op.operand(0u).def()].scale};
    else
      return false;
    return true;
  }

  Value data(const ir::Op &op, unsigned i) { return parts_[op.operand(i).def()].data; }

  // A state's is kept up to date by whoever writes the state.
  Value inverse(ir::Builder &b, Value scale) {
    if (!scale.isPersistent()) return b.op("reciprocal", {scale});
    return function_.read(inverseOfScale(function_.module(), scale.name()));
  }

  // value / scale, for each operand's scale
  Value unscaled(ir::Builder &b, Value value, llvm::ArrayRef<Value> operands) {
    for (Value operand : operands) value = b.op("mul", {value, inverse(b, parts_[operand.def()].scale)});
    return value;
  }

  static void replace(ir::Op &op, Value by) {
    by.setName(op.result().name());
    op.result().replaceAllUsesWith(by);
    op.erase();
  }

  bool foldQuantize(ir::Op &op, ir::Builder &b) {
    Value q = op.result(0), amax = op.result(1);
    if (amax.unused() && (q.unused() || parts_.count(q.def()))) return false; // folded before
    if (!amax.unused()) {
      Value plain = b.op("amax", {op.operand(0u)});
      plain.setName(amax.name());
      amax.replaceAllUsesWith(plain);
    }
    if (q.unused()) return true;
    Value data = b.op("fp8_cast", {op.operand(0u), op.operand(1)}, {{"dtype", op.attr<DType>("dtype")}});
    data.setName(q.name());
    parts_[q.def()] = {data, op.operand(1)};
    return true;
  }

  bool foldGemm(ir::Op &op, ir::Builder &b) {
    Value x = op.operand(0u), w = op.operand(1), bias = op.operand(2);
    if (!parts_.count(x.def()) || !parts_.count(w.def())) return false;
    ir::Attrs attrs = op.attrs();
    attrs.erase("plain_wgrad");
    attrs.set("out", DType::f32);
    if (op.is("linear")) attrs.set("fast_accum", true); // forward: Transformer Engine's choice too
    Value sum = unscaled(b, b.op(op.name(), {data(op, 0), data(op, 1)}, attrs), {x, w});
    if (bias) sum = b.op("add", {sum, b.cast(bias, DType::f32)});
    DType out = op.result().dtype();
    if (out == DType::f64) sum = b.cast(sum, DType::f64);
    replace(op, b.cast(sum, out));
    return true;
  }

  // `return @w.fp8 = %q`: the persistent value has become plain.
  bool foldReturn(ir::Op &op) {
    bool changed = false;
    auto entries = function_.returns();
    for (unsigned i = 0; i < entries.size(); ++i) {
      if (entries[i].kind != ir::ReturnKind::update || !parts_.count(entries[i].value.def())) continue;
      if (!isQuantised(*function_.module().persistent(entries[i].name))) continue;
      op.setOperand(i, parts_[entries[i].value.def()].data);
      changed = true;
    }
    return changed;
  }

  ir::Function &function_;
  llvm::DenseMap<ir::ValueDef *, Parts> parts_;
};

} // namespace

llvm::Expected<bool> fp8Fold(ir::Module &module, PassContext &context) {
  if (!context.enabled("fp8-fold")) return false;
  bool changed = false;
  for (const auto &function : module.functions()) changed |= Folder(*function).run();
  for (const auto &p : module.persistents()) {
    if (!isQuantised(*p)) continue;
    p->deriveOp = "fp8_cast";
    p->deriveAttrs.erase("contract");
    p->type = p->type.withDType(p->type.dtype);
    changed = true;
  }
  return changed;
}

} // namespace fusor::passes
