// Every message an op's use can be refused with, word for word.
#include "ir/graph/builder.h"
#include "gtest/gtest.h"
#include <functional>

using namespace fusor::ir;

namespace {

/// What refusing `op` says; "" where it is accepted. `types` become arguments; a null type is an absent operand.
std::string refusal(llvm::StringRef op, llvm::ArrayRef<std::optional<TensorType>> types, Attrs attrs = {}) {
  Module module;
  Block &block = module.addFunction("f").block();
  llvm::SmallVector<Value, 4> operands;
  for (const auto &type : types) operands.push_back(type ? block.addArgument(*type, "x") : Value());
  auto made = Builder(block).create(op, operands, std::move(attrs));
  EXPECT_EQ(made ? block.ops().size() : 0, block.ops().size()) << "a refused op was inserted";
  return made ? "" : llvm::toString(made.takeError());
}

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }
TensorType bf16(Shape shape) { return {DType::bf16, std::move(shape)}; }
TensorType i32(Shape shape) { return {DType::i32, std::move(shape)}; }
TensorType i1(Shape shape) { return {DType::i1, std::move(shape)}; }
TensorType fp8(Shape shape) { return {DType::f8e4m3, std::move(shape), Granularity::tensor}; }
using Integers = std::vector<int64_t>;
Dim B = Dim::symbol("B");

TEST(BuilderErrors, UnknownOps) { EXPECT_EQ(refusal("gelo", {}), "there is no op called 'gelo'"); }

TEST(BuilderErrors, OperandCounts) {
  EXPECT_EQ(refusal("add", {f32({4})}), "'add' takes 2 operands, 1 are given");
  EXPECT_EQ(refusal("neg", {f32({4}), f32({4})}), "'neg' takes 1 operands, 2 are given");
  EXPECT_EQ(refusal("linear", {f32({4})}), "'linear' takes 2 to 3 operands, 1 are given");
  EXPECT_EQ(refusal("concat", {}), "'concat' takes at least 1 operands, 0 are given");
  EXPECT_EQ(refusal("add", {std::nullopt, f32({4})}), "'add' operand 0 is missing");
  EXPECT_EQ(refusal("concat", {f32({4}), std::nullopt, f32({4})}), "'concat' operand 1 is missing");
}

TEST(BuilderErrors, OperandTypes) {
  EXPECT_EQ(refusal("exp", {i32({4})}), "'exp' operand 'x' must be a float, is i32[4]");
  EXPECT_EQ(refusal("add", {i1({4}), i1({4})}), "'add' operand 'a' must be a number, is i1[4]");
  EXPECT_EQ(refusal("not", {f32({4})}), "'not' operand 'x' must be i1, is f32[4]");
  EXPECT_EQ(refusal("add", {f32({4}), bf16({4})}), "'add' operands must have one dtype: 'a' is f32[4], 'b' is bf16[4]");
  EXPECT_EQ(refusal("select", {i1({4}), f32({4}), bf16({4})}),
            "'select' operands must have one dtype: 'a' is f32[4], 'b' is bf16[4]");
  EXPECT_EQ(refusal("select", {f32({4}), f32({4}), f32({4})}), "'select' operand 'condition' must be i1, is f32[4]");
  EXPECT_EQ(refusal("add", {f32({B, 4}), f32({5})}),
            "'add' operands must broadcast to one shape: a is f32[B, 4], b is f32[5]");
  EXPECT_EQ(refusal("neg", {fp8({4})}), "'neg' works on plain tensors; dequantize f8e4m3[4] per tensor first");
  EXPECT_EQ(refusal("cast", {fp8({4})}, {{"to", DType::f32}}),
            "'cast' works on plain tensors; dequantize f8e4m3[4] per tensor first");
}

TEST(BuilderErrors, Attributes) {
  EXPECT_EQ(refusal("neg", {f32({4})}, {{"axis", int64_t(1)}}), "'neg' has no attribute 'axis'; it has none");
  EXPECT_EQ(refusal("matmul", {f32({4, 4}), f32({4, 4})}, {{"axis", int64_t(1)}}),
            "'matmul' has no attribute 'axis'; it has trans_a, trans_b, out");
  EXPECT_EQ(refusal("softmax", {f32({4})}, {{"axis", 1.0}}), "'softmax' attribute 'axis' must be an integer, is 1.0");
  EXPECT_EQ(refusal("clamp", {f32({4})}, {{"low", int64_t(1)}}), "'clamp' attribute 'low' must be a number, is 1");
  EXPECT_EQ(refusal("sum", {f32({4})}, {{"keep", int64_t(1)}}), "'sum' attribute 'keep' must be true or false, is 1");
  EXPECT_EQ(refusal("sum", {f32({4})}, {{"dims", int64_t(1)}}),
            "'sum' attribute 'dims' must be a list of integers, is 1");
  EXPECT_EQ(refusal("gelu", {f32({4})}, {{"form", true}}), "'gelu' attribute 'form' must be a word, is true");
  EXPECT_EQ(refusal("cast", {f32({4})}, {{"to", true}}), "'cast' attribute 'to' must be a dtype, is true");
  EXPECT_EQ(refusal("reshape", {f32({4})}, {{"shape", true}}), "'reshape' attribute 'shape' must be a shape, is true");
  EXPECT_EQ(refusal("return", {}, {{"targets", true}}),
            "'return' attribute 'targets' must be a list of strings, is true");
  EXPECT_EQ(refusal("gelu", {f32({4})}, {{"form", std::string("fast")}}),
            "'gelu' attribute 'form' must be one of tanh, erf, quick, is fast");
  EXPECT_EQ(refusal("dropout", {f32({4}), i32({})}, {{"rate", 1.5}}),
            "'dropout' attribute 'rate' must be in 0.0..1.0, is 1.5");
  EXPECT_EQ(refusal("rope", {f32({1, 2, 4}), i32({2})}, {{"heads", int64_t(0)}}),
            "'rope' attribute 'heads' must be in 1..1048576, is 0");
  EXPECT_EQ(refusal("cast", {f32({4})}), "'cast' needs attribute 'to' (a dtype)");
}

TEST(BuilderErrors, Reductions) {
  EXPECT_EQ(refusal("sum", {f32({4, 5})}, {{"dims", Integers{2}}}),
            "'sum' dims must be in -2..1 for f32[4, 5], found 2");
  EXPECT_EQ(refusal("sum", {f32({4, 5})}, {{"dims", Integers{-3}}}),
            "'sum' dims must be in -2..1 for f32[4, 5], found -3");
  EXPECT_EQ(refusal("sum", {f32({4, 5})}, {{"dims", Integers{1, -1}}}), "'sum' dims name dim 1 of f32[4, 5] twice");
  EXPECT_EQ(refusal("reduce_max", {i1({4})}), "'reduce_max' reduces numbers, is given i1[4]");
  EXPECT_EQ(refusal("arg_reduce", {f32({4})}, {{"axis", int64_t(1)}}), "'arg_reduce' axis must be in -1..0, is 1");
}

TEST(BuilderErrors, Movement) {
  EXPECT_EQ(refusal("reshape", {f32({4, B})}, {{"shape", Shape{5, B}}}),
            "'reshape' must keep the number of elements: f32[4, B] has 4*B, [5, B] has 5*B");
  EXPECT_EQ(refusal("transpose", {f32({4, 5})}, {{"perm", Integers{0, 0}}}),
            "'transpose' perm must be a permutation of 0..1, is [0, 0]");
  EXPECT_EQ(refusal("transpose", {f32({4, 5})}, {{"perm", Integers{0}}}),
            "'transpose' perm must have 2 entries for f32[4, 5], has 1");
  EXPECT_EQ(refusal("broadcast", {f32({4})}, {{"shape", Shape{4, 5}}}), "'broadcast' cannot spread f32[4] to [4, 5]");
  EXPECT_EQ(refusal("slice", {f32({4, 5})}, {{"start", Shape{0}}, {"size", Shape{1, 1}}}),
            "'slice' start, size and step need 2 entries each for f32[4, 5]");
  EXPECT_EQ(refusal("slice", {f32({4})}, {{"start", Shape{0}}, {"size", Shape{1}}, {"step", Integers{0}}}),
            "'slice' step must not be 0");
  EXPECT_EQ(refusal("slice", {f32({4})}, {{"start", Shape{2}}, {"size", Shape{3}}}),
            "'slice' reads elements 2 to 4 of dim 0, which has 4 in f32[4]");
  EXPECT_EQ(refusal("slice", {f32({4})}, {{"start", Shape{2}}, {"size", Shape{4}}, {"step", Integers{-1}}}),
            "'slice' reads elements 2 to -1 of dim 0, which has 4 in f32[4]");
  EXPECT_EQ(refusal("slice", {f32({4})}, {{"start", Shape{9}}, {"size", Shape{0}}}), "") << "nothing is read";
  EXPECT_EQ(refusal("slice_grad", {f32({4})}, {{"start", Shape{0}}, {"shape", Shape{9, 9}}}),
            "'slice_grad' start, shape and step need 1 entries each for f32[4]");
  EXPECT_EQ(refusal("slice_grad", {f32({4})}, {{"start", Shape{6}}, {"shape", Shape{9}}}),
            "'slice_grad' writes elements 6 to 9 of dim 0, which has 9");
  EXPECT_EQ(refusal("pad", {f32({4})}, {{"before", Shape{1, 1}}, {"after", Shape{1}}}),
            "'pad' before and after need 1 entries each for f32[4]");
  EXPECT_EQ(refusal("pad", {f32({4})}, {{"before", Shape{-1}}, {"after", Shape{1}}}),
            "'pad' attribute 'before' must have no negative dim, is [-1]");
  EXPECT_EQ(refusal("split", {f32({4})}, {{"sizes", Shape{1, 2}}}),
            "'split' sizes [1, 2] must add up to dim 0 of f32[4]");
  EXPECT_EQ(refusal("split", {f32({4})}, {{"sizes", Shape{5, -1}}}),
            "'split' attribute 'sizes' must have no negative dim, is [5, -1]");
  EXPECT_EQ(refusal("split", {f32({4})}, {{"sizes", Shape{4}}, {"axis", int64_t(3)}}),
            "'split' axis must be in -1..0, is 3");
  EXPECT_EQ(refusal("split", {f32({})}, {{"sizes", Shape{}}}), "'split' needs at least one dim, is given f32[]");
  EXPECT_EQ(refusal("concat", {f32({4, 5}), f32({4, 6}), f32({3, 5})}),
            "'concat' operands must agree but for dim 1: f32[4, 5] and f32[3, 5]");
  EXPECT_EQ(refusal("concat", {f32({4, 5}), f32({4})}),
            "'concat' operands must agree but for dim 1: f32[4, 5] and f32[4]");
  EXPECT_EQ(refusal("concat", {fp8({4}), fp8({4})}),
            "'concat' works on plain tensors; dequantize f8e4m3[4] per tensor first");
  EXPECT_EQ(refusal("gather", {f32({4, 5}), f32({2})}), "'gather' indices must be integers, are f32[2]");
  EXPECT_EQ(refusal("scatter_add", {f32({2, 5}), f32({2})}, {{"shape", Shape{4, 5}}}),
            "'scatter_add' indices must be integers, are f32[2]");
  EXPECT_EQ(refusal("scatter_add", {f32({3, 5}), i32({2})}, {{"shape", Shape{4, 5}}}),
            "'scatter_add' updates must be [2, 5] for indices i32[2] into [4, 5], are f32[3, 5]");
  EXPECT_EQ(refusal("iota", {}, {{"shape", Shape{4}}, {"axis", int64_t(1)}}), "'iota' axis must be in -1..0, is 1");
}

TEST(BuilderErrors, Contractions) {
  EXPECT_EQ(refusal("matmul", {f32({4, 5}), bf16({5, 6})}),
            "'matmul' operands must be floats of one dtype (or both FP8): f32[4, 5] and bf16[5, 6]");
  EXPECT_EQ(refusal("matmul", {f32({4}), f32({4, 5})}), "'matmul' operands need at least 2 dims: f32[4] and f32[4, 5]");
  EXPECT_EQ(refusal("matmul", {f32({4, 5}), f32({4, 5})}),
            "'matmul' contracted dims must be equal: 5 of f32[4, 5] and 4 of f32[4, 5]");
  EXPECT_EQ(refusal("matmul", {f32({2, 4, 5}), f32({3, 5, 6})}),
            "'matmul' leading dims must broadcast: f32[2, 4, 5] and f32[3, 5, 6]");
  EXPECT_EQ(refusal("linear", {f32({4, 5}), f32({5})}),
            "'linear' needs x [..., K] and weight [N, K]: f32[4, 5] and f32[5]");
  EXPECT_EQ(refusal("linear", {f32({4, 5}), f32({5, 6})}),
            "'linear' contracted dims must be equal: 5 of x f32[4, 5] and 6 of weight f32[5, 6]");
  EXPECT_EQ(refusal("linear", {f32({4, 5}), f32({6, 5}), f32({5})}),
            "'linear' bias must be [6] like the rows of weight f32[6, 5], is f32[5]");
  EXPECT_EQ(refusal("linear_input_grad", {f32({4, 5}), f32({6, 5})}),
            "'linear_input_grad' needs dy [..., N] and weight [N, K]: f32[4, 5] and f32[6, 5]");
  EXPECT_EQ(refusal("linear_weight_grad", {f32({4, 5}), f32({3, 6})}),
            "'linear_weight_grad' needs dy [..., N] and x [..., K] with equal leading dims: f32[4, 5] and f32[3, 6]");
}

TEST(BuilderErrors, Normalization) {
  EXPECT_EQ(refusal("softmax", {i32({4})}), "'softmax' operands must be floats, found i32[4]");
  EXPECT_EQ(refusal("softmax", {f32({})}), "'softmax' needs at least one dim, is given f32[]");
  EXPECT_EQ(refusal("softmax", {f32({4})}, {{"axis", int64_t(2)}}), "'softmax' axis must be in -1..0, is 2");
  EXPECT_EQ(refusal("softmax_grad", {f32({4}), f32({5})}), "'softmax_grad' 'y' must have shape [4], is f32[5]");
  EXPECT_EQ(refusal("layer_norm", {f32({4, 5}), f32({4})}),
            "'layer_norm' 'weight' must be [5] like the last dim of f32[4, 5], is f32[4]");
  EXPECT_EQ(refusal("rms_norm", {fp8({4, 5})}),
            "'rms_norm' works on plain tensors; dequantize f8e4m3[4, 5] per tensor first");
  EXPECT_EQ(refusal("layer_norm_grad", {f32({4, 5}), f32({4, 5}), f32({4, 1}), f32({4})}),
            "'layer_norm_grad' 'rstd' must have shape [4, 1], is f32[4]");
  EXPECT_EQ(refusal("layer_norm_grad", {f32({4, 5}), f32({4, 5}), f32({4, 1}), f32({4, 1}), f32({4})}),
            "'layer_norm_grad' 'weight' must be [5] like the last dim of f32[4, 5], is f32[4]");
  EXPECT_EQ(refusal("rms_norm_param_grad", {f32({5}), f32({4, 5}), f32({4, 1})}),
            "'rms_norm_param_grad' 'dy' must have shape [4, 5], is f32[5]");
}

TEST(BuilderErrors, Attention) {
  Attrs heads{{"heads", int64_t(2)}};
  auto t = [](int64_t width) { return f32({2, 3, width}); };
  EXPECT_EQ(refusal("attention", {t(8), f32({2, 3}), t(8)}, heads),
            "'attention' needs q [B, Tq, H*d], k and v [B, Tk, Hkv*d] of one float dtype: f32[2, 3, 8], f32[2, 3], "
            "f32[2, 3, 8]");
  EXPECT_EQ(refusal("attention", {t(7), t(7), t(7)}, heads),
            "'attention' width 7 of q must be a multiple of heads = 2");
  EXPECT_EQ(refusal("attention", {t(8), t(6), t(6)}, heads),
            "'attention' k must have width kv_heads * 4 = 8 and kv_heads must divide heads = 2, is f32[2, 3, 6]");
  EXPECT_EQ(refusal("attention", {t(8), t(8), t(8), f32({2, 3})}, heads),
            "'attention' key_mask must be i1[2, 3], is f32[2, 3]");
  EXPECT_EQ(refusal("attention", {t(8), t(8), t(8), std::nullopt, f32({})}, heads),
            "'attention' kv_length must be an integer scalar, is f32[]");
  EXPECT_EQ(refusal("attention", {t(8), t(8), t(8), std::nullopt, std::nullopt, f32({3, 3})}, heads),
            "'attention' bias must be f32[2, 2, 3, 3], with any dim 1 instead, is f32[3, 3]");
  EXPECT_EQ(refusal("attention", {t(8), t(8), t(8), std::nullopt, std::nullopt, bf16({2, 1, 1, 3})}, heads),
            "'attention' bias must be f32[2, 2, 3, 3], with any dim 1 instead, is bf16[2, 1, 1, 3]");
  EXPECT_EQ(refusal("attention_grad", {f32({1}), t(8), t(8), t(8), t(8), f32({2, 2, 3})}, heads),
            "'attention_grad' dy and y must have the shape of q f32[2, 3, 8]: f32[1] and f32[2, 3, 8]");
  EXPECT_EQ(refusal("attention_grad", {t(8), t(8), t(8), t(8), t(8), f32({2, 3})}, heads),
            "'attention_grad' lse must be f32[2, 2, 3], is f32[2, 3]");
  EXPECT_EQ(refusal("rope", {f32({2, 3, 6}), i32({3})}, heads),
            "'rope' needs x [B, T, heads*d] with an even d for heads = 2, is given f32[2, 3, 6]");
  EXPECT_EQ(refusal("rope", {t(8), i32({2})}, heads), "'rope' positions must be integers [3], are i32[2]");
  EXPECT_EQ(refusal("cache_write", {t(8), f32({2, 1, 4}), i32({})}),
            "'cache_write' needs cache [B, C, D] and rows [B, T, D] of one dtype: f32[2, 3, 8] and f32[2, 1, 4]");
  EXPECT_EQ(refusal("cache_write", {t(8), t(8), i32({1})}),
            "'cache_write' position must be an integer scalar, is i32[1]");
}

TEST(BuilderErrors, Losses) {
  EXPECT_EQ(refusal("embedding", {f32({4}), i32({2})}), "'embedding' table must be [V, D], is f32[4]");
  EXPECT_EQ(refusal("embedding", {f32({4, 5}), f32({2})}), "'embedding' ids must be integers, are f32[2]");
  EXPECT_EQ(refusal("embedding_grad", {f32({3, 5}), i32({2})}, {{"rows", Shape{4}}}),
            "'embedding_grad' dy must be [..., D] for ids [...]: f32[3, 5] and i32[2]");
  EXPECT_EQ(refusal("embedding_grad", {f32({2, 5}), f32({2})}, {{"rows", Shape{4}}}),
            "'embedding_grad' ids must be integers, are f32[2]");
  EXPECT_EQ(refusal("embedding_grad", {f32({2, 5}), i32({2})}, {{"rows", Shape{4, 5}}}),
            "'embedding_grad' rows must be one dim, is [4, 5]");
  EXPECT_EQ(refusal("cross_entropy", {i32({2, 5}), i32({2})}),
            "'cross_entropy' logits must be floats [..., V], are i32[2, 5]");
  EXPECT_EQ(refusal("cross_entropy", {f32({2, 5}), i32({3})}),
            "'cross_entropy' targets must be integers [...] for logits [..., V]: i32[3] and f32[2, 5]");
  EXPECT_EQ(refusal("cross_entropy_grad", {f32({1}), f32({2, 5}), i32({2}), f32({2, 1}), f32({})}),
            "'cross_entropy_grad' dloss and count must be scalars: f32[1] and f32[]");
  EXPECT_EQ(refusal("cross_entropy_grad", {f32({}), f32({2, 5}), i32({2}), f32({2}), f32({})}),
            "'cross_entropy_grad' lse must be f32[2, 1], is f32[2]");
}

TEST(BuilderErrors, Quantize) {
  EXPECT_EQ(refusal("quantize", {f32({4}), f32({1})}), "'quantize' 'scale' must be f32[], is f32[1]");
  EXPECT_EQ(refusal("quantize", {f32({4}), f32({})}, {{"dtype", DType::bf16}}),
            "'quantize' dtype must be f8e4m3 or f8e5m2, is bf16");
  EXPECT_EQ(refusal("quantize", {i32({4}), f32({})}), "'quantize' quantises f64, f32, f16 or bf16, is given i32[4]");
  EXPECT_EQ(refusal("quantize", {f32({4}), f32({})}, {{"contract", int64_t(1)}}),
            "'quantize' contract must be in -1..0, is 1");
  EXPECT_EQ(refusal("dequantize", {f32({4})}), "'dequantize' needs a quantised tensor, is given f32[4]");
  EXPECT_EQ(refusal("amax_update", {f32({}), f32({}), f32({})}), "'amax_update' history must be f32[L], is f32[]");
  EXPECT_EQ(refusal("amax_update", {f32({4}), f32({}), f32({4})}), "'amax_update' 'amax' must be f32[], is f32[4]");
  EXPECT_EQ(refusal("grad_quantize", {f32({4}), bf16({})}), "'grad_quantize' 'scale' must be f32[], is bf16[]");
}

TEST(BuilderErrors, RandomAndOptimizer) {
  EXPECT_EQ(refusal("random_uniform", {f32({})}, {{"shape", Shape{4}}}),
            "'random_uniform' seed must be an integer scalar, is f32[]");
  EXPECT_EQ(refusal("dropout", {f32({4}), i32({1})}), "'dropout' seed must be an integer scalar, is i32[1]");
  EXPECT_EQ(refusal("dropout", {i32({4}), i32({})}), "'dropout' works on floats, is given i32[4]");
  EXPECT_EQ(refusal("adamw", {i32({4}), f32({4}), f32({4}), f32({4}), f32({}), f32({})}),
            "'adamw' param must be a float, is i32[4]");
  EXPECT_EQ(refusal("global_norm", {i32({4})}), "'global_norm' operands must be floats, found i32[4]");
  EXPECT_EQ(refusal("adamw", {f32({4}), f32({5}), f32({4}), f32({4}), f32({}), f32({})}),
            "'adamw' 'grad' must have the shape of param f32[4], is f32[5]");
  EXPECT_EQ(refusal("adamw", {f32({4}), f32({4}), f32({4}), f32({4}), f32({}), f32({1})}),
            "'adamw' 'lr' must be a scalar, is f32[1]");
}

TEST(BuilderErrors, TheCompilersOwnMistakesExitWith70) {
  Module module;
  Block &block = module.addFunction("f").block();
  EXPECT_EXIT(Builder(block).make("add", {}), testing::ExitedWithCode(70),
              "an op that the compiler itself made is invalid: 'add' takes 2 operands, 0 are given");
}

} // namespace
