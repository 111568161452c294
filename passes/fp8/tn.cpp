#include "passes/fp8/tn.h"
#include "ir/graph/builder.h"
#include "passes/fp8/products.h"
#include "passes/optimizer/derive.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Value;

const std::vector<int64_t> kSwapped = {1, 0};

class Transposer {
public:
  Transposer(ir::Function &function, PassContext &context) : function_(function), context_(context) {}

  bool run() {
    bool changed = false;
    for (ir::Op *op : function_.block().opPointers()) {
      bool ofWeight = op->is("linear_weight_grad");
      if (!ofWeight && !op->is("linear_input_grad")) continue;
      if (!llvm::all_of(op->operands(), isPlainFp8) || !context_.spend("fp8-tn", op)) continue;
      Value a = op->operand(0u), b = transposed(op->operand(1));
      if (ofWeight) a = transposed(a);
      ir::Builder builder(*op);
      builder.setLocation(op->location());
      ir::Attrs attrs = op->attrs();
      attrs.set("gradient_of", std::string(ofWeight ? "weight" : "input"));
      Value product = builder.op("linear", {a, b}, attrs);
      product.setName(op->result().name());
      op->result().replaceAllUsesWith(product);
      op->erase();
      changed = true;
    }
    return changed;
  }

private:
  static bool isPlainFp8(Value v) { return ir::isFp8(v.dtype()) && v.type().granularity == ir::Granularity::none; }

  // [..., C] as [C, rows]
  Value transposed(Value v) {
    if (Value known = known_.lookup(v.def())) return known;
    std::string name = v.name().str() + ".t";
    Value &result = known_[v.def()];
    if (v.isPersistent() && v.rank() == 2) {
      ir::TensorType type = v.type();
      std::swap(type.shape[0], type.shape[1]);
      return result = function_.read(
                 derivedValue(function_.module(), "transpose", v.name().str(), {{"perm", kSwapped}}, type, name));
    }
    ir::Builder b(v.op() ? *std::next(v.op()->getIterator()) : *function_.block().ops().begin());
    if (v.op()) b.setLocation(v.op()->location());
    ir::Dim rows = product(v.shape().drop_back());
    Value matrix = v.rank() == 2 ? v : b.op("reshape", {v}, {{"shape", ir::Shape{rows, v.shape().back()}}});
    result = b.op("transpose", {matrix}, {{"perm", kSwapped}});
    result.setName(name);
    return result;
  }

  ir::Function &function_;
  PassContext &context_;
  llvm::DenseMap<ir::ValueDef *, Value> known_;
};

} // namespace

llvm::Expected<bool> fp8Tn(ir::Module &module, PassContext &context) {
  if (context.options().fp8) recordProducts(module, context);
  if (!context.options().target.hasFp8Library() || !context.enabled("fp8-tn")) return false;
  bool changed = false;
  for (const auto &function : module.functions()) changed |= Transposer(*function, context).run();
  for (const auto &function : module.functions()) changed |= writeCopies(module, *function);
  return changed;
}

} // namespace fusor::passes
