// Every diagnostic of the parser: what it says, where its caret is, its note and its hint.
#include "frontend/text/parser.h"
#include "tests/support/expected_error.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::frontend;

namespace {

std::vector<Diagnostic> diagnosticsOf(llvm::StringRef text) {
  std::vector<Diagnostic> all;
  auto module = parseModule(text, "test.fir");
  if (!module) llvm::handleAllErrors(module.takeError(), [&](const DiagnosticError &e) { all = e.diagnostics(); });
  return all;
}

/// What parsing says is what the comments of `text` expect, and it is something.
void expectErrors(llvm::StringRef text) {
  auto diagnostics = diagnosticsOf(text);
  EXPECT_FALSE(diagnostics.empty()) << "no error in\n" << text.str();
  std::string problems = tests::checkExpectedErrors(text, diagnostics);
  if (problems.empty()) return;
  std::string said;
  for (const Diagnostic &diagnostic : diagnostics) said += diagnostic.str();
  ADD_FAILURE() << problems << "said:\n" << said << "of:\n" << text.str();
}

/// The same of lines inside a function whose arguments are %x: f32[4], %i: i32[4], %c: i1[4].
void expectOpErrors(const std::string &lines) {
  expectErrors("param @w : f32[8, 4]\nparam @fc1.bias : f32[8]\nfunc @f(%x: f32[4], %i: i32[4], %c: i1[4]) {\n" +
               lines + "  return\n}\n");
}

} // namespace

// --- how a diagnostic looks

TEST(TextErrors, Rendered) {
  auto diagnostics = diagnosticsOf("dim B in 1..8192\nfunc @mlp(%h: bf16[B, 4096], %b: bf16[11008]) -> bf16[B, 4096] "
                                   "{\n  %s = add %h, %b : bf16[B, 4096]\n  return %s\n}\n");
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].str(),
            "test.fir:3:8: error: 'add' operands must broadcast to one shape: a is bf16[B, 4096], b is bf16[11008]\n   "
            " %s = add %h, %b : bf16[B, 4096]\n         ^\ntest.fir:2:30: note: %b is declared here\n");
}

TEST(TextErrors, RenderedTabsAndControlBytes) {
  auto diagnostics = diagnosticsOf("\tparam\t@w\x01 : f32[4]\n");
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].str(), "test.fir:1:10: error: expected ':' and a type, found a character that has no "
                                  "meaning here\n  \tparam\t@w? : f32[4]\n  \t     \t  ^\n");
}

TEST(TextErrors, LongLineIsCut) {
  auto diagnostics = diagnosticsOf("param @" + std::string(1000, 'a') + " f32[4]\n");
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_LT(diagnostics[0].str().size(), 500u);
}

// --- recovery

TEST(TextErrors, ErrorsCollectAndDoNotCascade) {
  expectErrors(R"(
param @v : f32[4
// expected-error@-1:17 {{expected ',' or ']' after a dim, found the end of the line}}
func @f(%x: f32[4]) {
  // expected-error@+2:8 {{there is no op called 'nagate'}}
  // expected-hint {{'fusor ops' lists all ops}}
  %a = nagate %x
  %b = neg %a
  %c = add %a, %b
  // expected-error@+1:12 {{%d is not defined here}}
  %e = neg %d
  %z = fusion(%e) {
    %g = gelu %e
    yield %g
  }
  return %z
}
// expected-error@+1:1 {{expected one of module, dim, param, state, const, derived, func, found '}'}}
}
func @g(%x: f32[4]) -> f32[4] {
  // expected-error@+1:13 {{expected a value such as %x or @w, found the end of the line}}
  return %x,
}
)");
}

// --- the file

TEST(TextErrors, Lexical) {
  expectErrors("// expected-error@+1:8 {{found a string that is not closed on its line}}\nmodule @\"abc\n");
  expectErrors("// expected-error@+1:8 {{found a string with an unknown escape}}\nmodule @\"a\\qb\"\n");
  expectErrors("// expected-error@+1:8 {{found a name that is missing or needs quotes}}\nmodule @0\n");
  expectErrors("// expected-error@+1:7 {{expected the name of the module, as in @minigpt, found '%m'}}\nmodule%m\n");
  EXPECT_EQ(diagnosticsOf(llvm::StringRef("\0", 1))[0].message,
            "expected one of module, dim, param, state, const, derived, func, found a NUL byte");
}

TEST(TextErrors, Declarations) {
  expectErrors("// expected-error@+2:1 {{expected one of module, dim, param}}\n// expected-hint {{did you mean "
               "'param'?}}\nparm @w : f32[4]\n");
  expectErrors("module @a\n// expected-error@+1:8 {{the module already has a name}}\nmodule @b\n");
  expectErrors("// expected-note@+1:7 {{@w is first declared here}}\nparam @w : f32[4]\n// expected-error@+1:7 {{@w is "
               "already declared}}\nstate @w : f32[4]\n");
  expectErrors("// expected-error@+1:20 {{expected the end of the line, found 'x'}}\nparam @w : f32[4]  x\n");
  expectErrors("// expected-error@+1:7 {{expected a name, as in @fc1.weight, found 'w'}}\nparam w : f32[4]\n");
  expectErrors(
      "// expected-error@+1:9 {{expected ':' and a type, found the end of the line}}\nparam @w\nparam @v : f32[4]\n");
  expectErrors("// expected-error@+1:9 {{expected ':' and a type, found the end of the file}}\nparam @w");
  expectErrors(
      "// expected-error@+1:7 {{a persistent value must not be called \"grad w\"}}\nparam @\"grad w\" : f32[4]\n");
  expectErrors("// expected-error@+1:7 {{a persistent value must not be called \"\"}}\nparam @\"\" : f32[4]\n");
  expectErrors("// expected-error@+1:27 {{expected zeros, constant(x) or normal(deviation), found 'ones'}}\nparam @w : "
               "f32[4] {init = ones}\n");
  expectErrors("// expected-error@+1:20 {{expected 'init', found 'start'}}\nparam @w : f32[4] {start = zeros}\n");
  expectErrors("// expected-error@+1:34 {{expected a number, found ')'}}\nparam @w : f32[4] {init = normal()}\n");
  expectErrors(
      "// expected-error@+1:34 {{the number is out of the range of f64}}\nparam @w : f32[4] {init = normal(1e999)}\n");
}

TEST(TextErrors, Symbols) {
  expectErrors("// expected-error@+1:10 {{the range of 'B' must be within 0..1099511627776 and not empty, is "
               "3..2}}\ndim B in 3..2\n");
  expectErrors("// expected-error@+1:10 {{the range of 'B' must be within}}\ndim B in -1..2\n");
  expectErrors("// expected-error@+1:10 {{the number does not fit in 64 bits}}\ndim B in 99999999999999999999..2\n");
  expectErrors("// expected-error@+1:5 {{expected the name of a symbol, found '%B'}}\ndim %B in 1..2\n");
  expectErrors("// expected-error@+1:7 {{expected 'in', found 'of'}}\ndim B of 1..2\n");
  expectErrors("// expected-error@+1:11 {{expected '..', found ','}}\ndim B in 1, 2\n");
  expectErrors("dim B in 1..2\n// expected-error@+1:5 {{symbol 'B' is already declared in 1..2}}\ndim B in 1..3\n");
  expectErrors("dim Batch in 1..2\n// expected-error@+2:16 {{symbol 'Bach' is not declared}}\n// expected-hint {{did "
               "you mean 'Batch'?}}\nparam @w : f32[Bach]\n");
  expectErrors("// expected-error@+2:16 {{symbol 'B' is not declared}}\n// expected-hint {{add a line such as 'dim B "
               "in 1..64' at the top}}\nparam @w : f32[B]\n");
}

TEST(TextErrors, Types) {
  expectErrors("// expected-error@+2:12 {{there is no dtype called 'f33'}}\n// expected-hint {{did you mean "
               "'f32'?}}\nparam @w : f33[4]\n");
  expectErrors("// expected-error@+1:12 {{there is no dtype called 'float32'}}\nparam @w : float32[4]\n");
  expectErrors("// expected-error@+1:12 {{expected a type such as bf16[256], found '['}}\nparam @w : [4]\n");
  expectErrors("// expected-error@+1:15 {{expected '[' and the dims, found the end of the line}}\nparam @w : "
               "f32\nparam @v : f32[4]\n");
  expectErrors("// expected-error@+1:19 {{expected a dim: a number or a symbol, found ']'}}\nparam @w : f32[4, ]\n");
  expectErrors("// expected-error@+1:16 {{a dim must not be negative, is -4}}\nparam @w : f32[-4]\n");
  expectErrors("// expected-error@+1:16 {{the dim is too large}}\nparam @w : f32[281474976710657]\n");
  expectErrors("// expected-error@+1:16 {{the dim is too large}}\nparam @w : f32[16777216*16777217]\n");
  expectErrors("// expected-error@+1:16 {{the dim is too large}}\nparam @w : f32[281474976710656+1]\n");
  expectErrors(
      "// expected-error@+1:15 {{[16777216, 16777217] has too many elements}}\nparam @w : f32[16777216, 16777217]\n");
  expectErrors(
      "// expected-error@+1:15 {{a shape has at most 16 dims}}\nparam @w : f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n");
  expectErrors("// expected-error@+1:23 {{expected 'tensor', found 'row'}}\nparam @w : f32[4] per row\n");
}

TEST(TextErrors, Consts) {
  expectErrors("// expected-error@+1:21 {{f32[2] has 2 elements of 4 bytes, found 12 bytes}}\nconst @c : f32[2] = "
               "[1.0, 2.0, 3.0]\n");
  expectErrors("// expected-error@+1:24 {{'300' is no value of u8}}\nconst @c : u8[2] = [1, 300]\n");
  expectErrors("// expected-error@+1:21 {{'-1' is no value of u8}}\nconst @c : u8[1] = [-1]\n");
  expectErrors("// expected-error@+1:21 {{'1.5' is no value of i8}}\nconst @c : i8[1] = [1.5]\n");
  expectErrors("// expected-error@+1:22 {{'one' is no value of f32}}\nconst @c : f32[1] = [one]\n");
  expectErrors("// expected-error@+1:22 {{expected a number, found '\"1\"'}}\nconst @c : f32[1] = [\"1\"]\n");
  expectErrors(
      "// expected-error@+1:24 {{expected ',' or ']' after an element, found '2'}}\nconst @c : f32[2] = [1 2]\n");
  expectErrors(
      "// expected-error@+1:25 {{expected an even number of hex digits}}\nconst @c : f32[1] = hex \"0011223\"\n");
  expectErrors(
      "// expected-error@+1:25 {{expected an even number of hex digits}}\nconst @c : f32[1] = hex \"0011223g\"\n");
  expectErrors("// expected-error@+1:21 {{f32[1] has 1 elements of 4 bytes, found 2 bytes}}\nconst @c : f32[1] = hex "
               "\"0011\"\n");
  expectErrors(
      "// expected-error@+1:18 {{expected '=' and the elements, found the end of the file}}\nconst @c : f32[1]\n");
  expectErrors("// expected-error@+1:21 {{expected '[' and the elements, or hex \"...\", found '1.0'}}\nconst @c : "
               "f32[1] = 1.0\n");
  expectErrors("dim B in 1..2\n// expected-error@+1:21 {{a const has dims that are numbers, not f32[B]}}\nconst @c : "
               "f32[B] = [1.0]\n");
}

TEST(TextErrors, Derived) {
  expectErrors("// expected-error@+2:23 {{there is no op called 'cats'}}\n// expected-hint {{did you mean "
               "'cast'?}}\nderived @c : f32[1] = cats @w\n");
  expectErrors(
      "// expected-error@+1:28 {{expected a persistent value, as in @w, found '%w'}}\nderived @c : f32[1] = cast %w\n");
  expectErrors("// expected-error@+1:9 {{derived @c: its source @w is not declared}}\nderived @c : f32[1] = cast @w "
               "{to = f32}\n");
  expectErrors("param @w : f32[2]\n// expected-error@+1:9 {{derived @c: 'cast' gives f32[2], declared is "
               "f32[1]}}\nderived @c : f32[1] = cast @w {to = f32}\n");
  expectErrors("param @w : f32[2]\n// expected-error@+2:32 {{'cast' has no attribute 'too'}}\n// expected-hint {{did "
               "you mean 'to'?}}\nderived @c : f32[1] = cast @w {too = f32}\n");
}

// --- functions

TEST(TextErrors, FunctionHeads) {
  expectErrors("// expected-error@+1:6 {{expected the name of the function, as in @forward, found 'f'}}\nfunc f() {\n  "
               "return\n}\n");
  expectErrors("// expected-error@+1:6 {{a function needs a name}}\nfunc @\"\"() {\n  return\n}\n");
  expectErrors("func @f() {\n  return\n}\n// expected-error@+1:6 {{function @f is already defined}}\nfunc @f() {\n  "
               "return\n}\n");
  expectErrors("// expected-error@+1:8 {{expected '(' and the arguments, found '{'}}\nfunc @f{\n  return\n}\n");
  expectErrors("// expected-error@+1:9 {{expected an argument, as in %x: f32[4], found 'x'}}\nfunc @f(x: f32[4]) {\n  "
               "return\n}\n");
  expectErrors("// expected-error@+1:12 {{expected ':' and a type, found 'f32'}}\nfunc @f(%x f32[4]) {\n  return\n}\n");
  expectErrors("// expected-error@+1:20 {{expected ',' or ')' after an argument, found '%y'}}\nfunc @f(%x: f32[4] %y: "
               "f32[4]) {\n  return\n}\n");
  expectErrors("// expected-note@+2:9 {{%x is first defined here}}\n// expected-error@+1:21 {{%x is already "
               "defined}}\nfunc @f(%x: f32[4], %x: f32[4]) {\n  return\n}\n");
  expectErrors(
      "// expected-error@+1:11 {{expected '{' and the ops of the function, found the end of the file}}\nfunc @f() ");
  expectErrors("dim B in 1..2\n// expected-error@+1:37 {{symbol 'B' is already declared in 1..2}}\nfunc @f(%x: f32[B]) "
               "-> f32[B] where B in 1..3 {\n  return\n}\n");
}

TEST(TextErrors, FunctionEnds) {
  expectErrors("func @f() {\n// expected-error@+1:1 {{a function must end with 'return'}}\n}\n");
  expectErrors(
      "func @f(%x: f32[4]) {\n  return\n  // expected-error@+1:3 {{no op may follow 'return'}}\n  %y = neg %x\n}\n");
  expectErrors(
      "func @f(%x: f32[4]) {\n  // expected-error@+1:14 {{expected '}', found the end of the file}}\n  %y = neg %x");
  expectErrors("func @f(%x: f32[4]) {\n  // expected-error@+1:3 {{a function ends with 'return'}}\n  yield %x\n}\n");
}

TEST(TextErrors, Returns) {
  expectErrors("// expected-note@+1:24 {{its type is declared here}}\nfunc @f(%x: f32[4]) -> f32[5] {\n  // "
               "expected-error@+1:10 {{result 0 must be f32[5], is f32[4]}}\n  return %x\n}\n");
  expectErrors("func @f(%x: f32[4]) -> f32[4] {\n  // expected-error@+1:3 {{the function gives 1 results, 2 are "
               "returned}}\n  return %x, %x\n}\n");
  expectErrors("func @f(%x: f32[4]) {\n  // expected-error@+1:3 {{'return' gives no results}}\n  %y = return\n}\n");
  expectErrors("func @f(%x: f32[4]) {\n  // expected-error@+1:13 {{expected the end of the line, found '{'}}\n  return "
               "%x {a = 1}\n}\n");
}

TEST(TextErrors, ReturnTargets) {
  const std::string head = "param @w : f32[4]\nconst @c : f32[1] = [1.0]\nfunc @f(%x: f32[4], %y: f32[3]) {\n";
  expectErrors(head + "  // expected-error@+1:15 {{expected the param this is the gradient of, as in grad @w = %dw, "
                      "found '%x'}}\n  return grad %x\n}\n");
  expectErrors(head + "  // expected-error@+1:18 {{expected '=', found '%x'}}\n  return grad @w %x\n}\n");
  expectErrors(head + "  // expected-error@+1:3 {{'return' updates @v, which is not declared}}\n  return @v = %x\n}\n");
  expectErrors(head +
               "  // expected-error@+1:3 {{'return' updates @w, which is f32[4], with f32[3]}}\n  return @w = %y\n}\n");
  expectErrors(head + "  // expected-error@+1:3 {{'return' updates @w twice}}\n  return @w = %x, @w = %x\n}\n");
  expectErrors(head + "  // expected-error@+1:3 {{'return' updates @c, which is a const}}\n  return @c = @c\n}\n");
  expectErrors(head + "  // expected-error@+1:3 {{'return' gives the gradient of @c, which is a const; only a param "
                      "has one}}\n  return grad @c = @c\n}\n");
}

// --- ops

TEST(TextErrors, OpNames) {
  expectOpErrors("  // expected-error@+2:8 {{there is no op called 'sigmoidd'}}\n  // expected-hint {{did you mean "
                 "'sigmoid'?}}\n  %y = sigmoidd %x\n");
  expectOpErrors("  // expected-error@+1:3 {{expected an op, '%name = op ...' or '}', found '@w'}}\n  @w = neg %x\n");
  expectOpErrors("  // expected-error@+1:8 {{expected an op, found '%x'}}\n  %y = %x\n");
  expectOpErrors("  // expected-error@+1:6 {{expected '=' and an op, found 'neg'}}\n  %y neg %x\n");
  expectOpErrors("  // expected-error@+1:8 {{expected the name of a result, as in %y, found '='}}\n  %y,  = neg %x\n");
}

TEST(TextErrors, ResultNames) {
  expectOpErrors("  // expected-error@+1:3 {{'neg' gives 1 results, 2 are named}}\n  %y, %z = neg %x\n");
  expectOpErrors("  // expected-error@+1:3 {{'neg' gives 1 results, 0 are named}}\n  neg %x\n");
  expectOpErrors("  // expected-note@+1:3 {{%y is first defined here}}\n  %y = neg %x\n  // expected-error@+1:3 {{%y "
                 "is already defined}}\n  %y = neg %x\n");
}

TEST(TextErrors, ResultTypes) {
  expectOpErrors("  // expected-error@+2:17 {{'neg' gives f32[4] here, found f32[5]}}\n  // expected-hint {{types of "
                 "results may be left out}}\n  %y = neg %x : f32[5]\n");
  expectOpErrors(
      "  // expected-error@+1:17 {{'neg' gives 1 results, 2 types are written}}\n  %y = neg %x : f32[4], f32[4]\n");
  expectErrors("func @f(%x: f32[16777216, 1], %y: f32[33554432]) {\n  // expected-error@+1:8 {{'add' gives "
               "f32[16777216, 33554432], which is too large}}\n  %z = add %x, %y\n  return\n}\n");
}

TEST(TextErrors, Operands) {
  expectOpErrors("  // expected-error@+1:12 {{%z is not defined here}}\n  %y = neg %z\n");
  expectOpErrors("  // expected-error@+1:12 {{%0 is not defined here}}\n  %y = neg %0\n");
  expectOpErrors(
      "  // expected-error@+2:12 {{%w is not defined here}}\n  // expected-hint {{did you mean @w?}}\n  %y = neg %w\n");
  expectOpErrors("  // expected-error@+2:12 {{@fc1.bios is not declared}}\n  // expected-hint {{did you mean "
                 "@fc1.bias?}}\n  %y = neg @fc1.bios\n");
  expectOpErrors("  // expected-error@+2:12 {{@something is not declared}}\n  // expected-hint {{declare it above the "
                 "function, as in param @something : f32[4]}}\n  %y = neg @something\n");
  expectOpErrors("  // expected-error@+1:12 {{expected a value such as %x or @w, found 'x'}}\n  %y = neg x\n");
  expectOpErrors("  // expected-error@+1:15 {{expected the end of the line, found '%x'}}\n  %y = neg %x %x\n");
  expectOpErrors("  // expected-error@+1:16 {{'neg' takes 1 operands}}\n  %y = neg %x, %x\n");
  expectOpErrors("  // expected-error@+1:8 {{'add' takes 2 operands, 1 are given}}\n  %y = add %x\n");
  expectOpErrors("  // expected-error@+2:23 {{'linear' takes 2 operands}}\n  // expected-hint {{optional operands are "
                 "given by name, as in bias = %x}}\n  %y = linear %x, @w, @fc1.bias\n");
  expectOpErrors("  // expected-error@+2:23 {{'linear' has no operand called 'bais'}}\n  // expected-hint {{did you "
                 "mean 'bias'?}}\n  %y = linear %x, @w, bais = @fc1.bias\n");
  expectOpErrors("  // expected-error@+1:41 {{operand 'bias' is given twice}}\n  %y = linear %x, @w, bias = @fc1.bias, "
                 "bias = @fc1.bias\n");
  expectErrors("param @w : f32[4]\n// expected-note@-1:7 {{@w is declared here}}\nfunc @f(%x: bf16[4]) {\n  // "
               "expected-error@+1:8 {{'add' operands must have one dtype: 'a' is bf16[4], 'b' is f32[4]}}\n  %y = add "
               "%x, @w\n  return\n}\n");
}

TEST(TextErrors, Scalars) {
  expectOpErrors("  // expected-error@+2:12 {{a number takes the dtype of another operand, and there is none}}\n  // "
                 "expected-hint {{write a constant}}\n  %y = neg 1.0\n");
  expectErrors("// expected-note@+1:9 {{%i is declared here}}\nfunc @f(%i: i32[4]) {\n  // expected-error@+1:16 {{the "
               "number is no value of i32, the dtype of %i}}\n  %y = mul %i, 0.5\n  return\n}\n");
  expectErrors("// expected-note@+1:9 {{%i is declared here}}\nfunc @f(%i: u8[4]) {\n  // expected-error@+1:16 {{the "
               "number is no value of u8, the dtype of %i}}\n  %y = mul %i, -1\n  return\n}\n");
}

TEST(TextErrors, Attributes) {
  expectOpErrors("  // expected-error@+2:17 {{'gelu' has no attribute 'fomr'}}\n  // expected-hint {{did you mean "
                 "'form'?}}\n  %y = gelu %x {fomr = tanh}\n");
  expectOpErrors("  // expected-error@+2:16 {{'neg' has no attribute 'approximate'}}\n  // expected-hint {{it has "
                 "none}}\n  %y = neg %x {approximate = tanh}\n");
  expectOpErrors(
      "  // expected-error@+1:17 {{'gelu' attribute 'form' must be one of}}\n  %y = gelu %x {form = cosh}\n");
  expectOpErrors(
      "  // expected-error@+1:30 {{attribute 'form' is given twice}}\n  %y = gelu %x {form = tanh, form = tanh}\n");
  expectOpErrors("  // expected-error@+1:17 {{expected the name of an attribute, found '}'}}\n  %y = gelu %x {}\n");
  expectOpErrors("  // expected-error@+1:22 {{expected '=', found 'tanh'}}\n  %y = gelu %x {form tanh}\n");
  expectOpErrors("  // expected-error@+1:29 {{expected ',' or '}' after an attribute, found 'x'}}\n  %y = gelu %x "
                 "{form = tanh x = 1}\n");
  expectOpErrors("  // expected-error@+1:24 {{expected a word or a string, found '1'}}\n  %y = gelu %x {form = 1}\n");
  expectOpErrors("  // expected-error@+1:27 {{expected an integer, found '1.5'}}\n  %y = softmax %x {axis = 1.5}\n");
  expectOpErrors("  // expected-error@+1:27 {{the number does not fit in 64 bits}}\n  %y = softmax %x {axis = "
                 "9223372036854775808}\n");
  expectOpErrors("  // expected-error@+1:29 {{expected a list in [ ], found '0'}}\n  %y = transpose %x {perm = 0}\n");
  expectOpErrors(
      "  // expected-error@+1:32 {{expected ',' or ']' in a list, found '1'}}\n  %y = transpose %x {perm = [0 1]}\n");
  expectOpErrors(
      "  // expected-error@+1:35 {{expected true or false, found 'yes'}}\n  %y = sum %x {dims = [0], keep = yes}\n");
  expectOpErrors("  // expected-error@+2:22 {{there is no dtype called 'f31'}}\n  // expected-hint {{did you mean "
                 "'f32'?}}\n  %y = cast %x {to = f31}\n");
  expectOpErrors(
      "  // expected-error@+1:8 {{'transpose' needs attribute 'perm' (a list of integers)}}\n  %y = transpose %x\n");
}

// --- fusions

TEST(TextErrors, Fusions) {
  expectOpErrors("  // expected-error@+1:18 {{expected '(' and what the fusion reads, found '%x'}}\n  %y = fusion @a "
                 "%x {\n    yield %x\n  }\n");
  expectOpErrors("  // expected-error@+1:18 {{expected ',' or ')' after an argument, found '%i'}}\n  %y = fusion(%x "
                 "%i) {\n    yield %x\n  }\n");
  expectOpErrors("  // expected-error@+1:18 {{expected '{' and the body of the fusion, found the end of the line}}\n  "
                 "%y = fusion(%x)\n");
  expectOpErrors("  // expected-note@+2:15 {{%x is first defined here}}\n  // expected-error@+1:19 {{%x is already "
                 "defined}}\n  %y = fusion(%x, %x) {\n    yield %x\n  }\n");
  expectOpErrors("  %y = fusion(%x) {\n    %z = neg %x\n  // expected-error@+1:3 {{the body of a fusion must end with "
                 "'yield'}}\n  }\n");
  expectOpErrors("  %y = fusion(%x) {\n    // expected-error@+1:5 {{the body of a fusion ends with 'yield'}}\n    "
                 "return %x\n  }\n");
  expectOpErrors("  %y = fusion(%x) {\n    yield %x\n    // expected-error@+1:5 {{no op may follow 'yield'}}\n    "
                 "yield %x\n  }\n");
  expectOpErrors(
      "  %y = fusion(%x) {\n    // expected-error@+2:18 {{%i is not defined here}}\n    // expected-hint {{the body of "
      "a fusion sees only its arguments; add %i to them}}\n    %z = add %x, %i\n    yield %z\n  }\n");
  expectOpErrors(
      "  %y = fusion(%x) {\n    // expected-error@+2:18 {{@w is not defined here}}\n    // expected-hint {{the body of "
      "a fusion sees only its arguments; add @w to them}}\n    %z = add %x, @w\n    yield %z\n  }\n");
  expectOpErrors("  // expected-error@+2:21 {{'fusion' gives f32[4] here, found f32[5]}}\n  // expected-hint {{types "
                 "of results may be left out}}\n  %y = fusion(%x) : f32[5] {\n    yield %x\n  }\n");
  expectOpErrors("  // expected-error@+1:3 {{'fusion' gives 2 results, 1 are named}}\n  %y = fusion(%x) {\n    yield "
                 "%x, %x\n  }\n");
  std::string open, close;
  for (int i = 0; i < 16; ++i) open += "%y = fusion(%x) {\n", close += "yield %y\n}\n";
  expectOpErrors(open +
                 "// expected-error@+1:6 {{fusions are nested more than 16 deep}}\n%y = fusion(%x) {\nyield %x\n}\n" +
                 close);
}
