// Resize and Upsample: what the standard's own tests leave out.
#include "tests/onnx/evaluate.h"
#include "gtest/gtest.h"

namespace fusor::tests {
namespace {

using ir::DType;

/// Of [dims], by `scales` or to `sizes`, which is not empty.
ModelBuilder resize(std::vector<std::string> dims, std::vector<float> scales, std::vector<int64_t> sizes,
                    std::vector<std::pair<const char *, const char *>> words) {
  ModelBuilder m;
  m.input("x", std::move(dims)).output("y");
  std::vector<std::string> inputs = {"x", "", ""};
  if (!sizes.empty()) {
    m.ints("sizes", std::move(sizes));
    inputs.push_back("sizes");
  } else {
    auto &t = m.initializer("scales", {static_cast<int64_t>(scales.size())}, 1);
    for (float scale : scales) t.add_float_data(scale);
    inputs[2] = "scales";
  }
  onnx::Node &node = m.node("Resize", inputs, {"y"});
  for (auto [name, word] : words) ModelBuilder::textAttribute(node, name, word);
  return m;
}

const ir::RefTensor kRow = tensor(DType::f32, {1, 3}, {10, 20, 40});

TEST(OnnxResize, OtherAxesMayBeSymbols) {
  EXPECT_EQ(evaluated(resize({"B", "3"}, {1, 2}, {}, {{"mode", "linear"}}), {kRow}),
            "10.000 12.500 17.500 25.000 35.000 40.000 ");
  EXPECT_EQ(evaluated(resize({"B", "3"}, {1, 2}, {}, {}), {kRow}), "10.000 10.000 20.000 20.000 40.000 40.000 ");
  EXPECT_PART(resize({"1", "N"}, {1, 2}, {}, {}).imported(), "a dim of N by 2.00 is not supported");
}

TEST(OnnxResize, PlacesOfEachMode) {
  auto to4 = [&](const char *place, const char *mode) {
    return evaluated(resize({"1", "3"}, {}, {1, 4}, {{"coordinate_transformation_mode", place}, {"mode", mode}}),
                     {kRow});
  };
  EXPECT_EQ(to4("half_pixel", "linear"), "10.000 16.250 27.500 40.000 ");
  EXPECT_EQ(to4("align_corners", "linear"), "10.000 16.667 26.667 40.000 ");
  EXPECT_EQ(to4("asymmetric", "linear"), "10.000 17.500 30.000 40.000 ");
  EXPECT_EQ(to4("asymmetric", "nearest"), "10.000 20.000 20.000 40.000 "); // 1.5 is rounded down
  EXPECT_PART(to4("tf_crop_and_resize", "linear"), "'tf_crop_and_resize' is not supported");
  EXPECT_PART(to4("half_pixel", "area"), "attribute 'mode' = 'area' is not supported");
}

TEST(OnnxResize, CornersOfNoWholeSizeAreRefused) {
  auto aligned = [](float scale) {
    return resize({"1", "4"}, {1, scale}, {},
                  {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}});
  };
  EXPECT_EQ(evaluated(aligned(0.5F), {tensor(DType::f32, {1, 4}, {1, 2, 3, 4})}), "1.000 4.000 ");
  EXPECT_PART(aligned(0.6F).imported(), "align_corners of 4 elements by 0.60 is not supported: give sizes");
}

TEST(OnnxResize, ASizeThatRoundsEitherWayIsRefused) {
  EXPECT_PART(resize({"1", "10"}, {1, 0.7F}, {}, {}).imported(), "a dim of 10 by 0.70 has 6 elements or one more");
}

TEST(OnnxResize, AnElementThatIsNearestByRoundingIsRefused) {
  // 8.5 / 1.7f is 5 in f32, and less in double
  EXPECT_PART(resize({"1", "6"}, {1, 1.7F}, {}, {{"nearest_mode", "round_prefer_ceil"}}).imported(),
              "element 8 along axis 1 is between two of x, by a scale of 1.70");
  EXPECT_PART(resize({"1", "6"}, {1, 1.7F}, {}, {{"nearest_mode", "floor"}}).imported(), "gather");
}

TEST(OnnxResize, UpsampleTakesElementsBelow) {
  ModelBuilder m(9);
  m.input("x", {"1", "3"}).output("y");
  auto &scales = m.initializer("scales", {2}, 1);
  scales.add_float_data(1), scales.add_float_data(1.5);
  m.node("Upsample", {"x", "scales"}, {"y"});
  EXPECT_EQ(evaluated(m, {kRow}), "10.000 10.000 20.000 40.000 ");
}

} // namespace
} // namespace fusor::tests
