// Attention forward and backward against double precision: head sizes, causal, window, padding mask, KV length, grouped
// heads, packed and separate layouts, storage types.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"
#include <array>
#include <map>

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

const std::vector<llvm::StringRef> kFiles = {"attention_simt.cuh", "attention_backward_simt.cuh"};
const std::vector<llvm::StringRef> kMmaFiles = {"attention_mma.cuh", "attention_backward_mma.cuh"};

std::string kernelsFor(int headSize, const std::string &type, bool tensorCores) {
  const std::string D = std::to_string(headSize), name = "_" + type + "_" + D;
  const std::string in = "HeadView<const " + type + "> ", out = "HeadView<" + type + "> ";
  const std::string inputs = "(" + in + "q, " + in + "k, " + in + "v, ";
  const std::string sums = ", const float *lse, const float *delta, AttentionShape shape) {\n  ";
  auto kernel = [&](const char *kernelName, const std::string &rest) {
    return "extern \"C\" __global__ void __launch_bounds__(128) " + std::string(kernelName) + name + rest + "\n}\n";
  };
  const std::string mma = tensorCores ? "Mma<" : "<";
  std::string text = kernel("forward", inputs + out + "o, float *lse, AttentionShape shape) {\n  attentionForward" +
                                           mma + D + ">(q, k, v, o, lse, shape);");
  if (tensorCores) {
    text += kernel("queryGrad", inputs + in + "o, " + in + "grad, " + out +
                                    "dq, const float *lse, float *delta, AttentionShape shape) {\n  "
                                    "attentionQueryGradMma<" +
                                    D + ">(q, k, v, o, grad, dq, lse, delta, shape);");
  } else {
    text += kernel("delta", "(" + in + "o, " + in + "grad, float *delta, AttentionShape shape) {\n  attentionDelta<" +
                                D + ">(o, grad, delta, shape);");
    text += kernel("queryGrad", inputs + in + "grad, " + out + "dq" + sums + "attentionQueryGrad<" + D +
                                    ">(q, k, v, grad, dq, lse, delta, shape);");
  }
  return text + kernel("keyGrad", inputs + in + "grad, " + out + "dk, " + out + "dv" + sums + "attentionKeyGrad" + mma +
                                      D + ">(q, k, v, grad, dk, dv, lse, delta, shape);");
}

// One library per (head size, type, tier), compiled when a test asks for it.
const EmulatedModule &moduleFor(int headSize, const std::string &type, bool tensorCores) {
  static std::map<std::tuple<int, std::string, bool>, EmulatedModule> modules;
  auto key = std::make_tuple(headSize, type, tensorCores);
  if (!modules.count(key))
    modules.emplace(key, compileWithDevice(tensorCores ? kMmaFiles : kFiles, kernelsFor(headSize, type, tensorCores)));
  return modules.at(key);
}

// The device structs, as the host fills them.
struct View { // HeadView
  void *data;
  long long batchStride, rowStride, headStride;
  size_t at(long long batch, long long head, long long row) const {
    return batch * batchStride + head * headStride + row * rowStride;
  }
};
struct Shape { // AttentionShape
  long long batch, queryHeads, keyHeads, queries, keys;
  float scale;
  bool causal;
  long long window;
  const void *keyMask, *keyLength;
};

struct Case {
  int headSize = 16;
  std::string type = "float";
  long long batch = 2, queryHeads = 2, keyHeads = 2, queries = 33, keys = 33;
  bool causal = true;
  long long window = -1;
  bool masked = false;
  int keyLength = -1; // -1: not given
  bool packed = false;
  bool tensorCores = false;
  std::string name() const {
    return std::string(tensorCores ? "tensor cores, " : "") + "D " + std::to_string(headSize) + " " + type + " heads " +
           std::to_string(queryHeads) + "/" + std::to_string(keyHeads) + " queries " + std::to_string(queries) +
           " keys " + std::to_string(keys) + (causal ? " causal" : "") + " window " + std::to_string(window) +
           (masked ? " masked" : "") + " length " + std::to_string(keyLength) + (packed ? " packed" : "");
  }
};

// A buffer of storage type `type` that also remembers its values as doubles.
struct Tensor {
  std::string type;
  std::vector<double> values;
  GuardedBuffer bytes;

  Tensor(const std::string &type, size_t count) : type(type), values(count), bytes(count * size(type)) {}
  static size_t size(const std::string &type) { return type == "float" ? 4 : 2; }
  static const Format &format(const std::string &type) { return type == "bf16" ? kBf16 : kF16; }
  void fillRandom(unsigned seed) {
    std::vector<float> random = randomValues(values.size(), seed);
    for (size_t i = 0; i < random.size(); ++i) set(i, random[i]);
  }
  void set(size_t i, double value) {
    if (type == "float") {
      bytes.as<float>()[i] = static_cast<float>(value);
      values[i] = static_cast<float>(value);
    } else {
      uint32_t code = format(type).encodeMagnitude(std::fabs(value)) | (std::signbit(value) ? 0x8000u : 0);
      if (std::isnan(value)) code = 0x7fff;
      bytes.as<uint16_t>()[i] = static_cast<uint16_t>(code);
      values[i] = format(type).decode(code);
    }
  }
  double stored(size_t i) const {
    return type == "float" ? bytes.as<float>()[i] : format(type).decode(bytes.as<uint16_t>()[i]);
  }
};

bool sees(const Case &c, const std::vector<uint8_t> &mask, long long batch, long long i, long long j) {
  long long length = c.keyLength < 0 ? c.keys : c.keyLength, position = i + length - c.queries;
  return j < length && (!c.causal || j <= position) && (c.window < 0 || j >= position - c.window) &&
         (!c.masked || mask[batch * c.keys + j]);
}

// Largest |got - expected| of a [batch][heads][rows][headSize] tensor, relative to the largest expected value.
struct Difference {
  double largest = 0, scale = 0;
  bool finite = true;
  void add(double got, double expected) {
    finite &= std::isfinite(got);
    largest = std::fmax(largest, std::fabs(got - expected));
    scale = std::fmax(scale, std::fabs(expected));
  }
  double relative() const {
    return largest / std::fmax(scale, 0.5);
  } // inputs are of size 1; a row of one key has dS = 0
};

void check(const Case &c) {
  SCOPED_TRACE(c.name());
  const long long D = c.headSize, Hq = c.queryHeads, Hk = c.keyHeads, group = Hq / Hk;
  const size_t queryCount = c.batch * Hq * c.queries * D, keyCount = c.batch * Hk * c.keys * D;
  // Packed: one buffer [batch][rows][Hq + 2 Hk][D]; separate: [batch][heads][rows][D].
  const long long packedRow = (Hq + 2 * Hk) * D;
  Tensor packed(c.type, c.packed ? c.batch * c.queries * packedRow : 0), packedGrad(c.type, packed.values.size());
  Tensor q(c.type, c.packed ? 0 : queryCount), k(c.type, c.packed ? 0 : keyCount), v(c.type, c.packed ? 0 : keyCount);
  Tensor dq(c.type, q.values.size()), dk(c.type, k.values.size()), dv(c.type, v.values.size());
  Tensor out(c.type, queryCount), dOut(c.type, queryCount);
  unsigned seed = 1;
  for (Tensor *tensor : {&packed, &q, &k, &v, &dOut}) tensor->fillRandom(seed++);

  auto view = [&](Tensor &separate, Tensor &together, long long offset, long long heads, long long rows) {
    if (!c.packed) return View{separate.bytes.data(), heads * rows * D, D, rows * D};
    char *first = static_cast<char *>(together.bytes.data()) + offset * Tensor::size(c.type);
    return View{first, c.queries * packedRow, packedRow, D};
  };
  View qv = view(q, packed, 0, Hq, c.queries), kv = view(k, packed, Hq * D, Hk, c.keys),
       vv = view(v, packed, (Hq + Hk) * D, Hk, c.keys), dqv = view(dq, packedGrad, 0, Hq, c.queries),
       dkv = view(dk, packedGrad, Hq * D, Hk, c.keys), dvv = view(dv, packedGrad, (Hq + Hk) * D, Hk, c.keys);
  View ov = {out.bytes.data(), c.queries * Hq * D, Hq * D, D}; // [batch][rows][heads][D] either way
  View gv = {dOut.bytes.data(), c.queries * Hq * D, Hq * D, D};
  auto value = [&](Tensor &separate, long long offset, const View &where, long long b, long long h, long long row,
                   long long d) {
    return c.packed ? packed.values[offset + where.at(b, h, row) + d] : separate.values[where.at(b, h, row) + d];
  };
  auto result = [&](Tensor &separate, long long offset, const View &where, long long b, long long h, long long row,
                    long long d) {
    return c.packed ? packedGrad.stored(offset + where.at(b, h, row) + d) : separate.stored(where.at(b, h, row) + d);
  };

  // Garbage beyond the valid keys (an unused part of a KV cache) must not reach anything.
  if (c.keyLength >= 0 && !c.packed)
    for (Tensor *tensor : {&k, &v})
      for (long long b = 0; b < c.batch; ++b)
        for (long long h = 0; h < Hk; ++h)
          for (long long row = c.keyLength; row < c.keys; ++row)
            for (long long d = 0; d < D; ++d) tensor->set(kv.at(b, h, row) + d, NAN);
  std::vector<uint8_t> mask(c.batch * c.keys);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 1 && !(i >= mask.size() - 4) ? 255 : 0;
  GuardedBuffer maskBytes = GuardedBuffer::of<uint8_t>(mask), length = GuardedBuffer::of<int>(c.keyLength);
  GuardedBuffer lse(c.batch * Hq * c.queries * 4), delta(c.batch * Hq * c.queries * 4);
  Shape shape = {c.batch,
                 Hq,
                 Hk,
                 c.queries,
                 c.keys,
                 static_cast<float>(1 / std::sqrt(D)),
                 c.causal,
                 c.window,
                 c.masked ? maskBytes.data() : nullptr,
                 c.keyLength >= 0 ? length.data() : nullptr};

  const EmulatedModule &module = moduleFor(c.headSize, c.type, c.tensorCores);
  const std::string suffix = "_" + c.type + "_" + std::to_string(c.headSize);
  auto tiles = [](long long count, long long tile) { return static_cast<unsigned>((count + tile - 1) / tile); };
  const bool tensorCores = c.tensorCores;
  const long long forwardRows = tensorCores || D <= 64 ? 64 : D <= 128 ? 32 : 16;
  const long long backwardRows = tensorCores ? 64 : D <= 64 ? 32 : D <= 128 ? 16 : 8;
  const unsigned heads = static_cast<unsigned>(c.batch * Hq);
  const unsigned backwardThreads = D <= 128 ? 128 : 64;
  const size_t rowBytes = tensorCores ? ((D + 15) / 16 * 16 + 8) * 2 : 0, moving = D <= 64 ? 64 : 32; // shared memory
  const size_t backwardShared = tensorCores ? (2 * backwardRows + 4 * moving) * rowBytes : 0;
  auto launch = [&](unsigned blocks, unsigned threads, size_t sharedBytes) {
    return fusor::emulator::LaunchShape{.grid = {blocks}, .block = {threads}, .sharedBytes = sharedBytes};
  };
  const auto forward = launch(heads * tiles(c.queries, forwardRows), 128, (forwardRows + 4 * 64) * rowBytes);
  ASSERT_EQ(messageOf(module.run("forward" + suffix, forward, qv, kv, vv, ov, lse, shape)), "");
  const auto byQuery = launch(heads * tiles(c.queries, backwardRows), backwardThreads,
                              tensorCores ? backwardShared + backwardRows * 4 : 0);
  if (tensorCores) {
    ASSERT_EQ(messageOf(module.run("queryGrad" + suffix, byQuery, qv, kv, vv, ov, gv, dqv, lse, delta, shape)), "");
  } else {
    ASSERT_EQ(
        messageOf(module.run("delta" + suffix, launch(tiles(heads * c.queries, 4), 128, 0), ov, gv, delta, shape)), "");
    ASSERT_EQ(messageOf(module.run("queryGrad" + suffix, byQuery, qv, kv, vv, gv, dqv, lse, delta, shape)), "");
  }
  const auto byKey = launch(static_cast<unsigned>(c.batch * Hk) * tiles(c.keys, backwardRows), backwardThreads,
                            tensorCores ? backwardShared + 4 * moving * 4 : 0);
  ASSERT_EQ(messageOf(module.run("keyGrad" + suffix, byKey, qv, kv, vv, gv, dkv, dvv, lse, delta, shape)), "");
  for (Tensor *tensor : {&out, &dq, &dk, &dv, &packedGrad, &packed, &q, &k, &v})
    ASSERT_EQ(messageOf(tensor->bytes.check("tensor")), "");

  // The definition, in double precision.
  Difference outDiff, lseDiff, dqDiff, dkDiff, dvDiff;
  std::vector<double> dK(keyCount), dV(keyCount);
  auto keyIndex = [&](long long b, long long h, long long j, long long d) {
    return ((b * Hk + h) * c.keys + j) * D + d;
  };
  for (long long b = 0; b < c.batch; ++b)
    for (long long h = 0; h < Hq; ++h)
      for (long long i = 0; i < c.queries; ++i) {
        const long long hk = h / group;
        std::vector<double> P(c.keys, 0), dP(c.keys, 0);
        double largest = -INFINITY, total = 0;
        for (long long j = 0; j < c.keys; ++j) {
          if (!sees(c, mask, b, i, j)) continue;
          for (long long d = 0; d < D; ++d) P[j] += value(q, 0, qv, b, h, i, d) * value(k, Hq * D, kv, b, hk, j, d);
          P[j] *= shape.scale;
          largest = std::fmax(largest, P[j]);
        }
        for (long long j = 0; j < c.keys; ++j)
          if (sees(c, mask, b, i, j)) total += P[j] = std::exp(P[j] - largest);
        const float gotLse = lse.as<float>()[(b * Hq + h) * c.queries + i];
        if (total == 0)
          EXPECT_EQ(gotLse, -INFINITY);
        else
          lseDiff.add(gotLse, largest + std::log(total));
        std::vector<double> o(D, 0);
        double rowDelta = 0;
        for (long long j = 0; j < c.keys; ++j)
          if (P[j] != 0) {
            P[j] /= total;
            for (long long d = 0; d < D; ++d) {
              double grad = dOut.values[gv.at(b, h, i) + d];
              o[d] += P[j] * value(v, (Hq + Hk) * D, vv, b, hk, j, d);
              dP[j] += grad * value(v, (Hq + Hk) * D, vv, b, hk, j, d);
              dV[keyIndex(b, hk, j, d)] += P[j] * grad;
            }
          }
        for (long long d = 0; d < D; ++d) {
          outDiff.add(out.stored(ov.at(b, h, i) + d), o[d]);
          rowDelta += o[d] * dOut.values[gv.at(b, h, i) + d];
        }
        std::vector<double> dQ(D, 0);
        for (long long j = 0; j < c.keys; ++j)
          if (P[j] != 0)
            for (long long d = 0; d < D; ++d) {
              double dS = P[j] * (dP[j] - rowDelta) * shape.scale;
              dQ[d] += dS * value(k, Hq * D, kv, b, hk, j, d);
              dK[keyIndex(b, hk, j, d)] += dS * value(q, 0, qv, b, h, i, d);
            }
        for (long long d = 0; d < D; ++d) dqDiff.add(result(dq, 0, dqv, b, h, i, d), dQ[d]);
      }
  for (long long b = 0; b < c.batch; ++b)
    for (long long h = 0; h < Hk; ++h)
      for (long long j = 0; j < c.keys; ++j)
        for (long long d = 0; d < D; ++d) {
          dkDiff.add(result(dk, Hq * D, dkv, b, h, j, d), dK[keyIndex(b, h, j, d)]);
          dvDiff.add(result(dv, (Hq + Hk) * D, dvv, b, h, j, d), dV[keyIndex(b, h, j, d)]);
        }
  // f32: rounding of sums; bf16 and f16: P, dS, out and the results rounded to 8 and 11 bits.
  const double bound = c.type == "float" ? 1e-5 : c.type == "bf16" ? 1.2e-2 : 1.5e-3;
  EXPECT_LE(lseDiff.relative(), 1e-6);
  for (auto &[what, difference] : {std::make_pair("out", outDiff), {"dq", dqDiff}, {"dk", dkDiff}, {"dv", dvDiff}}) {
    EXPECT_TRUE(difference.finite) << what;
    EXPECT_LE(difference.relative(), bound) << what;
  }
}

TEST(Attention, HeadSizes) {
  for (int headSize : {1, 7, 16, 64, 128, 256}) check({.headSize = headSize, .queries = 70, .keys = 70});
}

TEST(Attention, RaggedLengths) {
  for (auto [queries, keys] : {std::array<long long, 2>{1, 1}, {31, 33}, {33, 31}, {1, 130}, {127, 130}, {130, 1}})
    for (bool causal : {false, true}) check({.queries = queries, .keys = keys, .causal = causal});
}

TEST(Attention, GroupedHeads) {
  check({.queryHeads = 6, .keyHeads = 2, .queries = 40, .keys = 40});
  check({.queryHeads = 4, .keyHeads = 1, .queries = 20, .keys = 50, .causal = false});
}

TEST(Attention, WindowsAndMasks) {
  for (long long window : {0, 5, 40}) {
    check({.queries = 100, .keys = 100, .window = window});
    check({.queries = 50, .keys = 100, .causal = false, .window = window});
    check({.queries = 100, .keys = 40, .window = window});
  }
  check({.queries = 70, .keys = 70, .causal = false, .masked = true});
  check({.queries = 70, .keys = 70, .window = 1, .masked = true}); // rows that see nothing
}

TEST(Attention, KeyLengthOfACache) {
  for (int length : {0, 1, 37, 64, 90}) {
    check({.queries = 1, .keys = 90, .keyLength = length});
    check({.queries = 8, .keys = 90, .keyLength = length});
    check({.queries = 8, .keys = 90, .causal = false, .masked = true, .keyLength = length});
  }
}

TEST(Attention, PackedLayoutAndTypes) {
  for (const char *type : {"float", "bf16", "f16"}) {
    check({.headSize = 64, .type = type, .queries = 66, .keys = 66, .packed = true});
    check({.headSize = 7, .type = type, .queryHeads = 4, .keyHeads = 2, .queries = 45, .keys = 45, .packed = true});
  }
}

TEST(Attention, CompilesForGpus) {
  expectCompilesUnderNvrtc(deviceLibrary(kFiles) + kernelsFor(7, "float", false) + kernelsFor(64, "bf16", false) +
                           kernelsFor(256, "f16", false));
}

// ---- the same on tensor cores --------------------------------------------------------------------------------------

Case mma(int headSize, long long queries, long long keys, bool causal = true) {
  Case c;
  c.headSize = headSize, c.type = "bf16", c.queries = queries, c.keys = keys, c.causal = causal;
  c.tensorCores = true;
  return c;
}
template <class Change> Case with(Case c, Change change) {
  change(c);
  return c;
}

TEST(AttentionMma, HeadSizes) {
  for (int headSize : {8, 16, 40, 64, 80, 128}) check(mma(headSize, 70, 70));
}

TEST(AttentionMma, RaggedLengths) {
  for (auto [queries, keys] :
       {std::array<long long, 2>{1, 1}, {17, 17}, {64, 64}, {130, 130}, {1, 200}, {65, 129}, {129, 65}, {130, 1}})
    for (bool causal : {false, true}) check(mma(64, queries, keys, causal));
}

TEST(AttentionMma, GroupedHeads) {
  check(with(mma(16, 70, 70), [](Case &c) { c.queryHeads = 6, c.keyHeads = 2; }));
  check(with(mma(16, 20, 90, false), [](Case &c) { c.queryHeads = 4, c.keyHeads = 1; }));
  check(with(mma(8, 66, 66), [](Case &c) { c.batch = 3, c.queryHeads = c.keyHeads = 12; })); // two groups of blocks
}

TEST(AttentionMma, WindowsAndMasks) {
  for (long long window : {0, 5, 64, 100}) {
    auto windowed = [&](Case &c) { c.window = window; };
    check(with(mma(16, 200, 200), windowed));
    check(with(mma(16, 50, 200, false), windowed));
    check(with(mma(16, 200, 40), windowed));
  }
  check(with(mma(16, 150, 150, false), [](Case &c) { c.masked = true; }));
  check(with(mma(16, 150, 150), [](Case &c) { c.window = 1, c.masked = true; })); // rows that see nothing
}

TEST(AttentionMma, KeyLengthOfACache) {
  for (int length : {0, 1, 37, 64, 150}) {
    check(with(mma(16, 1, 150), [&](Case &c) { c.keyLength = length; }));
    check(with(mma(16, 70, 150), [&](Case &c) { c.keyLength = length; }));
    check(with(mma(16, 8, 150, false), [&](Case &c) { c.keyLength = length, c.masked = true; }));
  }
}

TEST(AttentionMma, PackedLayoutAndTypes) {
  for (const char *type : {"bf16", "f16"}) {
    check(with(mma(64, 130, 130), [&](Case &c) { c.type = type, c.packed = true; }));
    check(with(mma(40, 66, 66), [&](Case &c) { c.type = type, c.packed = true, c.queryHeads = 4; }));
  }
}

TEST(AttentionMma, CompilesForGpus) {
  expectCompilesUnderNvrtc(deviceLibrary(kMmaFiles) + kernelsFor(40, "f16", true) + kernelsFor(128, "bf16", true),
                           {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"});
}

} // namespace
