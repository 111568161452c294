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
  %h1, %s1, %i1 = amax_update @x.amax_history, @x.scale, %a  : f32[16], f32[], f32[]
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

// As an ONNX model has them whose sizes are all open, and what passes make of it.
TEST(Text, WideRangesAreReadBack) {
  expectStable(R"(module @wide

dim B in 1..65536
dim D in 1..65536
dim H in 1..65536
dim P in 1..65536
dim S in 1..65536

func @forward(%scores: f32[B, H, S, P+S], %x: f32[B, H, S, P, D]) -> f32[B*H*P*S+B*H*S*S], f32[B*D*H*P*S] {
  %flat = reshape %scores {shape = [B*H*P*S+B*H*S*S]} : f32[B*H*P*S+B*H*S*S]
  %all = reshape %x {shape = [B*D*H*P*S]}             : f32[B*D*H*P*S]
  return %flat, %all
}
)");
}

TEST(TextRoundTrip, Everything) {
  std::string once = reprint(kEverything);
  ASSERT_FALSE(once.empty());
  expectStable(once);
  // The text above differs only in spacing and in what has a shorter spelling.
  EXPECT_NE(once.find("%z, %1 = fusion @add_gelu(%h = %y, @fc1.bias, %q.1 = %y) {kind = row} : "), std::string::npos)
      << once;
  EXPECT_NE(once.find("  %q, %a = quantize %x, @x.scale {contract = 0}             : f8e4m3[B, 4] per tensor, f32[]\n"),
            std::string::npos)
      << once;
  EXPECT_NE(once.find("param @\"0 weird \\\"name\\\"\\x00\" : f32[] {init = constant(-1.0)}\n"), std::string::npos)
      << once;
  EXPECT_NE(once.find("const @bits : f32[1] = hex \"0100c0ff\"\n"), std::string::npos) << once;
}

TEST(TextRoundTrip, TypesAreInferred) {
  EXPECT_EQ(
      reprint("func @f(%x: bf16[2, 4], %w: bf16[8, 4]) {\n  %y = linear %x, %w\n  return %y\n}\n"),
      "func @f(%x: bf16[2, 4], %w: bf16[8, 4]) -> bf16[2, 8] {\n  %y = linear %x, %w : bf16[2, 8]\n  return %y\n}\n");
}

TEST(TextRoundTrip, WhereDeclaresSymbols) {
  EXPECT_EQ(reprint("func @f(%x: f32[B, S]) -> f32[B, S] where B in 1..8, S in 0..16 {\n  return %x\n}\n"),
            "dim B in 1..8\ndim S in 0..16\n\nfunc @f(%x: f32[B, S]) -> f32[B, S] {\n  return %x\n}\n");
}

TEST(TextRoundTrip, NumbersBecomeConstants) {
  EXPECT_EQ(reprint("func @f(%x: bf16[4], %c: i1[4], %i: i32[4]) {\n  %y = mul -0.5, %x\n  %z = select %c, %x, 1\n  %m "
                    "= max %x, -inf\n  %j = add %i, -3\n  return\n}\n"),
            "func @f(%x: bf16[4], %c: i1[4], %i: i32[4]) {\n"
            "  %0 = constant {dtype = bf16, value = -0.5} : bf16[]\n"
            "  %y = mul %0, %x                            : bf16[4]\n"
            "  %1 = constant {dtype = bf16, value = 1.0}  : bf16[]\n"
            "  %z = select %c, %x, %1                     : bf16[4]\n"
            "  %2 = constant {dtype = bf16, value = -inf} : bf16[]\n"
            "  %m = max %x, %2                            : bf16[4]\n"
            "  %3 = constant {dtype = i32, value = -3.0}  : i32[]\n"
            "  %j = add %i, %3                            : i32[4]\n"
            "  return\n"
            "}\n");
}

TEST(TextRoundTrip, OperandsByName) {
  EXPECT_EQ(reprint("func @f(%x: f32[2, 4], %w: f32[8, 4], %b: f32[8]) {\n  %y = linear bias = %b, weight = %w, %x\n  "
                    "return\n}\n"),
            "func @f(%x: f32[2, 4], %w: f32[8, 4], %b: f32[8]) {\n  %y = linear %x, %w, bias = %b : f32[2, 8]\n  "
            "return\n}\n");
}

TEST(TextRoundTrip, Locations) {
  auto module = parseModule("param @w : f32[4]\nfunc @f() {\n  %y = neg @w\n  return %y\n}\n", "dir/test.fir");
  ASSERT_TRUE(bool(module)) << errorsOf(module.takeError());
  EXPECT_EQ((*module)->persistent("w")->location.str(), "dir/test.fir:1:7");
  EXPECT_EQ((*module)->function("f")->block().ops().front().location().str(), "dir/test.fir:3:8");
  EXPECT_EQ((*module)->function("f")->block().terminator()->location().str(), "dir/test.fir:4:3");
}

TEST(TextRoundTrip, LongConstsAreHex) {
  std::string list;
  for (int i = 0; i < 65; ++i) list += (i ? ", " : "") + std::to_string(i);
  std::string text = reprint("const @c : u8[65] = [" + list + "]\n");
  EXPECT_EQ(text.find("const @c : u8[65] = hex \"000102030405"), 0u) << text;
  expectStable(text);
}

TEST(TextRoundTrip, DefaultsAreDropped) {
  EXPECT_EQ(reprint("param @w : f32[4] {init = zeros}\nderived @q : f8e4m3[4] per tensor = quantize @w, @s {contract = "
                    "-1}\nparam @s : f32[]\n"),
            "param @w : f32[4]\nderived @q : f8e4m3[4] per tensor = quantize @w, @s\nparam @s : f32[]\n");
}

TEST(TextRoundTrip, EveryConstType) {
  for (ir::DType dtype : ir::kAllDTypes) {
    std::string type = ir::name(dtype).str();
    std::string text = reprint("const @c : " + type + "[3] = [0, 1, 1]\n");
    expectStable(text);
    if (ir::isFloat(dtype) && dtype != ir::DType::f8e8m0) {
      expectStable("const @c : " + type + "[4] = [-1.5, 0.25, -0.0, 2.0]\n");
    }
  }
  expectStable("const @c : f64[2] = [0.1, 1.7976931348623157e+308]\n");
  expectStable("const @c : f32[3] = [0.1, 3.4028235e+38, 1e-45]\n");
  expectStable("const @c : u64[1] = [18446744073709551615]\n");
  expectStable("const @c : f16[1] = hex \"017e\"\n"); // a NaN with a payload
  expectStable("const @c : f32[1] = [nan]\n");
  expectStable("const @c : f32[2, 0] = []\n");
  expectStable("const @c : f32[] = [3.0]\n");
}

TEST(TextRoundTrip, FusionArguments) {
  expectStable(R"(param @a.bias : f32[4]
param @b.bias : f32[4]

func @f(%x: f32[4], %0: f32[4]) -> f32[4] {
  %1 = neg %x : f32[4]
  %y = fusion(%x, %0, %1, @a.bias, %bias.1 = @b.bias, %u = %x) : f32[4] {
    %s = add %0, %1         : f32[4]
    %t = add %bias, %bias.1 : f32[4]
    %v = add %s, %t         : f32[4]
    yield %v
  }
  %z = fusion @"odd name"(%0 = %y) : f32[4] {
    %y = fusion(%0) : f32[4] {
      yield %0
    }
    yield %y
  }
  return %z
}
)");
}

TEST(TextRoundTrip, Polynomials) {
  expectStable("dim B in 1..8\ndim S in 1..8\ndim T in 1..8\nparam @w : f32[B*T+S+1, 256*B, S-1, 2*B*T-3*S, 0]\n");
}
