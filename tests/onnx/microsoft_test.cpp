// Smaller operators of com.microsoft against loops: gated and normalised groups, attention of packed and 8-bit inputs.
#include "tests/onnx/evaluate.h"
#include "gtest/gtest.h"
#include <cmath>

namespace fusor::tests {
namespace {

using ir::DType;

void expectNear(const Numbers &found, const Numbers &wanted, double tolerance = 1e-6) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << "element " << i;
}

double geluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double geluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

TEST(OnnxMicrosoft, BiasSplitGelu) {
  ModelBuilder m;
  m.input("x", {"N", "S", "6"}).input("b", {"6"}).output("y");
  m.nodeOf("com.microsoft", "BiasSplitGelu", {"x", "b"}, {"y"});
  ir::RefTensor x = randomTensor(DType::f32, {2, 2, 6}, 1), b = randomTensor(DType::f32, {6}, 2);
  Numbers wanted;
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t i = 0; i < 3; ++i)
      wanted.push_back((x.data[row * 6 + i] + b.data[i]) * geluErf(x.data[row * 6 + 3 + i] + b.data[3 + i]));
  expectNear(resultsOf(m, {x, b})[0].data, wanted);
}

TEST(OnnxMicrosoft, GemmFastGelu) {
  ModelBuilder m;
  m.input("x", {"B", "S", "3"}).input("w", {"3", "2"}).input("b", {"2"}).output("y");
  m.nodeOf("com.microsoft", "GemmFastGelu", {"x", "w", "b"}, {"y"});
  ir::RefTensor x = randomTensor(DType::f32, {1, 2, 3}, 1), w = randomTensor(DType::f32, {3, 2}, 2),
                b = randomTensor(DType::f32, {2}, 3);
  Numbers wanted;
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t c = 0; c < 2; ++c) {
      double sum = b.data[c];
      for (int64_t e = 0; e < 3; ++e) sum += x.data[row * 3 + e] * w.data[e * 2 + c];
      wanted.push_back(geluTanh(sum));
    }
  expectNear(resultsOf(m, {x, w, b})[0].data, wanted);
}

// --- group norms

struct Groups {
  bool isLast, hasSkip, hasBias;
  int64_t activation;
  std::vector<int64_t> skip;
};

TEST(OnnxMicrosoft, GroupNormsAgainstLoops) {
  const int64_t n = 2, channels = 4, height = 2, width = 3, groups = 2;
  const std::vector<int64_t> last = {n, height, width, channels}, first = {n, channels, height, width};
  for (const Groups &g : {Groups{true, false, false, 0, {}},
                          {true, false, false, 1, {}},
                          {false, false, false, 1, {}},
                          {true, true, true, 0, last},
                          {true, true, false, 1, {n, channels}},
                          {true, true, true, 1, {n, 1, 1, channels}},
                          {false, true, true, 0, first},
                          {false, true, false, 0, {n, channels}}}) {
    SCOPED_TRACE(g.skip.size());
    ModelBuilder m;
    auto texts = [](const std::vector<int64_t> &shape) {
      std::vector<std::string> dims;
      for (int64_t dim : shape) dims.push_back(std::to_string(dim));
      return dims;
    };
    const std::vector<int64_t> shape = g.isLast ? last : first;
    std::vector<std::string> dims = texts(shape), names = {"x", "gamma", "beta"};
    if (g.isLast) dims[0] = "N", dims[1] = "H";
    if (!g.skip.empty()) dims = texts(shape);
    m.input("x", dims).input("gamma", {"4"}).input("beta", {"4"}).output("y");
    std::vector<ir::RefTensor> inputs = {randomTensor(DType::f32, shape, 1), randomTensor(DType::f32, {channels}, 2),
                                         randomTensor(DType::f32, {channels}, 3)};
    if (g.hasSkip) m.input("skip", texts(g.skip)), names.push_back("skip");
    if (g.hasSkip) inputs.push_back(randomTensor(DType::f32, g.skip, 4));
    if (g.hasBias) m.input("bias", {"4"}), names.push_back("bias");
    if (g.hasBias) inputs.push_back(randomTensor(DType::f32, {channels}, 5));
    std::vector<std::string> results = {"y"};
    if (g.hasSkip) results.push_back("sum"), m.output("sum");
    onnx::Node &node = m.nodeOf("com.microsoft", g.hasSkip ? "SkipGroupNorm" : "GroupNorm", names, results);
    ModelBuilder::attribute(node, "groups", groups);
    ModelBuilder::attribute(node, "activation", g.activation);
    ModelBuilder::attribute(node, "channels_last", g.isLast);
    ModelBuilder::realAttribute(node, "epsilon", 1e-3);

    auto place = [&](int64_t b, int64_t c, int64_t p) {
      return g.isLast ? (b * height * width + p) * channels + c : (b * channels + c) * height * width + p;
    };
    Numbers sum = inputs[0].data, wanted(sum.size());
    for (int64_t b = 0; b < n; ++b)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t p = 0; p < height * width; ++p) {
          double &s = sum[place(b, c, p)];
          if (g.hasSkip) s += inputs[3].data[g.skip == shape ? place(b, c, p) : b * channels + c];
          if (g.hasBias) s += inputs[4].data[c];
        }
    const int64_t each = channels / groups, count = each * height * width;
    for (int64_t b = 0; b < n; ++b)
      for (int64_t group = 0; group < groups; ++group) {
        double mean = 0, variance = 0;
        auto forEach = [&](auto visit) {
          for (int64_t c = group * each; c < (group + 1) * each; ++c)
            for (int64_t p = 0; p < height * width; ++p) visit(c, place(b, c, p));
        };
        forEach([&](int64_t, int64_t at) { mean += sum[at] / static_cast<double>(count); });
        forEach(
            [&](int64_t, int64_t at) { variance += (sum[at] - mean) * (sum[at] - mean) / static_cast<double>(count); });
        forEach([&](int64_t c, int64_t at) {
          double y = (sum[at] - mean) / std::sqrt(variance + static_cast<double>(1e-3F)) * inputs[1].data[c] +
                     inputs[2].data[c];
          wanted[at] = g.activation ? y / (1 + std::exp(-y)) : y;
        });
      }
    auto found = resultsOf(m, inputs);
    expectNear(found[0].data, wanted, 1e-5);
    if (g.hasSkip) expectNear(found[1].data, sum);
  }
}

// --- attention by weights of q, k and v in one

/// Sequences of tokens that see each other, or with `causal` those before.
struct Sequences {
  int64_t heads, width;
  std::vector<int64_t> lengths;
  bool isCausal;
};

// x [all tokens, D], weights [D, 3 * width], bias [3 * width].
Numbers attended(const Sequences &s, const Numbers &x, const Numbers &weights, const Numbers &bias) {
  const int64_t d = s.width / s.heads, columns = 3 * s.width;
  const auto inner = static_cast<int64_t>(weights.size()) / columns, tokens = static_cast<int64_t>(x.size()) / inner;
  Numbers all(tokens * columns), y(tokens * s.width, 0);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t c = 0; c < columns; ++c) {
      all[t * columns + c] = bias[c];
      for (int64_t e = 0; e < inner; ++e) all[t * columns + c] += x[t * inner + e] * weights[e * columns + c];
    }
  int64_t start = 0;
  for (int64_t length : s.lengths) {
    for (int64_t i = start; i < start + length; ++i)
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t end = s.isCausal ? i + 1 : start + length;
        Numbers p(end);
        double sum = 0;
        for (int64_t j = start; j < end; ++j) {
          double score = 0;
          for (int64_t e = 0; e < d; ++e)
            score += all[i * columns + h * d + e] * all[j * columns + s.width + h * d + e];
          sum += p[j] = std::exp(score / std::sqrt(static_cast<double>(d)));
        }
        for (int64_t j = start; j < end; ++j)
          for (int64_t e = 0; e < d; ++e)
            y[i * s.width + h * d + e] += p[j] / sum * all[j * columns + 2 * s.width + h * d + e];
      }
    start += length;
  }
  return y;
}

TEST(OnnxMicrosoft, PackedAttentionKeepsSequencesApart) {
  ModelBuilder m;
  m.input("x", {"T", "3"}).input("w", {"3", "12"}).input("b", {"12"}).input("offset", {"3", "4"}, kInt32);
  m.input("bounds", {"4"}, kInt32).output("y");
  ModelBuilder::attribute(m.nodeOf("com.microsoft", "PackedAttention", {"x", "w", "b", "offset", "bounds"}, {"y"}),
                          "num_heads", 2);
  ir::RefTensor x = randomTensor(DType::f32, {7, 3}, 1), w = randomTensor(DType::f32, {3, 12}, 2),
                b = randomTensor(DType::f32, {12}, 3);
  auto found = resultsOf(m, {x, w, b, randomTensor(DType::i32, {3, 4}, 4, 12), tensor(DType::i32, {4}, {0, 1, 3, 7})});
  expectNear(found[0].data, attended({2, 4, {1, 2, 4}, false}, x.data, w.data, b.data));
}

TEST(OnnxMicrosoft, QuantizedAttentionIsAttentionOfItsNumbers) {
  for (bool perColumn : {false, true})
    for (bool causal : {false, true}) {
      const std::vector<std::string> scales = perColumn ? std::vector<std::string>{"12"} : std::vector<std::string>{};
      ModelBuilder m;
      m.input("x", {"B", "S", "3"}, kUint8).input("w", {"3", "12"}, kInt8).input("b", {"12"}).input("xs", {});
      m.input("ws", scales).input("xz", {}, kUint8).input("wz", scales, kInt8).output("y");
      onnx::Node &node = m.nodeOf("com.microsoft", "QAttention", {"x", "w", "b", "xs", "ws", "", "xz", "wz"}, {"y"});
      ModelBuilder::attribute(node, "num_heads", 2);
      ModelBuilder::attribute(node, "unidirectional", causal);
      const std::vector<int64_t> each = perColumn ? std::vector<int64_t>{12} : std::vector<int64_t>{};
      std::vector<ir::RefTensor> inputs = {
          randomTensor(DType::u8, {1, 4, 3}, 1, 256), randomTensor(DType::i8, {3, 12}, 2, 100),
          randomTensor(DType::f32, {12}, 3),          tensor(DType::f32, {}, {0.015625}),
          randomTensor(DType::f32, each, 4),          tensor(DType::u8, {}, {120}),
          randomTensor(DType::i8, each, 5, 100)};
      for (double &scale : inputs[4].data) scale = std::abs(scale) / 64;
      Numbers x, w;
      for (double q : inputs[0].data) x.push_back((q - 120) * 0.015625);
      for (size_t i = 0; i < 36; ++i) {
        const size_t column = perColumn ? i % 12 : 0;
        w.push_back((inputs[1].data[i] - inputs[6].data[column]) * inputs[4].data[column]);
      }
      expectNear(resultsOf(m, inputs)[0].data, attended({2, 4, {4}, causal}, x, w, inputs[2].data), 1e-5);
    }
}

} // namespace
} // namespace fusor::tests
