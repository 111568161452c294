// Hostile text: whatever the bytes, parseModule gives a module or diagnostics, soon, and does not crash (run under ASan
// in `make asan`).
#include "frontend/text/parser.h"
#include "gtest/gtest.h"
#include <random>

using namespace fusor;
using namespace fusor::frontend;

namespace {

constexpr const char *kSeed = R"(module @m
dim B in 1..64
param @w : f32[8, 4] {init = normal(0.02)}
state @s : f32[4]
const @c : f32[2, 2] = [0.1, -0.0, inf, 1e-30]
const @h : u8[4] = hex "00ff1020"
derived @w16 : bf16[8, 4] = cast @w {to = bf16}

func @f(%x: f32[B, 4], %t: i32[B]) -> f32[B, 8], f32[B+1, 8] {
  %y = linear %x, @w                                   : f32[B, 8]
  %q, %a = quantize %x, 0.5 {dtype = f8e5m2}           : f8e5m2[B, 4] per tensor, f32[]
  %z = fusion @act(%y, @s) {kind = row} : f32[B, 8] {
    %g = gelu %y {form = tanh} : f32[B, 8]
    yield %g
  }
  %p = pad %z {before = [1, 0], after = [0, 0], value = -1.5} : f32[B+1, 8]
  %e = slice %x {start = [0, 1], size = [B, 2], step = [1, 2]}
  %n = neg @s : f32[4]
  return %z, %p, @s = %n, grad @w = @w
}
)";

/// True when it parses. Whatever is said must render, and point into the text.
bool parses(llvm::StringRef text) {
  auto module = parseModule(text, "hostile.fir");
  if (module) {
    std::string printed = (*module)->str();
    auto again = parseModule(printed, "again.fir");
    if (!again)
      ADD_FAILURE() << text.str() << "\nprinted:\n" << printed << llvm::toString(again.takeError());
    else if ((*again)->str() != printed)
      ADD_FAILURE() << printed << "\nthen:\n" << (*again)->str();
    return true;
  }
  llvm::handleAllErrors(module.takeError(), [&](const DiagnosticError &error) {
    EXPECT_FALSE(error.diagnostics().empty());
    EXPECT_LE(error.diagnostics().size(), 64u);
    for (const Diagnostic &diagnostic : error.diagnostics()) {
      EXPECT_FALSE(diagnostic.str().empty());
      EXPECT_FALSE(diagnostic.message.empty());
      EXPECT_LE(diagnostic.location.line, text.count('\n') + 1);
    }
  });
  return false;
}

std::string repeated(llvm::StringRef text, unsigned times) {
  std::string out;
  for (unsigned i = 0; i < times; ++i) out += text;
  return out;
}

} // namespace

TEST(TextHostile, SeedParses) { EXPECT_TRUE(parses(kSeed)); }

TEST(TextHostile, MutatedBytes) {
  std::mt19937 random(7);
  unsigned parsed = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = kSeed;
    for (unsigned edits = 1 + random() % 4; edits; --edits) {
      size_t at = random() % text.size(), length = std::min<size_t>(1 + random() % 12, text.size() - at);
      switch (random() % 4) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(random() % text.size(), length)); break;
      case 3: text[at] = "(){}[],:=*+-.\"%@0129 \n"[random() % 22]; break;
      }
    }
    parsed += parses(text);
  }
  EXPECT_GT(parsed, 20u); // some mutations are harmless: the loop does reach the printer
}

TEST(TextHostile, Truncated) {
  llvm::StringRef seed = kSeed;
  for (size_t size = 0; size < seed.size(); ++size) parses(seed.take_front(size));
}

TEST(TextHostile, SwappedLines) {
  std::mt19937 random(11);
  llvm::SmallVector<llvm::StringRef, 32> lines;
  llvm::StringRef(kSeed).split(lines, '\n');
  for (int i = 0; i < 2000; ++i) {
    auto mixed = lines;
    for (int swaps = 0; swaps < 3; ++swaps) std::swap(mixed[random() % mixed.size()], mixed[random() % mixed.size()]);
    std::string text;
    for (llvm::StringRef line : mixed) text += line.str() + "\n";
    parses(text);
  }
}

TEST(TextHostile, Sizes) {
  EXPECT_FALSE(parses("param @w : f32[99999999999999999999]"));
  EXPECT_FALSE(parses("param @w : f32[9223372036854775807]"));
  EXPECT_FALSE(parses("param @w : f32[16777216, 16777216, 2]"));
  EXPECT_FALSE(parses("param @w : f32[1099511627776*1099511627776]"));
  EXPECT_FALSE(parses("dim B in 1..1099511627776\nparam @w : f32[B*B]"));
  EXPECT_FALSE(parses("dim B in 1..9223372036854775807"));
  EXPECT_FALSE(parses("param @w : f32[" + repeated("1, ", 5000) + "1]"));
  EXPECT_FALSE(parses("dim B in 1..2\nparam @w : f32[" + repeated("B*", 5000) + "B]"));
  EXPECT_FALSE(parses("dim B in 1..2\nparam @w : f32[" + repeated("B+", 200000) + "B]"));
  EXPECT_FALSE(
      parses("func @f(%x: f32[281474976710656], %y: f32[281474976710656, 1]) {\n  %z = add %x, %y\n  return\n}"));
  EXPECT_FALSE(parses("param @w : f32[4] {init = constant(1e999)}"));
  EXPECT_TRUE(parses("param @w : f32[281474976710656]"));
}

TEST(TextHostile, Depth) {
  std::string open, close;
  for (int i = 0; i < 5000; ++i) open += "%y = fusion(%x) {\n", close += "yield %x\n}\n";
  EXPECT_FALSE(parses("func @f(%x: f32[4]) {\n" + open + close + "return\n}\n"));
  EXPECT_FALSE(parses(repeated("{", 100000)));
  EXPECT_FALSE(parses("func @f(%x: f32[4]) {\n" + repeated("{", 100000)));
  EXPECT_FALSE(parses(repeated("func @f(", 50000)));
  EXPECT_FALSE(parses(repeated("}\n", 50000)));
}

TEST(TextHostile, Bytes) {
  EXPECT_FALSE(parses(llvm::StringRef("module @m\0", 10)));
  EXPECT_FALSE(parses(llvm::StringRef("\0", 1)));
  EXPECT_FALSE(parses("\xff\xfe"));
  EXPECT_FALSE(parses("module @\"abc"));
  EXPECT_FALSE(parses("module @\"\\"));
  EXPECT_FALSE(parses("module @\"\\x4"));
  EXPECT_TRUE(parses("module @\"\\x00\\xff\\n\\t\\\\\\\"\""));
  EXPECT_TRUE(parses("// \xc3\xa4 comment \x01\r\nmodule @m\r\n"));
  EXPECT_TRUE(parses(""));
}

TEST(TextHostile, ManyErrorsStop) {
  auto module = parseModule("func @f() {\n" + repeated("%a = nothing\n", 10000) + "}\n", "x.fir");
  ASSERT_FALSE(bool(module));
  llvm::handleAllErrors(module.takeError(),
                        [](const DiagnosticError &error) { EXPECT_EQ(error.diagnostics().size(), 20u); });
}
