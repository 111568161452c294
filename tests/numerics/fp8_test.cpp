// FP8: quantize over every bf16 value, straight-through gradients, and the delayed-scaling update.
#include "ir/graph/builder.h"
#include "ir/reference/reference.h"
#include "tests/support/fp8_definition.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace fusor::ir;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

RefTensor tensor(DType dtype, llvm::ArrayRef<int64_t> shape, std::vector<double> data) {
  RefTensor t;
  t.dtype = dtype;
  t.shape.assign(shape.begin(), shape.end());
  t.data = std::move(data);
  return t;
}
RefTensor scalar(double v) { return tensor(DType::f32, {}, {v}); }

/// Builds a function of `inputs` with `build`, returns what it returns. Functions of tests are short-lived: no module
/// is kept.
template <typename Build> std::vector<RefTensor> run(std::vector<RefTensor> inputs, Build build) {
  Module module;
  Function &f = module.addFunction("f");
  llvm::SmallVector<Value, 4> values;
  for (const RefTensor &in : inputs) {
    Shape shape(in.shape.begin(), in.shape.end());
    values.push_back(f.block().addArgument({in.dtype, shape}, "x"));
  }
  Builder b(f.block());
  llvm::SmallVector<ReturnEntry, 4> returns;
  for (Value v : build(b, values)) returns.push_back({ReturnKind::result, "", v});
  f.setReturns(returns);
  return llvm::cantFail(evaluate(f, inputs)).results;
}

std::vector<double> everyBF16() {
  std::vector<double> values;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    auto pattern = static_cast<uint16_t>(bits);
    values.push_back(loadElement(DType::bf16, &pattern, 0));
  }
  return values;
}

TEST(Quantize, EveryBF16ValueIsScaledInF32AndRoundedOnce) {
  std::vector<double> values = everyBF16();
  for (DType fp8 : {DType::f8e4m3, DType::f8e5m2})
    for (float scale : {1.0f, 3.7f, 1e-30f}) {
      auto out = run({tensor(DType::bf16, {65536}, values), scalar(scale)}, [&](Builder &b, llvm::ArrayRef<Value> in) {
        Op *q = b.make("quantize", {in[0], in[1]}, {{"dtype", fp8}});
        return llvm::SmallVector<Value, 2>{q->result(0), q->result(1)};
      });
      for (size_t i = 0; i < values.size(); ++i) {
        float product = static_cast<float>(values[i]) * scale;
        if (std::isnan(product))
          ASSERT_TRUE(std::isnan(out[0].data[i]));
        else
          ASSERT_EQ(out[0].data[i], roundTo(fp8, product)) << values[i];
        ASSERT_FALSE(std::fabs(out[0].data[i]) > maxFinite(fp8)) << "saturates";
      }
      EXPECT_EQ(out[1].data[0], kInf) << "amax counts infinity, not NaN";
      EXPECT_EQ(out[0].scale, scale);
    }
}

// ONNX's saturate = 0, against the enumerated definition.
TEST(Cast, ToFp8WithoutSaturation) {
  for (DType fp8 : {DType::f8e4m3, DType::f8e5m2})
    for (bool saturates : {true, false}) {
      fusor::tests::Fp8Definition definition(fp8 == DType::f8e5m2, saturates);
      for (const std::vector<float> &values : {fusor::tests::everyBf16(), fusor::tests::sampledF32()}) {
        std::vector<double> x(values.begin(), values.end());
        auto out =
            run({tensor(DType::f32, {static_cast<int64_t>(x.size())}, x)}, [&](Builder &b, llvm::ArrayRef<Value> in) {
              return std::vector<Value>{b.op("cast", {in[0]}, {{"to", fp8}, {"saturate", saturates}})};
            });
        for (size_t i = 0; i < values.size(); ++i) {
          uint8_t code = 0;
          storeElement(fp8, &code, 0, out[0].data[i]);
          ASSERT_TRUE(definition.is(code, values[i])) << values[i] << " is " << +code;
        }
      }
    }
}

// A choice between values that are Inf already is no conversion.
TEST(Cast, AnInfOfE5m2IsChosenAsItIs) {
  auto out = run({tensor(DType::f8e5m2, {2}, {kInf, 1})}, [](Builder &b, llvm::ArrayRef<Value> in) {
    return std::vector<Value>{b.op("neg", {in[0]}), b.op("max", {in[0], in[0]})};
  });
  EXPECT_EQ(out[0].data, (std::vector<double>{-kInf, -1}));
  EXPECT_EQ(out[1].data, (std::vector<double>{kInf, 1}));
}

TEST(Quantize, DequantizeUndoesTheScale) {
  auto out = run({tensor(DType::f32, {4}, {1, -2, 0.5, 1000}), scalar(16)}, [](Builder &b, llvm::ArrayRef<Value> in) {
    return std::vector<Value>{b.op("dequantize", {b.op("quantize", {in[0], in[1]})})};
  });
  EXPECT_EQ(out[0].data, (std::vector<double>{1, -2, 0.5, 28})); // 448 / 16
}

TEST(Quantize, QuantisedOperandsOfAGemmMeanTheirValue) {
  std::vector<double> x{1, 2, 3, 4, 5, 6}, w{1, 0, 2, 0, 1, 1};
  auto out = run({tensor(DType::f32, {2, 3}, x), tensor(DType::f32, {2, 3}, w), scalar(8), scalar(0.5)},
                 [](Builder &b, llvm::ArrayRef<Value> in) {
                   Value q = b.op("quantize", {in[0], in[2]}), v = b.op("quantize", {in[1], in[3]});
                   Value t = b.op("transpose", {v}, {{"perm", std::vector<int64_t>{1, 0}}}); // carries the scale
                   return std::vector<Value>{b.op("linear", {q, v}, {{"out", DType::f32}}),
                                             b.op("matmul", {q, t}, {{"out", DType::f32}}), b.op("linear", {q, v})};
                 });
  EXPECT_EQ(out[0].data, (std::vector<double>{7, 5, 16, 11}));
  EXPECT_EQ(out[1].data, out[0].data);
  EXPECT_EQ(out[2].dtype, DType::bf16) << "the default result of FP8 operands";
}

// d(dequantize(quantize(x))) / dx = 1, and grad_quantize quantises what comes back.
TEST(Quantize, TheGradientIsStraightThrough) {
  Module module;
  Block &block = module.addFunction("f").block();
  Value x = block.addArgument({DType::bf16, {3}}, "x"), s = block.addArgument({DType::f32, {}}, "s"),
        dy = block.addArgument({DType::f32, {3}}, "dy");
  Builder b(block);
  Op *q = b.make("quantize", {x, s});
  auto dx = q->def().gradient({*q, b, {dy, Value()}});
  ASSERT_EQ(dx.size(), 2u);
  EXPECT_EQ(dx[0].op()->name(), "cast");
  EXPECT_EQ(dx[0].type(), x.type());
  EXPECT_FALSE(dx[1]);
  EXPECT_FALSE(q->def().gradient({*q, b, {Value(), Value()}})[0]);

  Op *marker = b.make("grad_quantize", {x, s}, {{"dtype", DType::f8e5m2}});
  auto marked = marker->def().gradient({*marker, b, {dy}});
  EXPECT_EQ(marked[0].op()->name(), "quantize");
  EXPECT_EQ(marked[0].type().str(), "f8e5m2[3] per tensor");
}

struct Updated {
  std::vector<double> history;
  double scale, inverse;
};
Updated update(std::vector<double> history, double scale, double amax, Attrs attrs = {}) {
  auto size = static_cast<int64_t>(history.size());
  auto out = run({tensor(DType::f32, {size}, std::move(history)), scalar(scale), scalar(amax)},
                 [&](Builder &b, llvm::ArrayRef<Value> in) {
                   Op *op = b.make("amax_update", in, attrs);
                   return std::vector<Value>{op->result(0), op->result(1), op->result(2)};
                 });
  return {out[0].data, out[1].data[0], out[2].data[0]};
}

TEST(AmaxUpdate, ShiftsTheHistoryAndPutsTheNewValueLast) {
  Updated u = update({0, 1, 2, 8}, 3, 4);
  EXPECT_EQ(u.history, (std::vector<double>{0, 2, 8, 4}));
  EXPECT_EQ(u.scale, 448.0 / 8);
  EXPECT_EQ(u.inverse, 1.0f / 56.0f);
}

TEST(AmaxUpdate, TheMaximumIsOverTheOldSlotsFromOneOnAndTheNewValue) {
  EXPECT_EQ(update({100, 1, 2, 3}, 1, 4).scale, 112) << "slot 0 is the one being collected";
  EXPECT_EQ(update({0, 16, 2, 3}, 1, 4).scale, 28);
  EXPECT_EQ(update({0, 16, 2, 3}, 1, 4, {{"algo", std::string("most_recent")}}).scale, 112);
  EXPECT_EQ(update({0}, 1, 4).scale, 112);
  EXPECT_EQ(update({0}, 1, 4).history, std::vector<double>{0});
}

TEST(AmaxUpdate, FormatAndMargin) {
  EXPECT_EQ(update({0, 0}, 1, 2, {{"dtype", DType::f8e5m2}}).scale, 28672);
  EXPECT_EQ(update({0, 0}, 1, 2, {{"margin", int64_t(3)}}).scale, 28);
}

TEST(AmaxUpdate, AnAmaxOfZeroChangesNothing) {
  Updated u = update({7, 1, 2, 3}, 5, 0);
  EXPECT_EQ(u.history, (std::vector<double>{7, 1, 2, 3}));
  EXPECT_EQ(u.scale, 5);
  EXPECT_EQ(u.inverse, 1.0f / 5.0f);
}

TEST(AmaxUpdate, NoFiniteMaximumKeepsTheScale) {
  EXPECT_EQ(update({0, 1}, 5, kInf).scale, 5);
  EXPECT_EQ(update({0, 1}, 5, kNaN).scale, 5);
  EXPECT_EQ(update({0, 0}, 5, 1e-40).scale, std::numeric_limits<float>::max())
      << "an infinite scale becomes the largest";
}

// ..._finite: an infinite amax counts as 0, and does not stay in the slot that is being collected, nor count in a
// history that has one.
TEST(AmaxUpdate, OfFiniteAmaxesAlone) {
  Attrs largest{{"algo", std::string("max_finite")}}, newest{{"algo", std::string("most_recent_finite")}};
  for (const Attrs &attrs : {largest, newest})
    for (double amax : {kInf, kNaN}) {
      Updated u = update({kInf, 1, 2, 3}, 5, amax, attrs);
      EXPECT_EQ(u.history, (std::vector<double>{0, 1, 2, 3}));
      EXPECT_EQ(u.scale, 5);
      EXPECT_EQ(u.inverse, 1.0f / 5.0f);
    }
  EXPECT_EQ(update({0, kInf, 2, 3}, 5, 4, largest).scale, 112);
  EXPECT_EQ(update({0, kInf, 2, 3}, 5, 4).scale, 5) << "Transformer Engine waits until it has rolled off";
  EXPECT_EQ(update({0, 1, 2, 8}, 3, 4, largest).history, (std::vector<double>{0, 2, 8, 4}));
  EXPECT_EQ(update({0, 1, 2, 8}, 3, 4, largest).scale, 56);
  EXPECT_EQ(update({0, 1, 2, 8}, 3, 4, newest).scale, 112);
  EXPECT_EQ(update({7, 1}, 3, 0, largest).history, (std::vector<double>{7, 1})) << "an amax of 0 changes nothing";
}

// Whatever tensors a run meets, a scale is never 0, infinite or NaN, and slot 0 is 0 after an update.
TEST(AmaxUpdate, ScalesStayFiniteAndPositive) {
  constexpr float kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();
  const double amaxes[] = {0,   kInf, kNaN, kMost, kLeast, 1e-40, 1e-30, std::numeric_limits<float>::min(),
                           3.5, 448,  57344};
  uint32_t random = 1;
  for (const char *algo : {"max", "most_recent", "max_finite", "most_recent_finite"})
    for (DType dtype : {DType::f8e4m3, DType::f8e5m2})
      for (int64_t margin : {0, 3, 30})
        for (size_t length : {1, 2, 5}) {
          Attrs attrs{{"algo", std::string(algo)}, {"dtype", dtype}, {"margin", margin}};
          Updated u{std::vector<double>(length, 0.0), 1, 1};
          for (int step = 0; step < 24; ++step) {
            random = random * 1664525u + 1013904223u;
            double amax = amaxes[(random >> 8) % std::size(amaxes)], before = u.scale;
            u = update(u.history, u.scale, amax, attrs);
            ASSERT_TRUE(std::isfinite(u.scale) && u.scale > 0) << algo << " " << amax << " after " << before;
            ASSERT_EQ(u.history[0], 0);
            ASSERT_EQ(u.history.size(), length);
            if (amax == 0) {
              ASSERT_EQ(u.scale, before);
            }
          }
        }
}

// Tensors of nothing but zeros, NaN, infinities or tiny numbers: what quantize gives, and the update behind it.
TEST(Quantize, TensorsAtTheEdge) {
  constexpr double kLeast = std::numeric_limits<float>::denorm_min();
  struct Edge {
    std::vector<double> x;
    double amax, scale; // the next scale, from 8
  };
  for (const Edge &edge : {Edge{{0, -0.0, 0, 0}, 0, 8},
                           {{kNaN, kNaN, kNaN, kNaN}, 0, 8},
                           {{kInf, 1, -kInf, kNaN}, kInf, 8},
                           {{kLeast, -kLeast, 0, 0}, kLeast, std::numeric_limits<float>::max()},
                           {{1e-30, -2e-30, kNaN, 0}, 2e-30f, 448 / 2e-30f},
                           {{}, 0, 8}}) {
    auto size = static_cast<int64_t>(edge.x.size());
    auto out = run({tensor(DType::f32, {size}, edge.x), scalar(8), tensor(DType::f32, {3}, {0, 0, 0})},
                   [](Builder &b, llvm::ArrayRef<Value> in) {
                     Op *q = b.make("quantize", {in[0], in[1]});
                     Op *next = b.make("amax_update", {in[2], in[1], q->result(1)});
                     return std::vector<Value>{q->result(0), q->result(1), next->result(0), next->result(1)};
                   });
    EXPECT_EQ(static_cast<float>(out[1].data[0]), static_cast<float>(edge.amax));
    EXPECT_EQ(static_cast<float>(out[3].data[0]), static_cast<float>(edge.scale));
    for (size_t i = 0; i < edge.x.size(); ++i) {
      EXPECT_EQ(std::isnan(out[0].data[i]), std::isnan(edge.x[i]));
      EXPECT_FALSE(std::fabs(out[0].data[i]) > 448);
      if (std::isinf(edge.x[i])) {
        EXPECT_EQ(out[0].data[i], std::copysign(448, edge.x[i]));
      }
    }
    if (edge.amax == 0) {
      EXPECT_EQ(out[2].data, (std::vector<double>{0, 0, 0}));
    }
  }
}

} // namespace
