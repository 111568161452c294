#include "passes/lift/family.h"
#include "ir/ops/formula.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <cmath>

namespace fusor::passes {

using ir::DType, ir::Op, ir::Value;

// What is deeper is no constant that an exporter writes; a value that is used twice, again and again, would take for
// ever.
constexpr unsigned kMostScalarDepth = 8;
// The largest form, attention with masks, has some thirty.
constexpr unsigned kMostOpsOfAForm = 256;

static std::optional<double> scalarOf(Value value, unsigned depth) {
  if (!value || !llvm::all_of(value.shape(), [](const ir::Dim &d) { return d.is(1); })) return std::nullopt;
  if (const ir::Persistent *p = storedConstant(value)) return ir::loadElement(p->type.dtype, p->data->data(), 0);
  Op *op = value.op();
  if (!op || depth == 0) return std::nullopt;
  if (op->is("constant")) return ir::roundTo(value.dtype(), op->attr<double>("value"));
  if (op->is("reshape") || op->is("broadcast")) return scalarOf(op->operand(0u), depth - 1);
  if (op->is("cast")) {
    auto x = scalarOf(op->operand(0u), depth - 1);
    return x ? std::optional(ir::roundTo(value.dtype(), *x)) : std::nullopt;
  }
  if (!op->def().isElementwise() || !ir::isFloat(value.dtype())) return std::nullopt;
  llvm::SmallVector<double, 4> arguments;
  for (Value operand : op->operands()) {
    auto x = scalarOf(operand, depth - 1);
    if (!x) return std::nullopt;
    arguments.push_back(*x);
  }
  return ir::roundTo(value.dtype(), op->def().formula.value(arguments.data(), op->site()));
}

std::optional<double> scalarOf(Value value) { return scalarOf(value, kMostScalarDepth); }

bool isNear(double value, double wanted, DType dtype) {
  const double ulp = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
  return std::abs(value - wanted) <= 8 * ulp * std::abs(wanted);
}

std::optional<std::pair<double, Value>> scalarAndOther(const Op &op) {
  if (op.operands().size() != 2) return std::nullopt;
  for (unsigned i : {1u, 0u})
    if (auto number = scalarOf(op.operand(i))) return std::pair(*number, op.operand(1 - i));
  return std::nullopt;
}

Op *madeBy(Value value, llvm::StringRef name) {
  Op *op = value ? value.op() : nullptr;
  return op && value.index() == 0 && op->is(name) ? op : nullptr;
}

Op *onlyReader(Value value, llvm::StringRef name) {
  if (!value.hasOneUse()) return nullptr;
  Op *op = value.users().front();
  return op->is(name) ? op : nullptr;
}

bool isWide(Value value) { return value.dtype() == DType::f32 || value.dtype() == DType::f64; }

Value beforeWidening(Value value) {
  Op *cast = madeBy(value, "cast");
  if (!cast) return value;
  Value x = cast->operand(0u);
  bool widens = (x.dtype() == DType::bf16 || x.dtype() == DType::f16) && value.dtype() == DType::f32;
  return widens ? x : value;
}

bool isVectorFor(Value value, Value like) {
  return value.rank() >= 1 && value.rank() <= like.rank() && value.shape().back() == like.shape().back() &&
         llvm::all_of(value.shape().drop_back(), [](const ir::Dim &d) { return d.is(1); });
}

Value asVector(ir::Builder &b, Value value) {
  if (value.rank() == 1) return value;
  return b.op("reshape", {value}, {{"shape", ir::Shape{value.shape().back()}}});
}

std::optional<int64_t> onlyReducedDim(const Op &op) {
  const auto &dims = op.attr<std::vector<int64_t>>("dims");
  const int64_t rank = op.operand(0u).rank();
  if (!op.attr<bool>("keep") || dims.size() != 1) return std::nullopt;
  return dims[0] < 0 ? dims[0] + rank : dims[0];
}

int64_t bytesBetween(llvm::ArrayRef<Value> inputs, Value last, const ir::SymbolValues &sizes) {
  llvm::SmallSetVector<Op *, 16> above; // what `last` is made of
  if (last.op()) above.insert(last.op());
  for (unsigned i = 0; i < above.size() && above.size() < kMostOpsOfAForm; ++i)
    for (Value operand : above[i]->operands())
      if (operand && operand.op() && !llvm::is_contained(inputs, operand)) above.insert(operand.op());
  llvm::SmallPtrSet<Op *, 16> form; // of that what is made of `inputs`: a mask is not
  auto leadsToForm = [&](Value v) { return v && (llvm::is_contained(inputs, v) || form.contains(v.op())); };
  for (size_t known = above.size() + 1; known != form.size();) {
    known = form.size();
    for (Op *op : llvm::reverse(above))
      if (llvm::any_of(op->operands(), leadsToForm)) form.insert(op);
  }
  int64_t bytes = 0;
  for (Op *op : above)
    if (form.contains(op) && op != last.op() && op->def().lowering != ir::Lowering::view)
      for (Value value : op->results()) {
        auto isInForm = [&](Op *user) { return form.contains(user); };
        bytes += ir::byteSize(value.type(), sizes).value_or(0) * (1 + llvm::count_if(value.users(), isInForm));
      }
  return bytes;
}

bool reducesLastDim(const Op &op) {
  const int64_t rank = op.operand(0u).rank();
  if (op.attr<std::vector<int64_t>>("dims").empty()) return op.attr<bool>("keep") && rank == 1; // all dims
  return onlyReducedDim(op) == rank - 1;
}

} // namespace fusor::passes
