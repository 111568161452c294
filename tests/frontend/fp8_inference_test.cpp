// Weights kept in FP8 alone: how they are quantised, the files of the contract, and what a trained model generates.
#include "frontend/api/checkpoint.h"
#include "frontend/api/fp8_weights.h"
#include "frontend/api/generator.h"
#include "frontend/api/trainer.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace {
using namespace fusor;
using namespace fusor::frontend;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

double decoded(const Fp8Weight &weight, size_t i) {
  return ir::loadElement(ir::DType::f8e4m3, weight.data.data(), static_cast<int64_t>(i)) * weight.inverse;
}

TEST(Fp8Weights, TheLargestElementBecomesTheLargestNumber) {
  float values[] = {0.5f, -2.0f, 0.0f, 1e-9f};
  Fp8Weight weight = quantiseWeight(ir::DType::f32, values, 4);
  EXPECT_EQ(weight.inverse, 1 / 224.0f);
  EXPECT_EQ(decoded(weight, 0), 112 * static_cast<double>(1 / 224.0f));
  EXPECT_EQ(ir::loadElement(ir::DType::f8e4m3, weight.data.data(), 1), -448);
  EXPECT_EQ(decoded(weight, 2), 0);
  EXPECT_EQ(decoded(weight, 3), 0);
}

TEST(Fp8Weights, TheScaleIsFiniteAndNotZeroWhateverTheElementsAre) {
  for (std::vector<float> values : {std::vector<float>{0, 0},
                                    {kNaN, kInf},
                                    {1e-45f, 0},
                                    {1e-40f, -1e-42f},
                                    {std::numeric_limits<float>::max(), 1},
                                    {kInf, 3},
                                    {-0.0f, kNaN}}) {
    Fp8Weight weight = quantiseWeight(ir::DType::f32, values.data(), static_cast<int64_t>(values.size()));
    EXPECT_TRUE(std::isfinite(weight.inverse) && weight.inverse > 0) << values[0] << ": " << weight.inverse;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isnan(decoded(weight, i)), std::isnan(values[i])) << values[i];
      EXPECT_FALSE(std::isinf(decoded(weight, i))) << values[i];
    }
  }
  EXPECT_EQ(quantiseWeight(ir::DType::f32, nullptr, 0).inverse, 1);
}

/// tiny, trained until it counts.
std::string trainedTiny(const TemporaryFolder &folder, bool fp8 = false) {
  TrainSettings s;
  s.config = *nn::configuration("tiny");
  s.device.device = "cpu";
  s.steps = 150, s.batch = 8, s.lr = 3e-3, s.seed = 2;
  if (fp8) s.fp8.emplace();
  s.saveFolder = folder.path(fp8 ? "fp8" : "bf16");
  auto summary = train(s, {});
  EXPECT_TRUE(bool(summary)) << llvm::toString(summary.takeError());
  EXPECT_LT(summary->finalLoss.value_or(9), 1.0);
  return s.saveFolder;
}

GenerateSettings prompted(const std::string &checkpoint) {
  GenerateSettings s;
  s.checkpoint = checkpoint, s.prompt = {10, 13, 16, 19, 22, 25, 28, 31}, s.newTokens = 20;
  s.device.device = "cpu", s.device.strict = true;
  return s;
}
Generated generated(const GenerateSettings &settings) {
  auto made = generate(settings);
  if (made) return *made;
  ADD_FAILURE() << llvm::toString(made.takeError());
  return {};
}

TEST(Fp8Weights, GenerateWhatTheModelInBf16Does) {
  TemporaryFolder folder;
  GenerateSettings wide = prompted(trainedTiny(folder)), narrow = wide;
  narrow.fp8Weights = true;
  Generated expected = generated(wide), found = generated(narrow);
  EXPECT_EQ(expected.tokens.size(), 20u);
  EXPECT_EQ(found.tokens, expected.tokens);
  // qkv, proj, fc1 and fc2 of two blocks: 12 * 64 * 64 elements each block, and a scale each
  EXPECT_EQ(found.weightBytes.bf16, 2 * 2 * 12 * 64 * 64);
  EXPECT_EQ(found.weightBytes.fp8, 2 * 12 * 64 * 64 + 8 * 4);
  EXPECT_LE(found.weightBytes.fp8, 0.55 * static_cast<double>(found.weightBytes.bf16));
  EXPECT_EQ(expected.weightBytes.fp8, 0);
  EXPECT_LT(found.peakBytes, expected.peakBytes - 4 * found.weightBytes.fp8) << "no copy in f32 or bf16 is kept";
  narrow.keepsCache = false;
  EXPECT_EQ(generated(narrow).tokens, expected.tokens);
  narrow.keepsCache = true, narrow.precision = ir::DType::f32; // activations in f32
  EXPECT_EQ(generated(narrow).tokens, expected.tokens);
}

TEST(Fp8Weights, ACheckpointKeepsThem) {
  TemporaryFolder folder;
  GenerateSettings s = prompted(trainedTiny(folder));
  s.fp8Weights = true, s.saveFolder = folder.path("narrow");
  std::vector<int32_t> tokens = generated(s).tokens;
  auto file = runtime::SafetensorsFile::open(s.saveFolder + "/model.safetensors");
  ASSERT_TRUE(bool(file));
  const auto *weight = file->find("blocks.1.fc2.weight"), *inverse = file->find("blocks.1.fc2.weight.scale_inv");
  ASSERT_TRUE(weight && inverse);
  EXPECT_EQ(weight->info.dtype, ir::DType::f8e4m3);
  EXPECT_EQ(inverse->info.dtype, ir::DType::f32);
  EXPECT_TRUE(inverse->info.shape.empty());
  EXPECT_EQ(file->find("head.weight")->info.dtype, ir::DType::f32);
  EXPECT_EQ(file->find("head.weight.scale_inv"), nullptr);
  EXPECT_FALSE(llvm::sys::fs::exists(s.saveFolder + "/optimizer.safetensors"));

  GenerateSettings again = prompted(s.saveFolder);
  again.fp8Weights = true;
  EXPECT_EQ(generated(again).tokens, tokens);
  again.fp8Weights = false; // its weights in bf16, as dequantised
  EXPECT_EQ(generated(again).tokens, tokens);
  GenerateSettings exported = again; // no prompt: nothing is generated; the bits are the same
  exported.fp8Weights = true, exported.prompt.clear(), exported.saveFolder = folder.path("second");
  EXPECT_TRUE(generated(exported).tokens.empty());
  auto second = runtime::SafetensorsFile::open(exported.saveFolder + "/model.safetensors");
  ASSERT_TRUE(bool(second));
  EXPECT_EQ(second->find("blocks.1.fc2.weight")->bytes, weight->bytes);
}

// Files of others: E4M3 and a scalar, or a mistake that is named.
TEST(Fp8Weights, AreReadFromAFileOfOthers) {
  TemporaryFolder folder;
  GenerateSettings s = prompted(trainedTiny(folder));
  std::string path = s.checkpoint + "/model.safetensors", copy = folder.path("copy.safetensors");
  for (bool hasInverse : {true, false}) {
    auto file = runtime::SafetensorsFile::open(path);
    ASSERT_TRUE(bool(file));
    std::vector<runtime::TensorInfo> infos;
    std::vector<std::vector<char>> contents;
    for (const auto &tensor : file->tensors()) {
      if (llvm::StringRef(tensor.info.name).endswith("fc1.weight.scale_inv")) continue;
      infos.push_back(tensor.info);
      contents.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
      if (!llvm::StringRef(tensor.info.name).endswith("fc1.weight") || tensor.info.dtype != ir::DType::f32) continue;
      Fp8Weight weight =
          quantiseWeight(ir::DType::f32, tensor.bytes.data(), static_cast<int64_t>(tensor.bytes.size() / 4));
      infos.back().dtype = ir::DType::f8e4m3, contents.back() = weight.data;
      if (!hasInverse) continue;
      infos.push_back({tensor.info.name + ".scale_inv", ir::DType::f32, {}});
      contents.emplace_back(4);
      std::memcpy(contents.back().data(), &weight.inverse, 4);
    }
    auto writer = runtime::SafetensorsWriter::create(copy, infos, {});
    ASSERT_TRUE(bool(writer));
    for (size_t i = 0; i < infos.size(); ++i)
      ASSERT_FALSE(bool(
          writer->write(infos[i].name, {reinterpret_cast<const uint8_t *>(contents[i].data()), contents[i].size()})));
    ASSERT_FALSE(bool(writer->commit()));
    std::string original = folder.path("original");
    llvm::sys::fs::rename(path, original), llvm::sys::fs::rename(copy, path);
    auto made = generate(s);
    llvm::sys::fs::rename(original, path);
    ASSERT_EQ(bool(made), hasInverse);
    if (made) {
      EXPECT_EQ(made->tokens, generated(s).tokens);
      continue;
    }
    std::string text = llvm::toString(made.takeError());
    EXPECT_NE(text.find("'blocks.0.fc1.weight' is in FP8 in the file, without blocks.0.fc1.weight.scale_inv (F32, one "
                        "element)"),
              std::string::npos)
        << text;
  }
}

} // namespace
