#include "passes/fp8/products.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::Value;

struct Sizes {
  Dim rows, columns, terms;
  std::string str() const { return rows.str() + " x " + columns.str() + " x " + terms.str(); }
};

Sizes sizesOf(const Op &op) {
  auto a = op.operand(0u).shape(), y = op.result().shape();
  Sizes sizes{ir::product(y.drop_back()), y.back(), a.back()};
  if (op.is("linear_weight_grad")) sizes.terms = ir::product(a.drop_back());
  if (op.is("matmul") && op.attr<bool>("trans_a")) sizes.terms = a[a.size() - 2];
  return sizes;
}

// What is no multiple is an own kernel's, for some sizes or for all.
std::string whyOwnKernel(const Sizes &sizes) {
  std::string text;
  for (const auto &[dim, what] : {std::pair{sizes.terms, "terms a sum"}, {sizes.columns, "columns"}}) {
    if (dim.divide(ir::kFp8Multiple)) continue;
    text += (text.empty() ? "; an own kernel" : " or") + std::string(dim.isConstant() ? ", as " : " where ") +
            dim.str() + " " + what + " are no multiple of " + std::to_string(ir::kFp8Multiple);
  }
  return text;
}

bool isInFp8(const Op &op) { return ir::isFp8(op.operand(0u).dtype()) && ir::isFp8(op.operand(1).dtype()); }

class Listing {
public:
  Listing(const ir::Function &function, PassContext &context)
      : function_(function), context_(context), sizes_(context.sizes(function.module())) {}

  void record() {
    for (const Op &op : function_.block().ops()) {
      if (op.def().lowering != ir::Lowering::contraction) continue;
      Sizes sizes = sizesOf(op);
      int64_t saved = savedInFp8(op);
      std::string text = (roleOf(op) + ", " + sizes.str() + ", ").str();
      if (isInFp8(op)) {
        text += (ir::name(op.operand(0u).dtype()) + " x " + ir::name(op.operand(1).dtype())).str();
        if (op.is("linear") && op.attr<bool>("fast_accum")) text += ", fast accumulation";
        if (context_.options().target.hasFp8Library()) text += whyOwnKernel(sizes);
        context_.record(Decision::Kind::taken, "gemm", op, std::move(text), saved);
      } else {
        text += (ir::name(op.operand(0u).dtype()) + ": " + whyNot(op)).str();
        context_.record(Decision::Kind::refused, "gemm", op, std::move(text), saved);
      }
    }
  }

private:
  // What both operands are less than in the precision that FP8 takes the place of.
  int64_t savedInFp8(const Op &op) const {
    int64_t saved = 0;
    for (unsigned i : {0u, 1u}) {
      ir::DType dtype = op.operand(i).dtype();
      unsigned bytes = ir::byteSize(ir::isFp8(dtype) ? context_.options().precision : dtype);
      saved += (bytes - 1) * op.operand(i).type().elements().evaluate(sizes_).value_or(0);
    }
    return saved;
  }

  // The product whose gradient `op` is: it has the same weight, or the same x.
  const Op *forwardOf(const Op &op) const {
    if (op.is("linear")) return &op;
    unsigned shared = op.is("linear_weight_grad") ? 0 : 1;
    for (Op *user : op.operand(1).users())
      if (user->is("linear") && user->operand(shared) == op.operand(1)) return user;
    return nullptr;
  }

  // fp8-insert's reason for the forward product, which keeps its name.
  std::string whyNot(const Op &op) const {
    const auto &recipe = context_.options().fp8;
    if (op.is("linear_weight_grad") && recipe && !recipe->wgrad) return "the recipe leaves weight gradients out";
    if (op.is("matmul")) return "multiplies two activations, the recipe covers linear layers";
    if (const Op *forward = forwardOf(op)) {
      for (const Decision &d : context_.decisions())
        if (d.rule == "fp8" && d.kind == Decision::Kind::refused && d.op == "linear" &&
            llvm::is_contained(d.values, forward->result().name()))
          return d.reason;
    }
    if (ir::DType dtype = op.operand(0u).dtype(); dtype != context_.options().precision && !ir::isFp8(dtype))
      return ("computes in " + ir::name(dtype) + ", FP8 takes the place of bf16").str();
    return "its operands are not quantised";
  }

  const ir::Function &function_;
  PassContext &context_;
  ir::SymbolValues sizes_; // of decisions
};

} // namespace

llvm::StringRef roleOf(const Op &product) {
  if (product.is("linear_input_grad")) return "input gradient";
  if (product.is("linear_weight_grad")) return "weight gradient";
  if (!product.is("linear")) return "activations";
  const auto &gradient = product.attr<std::string>("gradient_of");
  return gradient == "none" ? "forward" : gradient == "input" ? "input gradient" : "weight gradient";
}

void recordProducts(const ir::Module &module, PassContext &context) {
  for (const auto &function : module.functions()) Listing(*function, context).record();
}

} // namespace fusor::passes
