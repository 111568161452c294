// One kernel of each class and form, compiled by NVRTC for every architecture; refusals; kernels as files.
#include "codegen/emit/kernel_files.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/codegen/kernel_checker.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace fusor;
using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

constexpr const char *kZoo[] = {
    R"(
dim B in 1..8192
func @pointwise(%h: bf16[B, 64], %b: bf16[64], %u: bf16[B, 64], %m: i1[B, 64], %d: f64[B, 64], %i: i32[B, 64], %seed: i64[]) -> bf16[B, 64], f64[B, 64], i32[B, 64], bf16[B, 64] {
  %s = add %h, %b
  %g = gelu %s
  %t = mul %g, %u
  %y = select %m, %t, %h
  %e = exp %d
  %j = mul %i, %i
  %z = dropout %y, %seed {rate = 0.5}
  return %y, %e, %j, %z
})",
    R"(
dim B in 1..64
func @embedding(%table: f32[10, 16], %ids: i32[B, 5], %p: f32[5, 16]) -> f32[B, 5, 16] {
  %e = embedding %table, %ids
  %y = add %e, %p
  return %y
})",
    R"(
dim B in 1..8192
func @rows(%x: f16[B, 768], %y: f16[B, 4096], %w: f16[768], %b: f16[768], %v: f16[4096]) -> f16[B, 768], f16[B, 4096] {
  %n, %mean, %rstd = layer_norm %x, weight = %w, bias = %b
  %q, %r = rms_norm %y, weight = %v
  return %n, %q
})",
    R"(
dim B in 1..8192
dim T in 1..8192
func @sweeps(%x: bf16[B, T], %l: bf16[B, 50304], %targets: i32[B], %dloss: f32[]) -> bf16[B, T], f32[], bf16[B, 50304] {
  %y = softmax %x
  %loss, %lse, %count = cross_entropy %l, %targets
  %dl = cross_entropy_grad %dloss, %l, %targets, %lse, %count
  return %y, %loss, %dl
})",
    R"(
dim B in 1..8192
func @sums(%dy: bf16[B, 768], %x: bf16[B, 768], %w: bf16[768], %mean: f32[B, 1], %rstd: f32[B, 1], %g: bf16[B, 3072]) -> bf16[B, 768], f32[768], f32[768], bf16[3072], bf16[] {
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  %s = sum %g {dims = [0]}
  %t = reduce_max %g
  return %dx, %dw, %db, %s, %t
})",
    R"(
dim B in 1..8192
func @contraction(%x: bf16[B, 768], %w: bf16[3072, 768], %b: bf16[3072], %d: f64[B, 24], %v: f64[16, 24], %h: bf16[B, 768], %dy: bf16[B, 3072]) -> bf16[B, 3072], f64[B, 16], bf16[B, 768], f32[768] {
  %y = linear %x, %w, bias = %b
  %g = gelu %y
  %z = linear %d, %v
  %dx = linear_input_grad %dy, %w
  %dh = gelu_grad %dx, %h
  %wide = cast %dh {to = f32}
  %db = sum %wide {dims = [0]}
  return %g, %z, %dh, %db
})",
    R"(
dim B in 1..64
func @attention(%qkv: bf16[B, 256, 384], %dy: bf16[B, 256, 128], %n: i32[]) -> bf16[B, 256, 128], bf16[B, 256, 384], bf16[B, 256, 128] {
  %q, %k, %v = split %qkv {axis = -1, sizes = [128, 128, 128]}
  %y, %lse = attention %q, %k, %v {heads = 1, causal = true}
  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse {heads = 1, causal = true}
  %dqkv = concat %dq, %dk, %dv {axis = -1}
  %z, %lse2 = attention %q, %k, %v, kv_length = %n {heads = 2, causal = false, window = 32}
  return %y, %dqkv, %z
})",
    R"(
dim B in 1..64
param @w : f32[70, 60]
func @others(%dy: bf16[B, 33], %ids: i32[B], %x: bf16[B, 6, 24], %g: f32[70, 60], %m: f32[70, 60], %v: f32[70, 60], %step: i32[], %lr: f32[]) -> f32[10, 33], bf16[24, B, 6], bf16[B, 6, 26], f32[], f32[70, 60], f32[70, 60], f32[70, 60] {
  %s = embedding_grad %dy, %ids {rows = [10]}
  %t = transpose %x {perm = [2, 0, 1]}
  %p = pad %x {before = [0, 0, 1], after = [0, 0, 1]}
  %n = global_norm %g
  %w1, %m1, %v1 = adamw @w, %g, %m, %v, %step, %lr
  return %s, %t, %p, %n, %w1, %m1, %v1
})"};

TEST(Zoo, CompilesForEveryArchitecture) {
  auto nvrtc = runtime::loadNvrtc(runtime::NvrtcOptions::fromEnvironment());
  if (!nvrtc) GTEST_SKIP() << "no NVRTC here: " << llvm::toString(nvrtc.takeError());
  KernelChecker checker;
  for (const char *text : kZoo) checker.add(text);
  std::string all = checker.text(); // one text, so one compilation an architecture
  const std::vector<std::string> flags = {"--std=c++17"};
  for (const char *arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
    if (!nvrtc->supports(std::atoi(arch + 3))) continue;
    auto compiled = nvrtc->compile({all, "zoo", arch, flags});
    if (!compiled) FAIL() << llvm::toString(compiled.takeError());
    EXPECT_EQ(compiled->log.find("warning"), std::string::npos) << arch << ":\n" << compiled->log;
  }
}

TEST(Zoo, RefusalsSayWhy) {
  auto reasonOf = [](llvm::StringRef text) {
    auto module = parseOrFail(text);
    fuse(*module);
    auto kernels = kernelsOf(*module, {});
    return kernels.refused.empty() ? std::string("taken") : kernels.refused.front().reason;
  };
  EXPECT_NE(reasonOf(R"(func @f(%x: f32[3, 5]) -> i32[3] {
  %y = arg_reduce %x
  return %y
})")
                .find("arg_reduce"),
            std::string::npos);
  EXPECT_EQ(reasonOf(R"(func @f(%q: f64[1, 3, 8]) -> f64[1, 3, 8] {
  %y, %lse = attention %q, %q, %q {heads = 2, causal = true}
  return %y
})"),
            "the attention kernels accumulate in f32: none for f64");
  EXPECT_NE(reasonOf(R"(func @f(%x: bf16[3, 5], %s: f32[]) -> f8e4m3[3, 5] per tensor, f32[] {
  %q, %a = quantize %x, %s
  return %q, %a
})")
                .find("quantize"),
            std::string::npos);
}

TEST(Zoo, InPlaceIsSaidWhereItIsSafe) {
  auto module = parseOrFail(R"(
dim B in 1..64
func @f(%x: f32[B, 8], %t: f32[8, 8]) -> f32[B, 8], f32[8, 8], f32[B, 8], f32[8, 8] {
  %y = exp %x
  %u = transpose %t {perm = [1, 0]}
  %z = linear %x, %t
  %v = add %u, %t
  return %y, %u, %z, %v
})");
  fuse(*module);
  for (const ir::Op &op : module->function("f")->block().ops()) {
    if (!op.is("fusion")) continue;
    bool isExp = op.body()->ops().front().is("exp");
    auto set = emit(op, ir::Target{});
    ASSERT_TRUE(static_cast<bool>(set)) << llvm::toString(set.takeError());
    for (unsigned i = 0; i < op.operands().size(); ++i) {
      auto isPair = [&](const InPlace &p) { return p.input == i && p.output == 0; };
      EXPECT_EQ(llvm::any_of(set->inPlace, isPair), isExp) << i;
    }
  }
}

TEST(KernelFiles, AreTextsAndDescriptions) {
  auto module = parseOrFail(kZoo[1]);
  fuse(*module);
  auto kernels = kernelsOf(*module, {});
  auto files = kernelFiles(kernels);
  ASSERT_EQ(kernels.kernels.size(), 1u);
  ASSERT_EQ(files.size(), 2u);
  const Kernel &kernel = kernels.kernels[0].kernel;
  EXPECT_EQ(files[0].path, kernel.name + "/kernel.cu");
  EXPECT_EQ(files[0].text, kernel.source);
  EXPECT_EQ(files[1].path, kernel.name + "/kernel.json");
  auto json = llvm::json::parse(files[1].text);
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  EXPECT_EQ(json->getAsObject()->getString("name")->str(), kernel.name);
  EXPECT_EQ(json->getAsObject()->getArray("arguments")->size(), kernel.args.size());
}

} // namespace
