// Training data: a sequence depends on its number alone.
#include "frontend/api/config_file.h"
#include "frontend/api/data.h"
#include "frontend/api/fusor.h"
#include "runtime/checkpoint/npy.h"
#include "tests/runtime/temporary_folder.h"
#include "gtest/gtest.h"
#include <fstream>
#include <set>

namespace {
using namespace fusor;
using namespace fusor::frontend;

TEST(SyntheticData, CountsByAStrideOf1To6) {
  std::set<int> strides, phases;
  for (int64_t k = 0; k < 400; ++k) {
    std::vector<int32_t> sequence(33);
    syntheticSequence(3, k, 96, sequence);
    int stride = (sequence[1] - sequence[0] + 96) % 96;
    strides.insert(stride), phases.insert(sequence[0]);
    for (int i = 0; i < 33; ++i) ASSERT_EQ(sequence[i], (sequence[0] + stride * i) % 96) << k;
  }
  EXPECT_EQ(strides, (std::set<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_GT(phases.size(), 80u);
}

TEST(SyntheticData, APartOfABatchIsThatPart) {
  auto source = syntheticData(7, 96);
  std::vector<int32_t> tokens(8 * 16), targets(tokens), part(4 * 16), partTargets(part);
  fillBatch(*source, 8, 8, 16, tokens, targets);
  fillBatch(*source, 12, 4, 16, part, partTargets);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), tokens.begin() + 4 * 16));
  EXPECT_EQ(targets[0], tokens[1]);
  std::vector<int32_t> others(tokens), ignored(tokens);
  fillBatch(*syntheticData(8, 96), 8, 8, 16, others, ignored);
  EXPECT_NE(others, tokens);
}

TEST(SyntheticData, BatchesOfTheApiAreTheSame) {
  std::vector<int32_t> tokens(4 * 16), targets(tokens);
  fillBatch(*syntheticData(0, 96), 4, 4, 16, tokens, targets);
  int64_t step = 0;
  for (auto [x, y] : syntheticBatches({.batch = 4, .steps = 2, .context = 16})) {
    if (step++ != 1) continue;
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), x.as<int32_t>()));
    EXPECT_TRUE(std::equal(targets.begin(), targets.end(), y.as<int32_t>()));
  }
  EXPECT_EQ(step, 2);
}

TEST(TextData, HeldOutWindowsAreInOrderAndApart) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  std::ofstream(folder.path("t")) << text;
  auto data = textData(folder.path("t"), 1, 8, 25);
  ASSERT_TRUE(bool(data));
  EXPECT_EQ(*data->held->count(), 6);
  std::vector<int32_t> window(9);
  data->held->sequence(1, window);
  EXPECT_EQ(window[0], 158); // begins at 150, then every 8
  for (int64_t k = 0; k < 200; ++k) {
    data->training->sequence(k, window);
    EXPECT_LT(window.back(), 150) << "training reached into what is held out";
  }
}

TEST(TokensData, ReadsStepsBatchAndContext) {
  TemporaryFolder folder;
  std::vector<int32_t> tokens(2 * 3 * 5);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  auto write = [&](llvm::ArrayRef<int64_t> shape) {
    return runtime::writeNpy(folder.path("t.npy"), ir::DType::i32, shape,
                             {reinterpret_cast<uint8_t *>(tokens.data()), tokens.size() * 4});
  };
  ASSERT_FALSE(bool(write({2, 3, 5})));
  auto data = tokensData(folder.path("t.npy"));
  ASSERT_TRUE(bool(data));
  EXPECT_EQ(data->steps, 2);
  EXPECT_EQ(data->batch, 3);
  EXPECT_EQ(data->context, 4);
  EXPECT_EQ(data->source->vocab(), 30);
  std::vector<int32_t> sequence(5);
  data->source->sequence(4, sequence);
  EXPECT_EQ(sequence[0], 20);
  ASSERT_FALSE(bool(write({6, 5})));
  EXPECT_NE(
      llvm::toString(tokensData(folder.path("t.npy")).takeError()).find("must be integers [steps, batch, context+1]"),
      std::string::npos);
  tokens[7] = -1;
  ASSERT_FALSE(bool(write({2, 3, 5})));
  EXPECT_NE(llvm::toString(tokensData(folder.path("t.npy")).takeError()).find("element 7 is -1, no token"),
            std::string::npos);
}

TEST(ConfigFile, NamesEveryMistake) {
  TemporaryFolder folder;
  auto says = [&](const std::string &json) {
    std::ofstream(folder.path("c.json")) << json;
    auto config = loadConfig(folder.path("c.json"));
    return config ? "" : llvm::toString(config.takeError());
  };
  EXPECT_EQ(says(R"({"vocab":10,"width":8,"heads":2,"layers":1,"ffn":16,"context":4})"), "");
  EXPECT_NE(says(R"({"vocab":10,"width":8,"heads":2,"layers":1,"ffn":16})").find("\"context\" is missing"),
            std::string::npos);
  EXPECT_NE(says(R"({"vocab":10,"width":8,"heads":3,"layers":1,"ffn":16,"context":4})")
                .find("c.json: 'blocks.0': width 8 must be a multiple of heads = 3"),
            std::string::npos);
  EXPECT_NE(says(R"({"vocab":"x","width":8,"heads":2,"layers":1,"ffn":16,"context":4})")
                .find("\"vocab\" must be a whole number of at least 1, is \"x\""),
            std::string::npos);
  EXPECT_NE(says(R"({"vocab":10,"width":8,"heads":2,"layers":1,"ffn":16,"context":4,"depth":2})")
                .find("there is no setting \"depth\""),
            std::string::npos);
  EXPECT_NE(says("[1]").find("must be an object"), std::string::npos);
  EXPECT_NE(llvm::toString(loadConfig("huge").takeError()).find("there are tiny, small, seed, scaled, gpt2"),
            std::string::npos);
}

} // namespace
