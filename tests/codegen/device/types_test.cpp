// types.cuh, exhaustively: every bf16, f16 and fp8 pattern decoded; encoding at, around and between all of them.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "tests/support/fp8_definition.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

constexpr const char *kKernels = R"cuda(
template <class T, class Bits> __device__ void decodeAll(const Bits *codes, float *values, i64 n) {
  for (i64 i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    values[i] = load((const T *)codes + i);
}
template <class T, class Bits> __device__ void encodeAll(const float *values, Bits *codes, i64 n) {
  for (i64 i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    store((T *)codes + i, values[i]);
}
extern "C" __global__ void decode_bf16(const u16 *c, float *v, i64 n) { decodeAll<bf16>(c, v, n); }
extern "C" __global__ void decode_f16(const u16 *c, float *v, i64 n) { decodeAll<f16>(c, v, n); }
extern "C" __global__ void decode_f8e4m3(const u8 *c, float *v, i64 n) { decodeAll<f8e4m3>(c, v, n); }
extern "C" __global__ void decode_f8e5m2(const u8 *c, float *v, i64 n) { decodeAll<f8e5m2>(c, v, n); }
extern "C" __global__ void encode_bf16(const float *v, u16 *c, i64 n) { encodeAll<bf16>(v, c, n); }
extern "C" __global__ void encode_f16(const float *v, u16 *c, i64 n) { encodeAll<f16>(v, c, n); }
extern "C" __global__ void encode_f8e4m3(const float *v, u8 *c, i64 n) { encodeAll<f8e4m3>(v, c, n); }
extern "C" __global__ void encode_f8e5m2(const float *v, u8 *c, i64 n) { encodeAll<f8e5m2>(v, c, n); }
extern "C" __global__ void encode_f8e4m3_nan(const float *v, u8 *c, i64 n) { encodeAll<f8e4m3_nan>(v, c, n); }
extern "C" __global__ void encode_f8e5m2_inf(const float *v, u8 *c, i64 n) { encodeAll<f8e5m2_inf>(v, c, n); }

extern "C" __global__ void integers(const float *v, i8 *a, i32 *b, i64 *c, u8 *d, u64 *e, i1 *f, i64 n) {
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    store(a + i, v[i]);
    store(b + i, v[i]);
    store(c + i, v[i]);
    store(d + i, v[i]);
    store(e + i, v[i]);
    store(f + i, v[i]);
  }
}
extern "C" __global__ void mixed(const i1 *flag, const i64 *large, float *out, double *wide, u8 *low) {
  out[0] = toFloat(flag[0]) + (load(flag) ? 10.0f : 0.0f);
  out[1] = toFloat(large[0]);
  out[2] = roundTo<bf16>(1.00390625f);  // 1 + 2^-8: half a step, to even
  store(wide, load(large));
  store(low, load(large));             // integers wrap, as in C
}
)cuda";

const EmulatedModule &module() {
  static const EmulatedModule compiled = compileWithDevice({"types.cuh", "fp8_unsaturated.cuh"}, kKernels);
  return compiled;
}

template <class Bits> std::vector<float> decodeOnDevice(llvm::StringRef name, llvm::ArrayRef<Bits> codes) {
  GuardedBuffer in = GuardedBuffer::of<Bits>(codes), out(codes.size() * sizeof(float));
  EXPECT_EQ(messageOf(module().run(name, {.grid = {4}, .block = {64}}, in, out, static_cast<long long>(codes.size()))),
            "");
  return out.as<float>().vec();
}
template <class Bits> std::vector<Bits> encodeOnDevice(llvm::StringRef name, llvm::ArrayRef<float> values) {
  GuardedBuffer in = GuardedBuffer::of<float>(values), out(values.size() * sizeof(Bits));
  EXPECT_EQ(messageOf(module().run(name, {.grid = {4}, .block = {64}}, in, out, static_cast<long long>(values.size()))),
            "");
  return out.as<Bits>().vec();
}

template <class Bits> void checkFormat(const std::string &name, const Format &format) {
  std::vector<Bits> codes(size_t(1) << format.bits());
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<Bits>(i);
  std::vector<float> decoded = decodeOnDevice<Bits>("decode_" + name, codes);
  int wrong = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    double expected = format.decode(i);
    bool same = std::isnan(expected) ? std::isnan(decoded[i])
                                     : decoded[i] == expected && std::signbit(decoded[i]) == std::signbit(expected);
    if (!same && ++wrong < 5)
      ADD_FAILURE() << name << " code " << i << " decodes to " << decoded[i] << ", not " << expected;
  }

  // Encode: every value, both float neighbours of every value and of every midpoint, the midpoints; and the extremes.
  std::vector<float> inputs = {0.0f, -0.0f, 1e-45f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY};
  for (uint32_t code = 0; code <= format.largestFinite(); ++code) {
    float value = static_cast<float>(format.magnitude(code));
    float middle = static_cast<float>((format.magnitude(code) + format.magnitude(code + 1)) / 2);
    for (float point : {value, middle})
      for (float near : {std::nextafter(point, -1.0f), point, std::nextafter(point, INFINITY)})
        inputs.insert(inputs.end(), {near, -near});
  }
  for (float value : randomValues(4096, 1, 100)) inputs.push_back(value);
  std::vector<Bits> encoded = encodeOnDevice<Bits>("encode_" + name, inputs);
  const uint32_t signBit = 1u << (format.bits() - 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint32_t expected = format.encodeMagnitude(std::fabs(inputs[i])) | (std::signbit(inputs[i]) ? signBit : 0);
    if (encoded[i] != expected && ++wrong < 10)
      ADD_FAILURE() << name << " encodes " << inputs[i] << " as " << +encoded[i] << ", not " << expected;
  }
  EXPECT_EQ(wrong, 0);

  std::vector<float> nans = {NAN, -NAN};
  for (Bits code : encodeOnDevice<Bits>("encode_" + name, nans)) EXPECT_TRUE(std::isnan(format.decode(code)));
}

TEST(Types, Bf16Exhaustively) { checkFormat<uint16_t>("bf16", kBf16); }
TEST(Types, F16Exhaustively) { checkFormat<uint16_t>("f16", kF16); }
TEST(Types, F8E4M3Exhaustively) { checkFormat<uint8_t>("f8e4m3", kE4M3); }
TEST(Types, F8E5M2Exhaustively) { checkFormat<uint8_t>("f8e5m2", kE5M2); }

TEST(Types, Fp8OfEveryBf16PatternAndAMillionFloats) {
  for (std::string name : {"f8e4m3", "f8e5m2", "f8e4m3_nan", "f8e5m2_inf"}) {
    bool isE5m2 = llvm::StringRef(name).startswith("f8e5m2");
    fusor::tests::Fp8Definition definition(isE5m2, name.size() == 6);
    EXPECT_EQ(definition.largest(), isE5m2 ? 57344 : 448);
    for (const std::vector<float> &values : {fusor::tests::everyBf16(), fusor::tests::sampledF32()}) {
      std::vector<uint8_t> codes = encodeOnDevice<uint8_t>("encode_" + name, values);
      int wrong = 0;
      for (size_t i = 0; i < values.size(); ++i)
        if (!definition.is(codes[i], values[i]) && ++wrong < 10)
          ADD_FAILURE() << values[i] << " is " << +codes[i] << ", not " << +definition.encoded(values[i]);
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST(Types, LargestValuesAreTheKnownOnes) { // the enumeration in support.h itself
  EXPECT_EQ(kE4M3.magnitude(kE4M3.largestFinite()), 448);
  EXPECT_EQ(kE5M2.magnitude(kE5M2.largestFinite()), 57344);
  EXPECT_EQ(kF16.magnitude(kF16.largestFinite()), 65504);
}

TEST(Types, FloatToIntegerSaturatesAndTruncates) {
  std::vector<float> values = {0.0f,  1.9f,  -1.9f,  127.5f,   128.0f, -129.0f, 3e9f,
                               -3e9f, 1e20f, -1e20f, INFINITY, NAN,    -0.0f};
  const long long n = static_cast<long long>(values.size());
  GuardedBuffer in = GuardedBuffer::of<float>(values), a(n), b(n * 4), c(n * 8), d(n), e(n * 8), f(n);
  ASSERT_EQ(messageOf(module().run("integers", {.block = {32}}, in, a, b, c, d, e, f, n)), "");
  auto saturated = [](float x, double low, double high) {
    return std::isnan(x) ? 0 : std::trunc(std::fmin(std::fmax(x, low), high));
  };
  for (long long i = 0; i < n; ++i) {
    EXPECT_EQ(a.as<int8_t>()[i], saturated(values[i], -128, 127)) << values[i];
    EXPECT_EQ(b.as<int32_t>()[i], saturated(values[i], -2147483648.0, 2147483647.0)) << values[i];
    EXPECT_EQ(d.as<uint8_t>()[i], saturated(values[i], 0, 255)) << values[i];
    EXPECT_EQ(f.as<uint8_t>()[i], values[i] != 0 ? 1 : 0) << values[i];
  }
  EXPECT_EQ(c.as<int64_t>()[8], INT64_MAX);
  EXPECT_EQ(c.as<int64_t>()[9], INT64_MIN);
  EXPECT_EQ(c.as<int64_t>()[6], 3000000000);
  EXPECT_EQ(e.as<uint64_t>()[10], UINT64_MAX);
  EXPECT_EQ(e.as<uint64_t>()[9], 0u);
}

TEST(Types, MixedLoadsAndStores) {
  uint8_t flag = 7; // any non-zero byte is true
  int64_t large = (int64_t(1) << 40) + 5;
  GuardedBuffer flags = GuardedBuffer::of<uint8_t>(flag), wide = GuardedBuffer::of<int64_t>(large), out(12), copy(8),
                low(1);
  ASSERT_EQ(messageOf(module().run("mixed", {}, flags, wide, out, copy, low)), "");
  EXPECT_EQ(out.as<float>()[0], 11);
  EXPECT_EQ(out.as<float>()[1], static_cast<float>(large));
  EXPECT_EQ(out.as<float>()[2], 1);
  EXPECT_EQ(copy.as<double>()[0], static_cast<double>(large));
  EXPECT_EQ(low.as<uint8_t>()[0], 5);
}

TEST(DeviceLibrary, OrdersNeedsAndDropsDuplicates) {
  std::string text = deviceLibrary({"reduce.cuh", "types.cuh", "reduce.cuh"});
  size_t types = text.find("struct bf16"), reduce = text.find("blockReduceAll");
  ASSERT_NE(types, std::string::npos);
  EXPECT_LT(types, reduce);
  EXPECT_EQ(text.find("---- reduce.cuh ----"), text.rfind("---- reduce.cuh ----"));
  EXPECT_EQ(text, deviceLibrary({"reduce.cuh"}));
  EXPECT_EQ(text.find("#include"), std::string::npos);
}

TEST(DeviceLibrary, NamesEveryFile) {
  EXPECT_TRUE(llvm::is_contained(deviceSourceNames(), "types.cuh"));
  EXPECT_FALSE(deviceLibrary(deviceSourceNames()).empty()); // every needs line can be followed
}

TEST(DeviceLibraryDeathTest, UnknownNameIsOurBug) {
  EXPECT_DEATH(deviceSource("nothing.cuh"), "no device file 'nothing.cuh'");
}

TEST(Types, CompilesForGpus) {
  expectCompilesUnderNvrtc(deviceLibrary({"types.cuh", "fp8_unsaturated.cuh"}) + kKernels);
}

} // namespace
