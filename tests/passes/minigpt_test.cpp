// The train pipeline on MiniGPT against the traces of PyTorch in shared/reference, run by the float64 interpreter.
#include "frontend/nn/modules.h"
#include "models.h"
#include "passes/pipeline.h"
#include "runtime/checkpoint/npy.h"
#include "runtime/checkpoint/safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace fusor;
using namespace fusor::test;

namespace {

std::string referenceFolder() {
  const char *folder = FUSOR_SOURCE_DIR "/../shared/reference";
  return llvm::sys::fs::exists(folder) ? folder : "";
}

ir::RefTensor tensorOf(ir::DType dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<uint8_t> bytes) {
  ir::RefTensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.data.resize(bytes.size() / ir::byteSize(dtype));
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data[i] = ir::loadElement(dtype, bytes.data(), i);
  return tensor;
}

struct Case {
  std::unique_ptr<ir::Module> module;
  ir::RefState state;   // initial weights of the case and zero optimizer states
  ir::RefTensor tokens; // [steps, batch, context + 1]
  llvm::json::Value trace = nullptr;

  // tokens and targets of step `step`: [rows, context] each
  std::vector<ir::RefTensor> inputs(int64_t step) const {
    int64_t rows = tokens.dim(1), length = tokens.dim(2);
    std::vector<ir::RefTensor> parts(2);
    for (int64_t shift = 0; shift < 2; ++shift) {
      parts[shift].dtype = ir::DType::i32;
      parts[shift].shape = {rows, length - 1};
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i + 1 < length; ++i)
          parts[shift].data.push_back(tokens.data[(step * rows + row) * length + i + shift]);
    }
    return parts;
  }
  std::vector<double> numbers(llvm::StringRef key) const {
    std::vector<double> values;
    for (const llvm::json::Value &v : *trace.getAsObject()->getArray(key)) values.push_back(*v.getAsNumber());
    return values;
  }
};

void load(const std::string &folder, const passes::PassOptions &options, Case &c) {
  c.module = nn::gptForward(*nn::configuration("small"));
  passes::PassContext context(options);
  std::vector<std::string> names; // what changes the mathematics; fusion has its own tests
  for (const passes::Pass &pass : passes::pipeline(passes::PipelineKind::train))
    if (pass.name != "layout" && pass.name != "fusion") names.push_back(pass.name.str());
  EXPECT_SUCCESS(passes::runPasses(*c.module, names, context));
  c.state = initialState(*c.module);
  auto weights = runtime::SafetensorsFile::open(folder + "/init.safetensors");
  ASSERT_TRUE(bool(weights)) << llvm::toString(weights.takeError());
  for (const auto &t : weights->tensors()) c.state[t.info.name] = tensorOf(t.info.dtype, t.info.shape, t.bytes);
  auto npy = runtime::readNpy(folder + "/tokens.npy");
  ASSERT_TRUE(bool(npy)) << llvm::toString(npy.takeError());
  c.tokens = tensorOf(npy->dtype, npy->shape, npy->bytes);
  auto text = llvm::MemoryBuffer::getFile(folder + "/trace.json");
  ASSERT_TRUE(bool(text));
  auto trace = llvm::json::parse((*text)->getBuffer());
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  c.trace = std::move(*trace);
}

double norm(const ir::RefTensor &t) {
  double sum = 0;
  for (double x : t.data) sum += x * x;
  return std::sqrt(sum);
}

TEST(MiniGpt, TwoStepsInF32FollowTheReference) {
  std::string folder = referenceFolder();
  if (folder.empty()) GTEST_SKIP() << "shared/reference is not here";
  passes::PassOptions options;
  Case c;
  load(folder + "/minigpt_small", options, c);
  ir::Function &step = *c.module->function("train_step");
  auto losses = c.numbers("losses_fp64");
  const auto *norms = c.trace.getAsObject()->getObject("grad_norms_fp64");
  for (int t = 0; t < 2; ++t) {
    auto result = evaluateOrFail(step, c.inputs(t), c.state);
    EXPECT_NEAR(result.results[0].data[0], losses[t], 1e-6) << "in step " << t + 1;
    for (auto &entry : result.updates) c.state[entry.first()] = entry.second;
    if (t > 0) continue;
    for (const auto &entry : *norms) // m = (1 - beta1) * gradient after the first step
      EXPECT_NEAR(norm(c.state["adamw.m." + entry.first.str()]) / 0.1 / *entry.second.getAsNumber(), 1, 1e-6)
          << entry.first.str();
  }
}

TEST(MiniGpt, TwoStepsInBf16StayNearTheReference) {
  std::string folder = referenceFolder();
  if (folder.empty()) GTEST_SKIP() << "shared/reference is not here";
  passes::PassOptions options;
  options.precision = ir::DType::bf16;
  Case c;
  load(folder + "/minigpt_small", options, c);
  ir::Function &step = *c.module->function("train_step");
  auto losses = c.numbers("losses_fp64");
  for (int t = 0; t < 2; ++t) {
    auto result = evaluateOrFail(step, c.inputs(t), c.state);
    EXPECT_NEAR(result.results[0].data[0], losses[t], 3e-3) << "in step " << t + 1;
    for (auto &entry : result.updates) c.state[entry.first()] = entry.second;
  }
}

} // namespace
