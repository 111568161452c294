// GEMMs and their epilogues, attention, scatter, multi-tensor and movement kernels against the reference.
#include "tests/codegen/kernel_checker.h"
#include "tests/support/replaced.h"
#include "gtest/gtest.h"

using namespace fusor::codegen::tests;
using fusor::tests::replaced;

namespace {

// Both formats in one kernel, lengths of one slot, of a block and of more, and amaxes that change nothing.
TEST(MultiTensor, AmaxUpdates) {
  KernelChecker checker;
  for (const char *algo : {"max", "most_recent", "max_finite", "most_recent_finite"})
    checker.add(replaced(R"(
state @a.h : f32[1]
state @a.s : f32[]
state @b.h : f32[16]
state @b.s : f32[]
state @c.h : f32[1024]
state @c.s : f32[]
state @d.h : f32[64]
state @d.s : f32[]
state @e.h : f32[16]
state @e.s : f32[]
func @f(%a: f32[], %b: f32[], %c: f32[]) -> f32[], f32[], f32[], f32[], f32[] {
  %zero = constant {value = 0.0}
  %none = mul %a, %zero
  %one = constant {value = 1.0}
  %infinite = div %one, %none
  %h0, %s0, %i0 = amax_update @a.h, @a.s, %a {algo = ALGO, margin = 2, dtype = f8e5m2}
  %h1, %s1, %i1 = amax_update @b.h, @b.s, %b {algo = ALGO, margin = 2}
  %h2, %s2, %i2 = amax_update @c.h, @c.s, %c {algo = ALGO, margin = 2}
  %h3, %s3, %i3 = amax_update @d.h, @d.s, %none {algo = ALGO, margin = 2}
  %h4, %s4, %i4 = amax_update @e.h, @e.s, %infinite {algo = ALGO, margin = 2}
  return %i0, %i1, %i2, %i3, %i4, @e.h = %h4, @e.s = %s4, @a.h = %h0, @a.s = %s0, @b.h = %h1, @b.s = %s1, @c.h = %h2, @c.s = %s2, @d.h = %h3, @d.s = %s3
})",
                         "ALGO", algo),
                {{}});
  checker.run();
  EXPECT_EQ(checker.kernels()[0]->fusions.back().kernels.size(), 1u);
}

TEST(Contraction, Epilogues) {
  KernelChecker checker;
  for (const char *type : {"f32", "bf16", "f64"}) {
    // bias, activation, both outputs
    checker.add(replaced(R"(
dim B in 1..4096
func @f(%x: TYPE[B, 40], %w: TYPE[72, 40], %b: TYPE[72]) -> TYPE[B, 72], TYPE[B, 72] {
  %h = linear %x, %w, bias = %b
  %g = gelu %h {form = tanh}
  return %g, %h
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 33}}, {{"B", 130}}});
    // activation gradient and bias gradient
    checker.add(replaced(R"(
dim B in 1..4096
func @f(%dy: TYPE[B, 40], %w: TYPE[40, 72], %h: TYPE[B, 72]) -> TYPE[B, 72], f32[72] {
  %dg = linear_input_grad %dy, %w
  %dh = gelu_grad %dg, %h {form = tanh}
  %wide = cast %dh {to = f32}
  %db = sum %wide {dims = [0]}
  return %dh, %db
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 70}}});
    // residual, and a weight gradient
    checker.add(replaced(R"(
dim B in 1..4096
func @f(%x: TYPE[B, 3, 24], %w: TYPE[16, 24], %r: TYPE[B, 3, 16], %dy: TYPE[B, 3, 16]) -> TYPE[B, 3, 16], f32[16, 24] {
  %h = linear %x, %w
  %y = add %h, %r
  %dw = linear_weight_grad %dy, %x
  %g = cast %dw {to = f32}
  return %y, %g
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 23}}});
    // two column sums of one product
    checker.add(replaced(R"(
dim B in 1..4096
func @f(%x: TYPE[B, 24], %w: TYPE[16, 24], %u: TYPE[B, 16]) -> TYPE[B, 16], TYPE[16], TYPE[16] {
  %h = linear %x, %w
  %v = mul %h, %u
  %s = sum %h {dims = [0]}
  %t = sum %v {dims = [0]}
  return %v, %s, %t
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 70}}});
  }
  checker.run();
}

TEST(Contraction, MatmulForms) {
  KernelChecker checker;
  for (const char *form : {"", "{trans_a = true}", "{trans_b = true}", "{trans_a = true, trans_b = true}"}) {
    bool a = std::string(form).find("trans_a") != std::string::npos,
         b = std::string(form).find("trans_b") != std::string::npos;
    std::string left = a ? "18, 33" : "33, 18", right = b ? "20, 18" : "18, 20";
    checker.add("dim B in 1..64\nfunc @f(%a: f32[B, 2, " + left + "], %b: f32[B, 2, " + right +
                    "]) -> f32[B, 2, 33, 20] {\n  %y = matmul %a, %b " + form + "\n  return %y\n}\n",
                {{{"B", 1}}, {{"B", 3}}});
    checker.add("dim B in 1..64\nfunc @f(%a: bf16[B, " + left + "], %b: bf16[" + right +
                    "]) -> bf16[B, 33, 20] {\n  %y = matmul %a, %b " + form + "\n  return %y\n}\n",
                {{{"B", 3}}});
  }
  checker.add(R"(
func @f(%a: f32[200, 1000], %b: f32[1000, 136]) -> f32[200, 136] {
  %y = matmul %a, %b
  return %y
})");
  checker.run();
}

// A transpose of its own goes through tiles, whatever it reads through; one of 8-byte elements is a loop.
TEST(Movement, TransposesInTiles) {
  KernelChecker checker;
  for (const char *type : {"f8e4m3", "f8e5m2", "bf16", "f32", "f64"})
    checker.add(replaced(R"(
dim B in 1..4096
func @rows(%x: TYPE[B, 3, 40]) -> TYPE[40, 3*B] {
  %r = reshape %x {shape = [3*B, 40]}
  %t = transpose %r {perm = [1, 0]}
  return %t
}
func @part(%x: TYPE[B, 3, 40]) -> TYPE[B, 24, 3] {
  %s = slice %x {start = [0, 0, 8], size = [B, 3, 24]}
  %u = transpose %s {perm = [0, 2, 1]}
  return %u
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 50}}});
  checker.run();
  for (const char *call : {"transposeTiles((const u8 *)", " + 8, (u16 *)"})
    EXPECT_NE(checker.text().find(call), std::string::npos) << call;
}

TEST(Attention, ForwardAndBackward) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.tolerance = 4; // two GEMMs and a softmax, each with its own order of sums
  for (const char *type : {"f32", "bf16"})
    for (const char *attrs : {"heads = 2, causal = true", "heads = 2, causal = false",
                              "heads = 2, causal = true, window = 5, scale = 0.5"}) {
      std::string text = R"(
dim B in 1..64
dim T in 1..512
func @f(%qkv: TYPE[B, T, 48], %dy: TYPE[B, T, 16]) -> TYPE[B, T, 16], TYPE[B, T, 48] {
  %q, %k, %v = split %qkv {axis = -1, sizes = [16, 16, 16]}
  %y, %lse = attention %q, %k, %v {ATTRS}
  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse {ATTRS}
  %dqkv = concat %dq, %dk, %dv {axis = -1}
  return %y, %dqkv
})";
      checker.add(replaced(replaced(text, "TYPE", type), "ATTRS", attrs), {{{"B", 1}, {"T", 1}}, {{"B", 2}, {"T", 37}}},
                  options);
    }
  options.classes = 12; // kv_length
  for (const char *type : {"f32", "bf16"})
    checker.add(replaced(R"(
dim B in 1..64
func @f(%q: TYPE[B, 3, 32], %k: TYPE[B, 11, 16], %v: TYPE[B, 11, 16], %mask: i1[B, 11], %n: i32[]) -> TYPE[B, 3, 32] {
  %y, %lse = attention %q, %k, %v, key_mask = %mask, kv_length = %n {heads = 4, kv_heads = 2}
  return %y
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 3}}}, options);
  checker.run();
}

TEST(Scatter, EmbeddingGradient) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.classes = 12, options.lowest = -12;
  for (const char *type : {"f32", "bf16"})
    checker.add(replaced(R"(
dim B in 1..64
func @f(%dy: TYPE[B, 5, 33], %ids: i32[B, 5]) -> f32[10, 33] {
  %y = embedding_grad %dy, %ids {rows = [10]}
  return %y
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 40}}}, options);
  checker.add(R"(
dim B in 1..64
func @f(%dy: f32[B, 8], %ids: i64[B]) -> f32[10, 8] {
  %y = scatter_add %dy, %ids {shape = [10, 8]}
  return %y
})",
              {{{"B", 17}}}, options);
  checker.run();
}

TEST(MultiTensor, AdamWAndNorm) {
  KernelChecker checker;
  checker.add(R"(
param @a.weight : f32[70, 60]
param @b.weight : f32[3]
param @c.weight : f32[1]
param @d.weight : bf16[4097]
func @f(%ga: f32[70, 60], %gb: f32[3], %gc: f32[1], %gd: f32[4097], %m: f32[70, 60], %mb: f32[3], %mc: f32[1], %md: f32[4097], %step: f32[], %lr: f32[]) -> f32[], f32[70, 60], bf16[70, 60], f32[70, 60], f32[70, 60], f32[3], bf16[3], f32[3], f32[3], f32[1], bf16[1], f32[1], f32[1], bf16[4097], f32[4097], f32[4097] {
  %norm = global_norm %ga, %gb, %gc, %gd
  %one = constant {value = 1.0}
  %sq = mul %step, %step
  %count = add %sq, %one
  %va = mul %m, %m
  %vb = mul %mb, %mb
  %vc = mul %mc, %mc
  %vd = mul %md, %md
  %pa, %ma1, %va1 = adamw @a.weight, %ga, %m, %va, %count, %lr, grad_scale = %norm
  %pb, %mb1, %vb1 = adamw @b.weight, %gb, %mb, %vb, %count, %lr, grad_scale = %norm
  %pc, %mc1, %vc1 = adamw @c.weight, %gc, %mc, %vc, %count, %lr, grad_scale = %norm
  %pd, %md1, %vd1 = adamw @d.weight, %gd, %md, %vd, %count, %lr, grad_scale = %norm
  %ca = cast %pa {to = bf16}
  %cb = cast %pb {to = bf16}
  %cc = cast %pc {to = bf16}
  return %norm, %pa, %ca, %ma1, %va1, %pb, %cb, %mb1, %vb1, %pc, %cc, %mc1, %vc1, %pd, %md1, %vd1
})");
  checker.run();
  bool found = false;
  for (const auto *kernels : checker.kernels())
    for (const auto &fusion : kernels->fusions) found |= fusion.set.table && fusion.set.table->tensors.size() >= 3;
  EXPECT_TRUE(found) << "the three f32 tensors are not one kernel";
}

// A weight's FP8 copy and its amax come with its update.
TEST(MultiTensor, AdamWWithFp8Copies) {
  KernelChecker checker;
  checker.add(R"(
param @a.weight : f32[70, 60]
param @b.weight : f32[3]
state @a.scale : f32[]
state @b.scale : f32[]
func @f(%ga: f32[70, 60], %gb: f32[3], %m: f32[70, 60], %mb: f32[3], %step: f32[], %lr: f32[]) -> f32[70, 60], f32[70, 60], f32[70, 60], f8e4m3[70, 60], f32[], f32[3], f32[3], f32[3], f8e4m3[3], f32[] {
  %one = constant {value = 1.0}
  %sq = mul %step, %step
  %count = add %sq, %one
  %va = mul %m, %m
  %vb = mul %mb, %mb
  %pa, %ma1, %va1 = adamw @a.weight, %ga, %m, %va, %count, %lr
  %pb, %mb1, %vb1 = adamw @b.weight, %gb, %mb, %vb, %count, %lr
  %qa = fp8_cast %pa, @a.scale
  %aa = amax %pa
  %qb = fp8_cast %pb, @b.scale
  %ab = amax %pb
  return %pa, %ma1, %va1, %qa, %aa, %pb, %mb1, %vb1, %qb, %ab
})");
  checker.run();
  std::vector<std::string> names;
  for (const auto *kernels : checker.kernels())
    for (const auto &fusion : kernels->fusions)
      for (const auto &kernel : fusion.set.kernels)
        if (fusion.set.table) names.push_back(kernel.name);
  EXPECT_EQ(names, (std::vector<std::string>{"adamw_fp8_cast_amax__f32_70_60_chunks",
                                             "adamw_fp8_cast_amax__f32_70_60_finish"}));
}

// And the transposed copy, through tiles: matrices that are no multiple of one.
TEST(MultiTensor, AdamWWithFp8CopiesBothWays) {
  KernelChecker checker;
  checker.add(R"(
param @a.weight : f32[68, 136]
param @b.weight : f32[128, 64]
param @c.weight : f32[4, 8]
state @a.scale : f32[]
state @b.scale : f32[]
state @c.scale : f32[]
func @f(%ga: f32[68, 136], %gb: f32[128, 64], %gc: f32[4, 8], %ma: f32[68, 136], %mb: f32[128, 64], %mc: f32[4, 8], %step: f32[], %lr: f32[]) -> f32[68, 136], f32[68, 136], f32[68, 136], f8e4m3[68, 136], f32[], f8e4m3[136, 68], f32[128, 64], f32[128, 64], f32[128, 64], f8e4m3[128, 64], f32[], f8e4m3[64, 128], f32[4, 8], f32[4, 8], f32[4, 8], f8e4m3[4, 8], f32[], f8e4m3[8, 4] {
  %one = constant {value = 1.0}
  %sq = mul %step, %step
  %count = add %sq, %one
  %va = mul %ma, %ma
  %vb = mul %mb, %mb
  %vc = mul %mc, %mc
  %pa, %ma1, %va1 = adamw @a.weight, %ga, %ma, %va, %count, %lr
  %pb, %mb1, %vb1 = adamw @b.weight, %gb, %mb, %vb, %count, %lr
  %pc, %mc1, %vc1 = adamw @c.weight, %gc, %mc, %vc, %count, %lr
  %qa = fp8_cast %pa, @a.scale
  %aa = amax %pa
  %ta = transpose %qa {perm = [1, 0]}
  %qb = fp8_cast %pb, @b.scale
  %ab = amax %pb
  %tb = transpose %qb {perm = [1, 0]}
  %qc = fp8_cast %pc, @c.scale
  %ac = amax %pc
  %tc = transpose %qc {perm = [1, 0]}
  return %pa, %ma1, %va1, %qa, %aa, %ta, %pb, %mb1, %vb1, %qb, %ab, %tb, %pc, %mc1, %vc1, %qc, %ac, %tc
})");
  checker.run();
  unsigned kernels = 0;
  for (const auto *all : checker.kernels())
    for (const auto &fusion : all->fusions)
      if (fusion.set.table) {
        kernels += fusion.set.kernels.size();
        EXPECT_EQ(fusion.set.table->tileSide, 64);
      }
  EXPECT_EQ(kernels, 2u);
}

TEST(Movement, Copies) {
  KernelChecker checker;
  for (const char *type : {"f32", "bf16", "i64", "i1"})
    checker.add(replaced(R"(
dim B in 1..64
func @f(%x: TYPE[B, 6, 24], %z: TYPE[B, 2, 24]) -> TYPE[24, B, 6], TYPE[B, 8, 24], TYPE[B, 3, 8], TYPE[B, 6, 26], TYPE[B, 9, 24] {
  %t = transpose %x {perm = [2, 0, 1]}
  %c = concat %x, %z {axis = 1}
  %s = slice %x {start = [0, 5, 8], size = [B, 3, 8], step = [1, -2, 1]}
  %p = pad %x {before = [0, 0, 1], after = [0, 0, 1], value = 1.0}
  %p2 = pad %x {before = [0, 3, 0], after = [0, 0, 0]}
  return %t, %c, %s, %p, %p2
})",
                         "TYPE", type),
                {{{"B", 1}}, {{"B", 5}}});
  KernelChecker::Options options;
  options.classes = 9; // the position: some rows fall out
  checker.add(R"(
dim N in 1..64
state @cache : f32[3, 8, 16]
func @f(%rows: f32[3, 2, 16], %at: i32[]) -> f32[3, 8, 16] {
  %y = cache_write @cache, %rows, %at
  return %y
})",
              {{{"N", 1}}}, options);
  checker.run();
}

} // namespace
