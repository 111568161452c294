// Kernels of loops: pointwise, row and column, over ragged shapes and all dtypes.
#include "tests/codegen/kernel_checker.h"
#include "gtest/gtest.h"

using namespace fusor::codegen::tests;

namespace {

const std::vector<KernelChecker::Symbols> kRows = {{{"B", 1}}, {{"B", 31}}, {{"B", 33}}, {{"B", 130}}};

std::string replaced(std::string text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from.data(), at, from.size())) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.data(), to.size());
  return text;
}

/// `text` for each float type TYPE and number of columns C.
void addAll(KernelChecker &checker, const std::string &text, std::vector<const char *> types,
            std::vector<const char *> columns, const std::vector<KernelChecker::Symbols> &runs = kRows) {
  for (const char *type : types)
    for (const char *c : columns) checker.add(replaced(replaced(text, "TYPE", type), "COLS", c), runs);
}

TEST(Loop, Pointwise) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%h: TYPE[B, COLS], %b: TYPE[COLS], %u: TYPE[B, COLS]) -> TYPE[B, COLS] {
  %s = add %h, %b
  %g = gelu %s {form = tanh}
  %y = mul %g, %u
  return %y
})",
         {"f32", "bf16", "f16", "f64"}, {"1", "33", "64"});
  checker.run();
}

TEST(Loop, Row) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %r: TYPE[B, COLS], %w: TYPE[COLS], %b: TYPE[COLS]) -> TYPE[B, COLS], TYPE[B, COLS] {
  %h = add %x, %r
  %y, %mean, %rstd = layer_norm %h, %w, %b
  return %y, %h
})",
         {"f32", "bf16"}, {"1", "33", "64", "768"});
  checker.run();
}

} // namespace
