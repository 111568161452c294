// linear: x times a stored weight, and the bias added to that. The table has weights as [N, K]; a constant [K, N] is
// written anew, transposed.
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

namespace fusor::passes {
namespace {

using ir::Module, ir::Op, ir::Persistent, ir::PersistentKind, ir::Value;

std::vector<char> transposedBytes(const Persistent &p) {
  const int64_t rows = p.type.dim(0).value(), columns = p.type.dim(1).value();
  const unsigned size = ir::byteSize(p.type.dtype);
  std::vector<char> bytes(p.data->size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(bytes.data() + (c * rows + r) * size, p.data->data() + (r * columns + c) * size, size);
  return bytes;
}

llvm::SmallVector<Value, 2> readsOf(const Module &module, llvm::StringRef name) {
  llvm::SmallVector<Value, 2> reads;
  for (const auto &function : module.functions())
    for (Value read : function->reads())
      if (read.name() == name && !read.unused()) reads.push_back(read);
  return reads;
}

// A product that reads the weight as its right side [K, N].
bool takesTransposed(const Op &op, Value weight) {
  return op.is("matmul") && op.operand(1) == weight && op.operand(0u) != weight && !op.attr<bool>("trans_a") &&
         !op.attr<bool>("trans_b");
}

// The constant @NAME.t, which other products may have made already. @NAME goes with its last reader.
Value transposedConstant(ir::Builder &b, const std::string &name) {
  ir::Function &function = *b.block().function();
  const Persistent &source = *function.module().persistent(name);
  ir::TensorType type = source.type.withShape({source.type.dim(1), source.type.dim(0)});
  return function.read(writeConstant(function.module(), name + ".t", type, transposedBytes(source), source.location));
}

} // namespace

Finding findLinear(Op &op) {
  if (!op.is("matmul")) return Finding::none();
  Value x = op.operand(0u), weight = op.operand(1), y = op.result();
  if (!weight.isPersistent() || weight.rank() != 2 || x.isPersistent()) return Finding::none();
  const Module &module = op.function()->module();
  const Persistent &stored = *module.persistent(weight.name());
  if (op.attr<bool>("trans_a")) return Finding::refused("the left side is transposed");
  if (!isWide(x) && !ir::isNarrowFloat(x.dtype())) return Finding::none();
  if (ir::isFp8(x.dtype()) || ir::isFp8(weight.dtype())) return Finding::refused("it multiplies FP8");
  const bool transposes = !op.attr<bool>("trans_b");
  if (transposes && (stored.kind != PersistentKind::constant || !stored.data))
    return Finding::refused("@{0} is a {1} [K, N], which every run would have to transpose", stored.name,
                            ir::name(stored.kind));
  if (transposes)
    for (Value read : readsOf(module, stored.name))
      for (Op *user : read.users())
        if (!takesTransposed(*user, read))
          return Finding::refused("'{0}' reads @{1} as it is: a second copy would be kept", user->name(), stored.name);

  Value bias, last = y;
  Op *add = isWide(y) ? onlyReader(y, "add") : nullptr; // narrower sums are rounded before the bias
  if (add && add->result().type() == y.type()) {
    Value other = add->operand(add->operand(0u) == y ? 1 : 0);
    if (isVectorFor(other, y)) bias = other, last = add->result();
  }
  return Finding::found(last,
                        [=, attrs = op.attrs(), name = stored.name](ir::Builder &b) {
                          Value w = transposes ? transposedConstant(b, name) : weight,
                                vector = bias ? asVector(b, bias) : bias;
                          ir::Attrs kept;
                          if (const ir::AttrValue *out = attrs.find("out")) kept.set("out", *out);
                          return b.op("linear", {x, w, vector}, kept);
                        })
      .worth(last, {x});
}

} // namespace fusor::passes
