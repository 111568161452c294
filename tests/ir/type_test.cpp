#include "ir/types/type.h"
#include "gtest/gtest.h"

using namespace fusor::ir;

namespace {

Dim B = Dim::symbol("B");

TEST(TensorType, SpellingAndParts) {
  TensorType t{DType::bf16, {B, 256, 768}};
  EXPECT_EQ(t.str(), "bf16[B, 256, 768]");
  EXPECT_EQ((TensorType{DType::f32, {}}.str()), "f32[]");
  EXPECT_EQ((TensorType{DType::f8e4m3, {B, 0}, Granularity::tensor}.str()), "f8e4m3[B, 0] per tensor");
  EXPECT_EQ(t.dim(0), B);
  EXPECT_EQ(t.dim(-1), Dim(768));
  EXPECT_EQ(t.elements(), B * 196608);
  EXPECT_EQ(t.rank(), 3u);
}

TEST(TensorType, EqualityIsOfDTypeShapeAndGranularity) {
  TensorType t{DType::f8e4m3, {4}}, q = t;
  q.granularity = Granularity::tensor;
  EXPECT_NE(t, q);
  EXPECT_EQ(q.withShape({4}), q);
  EXPECT_EQ(q.withDType(DType::f8e4m3), t) << "another dtype drops the scale";
  EXPECT_NE(t, t.withShape({5}));
}

TEST(TensorType, ByteSize) {
  SymbolValues values{{"B", 3}};
  EXPECT_EQ(byteSize(TensorType{DType::bf16, {B, 5}}, values), 30);
  EXPECT_EQ(byteSize(TensorType{DType::i1, {}}, {}), 1);
  EXPECT_EQ(byteSize(TensorType{DType::f64, {0, 7}}, {}), 0);
  EXPECT_EQ(byteSize(TensorType{DType::f64, {B}}, {}), std::nullopt);
}

TEST(BroadcastShapes, FollowsNumPysRule) {
  auto of = [](Shape a, Shape b) { return broadcastShapes({llvm::ArrayRef<Dim>(a), llvm::ArrayRef<Dim>(b)}); };
  EXPECT_EQ(of({B, 4}, {4}), (Shape{B, 4}));
  EXPECT_EQ(of({4}, {B, 4}), (Shape{B, 4}));
  EXPECT_EQ(of({B, 1}, {1, 4}), (Shape{B, 4}));
  EXPECT_EQ(of({}, {3}), (Shape{3}));
  EXPECT_EQ(of({}, {}), Shape{});
  EXPECT_EQ(of({1}, {0}), (Shape{0}));
  EXPECT_EQ(of({3}, {0}), std::nullopt);
  EXPECT_EQ(of({B}, {4}), std::nullopt) << "a symbol is not a number, whatever its range";
  EXPECT_EQ(of({3}, {4}), std::nullopt);
  EXPECT_EQ(broadcastShapes({}), Shape{});
}

} // namespace
