#include "ir/types/dim.h"
#include "gtest/gtest.h"
#include <random>

using namespace fusor::ir;

namespace {

Dim B = Dim::symbol("B"), T = Dim::symbol("T");

TEST(Dim, Spelling) {
  EXPECT_EQ(Dim().str(), "0");
  EXPECT_EQ(Dim(256).str(), "256");
  EXPECT_EQ(Dim(-3).str(), "-3");
  EXPECT_EQ((B * 256).str(), "256*B");
  EXPECT_EQ((T + 1).str(), "T+1");
  EXPECT_EQ((T - 1).str(), "T-1");
  EXPECT_EQ((Dim(1) - T).str(), "-T+1");
  EXPECT_EQ((B * T * 2 - T * 3 + 4).str(), "2*B*T-3*T+4");
  EXPECT_EQ(str(Shape{B, 256, T * B}), "B, 256, B*T");
}

TEST(Dim, EqualExactlyWhenEqualForEveryValue) {
  EXPECT_EQ(B * T, T * B);
  EXPECT_EQ((B + 1) * (B - 1), B * B - 1);
  EXPECT_EQ(B - B, Dim(0));
  EXPECT_EQ((B + T) * 2, T * 2 + B + B);
  EXPECT_NE(B, T);
  EXPECT_NE(B, B * B);
  EXPECT_NE(B, Dim(1));
}

TEST(Dim, ConstantsAndSymbols) {
  EXPECT_TRUE((B - B + 7).isConstant());
  EXPECT_EQ((B - B + 7).value(), 7);
  EXPECT_TRUE(Dim(0).is(0));
  EXPECT_FALSE(B.isConstant());
  EXPECT_FALSE(B.is(1));
  EXPECT_EQ(B.asSymbol(), llvm::StringRef("B"));
  for (const Dim &d : {B * 2, B * T, B + 1, Dim(3)}) EXPECT_EQ(d.asSymbol(), std::nullopt) << d.str();
  EXPECT_EQ(product(Shape{}), Dim(1));
  EXPECT_EQ(product(Shape{B, 3, T}), B * T * 3);
  EXPECT_EQ(product(Shape{B, 0}), Dim(0));
}

TEST(Dim, DividesExactlyOrNotAtAll) {
  EXPECT_EQ((B * 256).divide(B), Dim(256));
  EXPECT_EQ((B * T * 6).divide(T * 2), B * 3);
  EXPECT_EQ((B * T + T).divide(T), B + 1);
  EXPECT_EQ((B + 1).divide(B + 1), Dim(1));
  EXPECT_EQ(Dim(0).divide(B), Dim(0));
  EXPECT_EQ(Dim(12).divide(Dim(-4)), Dim(-3));
  EXPECT_EQ(Dim(7).divide(Dim(2)), std::nullopt);
  EXPECT_EQ((B + 1).divide(B), std::nullopt);
  EXPECT_EQ(B.divide(T), std::nullopt);
  EXPECT_EQ(B.divide(Dim(0)), std::nullopt);
  EXPECT_EQ(B.divide(B * B), std::nullopt);
}

TEST(Dim, EvaluatesWhereEverySymbolIsKnown) {
  SymbolValues values{{"B", 3}, {"T", 5}};
  EXPECT_EQ((B * T * 2 - T + 1).evaluate(values), 26);
  EXPECT_EQ(Dim(9).evaluate({}), 9);
  EXPECT_EQ((B + Dim::symbol("S")).evaluate(values), std::nullopt);
  std::string seen;
  (B * T + B).forEachSymbol([&](llvm::StringRef name) { seen += name; });
  EXPECT_EQ(seen, "BTB");
}

// What passes add up of sizes at the middle of wide ranges stays a number.
TEST(Dim, ValuesAreBounded) {
  constexpr int64_t kLargest = int64_t(1) << 48;
  const int64_t wide = int64_t(1) << 40;
  const SymbolValues values{{"B", wide}, {"T", wide}};
  EXPECT_EQ((B * T).evaluate(values), kLargest);
  EXPECT_EQ((B * T * T * T * 8 + B).evaluate(values), kLargest);
  EXPECT_EQ((Dim(0) - B * T * T).evaluate(values), -kLargest);
  EXPECT_EQ(Dim(INT64_MAX).evaluate(values), INT64_MAX) << "what was written is kept";
}

// Ring laws and evaluation agree on random polynomials.
TEST(Dim, ArithmeticAgreesWithArithmeticOfValues) {
  std::mt19937 random(7);
  auto draw = [&] {
    Dim d(int(random() % 7) - 3);
    for (int terms = random() % 3; terms-- > 0;) {
      Dim term(int(random() % 5) - 2);
      for (int k = random() % 3; k-- > 0;) term = term * (random() % 2 ? B : T);
      d = d + term;
    }
    return d;
  };
  SymbolValues values{{"B", 11}, {"T", 13}};
  auto at = [&](const Dim &d) { return *d.evaluate(values); };
  for (int i = 0; i < 2000; ++i) {
    Dim a = draw(), b = draw(), c = draw();
    EXPECT_EQ(at(a + b), at(a) + at(b));
    EXPECT_EQ(at(a - b), at(a) - at(b));
    EXPECT_EQ(at(a * b), at(a) * at(b));
    EXPECT_EQ((a + b) * c, c * a + b * c);
    if (auto q = a.divide(b)) {
      EXPECT_EQ(*q * b, a) << a.str() << " / " << b.str();
    }
  }
}

} // namespace
