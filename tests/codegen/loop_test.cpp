// Kernels of loops: pointwise, row and column, over ragged shapes and dtypes, in the emulator against the reference.
#include "tests/codegen/fp8_text.h"
#include "tests/codegen/kernel_checker.h"
#include "runtime/emulator/sanitizer.h"
#include "tests/support/replaced.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

using namespace fusor::codegen::tests;
using fusor::tests::replaced;
namespace emulator = fusor::emulator;

namespace {

const std::vector<KernelChecker::Symbols> kRows = {{{"B", 1}}, {{"B", 31}}, {{"B", 130}}};

/// `text` for each float type TYPE and number of columns COLS.
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
  // Two outputs, a row operand, a scalar, a condition, a cast to integers and back.
  addAll(checker, R"(
dim B in 1..8192
func @f(%h: TYPE[B, COLS], %r: TYPE[B, 1], %s: f32[], %m: i1[B, COLS], %i: i32[B, COLS]) -> TYPE[B, COLS], i32[B, COLS], i1[B, COLS] {
  %a = sub %h, %r
  %w = cast %a {to = f32}
  %t = mul %w, %s
  %n = cast %t {to = TYPE}
  %y = select %m, %n, %h
  %j = mul %i, %i
  %k = cast %h {to = i32}
  %l = add %j, %k
  %z = lt %h, %r
  %not = not %m
  %both = and %z, %not
  return %y, %l, %both
})",
         {"f32", "bf16"}, {"33", "64"});
  checker.run();
}

TEST(Loop, EveryFunctionOfFormulas) {
  KernelChecker checker;
  std::string body, results, types;
  unsigned n = 0;
  for (const char *op : {"exp",     "expm1", "sin",      "cos",  "tan",   "atan", "sinh",       "cosh",
                         "tanh",    "asinh", "erf",      "abs",  "floor", "ceil", "round",      "trunc",
                         "sigmoid", "relu",  "softplus", "silu", "neg",   "sign", "leaky_relu", "elu"}) {
    body += "  %y" + std::to_string(n) + " = " + op + " %x\n";
    results += (n ? ", %y" : "%y") + std::to_string(n);
    types += n++ ? ", TYPE[B, 5]" : "TYPE[B, 5]";
  }
  addAll(checker,
         "dim B in 1..64\nfunc @f(%x: TYPE[B, 5]) -> " + types + " {\n" + body + "  return " + results + "\n}\n",
         {"f32", "f64"}, {"5"}, {{{"B", 13}}});
  addAll(checker, R"(
dim B in 1..64
func @f(%x: TYPE[B, 5], %w: TYPE[B, 5]) -> TYPE[B, 5], TYPE[B, 5], TYPE[B, 5], i1[B, 5], TYPE[B, 5] {
  %p = abs %x
  %one = constant {value = 1.0, dtype = TYPE}
  %q = add %p, %one
  %y0 = pow %q, %w
  %y1 = mod %w, %q
  %y2 = max %x, %w
  %y3 = isnan %x
  %r = rsqrt %q
  %l = log %q
  %y4 = div %r, %q
  return %y0, %y1, %y2, %y3, %y4
})",
         {"f32", "f64"}, {"5"}, {{{"B", 13}}});
  checker.run();
}

TEST(Loop, ReadsThroughMovement) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..64
func @f(%x: TYPE[B, 6, 24], %t: TYPE[24, 6], %p: TYPE[6, 8]) -> TYPE[B, 6, 8] {
  %a, %b, %c = split %x {axis = -1, sizes = [8, 8, 8]}
  %s = slice %t {start = [3, 0], size = [8, 6]}
  %u = transpose %s {perm = [1, 0]}
  %d = mul %a, %c
  %e = add %d, %u
  %y = sub %e, %p
  return %y
})",
         {"f32", "bf16"}, {"8"}, {{{"B", 1}}, {{"B", 7}}});
  KernelChecker::Options options;
  options.classes = 12, options.lowest = -12; // beyond both ends of the table
  checker.add(R"(
dim B in 1..64
func @f(%table: f32[10, 16], %ids: i32[B, 5], %p: f32[5, 16]) -> f32[B, 5, 16] {
  %e = embedding %table, %ids
  %y = add %e, %p
  return %y
})",
              {{{"B", 1}}, {{"B", 9}}}, options);
  checker.add(R"(
dim B in 1..64
func @f(%table: bf16[10, 7], %ids: i64[B, 5]) -> bf16[B, 5, 7], f32[B, 5, 7] {
  %e = embedding %table, %ids
  %y = cast %e {to = f32}
  return %e, %y
})",
              {{{"B", 9}}}, options);
  checker.add(R"(
dim B in 1..64
func @f(%x: bf16[B, 33], %seed: i64[]) -> bf16[B, 33], f32[B, 33] {
  %y = dropout %x, %seed {rate = 0.3, stream = 5}
  %u = random_uniform %seed {shape = [B, 33]}
  %i = iota {shape = [33], dtype = f32}
  %n = extent {shape = [B], dtype = f32}
  %v = mul %u, %i
  %w = div %v, %n
  return %y, %w
})",
              {{{"B", 1}}, {{"B", 40}}});
  checker.run();
}

TEST(Loop, Row) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %r: TYPE[B, COLS], %w: TYPE[COLS], %b: TYPE[COLS]) -> TYPE[B, COLS], TYPE[B, COLS] {
  %h = add %x, %r
  %y, %mean, %rstd = layer_norm %h, weight = %w, bias = %b
  return %y, %h
})",
         {"f32", "bf16"}, {"2", "33", "64", "768"}, {{{"B", 1}}, {{"B", 31}}});
  addAll(checker, R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %m: TYPE[COLS]) -> TYPE[B, COLS], TYPE[B] {
  %s = mul %x, %m
  %y = softmax %s
  %z = reduce_max %x {dims = [-1]}
  return %y, %z
})",
         {"f32", "f16", "f64"}, {"1", "33", "1200"}, {{{"B", 1}}, {{"B", 5}}});
  checker.run();
}

// More columns than registers hold, and columns that are a symbol: each sweep reads again.
TEST(Loop, RowInSweeps) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
dim T in 1..8192
func @f(%x: TYPE[B, T], %r: TYPE[B, T]) -> TYPE[B, T], TYPE[B, T] {
  %h = add %x, %r
  %y = softmax %h
  return %y, %h
})",
         {"f32", "bf16"}, {"1"}, {{{"B", 3}, {"T", 1}}, {{"B", 2}, {"T", 33}}, {{"B", 2}, {"T", 700}}});
  addAll(checker, R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %w: TYPE[COLS]) -> TYPE[B, COLS] {
  %y, %rstd = rms_norm %x, weight = %w
  return %y
})",
         {"bf16"}, {"8200"}, {{{"B", 2}}});
  checker.run();
}

TEST(Loop, RowWithColumnSums) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%dy: TYPE[B, COLS], %x: TYPE[B, COLS], %w: TYPE[COLS], %mean: f32[B, 1], %rstd: f32[B, 1], %r: TYPE[B, COLS]) -> TYPE[B, COLS], f32[COLS], f32[COLS] {
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  %y = add %dx, %r
  return %y, %dw, %db
})",
         {"f32", "bf16"}, {"33", "64", "768", "1536"}, {{{"B", 1}}, {{"B", 37}}});
  addAll(checker, R"(
dim B in 1..8192
func @f(%dy: TYPE[B, COLS], %x: TYPE[B, COLS], %w: f32[COLS], %b: f32[COLS], %mean: f32[B, 1], %rstd: f32[B, 1]) -> TYPE[B, COLS], TYPE[B, COLS], f32[COLS], f32[COLS] {
  %y = normalize %x, %rstd, mean = %mean, weight = %w, bias = %b
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  return %y, %dx, %dw, %db
})",
         {"f32", "bf16"}, {"33", "768", "2048"}, {{{"B", 1}}, {{"B", 37}}});
  checker.run();
}

TEST(Loop, CrossEntropy) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%logits: TYPE[B, 3, COLS], %targets: i32[B, 3], %dloss: f32[]) -> f32[], TYPE[B, 3, COLS] {
  %loss, %lse, %count = cross_entropy %logits, %targets {ignore_index = 2}
  %dlogits = cross_entropy_grad %dloss, %logits, %targets, %lse, %count {ignore_index = 2}
  return %loss, %dlogits
})",
         {"f32", "bf16"}, {"9", "96"}, {{{"B", 1}}, {{"B", 21}}});
  // Too long for registers: the maximum and the sum of exponentials in one sweep.
  addAll(checker, R"(
dim B in 1..8192
func @f(%logits: TYPE[B, COLS], %targets: i32[B]) -> f32[], f32[B, 1] {
  %loss, %lse, %count = cross_entropy %logits, %targets
  return %loss, %lse
})",
         {"f32", "bf16"}, {"8200", "9001"}, {{{"B", 3}}});
  checker.run();
}

TEST(Loop, Column) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 1..8192
func @f(%dy: TYPE[B, COLS], %x: TYPE[B, COLS]) -> TYPE[B, COLS], TYPE[COLS] {
  %g = gelu_grad %dy, %x {form = tanh}
  %s = sum %g {dims = [0]}
  return %g, %s
})",
         {"f32", "bf16"}, {"1", "33", "64", "768"}, {{{"B", 1}}, {{"B", 31}}, {{"B", 130}}});
  addAll(checker, R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %p: TYPE[COLS]) -> TYPE[], TYPE[COLS], TYPE[] {
  %q = mul %x, %x
  %n = sum %q
  %root = sqrt %n
  %m = reduce_max %x {dims = [0]}
  %y = sub %m, %p
  %low = reduce_min %x
  return %root, %y, %low
})",
         {"f32", "f64"}, {"33", "64"}, {{{"B", 1}}, {{"B", 70}}});
  checker.add(R"(
dim B in 1..64
func @f(%x: i32[B, 6]) -> i32[6], i32[] {
  %s = sum %x {dims = [0]}
  %t = reduce_max %x
  return %s, %t
})",
              {{{"B", 1}}, {{"B", 40}}});
  checker.run();
}

// Too large is Inf or NaN, and an Inf stays one when it is stored again: %x reaches far beyond what FP8 holds.
TEST(Loop, Fp8WithoutSaturation) {
  KernelChecker checker;
  for (const char *columns : {"33", "64"})
    checker.add(replaced(R"(
dim B in 1..8192
func @f(%x: f32[B, COLS]) -> f8e5m2[B, COLS], f8e4m3[B, COLS], f8e5m2[B, COLS], f8e5m2[B, COLS], f32[B, COLS] {
  %k = constant {value = 50000.0, dtype = f32}
  %large = mul %x, %k
  %e5 = cast %large {to = f8e5m2, saturate = false}
  %e4 = cast %x {to = f8e4m3, saturate = false}
  %minus = neg %e5
  %least = min %e5, %minus
  %wide = cast %least {to = f32}
  return %e5, %e4, %minus, %least, %wide
})",
                         "COLS", columns),
                {{{"B", 1}}, {{"B", 70}}});
  for (const auto *kernels : checker.kernels())
    for (const auto &fusion : kernels->fusions)
      EXPECT_TRUE(llvm::StringRef(fusion.set.kernels.front().source).contains("(f8e5m2_inf *)minus"))
          << fusion.set.kernels.front().source;
  checker.run();
}

// Results in both orders from one kernel: FP8 for the products that need it transposed.
struct BothWays {
  KernelChecker checker;
  std::vector<KernelChecker::Symbols> runs = {{{"B", 1}}, {{"B", 17}}, {{"B", 37}}, {{"B", 130}}};
  unsigned added = 0;
  void add(const std::string &text, std::vector<const char *> types, std::vector<const char *> columns,
           fusor::ir::ArchTier tier = fusor::ir::ArchTier::simt) {
    KernelChecker::Options options;
    options.tier = tier;
    for (const char *type : types)
      for (const char *c : columns)
        checker.add(
            replaced(replaced(replaced(text, "TYPE", type), "COLS", c), "FP8", ++added % 2 ? "f8e4m3" : "f8e5m2"), runs,
            options);
  }
  void run() {
    for (const auto *kernels : checker.kernels()) {
      EXPECT_EQ(kernels->fusions.size(), 1u);
      for (const auto &fusion : kernels->fusions) {
        const auto &main = fusion.set.kernels.front();
        EXPECT_TRUE(llvm::StringRef(main.source).contains("_tile.store(")) << main.source;
      }
    }
    checker.run();
  }
};

TEST(Loop, PointwiseTransposed) {
  BothWays both;
  both.add(R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %s: f32[]) -> FP8[B, COLS], FP8[COLS, B] {
  %g = gelu %x
  %q = fp8_cast %g, %s {dtype = FP8}
  %t = transpose %q {perm = [1, 0]}
  return %q, %t
})",
           {"f32", "bf16"}, {"33", "64", "96", "768"});
  // Several rows of the domain's are rows of the matrix; the row-major form is not stored; two results; rows of 4.
  both.add(R"(
dim B in 1..8192
func @f(%x: TYPE[B, 4, COLS], %s: f32[]) -> FP8[COLS, 4*B], FP8[COLS, 4*B], TYPE[B, 4, COLS] {
  %q = fp8_cast %x, %s {dtype = FP8}
  %m = reshape %q {shape = [4*B, COLS]}
  %t = transpose %m {perm = [1, 0]}
  %y = mul %x, %x
  %r = fp8_cast %y, %s {dtype = FP8}
  %n = reshape %r {shape = [4*B, COLS]}
  %u = transpose %n {perm = [1, 0]}
  return %t, %u, %y
})",
           {"bf16"}, {"33", "264"});
  both.run();
}

TEST(Loop, ColumnTransposed) {
  BothWays both;
  both.add(R"(
dim B in 1..8192
func @f(%dy: TYPE[B, COLS], %x: TYPE[B, COLS], %s: f32[]) -> FP8[B, COLS], FP8[COLS, B], f32[], TYPE[COLS] {
  %g = gelu_grad %dy, %x
  %q = fp8_cast %g, %s {dtype = FP8}
  %a = amax %g
  %w = cast %g {to = f32}
  %f = sum %w {dims = [0]}
  %b = cast %f {to = TYPE} // a rounding that goes the other way is no error
  %t = transpose %q {perm = [1, 0]}
  return %q, %t, %a, %b
})",
           {"f32", "bf16"}, {"33", "64", "96", "768"});
  both.run();
}

TEST(Loop, RowTransposed) {
  BothWays both;
  const std::string text = R"(
dim B in 1..8192
func @f(%x: TYPE[B, COLS], %w: f32[COLS], %b: f32[COLS], %s: f32[]) -> FP8[B, COLS], FP8[COLS, B], f32[B, 1]MORE {
  %h, %mean, %rstd = layer_norm %x, weight = %w, bias = %b {out = f32}
  %q = fp8_cast %h, %s {dtype = FP8}
  %t = transpose %q {perm = [1, 0]}
  %a = amax %h
  return %q, %t, %meanAMAX
})";
  std::vector<const char *> columns = {"33", "64", "96", "768", "2056", "4096"};
  both.add(replaced(replaced(text, "MORE", ", f32[]"), "AMAX", ", %a"), {"f32", "bf16"}, columns);
  both.add(replaced(replaced(text, "MORE", ""), "AMAX", ""), {"bf16"}, columns); // no sums: no partial results
  both.run();
}

// Rows that come through shared memory beside the tile, and rows that do not.
TEST(Loop, RowWithColumnSumsTransposed) {
  BothWays both;
  const char *text = R"(
dim B in 1..10000
func @f(%dy: TYPE[B, COLS], %x: TYPE[B, COLS], %w: f32[COLS], %mean: f32[B, 1], %rstd: f32[B, 1], %r: TYPE[B, COLS], %s: f32[]) -> TYPE[B, COLS], f32[COLS], f32[COLS], f32[], FP8[B, COLS], FP8[COLS, B], TYPE[COLS] {
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  %y = add %dx, %r
  %a = amax %y
  %q = fp8_cast %y, %s {dtype = FP8}
  %t = transpose %q {perm = [1, 0]}
  %z = cast %y {to = f32}
  %f = sum %z {dims = [0]}
  %c = cast %f {to = TYPE}
  return %y, %dw, %db, %a, %q, %t, %c
})";
  using fusor::ir::ArchTier;
  both.add(text, {"bf16"}, {"33", "768"});
  both.add(text, {"bf16"}, {"96", "768", "1536"}, ArchTier::sm80);
  both.add(text, {"f32", "bf16"}, {"768"}, ArchTier::sm90a);
  both.runs = {{{"B", 8300}}}; // a block has several tiles
  both.add(text, {"bf16"}, {"32"});
  both.add(text, {"bf16"}, {"32"}, ArchTier::sm80);
  both.run();
}

// Two tiles leave no memory for a second row of what the first sweep does not read.
TEST(Loop, RowWithTwoTransposedAndALateInput) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.tier = fusor::ir::ArchTier::sm90a;
  checker.add(kTwoTransposedAndALateInput, {{{"B", 77}}, {{"B", 8300}}}, options); // one tile a block, several
  std::string kernels = checker.text();
  EXPECT_NE(kernels.find("_rows.read(0, j, "), std::string::npos);
  EXPECT_NE(kernels.find("waitForCopies<2>()"), std::string::npos);
  EXPECT_NE(kernels.find("transposed in tiles of 32 rows"), std::string::npos);
  checker.run();
}

// The checker itself: a kernel that is wrong in one place is noticed.
TEST(Checker, SeesAWrongOperatorAndAWriteBehindTheEnd) {
  const char *text = R"(
dim B in 1..64
func @f(%x: f32[B, 33], %z: f32[B, 33]) -> f32[B, 33] {
  %y = sub %x, %z
  return %y
})";
  KernelChecker subtracts, writes;
  subtracts.add(text, {{{"B", 2}}});
  subtracts.edit(" - ", " + ");
  EXPECT_NONFATAL_FAILURE(subtracts.run(), "the reference has");
  writes.add(text, {{{"B", 2}}});
  writes.edit("const i64 count = ", "const i64 count = 1 + ");
  if (emulator::kAddressSanitizer) // which is faster than the guard
    EXPECT_DEATH(writes.run(), "use-after-poison");
  else
    EXPECT_NONFATAL_FAILURE(writes.run(), "past the end");
}

// What follows a sum draws random numbers again; the seed is not a step of the loop.
TEST(Loop, RandomNumbersAfterASum) {
  KernelChecker checker;
  checker.add(R"(
dim B in 1..64
func @f(%x: f32[B, 8], %seed: i64[]) -> f32[8], f32[B, 8] {
  %u = random_uniform %seed {shape = [8], stream = 3}
  %y = mul %x, %u
  %s = sum %y {dims = [0]}
  %t = add %s, %u
  return %t, %y
})",
              {{{"B", 1}}, {{"B", 40}}});
  checker.run();
}

// Formulas take the cheapest form that keeps their digits: integers are compared as integers, and the tanh of a GELU,
// of which only the absolute error is seen, is not the tanh that is a result.
TEST(Loop, CheapFormsOfFormulas) {
  KernelChecker checker;
  checker.add(R"(
dim B in 1..64
func @f(%x: f32[B, 8], %i: i32[B, 1]) -> f32[B, 8], f32[B, 8], f32[B, 8], i1[B, 8] {
  %j = iota {shape = [8], axis = 0, dtype = i32}
  %e = eq %i, %j
  %g = gelu %x {form = tanh}
  %d = gelu_grad %x, %g {form = tanh}
  %t = tanh %x
  return %g, %d, %t, %e
})",
              {{{"B", 1}}, {{"B", 40}}});
  std::string text;
  for (const auto &distinct : checker.kernels().front()->kernels) {
    llvm::StringRef source = distinct.kernel.source;
    text += source.substr(source.rfind("extern \"C\" __global__"));
  }
  auto count = [&](llvm::StringRef part) { return llvm::StringRef(text).count(part); };
  EXPECT_EQ(count("math::tanhBesideOne("), 2u) << text;
  EXPECT_EQ(count("math::tanh("), 1u) << text;
  EXPECT_EQ(count("double"), 0u) << text;
  checker.run();
}

TEST(Loop, ZeroRows) {
  KernelChecker checker;
  addAll(checker, R"(
dim B in 0..64
func @f(%x: TYPE[B, 8]) -> TYPE[B, 8], TYPE[8], TYPE[] {
  %y = exp %x
  %s = sum %y {dims = [0]}
  %t = sum %y
  return %y, %s, %t
})",
         {"f32"}, {"8"}, {{{"B", 0}}, {{"B", 3}}});
  checker.run();
}

} // namespace
