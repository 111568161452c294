#include "ir/ops/expr.h"

namespace fusor::ir {

Expr Expr::input(unsigned index) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::input;
  node->index = index;
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

Expr Expr::constant(double value) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::constant;
  node->value = value;
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

Expr Expr::call(llvm::StringRef function, llvm::ArrayRef<Expr> args) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::call;
  node->function = function.str();
  node->args.assign(args.begin(), args.end());
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

} // namespace fusor::ir
