// The text form read back: parse(print(m)) == m, diagnostics, hostile bytes.
#include "frontend/text/parser.h"
#include "ir/graph/printer.h"
#include "tests/support/expected_error.h"
#include "gtest/gtest.h"
#include <random>

using namespace fusor;
using namespace fusor::frontend;

namespace {

std::string errorsOf(llvm::Error error) {
  std::string text;
  llvm::handleAllErrors(std::move(error), [&](const DiagnosticError &e) {
    for (const Diagnostic &d : e.diagnostics()) text += d.str();
  });
  return text;
}

/// `text` is parsed and printed; the result, "" where parsing failed (which also fails the test).
std::string reprint(llvm::StringRef text) {
  auto module = parseModule(text, "test.fir");
  if (module) return (*module)->str();
  ADD_FAILURE() << errorsOf(module.takeError()) << "in\n" << text.str();
  return "";
}

/// `text` is as the printer writes it.
void expectStable(llvm::StringRef text) {
  EXPECT_EQ(reprint(text), text.str());
  auto module = parseModule(text, "test.fir");
  ASSERT_TRUE(bool(module)) << errorsOf(module.takeError());
  EXPECT_EQ((*module)->clone()->str(), text.str());
}

/// The comments `// expected-error...` of `text` are what parsing says.
void expectErrors(llvm::StringRef text) {
  auto module = parseModule(text, "test.fir");
  ASSERT_FALSE(bool(module)) << "no error in\n" << text.str();
  llvm::handleAllErrors(module.takeError(), [&](const DiagnosticError &e) {
    EXPECT_EQ(tests::checkExpectedErrors(text, e.diagnostics()), "") << text.str();
  });
}

constexpr const char *kEverything = R"(module @minigpt

dim B in 1..64
dim S in 0..8192
param @blocks.0.fc1.weight : f32[8, 4] {init = normal(0.02)}
param @fc1.bias : bf16[8]
param @"0 weird \"name\"\x00" : f32[] {init = constant(-1.0)}
state @x.amax_history : f32[16]
state @x.scale : f32[] {init = constant(1.0)}
const @table : f32[2, 2] = [0.1, -0.0, inf, 1e-30]
const @bits : f32[1] = hex "0100c0ff"
const @ids : i64[3] = [-9223372036854775808, 0, 9223372036854775807]
const @flags : i1[2] = [0, 1]
const @none : u8[0, 3] = []
derived @w.bf16 : bf16[8, 4] = cast @blocks.0.fc1.weight {to = bf16}

func @forward(%x: bf16[B, 4], %0: i32[B, S+1]) -> bf16[B, 8], f32[] {
  %q, %a = quantize %x, @x.scale {contract = 0}              : f8e4m3[B, 4] per tensor, f32[]
  %d = dequantize %q {to = bf16}                             : bf16[B, 4]
  %y = linear %d, @w.bf16, bias = @fc1.bias                  : bf16[B, 8]
  %z, %1 = fusion @add_gelu(%h = %y, %bias = @fc1.bias, %q.1 = %y) {kind = row} : bf16[B, 8], bf16[B, 8] {
    %s = add %h, %bias      : bf16[B, 8]
    %0 = gelu %s {form = tanh} : bf16[B, 8]
    yield %0, %s
  }
  %h1, %s1 = amax_update @x.amax_history, @x.scale, %a       : f32[16], f32[]
  %2 = constant {value = 0.5, dtype = bf16}                  : bf16[]
  %"odd name" = mul %1, %2                                   : bf16[B, 8]
  %flat = reshape %z {shape = [8*B]}                         : bf16[8*B]
  return %"odd name", %a, @x.amax_history = %h1, @x.scale = %s1
}

func @gradients() -> f32[8, 4] {
  return @blocks.0.fc1.weight, grad @blocks.0.fc1.weight = @blocks.0.fc1.weight
}

func @nothing() {
  return
}
)";

} // namespace

TEST(TextRoundTrip, Everything) {
  std::string once = reprint(kEverything);
  ASSERT_FALSE(once.empty());
  expectStable(once);
  // The text above differs only in spacing and in what has a shorter spelling.
  EXPECT_NE(once.find("%z, %1 = fusion @add_gelu(%h = %y, @fc1.bias, %q.1 = %y) {kind = row} : "), std::string::npos)
      << once;
  EXPECT_NE(once.find("  %q, %a = quantize %x, @x.scale {contract = 0}        : f8e4m3[B, 4] per tensor, f32[]\n"),
            std::string::npos)
      << once;
  EXPECT_NE(once.find("param @\"0 weird \\\"name\\\"\\x00\" : f32[] {init = constant(-1.0)}\n"), std::string::npos)
      << once;
  EXPECT_NE(once.find("const @bits : f32[1] = hex \"0100c0ff\"\n"), std::string::npos) << once;
}

TEST(TextErrors, OperandsDoNotFit) {
  expectErrors(R"(dim B in 1..8192
// expected-note@+1:69 {{%b is declared here}}
func @mlp(%x: bf16[B, 4096], %w: bf16[11008, 4096], %h: bf16[B, 4], %b: bf16[11008]) -> bf16[B, 4096] {
  // expected-error@+1:8 {{'add' operands must broadcast to one shape: a is bf16[B, 4096], b is bf16[11008]}}
  %s = add %x, %b : bf16[B, 4096]
  return %s
}
)");
}
