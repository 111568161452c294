// Attention's tensor-core kernels on the device: against their bodies in float64 over ragged shapes, bit-equal from run
// to run, and faster than the CUDA-core ones.
#include "frontend/text/parser.h"
#include "ir/ops/counter_rng.h"
#include "ir/types/dtype.h"
#include "tests/gpu/support.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>

using namespace fusor;
using namespace fusor::runtime;
using namespace fusor::tests;

namespace {

#define NEED_TENSOR_CORES()                                                                                            \
  if (std::string why = whyNoGpu(); !why.empty()) GTEST_SKIP() << why;                                                 \
  if (gpuTarget().tier == ir::ArchTier::simt) GTEST_SKIP() << "the device is older than sm_80"

struct Shape {
  int64_t batch, heads, queries, keys, headSize;
  const char *type = "bf16", *attributes = "causal = true";
  int64_t keyHeads = 0; // 0: as many as heads
  bool packed = false, masked = false;
  int64_t length = -1; // of the keys; -1: not given

  int64_t kv() const { return keyHeads ? keyHeads : heads; }
  std::string name() const {
    return llvm::formatv("{0} batch {1} heads {2}/{3} queries {4} keys {5} head size {6} {7}{8}{9}", type, batch, heads,
                         kv(), queries, keys, headSize, attributes, packed ? " packed" : "", masked ? " masked" : "")
        .str();
  }
  // Forward, or forward and backward.
  std::string text(bool backward = true) const {
    auto tensor = [&](int64_t rows, int64_t width) {
      return llvm::formatv("{0}[{1}, {2}, {3}]", type, batch, rows, width).str();
    };
    const int64_t width = heads * headSize, kvWidth = kv() * headSize;
    const std::string q = tensor(queries, width), k = tensor(keys, kvWidth), qkv = tensor(queries, width + 2 * kvWidth),
                      attrs = llvm::formatv("{{heads = {0}, kv_heads = {1}, {2}}", heads, kv(), attributes);
    std::string text = "func @main(" + (packed ? "%qkv: " + qkv : "%q: " + q + ", %k: " + k + ", %v: " + k);
    if (masked) text += llvm::formatv(", %mask: i1[{0}, {1}]", batch, keys);
    if (length >= 0) text += ", %length: i32[]";
    if (backward) text += ", %dy: " + q;
    text += ") -> " + q;
    if (backward) text += packed ? ", " + qkv : ", " + q + ", " + k + ", " + k;
    text += " {\n";
    if (packed)
      text += llvm::formatv("  %q, %k, %v = split %qkv {{axis = -1, sizes = [{0}, {1}, {1}]}\n", width, kvWidth);
    const std::string more =
        std::string(masked ? ", key_mask = %mask" : "") + (length >= 0 ? ", kv_length = %length" : "");
    text += "  %y, %lse = attention %q, %k, %v" + more + " " + attrs + "\n";
    if (backward) text += "  %dq, %dk, %dv = attention_grad %dy, %q, %k, %v, %y, %lse" + more + " " + attrs + "\n";
    if (backward && packed) text += "  %dqkv = concat %dq, %dk, %dv {axis = -1}\n";
    return text + "  return %y" + (backward ? packed ? ", %dqkv" : ", %dq, %dk, %dv" : "") + "\n}\n";
  }
};

struct Tensor {
  TensorView view;
  std::vector<char> bytes;
};

// A program of `shape` with random inputs, ready to run.
class Attention {
public:
  Attention(const Shape &shape, const ir::Target &target, CompileOptions options) {
    prepare(shape, target, std::move(options));
  }
  // The bytes of all results; empty after a failure.
  std::vector<char> run() {
    if (!program_) return {};
    std::vector<TensorView> in, out;
    for (Tensor &tensor : inputs_) in.push_back(viewOf(tensor));
    for (Tensor &tensor : outputs_) out.push_back(viewOf(tensor));
    if (auto error = program_->run("main", in, out)) return fail(std::move(error)), std::vector<char>();
    std::vector<char> all;
    for (Tensor &tensor : outputs_) all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
    return all;
  }
  Program *program() { return program_.get(); }

private:
  void prepare(const Shape &shape, const ir::Target &target, CompileOptions options) {
    auto module = frontend::parseModule(shape.text(), "attention.fir");
    if (!module) return fail(module.takeError());
    passes::PassOptions passOptions;
    passOptions.target = target;
    passes::PassContext context(passOptions);
    if (auto error = passes::runPasses(**module, {"layout", "fusion"}, context)) return fail(std::move(error));
    options.strict = true;
    auto program = compile(std::move(*module), target, std::move(options));
    if (!program) return fail(program.takeError());
    program_ = std::move(*program);
    const ir::Function &function = *program_->module().function("main");
    for (ir::Value argument : function.block().arguments()) add(inputs_, argument.type());
    for (const ir::ReturnEntry &entry : function.returns()) add(outputs_, entry.value.type());
    for (unsigned n = 0; n < inputs_.size(); ++n) {
      Tensor &tensor = inputs_[n];
      uint64_t key = ir::rngKey(5, n);
      int64_t elements = static_cast<int64_t>(tensor.bytes.size()) / ir::byteSize(tensor.view.dtype);
      for (int64_t i = 0; i < elements; ++i) {
        double value = tensor.view.dtype == ir::DType::i1    ? ir::rngUniform(key, i) < 0.7
                       : tensor.view.dtype == ir::DType::i32 ? static_cast<double>(shape.length)
                                                             : ir::rngNormal(key, i);
        ir::storeElement(tensor.view.dtype, tensor.bytes.data(), i, value);
      }
    }
  }
  static void add(std::vector<Tensor> &tensors, const ir::TensorType &type) {
    Tensor tensor;
    tensor.view.dtype = type.dtype;
    int64_t elements = 1;
    for (const ir::Dim &dim : type.shape) tensor.view.shape.push_back(dim.value()), elements *= dim.value();
    tensor.bytes.resize(elements * ir::byteSize(type.dtype));
    tensors.push_back(std::move(tensor));
  }
  static TensorView viewOf(Tensor &tensor) {
    tensor.view.data = tensor.bytes.data();
    return tensor.view;
  }
  void fail(llvm::Error error) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    program_.reset();
  }

  std::unique_ptr<Program> program_;
  std::vector<Tensor> inputs_, outputs_;
};

TEST(GpuAttention, ComputesItsBody) {
  NEED_TENSOR_CORES();
  const Shape shapes[] = {
      {2, 2, 64, 64, 64},
      {1, 1, 1, 1, 8},
      {2, 3, 17, 17, 16},
      {1, 2, 130, 130, 40},
      {2, 3, 256, 256, 64, "bf16", "causal = true", 0, true},
      {1, 2, 200, 200, 80, "f16"},
      {2, 2, 130, 130, 128},
      {1, 2, 300, 300, 128, "bf16", "causal = false"},
      {2, 4, 65, 129, 64, "bf16", "causal = false", 2},
      {2, 4, 129, 65, 64, "bf16", "causal = true", 1},
      {2, 6, 100, 100, 32, "f16", "causal = true", 2, true},
      {1, 2, 300, 300, 64, "bf16", "causal = true, window = 70"},
      {1, 2, 200, 300, 64, "bf16", "causal = false, window = 1"},
      {2, 2, 150, 150, 64, "bf16", "causal = false", 0, false, true},
      {2, 2, 150, 150, 64, "bf16", "causal = true, window = 2, scale = 0.3", 0, false, true},
      {2, 2, 5, 200, 64, "bf16", "causal = true", 0, false, false, 77},
      {1, 2, 70, 200, 24, "bf16", "causal = false", 1, false, true, 150},
      {1, 2, 1030, 1030, 64},
  };
  for (const Shape &shape : shapes) {
    SCOPED_TRACE(shape.name());
    CompileOptions options;
    options.check = true;
    Attention(shape, gpuTarget(), options).run();
  }
}

TEST(GpuAttention, TwoRunsAreBitEqual) {
  NEED_TENSOR_CORES();
  for (const Shape &shape : {Shape{4, 12, 256, 256, 64, "bf16", "causal = true", 0, true},
                             {2, 4, 500, 500, 128, "bf16", "causal = true", 2}}) {
    SCOPED_TRACE(shape.name());
    Attention attention(shape, gpuTarget(), {});
    auto first = attention.run();
    ASSERT_FALSE(first.empty());
    for (int i = 0; i < 20; ++i) ASSERT_EQ(first, attention.run());
  }
}

// Prints us a kernel, the median of 20; a step's time holds the event's overhead of a few us.
TEST(GpuAttention, IsFasterThanOnCudaCores) {
  NEED_TENSOR_CORES();
  for (const Shape &shape : {Shape{32, 12, 256, 256, 64, "bf16", "causal = true", 0, true},
                             {8, 12, 1024, 1024, 64, "bf16", "causal = true", 0, true},
                             {16, 16, 256, 256, 128, "bf16", "causal = true", 0, true},
                             {1, 16, 2048, 2048, 128, "bf16", "causal = true", 0, true},
                             {32, 12, 128, 128, 64, "bf16", "causal = true", 0, true}}) {
    double totals[2] = {};
    for (ir::ArchTier tier : {ir::ArchTier::simt, ir::ArchTier::sm90a}) {
      CompileOptions options;
      options.profile = true;
      Attention attention(shape, gpuTarget(tier), options);
      std::vector<std::vector<double>> times;
      std::vector<std::string> names;
      const int runs = tier == ir::ArchTier::simt ? 4 : 23; // the first three warm up
      for (int i = 0; i < runs; ++i) {
        ASSERT_FALSE(attention.run().empty());
        auto steps = attention.program()->stepTimes();
        times.resize(steps.size()), names.resize(steps.size());
        for (unsigned s = 0; s < steps.size(); ++s) {
          names[s] = steps[s].name;
          if (i >= 3) times[s].push_back(steps[s].ms * 1000);
        }
      }
      std::cout << shape.name() << (tier == ir::ArchTier::simt ? ": CUDA cores" : ": tensor cores");
      for (unsigned s = 0; s < names.size(); ++s) {
        std::sort(times[s].begin(), times[s].end());
        totals[tier != ir::ArchTier::simt] += times[s][times[s].size() / 2];
        std::cout << llvm::formatv(", {0} {1:f1} us", names[s], times[s][times[s].size() / 2]).str();
      }
      std::cout << std::endl;
    }
    EXPECT_GT(totals[0], 2 * totals[1]) << shape.name();
  }
}

} // namespace
