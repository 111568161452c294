// Attention on tensor cores, as emitted, against the reference; the tests of tests/codegen/device go through more
// shapes.
#include "tests/codegen/kernel_checker.h"
#include "tests/support/replaced.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;
using fusor::tests::replaced;

namespace {

TEST(Attention, OnTensorCores) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.tolerance = 4, options.tier = fusor::ir::ArchTier::sm80;
  for (const char *type : {"bf16", "f16"})
    for (const char *attrs :
         {"heads = 2, causal = true", "heads = 1, causal = false", "heads = 2, causal = true, window = 5, scale = 0.5"})
      checker.add(replaced(replaced(R"(
dim B in 1..64
dim T in 1..512
func @f(%qkv: TYPE[B, T, 96], %dy: TYPE[B, T, 32]) -> TYPE[B, T, 32], TYPE[B, T, 96] {
  %q, %k, %v = split %qkv {axis = -1, sizes = [32, 32, 32]}
  %y, %lse = attention %q, %k, %v {ATTRS}
  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse {ATTRS}
  %dqkv = concat %dq, %dk, %dv {axis = -1}
  return %y, %dqkv
})",
                                    "TYPE", type),
                           "ATTRS", attrs),
                  {{{"B", 1}, {"T", 1}}, {{"B", 2}, {"T", 77}}}, options);
  options.classes = 12; // kv_length
  checker.add(R"(
dim B in 1..64
func @f(%q: bf16[B, 3, 32], %k: bf16[B, 11, 16], %v: bf16[B, 11, 16], %mask: i1[B, 11], %n: i32[]) -> bf16[B, 3, 32] {
  %y, %lse = attention %q, %k, %v, key_mask = %mask, kv_length = %n {heads = 4, kv_heads = 2}
  return %y
})",
              {{{"B", 1}}, {{"B", 3}}}, options);
  // A bias for each key, for each head and query, for everything; beside a causal mask and groups.
  for (auto [bias, heads, kv, attrs] : {std::make_tuple("[B, 1, 1, 77]", "2", "32", ""),
                                        {"[1, 4, 70, 77]", "4", "16", ", kv_heads = 2, causal = true"},
                                        {"[B, 1, 1, 77]", "2", "32", ", causal = true, hidden = -0.5"},
                                        {"[B, 2, 70, 77]", "2", "32", ", scale = 0.5"},
                                        {"[1, 1, 70, 1]", "1", "32", ""}})
    checker.add(replaced(replaced(replaced(replaced(R"(
dim B in 1..64
func @f(%q: bf16[B, 70, 32], %k: bf16[B, 77, KV], %v: bf16[B, 77, KV], %bias: f32BIAS) -> bf16[B, 70, 32], f32[B, HEADS, 70] {
  %y, %lse = attention %q, %k, %v, bias = %bias {heads = HEADSATTRS}
  return %y, %lse
})",
                                                    "BIAS", bias),
                                           "KV", kv),
                                  "HEADS", heads),
                         "ATTRS", attrs),
                {{{"B", 1}}, {{"B", 2}}}, options);
  for (const FunctionKernels *kernels : checker.kernels())
    for (const DistinctKernel &kernel : kernels->kernels)
      EXPECT_EQ(kernel.kernel.source.find("on CUDA cores: "), std::string::npos) << kernel.kernel.name;
  checker.run();
}

TEST(Attention, SaysWhyItIsOnCudaCores) {
  for (auto [type, width, attrs, tier, why] :
       {std::make_tuple("f32", "[B, 9, 32]", "heads = 2", fusor::ir::ArchTier::sm80,
                        "tensor cores take bf16 and f16, not f32"),
        {"bf16", "[B, 9, 32]", "heads = 2", fusor::ir::ArchTier::simt, "the kernel tier is simt"},
        {"bf16", "[B, 9, 24]", "heads = 2", fusor::ir::ArchTier::sm80, "head size 12 is no multiple of 8 up to 128"},
        {"bf16", "[B, 9, 136]", "heads = 1", fusor::ir::ArchTier::sm80, "head size 136 is no multiple of 8 up to 128"},
        {"f16", "[B, 9, 32]", "heads = 2, scale = -1", fusor::ir::ArchTier::sm90a, "scale -1.0 is not positive"}}) {
    KernelChecker checker;
    KernelChecker::Options options;
    options.tier = tier;
    checker.add(replaced(replaced(replaced(R"(
dim B in 1..64
func @f(%q: TYPEWIDTH) -> TYPEWIDTH {
  %y, %lse = attention %q, %q, %q {ATTRS}
  return %y
})",
                                           "TYPE", type),
                                  "WIDTH", width),
                         "ATTRS", attrs),
                {}, options);
    EXPECT_NE(checker.text().find(why), std::string::npos) << why << "\n" << checker.text();
  }
}

} // namespace
