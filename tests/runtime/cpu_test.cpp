// Each class of cluster on the CPU against the float64 reference: ragged sizes, f32 and narrower, fused and unfused.
#include "program_harness.h"
#include "tests/support/replaced.h"

namespace {
using namespace fusor;
using namespace fusor::test;
using tests::replaced;

// Runs `text` with DT standing for each float type and B for several sizes.
void sweep(const std::string &text, std::vector<std::string> types = {"f32", "bf16", "f16"},
           std::vector<int64_t> sizes = {1, 7, 130}, CpuCase like = {}) {
  for (const std::string &type : types)
    for (int64_t size : sizes) {
      SCOPED_TRACE(type + " B = " + std::to_string(size));
      like.text = replaced(text, "DT", type);
      like.symbols["B"] = size;
      expectMatchesReference(like);
    }
}

TEST(CpuLoops, PointwiseBroadcasts) {
  sweep(R"(
dim B in 0..4096
func @main(%x: DT[B, 31], %b: DT[31], %r: DT[B, 1], %s: DT[]) -> DT[B, 31], DT[B, 31] {
  %a = add %x, %b
  %m = mul %a, %r
  %g = gelu %m
  %t = sub %g, %s
  %e = max %t, %x
  return %e, %a
})",
        {"f32", "bf16", "f16", "f64"}, {0, 1, 7, 130, 2000});
}

TEST(CpuLoops, LongRowsAndFlatArrays) {
  sweep(R"(
dim B in 0..100000
func @main(%x: DT[B], %y: DT[B]) -> DT[B], f32[] {
  %a = mul %x, %y
  %t = tanh %a
  %c = cast %t {to = f32}
  %s = sum %c
  return %t, %s
})",
        {"f32", "bf16"}, {0, 1, 4097, 50000});
}

// FP8 results in both orders from one loop.
TEST(CpuLoops, TransposedResults) {
  for (const char *op : {"%y = gelu %x {form = tanh}", "%y = softmax %x"})
    sweep(replaced(R"(
dim B in 0..4096
func @main(%x: DT[B, 3, 31], %s: f32[]) -> f8e4m3[B, 3, 31], f8e4m3[31, 3*B], f32[] {
  OP
  %q = fp8_cast %y, %s
  %m = reshape %q {shape = [3*B, 31]}
  %t = transpose %m {perm = [1, 0]}
  %a = amax %y
  return %q, %t, %a
})",
                   "OP", op),
          {"f32", "bf16"}, {1, 7, 130});
}

TEST(CpuLoops, IntegersAndConditions) {
  sweep(R"(
dim B in 0..4096
func @main(%x: i32[B, 5], %y: i64[5], %f: f32[B, 5]) -> i32[B, 5], i1[B, 5], f32[B, 5], i64[B, 5] {
  %c = constant {value = 3.0, dtype = i32}
  %q = div %x, %c
  %h = gt %x, %c
  %n = neg %f
  %z = select %h, %f, %n
  %w = cast %x {to = i64}
  %v = mul %w, %y
  return %q, %h, %z, %v
})",
        {"f32"}, {1, 33});
}

TEST(CpuRows, LayerNormAndItsGradients) {
  sweep(R"(
dim B in 0..4096
func @main(%x: DT[B, 3, 31], %w: f32[31], %b: f32[31], %dy: DT[B, 3, 31], %res: DT[B, 3, 31]) -> DT[B, 3, 31], DT[B, 3, 31], f32[31], f32[31] {
  %h = add %x, %res
  %y, %mean, %rstd = layer_norm %h, weight = %w, bias = %b
  %dx = layer_norm_grad %dy, %h, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %h, %mean, %rstd
  return %y, %dx, %dw, %db
})",
        {"f32", "bf16"}, {1, 7, 130});
}

// What passes/recompute relies on.
TEST(CpuRows, NormalizeHasTheBitsOfItsNorm) {
  for (const char *type : {"f32", "bf16", "f16"}) {
    auto module = parseOrFail(replaced(R"(
func @main(%x: DT[130, 257], %w: f32[257], %b: f32[257]) -> DT[130, 257], DT[130, 257], f32[130, 257], f32[130, 257] {
  %y, %mean, %rstd = layer_norm %x, weight = %w, bias = %b
  %again = normalize %x, %rstd, mean = %mean, weight = %w, bias = %b
  %z, %r = rms_norm %x, weight = %w {out = f32}
  %again.z = normalize %x, %r, weight = %w {out = f32}
  return %y, %again, %z, %again.z
})",
                                       "DT", type));
    std::vector<HostTensor> inputs;
    for (ir::Value argument : module->function("main")->block().arguments()) {
      std::vector<int64_t> shape;
      for (const ir::Dim &dim : argument.shape()) shape.push_back(*dim.evaluate({}));
      HostTensor &input = inputs.emplace_back(argument.dtype(), shape);
      for (int64_t i = 0; i < input.view.elements(); ++i) input.set(i, std::sin(0.7 * i) * (1 + i % 5));
    }
    auto results = runOnCpu(*module, "main", inputs, {}, {}, 1, /*mayFallBack=*/false).results;
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(results[0].bytes, results[1].bytes) << type;
    EXPECT_EQ(results[2].bytes, results[3].bytes) << type;
  }
}

TEST(CpuRows, SoftmaxCrossEntropy) {
  CpuCase like;
  like.integers = 97;
  sweep(R"(
dim B in 0..4096
func @main(%x: DT[B, 97], %t: i32[B], %d: f32[]) -> f32[], DT[B, 97], DT[B, 97] {
  %loss, %lse, %count = cross_entropy %x, %t
  %dx = cross_entropy_grad %d, %x, %t, %lse, %count
  %p = softmax %x
  return %loss, %dx, %p
})",
        {"f32", "bf16"}, {1, 7, 200}, like);
}

TEST(CpuColumns, SumsOverRows) {
  sweep(R"(
dim B in 0..40000
func @main(%x: DT[B, 5], %y: f32[B, 5]) -> f32[5], f32[], f32[5] {
  %c = cast %x {to = f32}
  %m = mul %c, %y
  %s = sum %m {dims = [0]}
  %top = reduce_max %m {dims = [0]}
  %sq = mul %s, %s
  %all = sum %m
  return %sq, %all, %top
})",
        {"f32", "bf16"}, {1, 7, 5000});
}

TEST(CpuGather, EmbeddingAndItsGradient) {
  CpuCase like;
  like.integers = 13; // some are outside the table
  sweep(R"(
dim B in 0..4096
func @main(%table: DT[11, 70], %ids: i32[B, 3], %pos: DT[3, 70], %dy: DT[B, 3, 70]) -> DT[B, 3, 70], f32[11, 70] {
  %e = embedding %table, %ids
  %h = add %e, %pos
  %g = embedding_grad %dy, %ids {rows = [11]}
  return %h, %g
})",
        {"f32", "bf16"}, {1, 7, 50}, like);
}

TEST(CpuContraction, LinearWithEpilogue) {
  sweep(R"(
dim B in 0..4096
func @main(%x: DT[B, 3, 31], %w: DT[70, 31], %b: DT[70], %res: DT[B, 3, 70]) -> DT[B, 3, 70], DT[B, 3, 70] {
  %y = linear %x, %w, bias = %b
  %g = gelu %y
  %o = add %g, %res
  return %o, %y
})",
        {"f32", "bf16", "f16", "f64"}, {0, 1, 7, 200});
}

TEST(CpuContraction, GradientsOfLinear) {
  sweep(R"(
dim B in 0..4096
func @main(%dy: DT[B, 3, 70], %w: DT[70, 31], %x: DT[B, 3, 31], %pre: DT[B, 3, 31]) -> DT[B, 3, 31], f32[70, 31], f32[31] {
  %dx = linear_input_grad %dy, %w
  %dpre = gelu_grad %dx, %pre
  %dw = linear_weight_grad %dy, %x {out = f32}
  %c = cast %dpre {to = f32}
  %db = sum %c {dims = [0, 1]}
  return %dpre, %dw, %db
})",
        {"f32", "bf16"}, {1, 7, 200});
}

TEST(CpuContraction, BatchedMatmul) {
  sweep(R"(
dim B in 0..64
func @main(%a: DT[B, 5, 33], %b: DT[B, 33, 17], %c: DT[17, 33], %d: DT[B, 33, 5]) -> DT[B, 5, 17], DT[B, 5, 17], DT[B, 5, 17] {
  %x = matmul %a, %b
  %y = matmul %a, %c {trans_b = true}
  %z = matmul %d, %b {trans_a = true}
  return %x, %y, %z
})",
        {"f32", "bf16"}, {1, 7});
}

TEST(CpuAttention, ForwardAndBackward) {
  for (const char *attrs :
       {"heads = 4", "heads = 4, causal = true", "heads = 4, kv_heads = 4, causal = true, window = 5"})
    sweep(replaced(R"(
dim B in 0..64
func @main(%q: DT[B, 70, 32], %k: DT[B, 70, 32], %v: DT[B, 70, 32], %dy: DT[B, 70, 32]) -> DT[B, 70, 32], DT[B, 70, 32], DT[B, 70, 32], DT[B, 70, 32] {
  %y, %lse = attention %q, %k, %v {ATTRS}
  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse {ATTRS}
  return %y, %dq, %dk, %dv
})",
                   "ATTRS", attrs),
          {"f32", "bf16"}, {1, 3});
}

TEST(CpuAttention, GroupsMasksAndLengths) {
  CpuCase like;
  like.integers = 40;
  sweep(R"(
dim B in 0..64
func @main(%q: DT[B, 5, 32], %k: DT[B, 40, 16], %v: DT[B, 40, 16], %mask: i1[B, 40], %length: i32[], %dy: DT[B, 5, 32]) -> DT[B, 5, 32], DT[B, 5, 32], DT[B, 40, 16], DT[B, 40, 16] {
  %y, %lse = attention %q, %k, %v, key_mask = %mask, kv_length = %length {heads = 4, kv_heads = 2, causal = true}
  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse, key_mask = %mask, kv_length = %length {heads = 4, kv_heads = 2, causal = true}
  return %y, %dq, %dk, %dv
})",
        {"f32", "bf16"}, {1, 3}, like);
}

TEST(CpuAttention, PackedProjection) {
  sweep(R"(
dim B in 0..64
func @main(%qkv: DT[B, 9, 48]) -> DT[B, 9, 16] {
  %q, %k, %v = split %qkv {sizes = [16, 16, 16]}
  %y, %lse = attention %q, %k, %v {heads = 2, causal = true}
  return %y
})",
        {"f32", "bf16"}, {1, 3});
}

TEST(CpuMovement, EveryKind) {
  sweep(R"(
dim B in 0..64
func @main(%x: DT[B, 5, 6], %y: DT[B, 2, 6], %cache: DT[B, 8, 6], %at: i32[]) -> DT[5, B, 6], DT[B, 7, 6], DT[B, 8, 6], DT[B, 8, 6], DT[B, 3, 3], DT[6, 5, B] {
  %t = transpose %x {perm = [1, 0, 2]}
  %c = concat %x, %y {axis = 1}
  %p = pad %x {before = [0, 1, 0], after = [0, 2, 0], value = 1.5}
  %w = cache_write %cache, %y, %at
  %s = slice %x {start = [0, 1, 5], size = [B, 3, 3], step = [1, 1, -2]}
  %r = transpose %x {perm = [2, 1, 0]}
  return %t, %c, %p, %w, %s, %r
})",
        {"f32", "bf16", "f64"}, {1, 7});
}

TEST(CpuOptimizer, AdamwInPlaceWithDerivedCopy) {
  CpuCase like;
  like.low = 0.1;
  like.text = R"(
param @w : f32[70, 31] {init = normal(0.02)}
state @m : f32[70, 31]
state @v : f32[70, 31]
state @step : f32[]
derived @w.bf16 : bf16[70, 31] = cast @w {to = bf16}
func @main(%g: f32[70, 31], %lr: f32[]) -> f32[] {
  %one = constant {value = 1.0}
  %s = add @step, %one
  %n = global_norm %g, @m
  %w2, %m2, %v2 = adamw @w, %g, @m, @v, %s, %lr
  return %n, @w = %w2, @m = %m2, @v = %v2, @step = %s
}
func @use(%x: bf16[5, 31]) -> bf16[5, 70] {
  %y = linear %x, @w.bf16
  return %y
})";
  expectMatchesReference(like);
}

TEST(CpuRandom, DropoutIsTheReferences) {
  sweep(R"(
dim B in 0..4096
func @main(%x: DT[B, 31], %seed: i64[]) -> DT[B, 31] {
  %y = dropout %x, %seed {rate = 0.3, stream = 5}
  return %y
})",
        {"f32", "bf16"}, {1, 130});
}

TEST(CpuNative, AmaxUpdateAndArgReduce) {
  CpuCase like;
  like.low = 0;
  like.text = R"(
state @h : f32[16]
state @s : f32[]
func @main(%a: f32[], %x: bf16[3, 5, 4]) -> i32[3, 4], i32[3, 5, 1], f32[] {
  %h2, %s2, %inverse = amax_update @h, @s, %a
  %i = arg_reduce %x {axis = 1}
  %j = arg_reduce %x {axis = -1, keep = true, kind = min}
  return %i, %j, %inverse, @h = %h2, @s = %s2
})";
  expectMatchesReference(like);
}

TEST(CpuNative, RopeAtGivenAndCountedPositions) {
  CpuCase like;
  like.integers = 50;
  sweep(R"(
dim B in 0..64
func @main(%x: DT[B, 9, 24], %p: i32[9]) -> DT[B, 9, 24], DT[B, 9, 24], DT[B, 9, 24] {
  %a = rope %x, %p {heads = 3}
  %b = rope %x, %p {heads = 3, interleaved = true, base = 500.0}
  %count = iota {shape = [9]}
  %c = rope %x, %count {heads = 3, inverse = true}
  return %a, %b, %c
})",
        {"f32", "bf16", "f64"}, {1, 7}, like);
}

TEST(CpuSplit, DimsThatNoKernelClassTakes) {
  CpuCase like;
  like.integers = 7; // some are outside the table
  sweep(R"(
dim B in 0..64
func @main(%x: DT[B, 5, 6], %i: i32[3], %u: DT[B, 3, 6]) -> DT[B, 5, 6], DT[B, 6], DT[5], DT[B, 3, 6], DT[B, 5, 6], DT[B, 1, 6] {
  %p = softmax %x {axis = 1}
  %s = sum %x {dims = [1]}
  %m = reduce_max %x {dims = [0, 2]}
  %g = gather %x, %i {axis = 1}
  %a = scatter_add %u, %i {axis = 1, shape = [B, 5, 6]}
  %e = mean %x {dims = [1], keep = true}
  return %p, %s, %m, %g, %a, %e
})",
        {"f32", "bf16"}, {1, 7}, like);
}

TEST(CpuFallback, IsCountedAndStrictRefuses) {
  auto module = parseOrFail(R"(
func @main(%x: f64[1, 3, 4]) -> f64[1, 3, 4] {
  %y, %lse = attention %x, %x, %x {heads = 2}
  return %y
})");
  auto program = runtime::compile(module->clone(), ir::Target());
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  EXPECT_EQ((*program)->kernels()[0].kind, "reference");
  ASSERT_EQ((*program)->fallbacks().size(), 1u);
  EXPECT_EQ((*program)->fallbacks()[0].where, "@main: attention");
  EXPECT_EQ((*program)->fallbacks()[0].reason, "attention in f64 has no CPU kernel");
  CpuCase test;
  test.text = module->str();
  test.mayFallBack = true;
  expectMatchesReference(test);
  runtime::CompileOptions strict;
  strict.strict = true;
  auto refused = runtime::compile(module->clone(), ir::Target(), strict);
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(llvm::toString(refused.takeError()),
            "@main: attention fell back: attention in f64 has no CPU kernel (--strict)");
}

} // namespace
