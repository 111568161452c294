// math.cuh and vector.cuh: every function against its double-precision meaning; vector access of every type and width.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

struct Unary {
  const char *name;
  double (*reference)(double);
  double low, high; // the range its inputs are drawn from
};
const Unary kUnary[] = {
    {"exp", std::exp, -20, 20},
    {"exp2", std::exp2, -20, 20},
    {"expm1", std::expm1, -3, 3},
    {"log", std::log, 1e-6, 1e6},
    {"log2", std::log2, 1e-6, 1e6},
    {"log1p", std::log1p, -0.9, 10},
    {"sqrt", std::sqrt, 0, 1e6},
    {"sin", std::sin, -10, 10},
    {"cos", std::cos, -10, 10},
    {"tan", std::tan, -1, 1},
    {"asin", std::asin, -1, 1},
    {"acos", std::acos, -1, 1},
    {"atan", std::atan, -5, 5},
    {"sinh", std::sinh, -5, 5},
    {"cosh", std::cosh, -5, 5},
    {"tanh", std::tanh, -5, 5},
    {"asinh", std::asinh, -5, 5},
    {"acosh", std::acosh, 1, 5},
    {"atanh", std::atanh, -0.9, 0.9},
    {"erf", std::erf, -3, 3},
    {"erfc", std::erfc, -2, 2},
    {"floor", std::floor, -5, 5},
    {"ceil", std::ceil, -5, 5},
    {"trunc", std::trunc, -5, 5},
    {"abs", std::fabs, -5, 5},
    {"round", std::nearbyint, -5, 5},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1e-3, 1e3},
};

std::string kernelText() {
  std::string text;
  for (const Unary &f : kUnary)
    for (const char *type : {"float", "double"})
      text += std::string("extern \"C\" __global__ void ") + f.name + "_" + type + "(const " + type + " *x, " + type +
              " *y, i64 n) {\n  for (i64 i = threadIdx.x; i < n; i += blockDim.x) y[i] = math::" + f.name +
              "(x[i]);\n}\n";
  text += R"cuda(
extern "C" __global__ void tanh_beside_one(const float *x, float *y, i64 n) {
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) y[i] = math::tanhBesideOne(x[i]);
}
extern "C" __global__ void binary(const float *a, const float *b, float *out, i64 n) { // out: [7][n]
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = math::maximum(a[i], b[i]);
    out[n + i] = math::minimum(a[i], b[i]);
    out[2 * n + i] = math::pow(math::abs(a[i]), b[i]);
    out[3 * n + i] = math::fmod(a[i], b[i]);
    out[4 * n + i] = math::sign(a[i]);
    out[5 * n + i] = math::select(a[i] < b[i], 1.0f, 2.0f);
    out[6 * n + i] = (math::isNan(a[i]) ? 1.0f : 0.0f) + (math::isInf(a[i]) ? 2.0f : 0.0f) + (math::isFinite(a[i]) ? 4.0f : 0.0f);
  }
}
extern "C" __global__ void integers(const i64 *a, const i64 *b, i64 *out, i64 n) { // out: [5][n]
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = math::floorDivide(a[i], b[i]);
    out[n + i] = math::floorModulo(a[i], b[i]);
    out[2 * n + i] = math::divide(a[i], b[i]);
    out[3 * n + i] = math::remainder(a[i], b[i]);
    out[4 * n + i] = math::maximum(math::abs(a[i]), math::sign(b[i]));
  }
}
)cuda";
  // y = x * 2 through vectors of each type and count; offset elements are skipped at both ends
  for (const char *type : {"float", "double", "bf16", "f16", "f8e4m3", "f8e5m2", "i64", "u8"})
    for (const char *count : {"1", "2", "4", "8", "16"})
      text +=
          std::string("extern \"C\" __global__ void vector_") + type + "_" + count + "(const " + type + " *x, " + type +
          " *y, i64 n, int *aligned) {\n  for (i64 i = threadIdx.x * " + count + "; i < n; i += blockDim.x * " + count +
          ") {\n    ComputeOf<" + type + "> v[" + count +
          "];\n    loadVector(x + i, v);\n    for (auto &each : v) each = each + each;\n    storeVector(y + i, v);\n"
          "  }\n  if (threadIdx.x == 0) aligned[0] = vectorAligned<" +
          type + ", " + count + ">(x), aligned[1] = vectorAligned<" + type + ", " + count +
          ">((const char *)x + 1);\n}\n";
  return text;
}

const EmulatedModule &module() {
  static const EmulatedModule compiled = compileWithDevice({"math.cuh", "vector.cuh"}, kernelText());
  return compiled;
}

template <class T> void checkUnary(const Unary &f, const char *type, double relative) {
  std::vector<T> x;
  for (int i = 0; i <= 200; ++i) x.push_back(static_cast<T>(f.low + (f.high - f.low) * i / 200));
  for (T half : {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5})
    if (half >= f.low && half <= f.high) x.push_back(half);
  const long long n = static_cast<long long>(x.size());
  GuardedBuffer in = GuardedBuffer::of<T>(x), out(n * sizeof(T));
  ASSERT_EQ(messageOf(module().run(std::string(f.name) + "_" + type, {.block = {32}}, in, out, n)), "");
  for (long long i = 0; i < n; ++i) {
    double expected = f.reference(x[i]);
    EXPECT_NEAR(out.template as<T>()[i], expected, relative * std::fabs(expected) + relative * 1e-2)
        << f.name << "(" << x[i] << ")";
  }
}

TEST(Math, TanhBesideOneHasASmallAbsoluteError) {
  std::vector<float> x = {-INFINITY, -1e30f, -100, 100, 1e30f, INFINITY, 0, -0.0f, 1e-30f};
  for (int i = -2000; i <= 2000; ++i) x.push_back(i * 0.01f);
  const long long n = static_cast<long long>(x.size());
  GuardedBuffer in = GuardedBuffer::of<float>(x), out(n * sizeof(float));
  ASSERT_EQ(messageOf(module().run("tanh_beside_one", {.block = {32}}, in, out, n)), "");
  for (long long i = 0; i < n; ++i)
    EXPECT_NEAR(out.as<float>()[i], std::tanh(static_cast<double>(x[i])), std::ldexp(1.0, -22)) << x[i];
}

TEST(Math, UnaryFunctions) {
  for (const Unary &f : kUnary) {
    checkUnary<float>(f, "float", 1e-6);
    checkUnary<double>(f, "double", 1e-14);
  }
}

TEST(Math, BinaryFunctionsAndNaN) {
  std::vector<float> a = {1, -2.5f, NAN, 3, 0, INFINITY, 7}, b = {2, -3, 1, NAN, 5, 1, -2};
  const long long n = static_cast<long long>(a.size());
  GuardedBuffer as = GuardedBuffer::of<float>(a), bs = GuardedBuffer::of<float>(b), out(7 * n * 4);
  ASSERT_EQ(messageOf(module().run("binary", {.block = {32}}, as, bs, out, n)), "");
  auto got = out.as<float>();
  auto same = [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  for (long long i = 0; i < n; ++i) {
    bool nan = std::isnan(a[i]) || std::isnan(b[i]);
    EXPECT_TRUE(same(got[i], nan ? NAN : std::fmax(a[i], b[i]))) << i;
    EXPECT_TRUE(same(got[n + i], nan ? NAN : std::fmin(a[i], b[i]))) << i;
    EXPECT_TRUE(same(got[2 * n + i], std::pow(std::fabs(a[i]), b[i]))) << i;
    EXPECT_TRUE(same(got[3 * n + i], std::fmod(a[i], b[i]))) << i;
    EXPECT_TRUE(same(got[4 * n + i], std::isnan(a[i]) ? NAN : static_cast<float>((a[i] > 0) - (a[i] < 0)))) << i;
    EXPECT_EQ(got[5 * n + i], a[i] < b[i] ? 1 : 2);
    EXPECT_EQ(got[6 * n + i], std::isnan(a[i]) ? 1 : std::isinf(a[i]) ? 2 : 4);
  }
}

TEST(Math, IntegerDivisionNeverTraps) {
  std::vector<int64_t> a = {7, -7, 7, -7, 6, 0, 5, INT64_MIN, INT64_MIN}, b = {2, 2, -2, -2, 3, 4, 0, -1, 1};
  std::vector<int64_t> floorQuotient = {3, -4, -4, 3, 2, 0, 0, INT64_MIN, INT64_MIN},
                       floorRest = {1, 1, -1, -1, 0, 0, 0, 0, 0};
  std::vector<int64_t> quotient = {3, -3, -3, 3, 2, 0, 0, INT64_MIN, INT64_MIN}, rest = {1, -1, 1, -1, 0, 0, 0, 0, 0};
  const long long n = static_cast<long long>(a.size());
  GuardedBuffer as = GuardedBuffer::of<int64_t>(a), bs = GuardedBuffer::of<int64_t>(b), out(5 * n * 8);
  ASSERT_EQ(messageOf(module().run("integers", {.block = {32}}, as, bs, out, n)), "");
  auto got = out.as<int64_t>();
  for (long long i = 0; i < n; ++i) {
    EXPECT_EQ(got[i], floorQuotient[i]) << a[i] << " / " << b[i];
    EXPECT_EQ(got[n + i], floorRest[i]) << a[i] << " mod " << b[i];
    EXPECT_EQ(got[2 * n + i], quotient[i]) << a[i] << " / " << b[i];
    EXPECT_EQ(got[3 * n + i], rest[i]) << a[i] << " % " << b[i];
  }
  EXPECT_EQ(got[4 * n + 1], 7);
}

// Every element moves, and only those: n is a multiple of the count, guards watch the ends.
template <class Bits, class Twice> void checkVector(const std::string &type, Twice twice) {
  for (int count : {1, 2, 4, 8, 16}) {
    const long long n = 48;
    std::vector<Bits> x(n);
    for (long long i = 0; i < n; ++i) x[i] = static_cast<Bits>(i); // small codes: doubling stays finite
    GuardedBuffer in = GuardedBuffer::of<Bits>(x), out(n * sizeof(Bits)), aligned(8);
    ASSERT_EQ(
        messageOf(module().run("vector_" + type + "_" + std::to_string(count), {.block = {2}}, in, out, n, aligned)),
        "");
    for (long long i = 0; i < n; ++i)
      EXPECT_EQ(out.as<Bits>()[i], twice(x[i])) << type << " x " << count << " at " << i;
    EXPECT_EQ(aligned.as<int>()[0], 1);
    EXPECT_EQ(aligned.as<int>()[1], sizeof(Bits) * count == 1 ? 1 : 0) << type << " x " << count;
  }
}
template <class Bits> auto doubledIn(const Format &format) {
  return [&format](Bits code) { return static_cast<Bits>(format.encodeMagnitude(2 * format.decode(code))); };
}

TEST(Vector, AllTypesAndCounts) {
  checkVector<float>("float", [](float x) { return x + x; });
  checkVector<double>("double", [](double x) { return x + x; });
  checkVector<int64_t>("i64", [](int64_t x) { return x + x; });
  checkVector<uint8_t>("u8", [](uint8_t x) { return static_cast<uint8_t>(x + x); });
  checkVector<uint16_t>("bf16", doubledIn<uint16_t>(kBf16));
  checkVector<uint16_t>("f16", doubledIn<uint16_t>(kF16));
  checkVector<uint8_t>("f8e4m3", doubledIn<uint8_t>(kE4M3));
  checkVector<uint8_t>("f8e5m2", doubledIn<uint8_t>(kE5M2));
}

TEST(Math, CompilesForGpus) { expectCompilesUnderNvrtc(deviceLibrary({"math.cuh", "vector.cuh"}) + kernelText()); }

} // namespace
