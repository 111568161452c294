#include "tests/support/recipes.h"
#include <limits>

namespace fusor::tests {
namespace {

using namespace ir;
using Integers = std::vector<int64_t>;
using Recipes = std::vector<Recipe>;
constexpr int64_t kI = 1; // makes a literal an int64_t attribute: kI * 2

Operand t(Shape shape) { return {.shape = std::move(shape)}; }
Operand range(Shape shape, double low, double high) { return {.shape = std::move(shape), .low = low, .high = high}; }
Operand scalar(double value, DType dtype = DType::f32) {
  return {.fill = Operand::Fill::constant, .shape = {}, .dtype = dtype, .low = value};
}
Operand ints(Shape shape, double low, double high, DType dtype = DType::i32) {
  return {.fill = Operand::Fill::integers, .shape = std::move(shape), .dtype = dtype, .low = low, .high = high};
}
Operand mask(Shape shape) { return {.fill = Operand::Fill::booleans, .shape = std::move(shape), .dtype = DType::i1}; }
Operand none() { return {.shape = {}, .absent = true}; }
/// Result `index` of `op` over the given operands of the recipe; the attributes are those of the recipe.
Operand saved(const char *op, llvm::SmallVector<unsigned, 4> of, unsigned index) {
  return {.fill = Operand::Fill::result, .shape = {}, .op = op, .of = std::move(of), .index = index};
}
Operand fp8(Shape shape) {
  return {
      .shape = std::move(shape), .dtype = DType::f8e4m3, .low = -30, .high = 30, .granularity = Granularity::tensor};
}
Recipe ragged(Recipe recipe) { return recipe.isRagged = true, recipe; }

// --- structure

Recipes constant() { return {{.operands = {}, .attrs = {{"value", 1.5}}}}; }
Recipes extent() { return {{.operands = {}, .attrs = {{"shape", Shape{3, 7}}}}}; }

// --- reductions

Recipes reduce() {
  Recipes all;
  for (const Integers &dims : std::vector<Integers>{{}, {0}, {-1}, {1}, {0, 2}, {1, 2}})
    for (bool keep : {false, true}) all.push_back({{t({2, 3, 5})}, {{"dims", dims}, {"keep", keep}}});
  for (const Shape &shape : std::vector<Shape>{{1}, {31}, {4097}, {3, 31}, {4097, 3}, {0, 5}, {5, 0}})
    for (int64_t dim : {0, -1}) all.push_back(ragged({{t(shape)}, {{"dims", Integers{dim}}}}));
  return all;
}
Recipes argReduce() {
  Recipes all;
  for (int64_t axis : {-1, 0, 1})
    for (const char *kind : {"max", "min"})
      all.push_back({{t({3, 4, 5})}, {{"axis", axis}, {"kind", std::string(kind)}, {"keep", axis == 0}}});
  all.push_back(ragged({{t({2, 4097})}, {}}));
  return all;
}

// --- movement

Recipes reshape() {
  return {{{t({2, 6})}, {{"shape", Shape{3, 4}}}},
          {{t({})}, {{"shape", Shape{1, 1}}}},
          ragged({{t({0, 3})}, {{"shape", Shape{5, 0}}}}),
          ragged({{t({31, 33})}, {{"shape", Shape{1023}}}})};
}
Recipes transpose() {
  return {{{t({2, 3, 4})}, {{"perm", Integers{2, 0, 1}}}},
          {{t({3, 2})}, {{"perm", Integers{1, 0}}}},
          ragged({{t({31, 33})}, {{"perm", Integers{1, 0}}}}),
          ragged({{t({3, 1, 31, 2})}, {{"perm", Integers{0, 2, 1, 3}}}}),
          ragged({{t({0, 4})}, {{"perm", Integers{1, 0}}}})};
}
Recipes broadcast() {
  return {{{t({3, 1})}, {{"shape", Shape{2, 3, 4}}}},
          {{t({})}, {{"shape", Shape{5}}}},
          ragged({{t({31})}, {{"shape", Shape{33, 31}}}}),
          ragged({{t({1})}, {{"shape", Shape{0}}}})};
}
Recipes slice() {
  return {{{t({4, 5})}, {{"start", Shape{1, 0}}, {"size", Shape{2, 5}}}},
          {{t({9})}, {{"start", Shape{1}}, {"size", Shape{3}}, {"step", Integers{3}}}},
          {{t({6})}, {{"start", Shape{5}}, {"size", Shape{6}}, {"step", Integers{-1}}}},
          {{t({4})}, {{"start", Shape{4}}, {"size", Shape{0}}}},
          ragged({{t({33, 31})}, {{"start", Shape{1, 7}}, {"size", Shape{31, 17}}}})};
}
Recipes sliceGrad() {
  return {{{t({3})}, {{"start", Shape{1}}, {"shape", Shape{9}}, {"step", Integers{3}}}},
          {{t({2, 3})}, {{"start", Shape{3, 1}}, {"shape", Shape{4, 5}}, {"step", Integers{-1, 1}}}}};
}
Recipes pad() {
  return {{{t({2, 3})}, {{"before", Shape{1, 0}}, {"after", Shape{2, 1}}}},
          {{t({3})}, {{"before", Shape{0}}, {"after", Shape{2}}, {"value", -1.5}}},
          ragged({{t({0, 3})}, {{"before", Shape{2, 0}}, {"after", Shape{0, 1}}}}),
          ragged({{t({31, 33})}, {{"before", Shape{0, 3}}, {"after", Shape{1, 28}}}})};
}
Recipes split() {
  return {{{t({2, 6})}, {{"sizes", Shape{1, 3, 2}}}, {0, 1, 2}},
          {{t({3, 4})}, {{"axis", kI * 0}, {"sizes", Shape{2, 0, 1}}}, {0, 1, 2}},
          ragged({{t({31, 96})}, {{"sizes", Shape{32, 32, 32}}}, {0, 1, 2}})};
}
Recipes concat() {
  return {{{t({2, 3}), t({2, 1}), t({2, 2})}, {}},
          {{t({2, 3}), t({1, 3})}, {{"axis", kI * 0}}},
          {{t({4})}, {}},
          ragged({{t({31, 0}), t({31, 17}), t({31, 5})}, {}})};
}
Recipes gather() { // indices out of range, negative and repeated
  return {{{t({5, 3}), ints({4}, -5, 5)}, {}},
          {{t({2, 4, 3}), ints({2, 2}, -1, 4, DType::i64)}, {{"axis", kI}}},
          {{t({6}), ints({}, 0, 5)}, {}},
          ragged({{t({31, 17}), ints({129}, 0, 30)}, {}}),
          ragged({{t({31, 17}), ints({0}, 0, 30)}, {}})};
}
Recipes scatterAdd() {
  return {{{t({4, 3}), ints({4}, -5, 5)}, {{"shape", Shape{5, 3}}}},
          {{t({2, 2, 2, 3}), ints({2, 2}, 0, 3, DType::i64)}, {{"axis", kI}, {"shape", Shape{2, 4, 3}}}},
          ragged({{t({513, 17}), ints({513}, 0, 30)}, {{"shape", Shape{31, 17}}}})};
}
Recipes iota() {
  return {{{}, {{"shape", Shape{5}}}},
          {{}, {{"shape", Shape{2, 3, 4}}, {"axis", kI}, {"dtype", DType::f32}}},
          ragged({{}, {{"shape", Shape{0}}}})};
}

// --- contractions

Recipes matmul() {
  Recipes all;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      Attrs attrs{{"trans_a", ta}, {"trans_b", tb}};
      auto shapes = [&](Shape lead, int64_t m, int64_t n, int64_t k, Shape leadB) {
        Shape a = lead, b = leadB;
        a.append(ta ? Shape{k, m} : Shape{m, k}), b.append(tb ? Shape{n, k} : Shape{k, n});
        return Recipe{{t(a), t(b)}, attrs};
      };
      all.push_back(shapes({}, 3, 4, 5, {}));
      all.push_back(shapes({2}, 3, 2, 4, {2}));
      all.push_back(shapes({2, 1}, 2, 3, 2, {3}));
      all.push_back(shapes({}, 2, 3, 2, {2}));
      all.push_back(ragged(shapes({}, 31, 33, 65, {})));
      all.push_back(ragged(shapes({}, 1, 1, 4097, {})));
      all.push_back(ragged(shapes({}, 3, 4, 0, {})));
      all.push_back(ragged(shapes({}, 0, 4, 3, {})));
    }
  return all;
}
Recipes linear() {
  return {{{t({3, 5}), t({4, 5}), t({4})}, {}},       {{t({2, 3, 5}), t({4, 5})}, {}},
          {{t({5}), t({4, 5}), t({4})}, {}},          ragged({{t({31, 65}), t({33, 65}), t({33})}, {}}),
          ragged({{t({1, 4097}), t({3, 4097})}, {}}), ragged({{t({0, 5}), t({4, 5}), t({4})}, {}})};
}
Recipes linearInputGrad() {
  return {{{t({3, 4}), t({4, 5})}, {}}, {{t({2, 3, 4}), t({4, 5})}, {}}, ragged({{t({31, 65}), t({65, 33})}, {}})};
}
Recipes linearWeightGrad() {
  return {{{t({3, 4}), t({3, 5})}, {}},
          {{t({2, 3, 4}), t({2, 3, 5})}, {}},
          {{t({4}), t({5})}, {}},
          ragged({{t({257, 33}), t({257, 31})}, {}}),
          ragged({{t({0, 3}), t({0, 4})}, {}})};
}

// --- normalisation

Recipes softmax() {
  Recipes all;
  for (int64_t axis : {-1, 0, 1}) all.push_back({{t({2, 3, 4})}, {{"axis", axis}}});
  for (const Shape &shape : std::vector<Shape>{{1}, {31}, {3, 4097}, {0, 5}}) all.push_back(ragged({{t(shape)}, {}}));
  all.push_back(ragged({{range({4, 33}, -80, 80)}, {}}));
  return all;
}
Recipes softmaxGrad(const char *forward) {
  Recipes all;
  for (int64_t axis : {-1, 0}) all.push_back({{t({3, 4}), saved(forward, {0}, 0)}, {{"axis", axis}}});
  all.push_back(ragged({{t({3, 513}), saved(forward, {0}, 0)}, {}}));
  return all;
}
Recipes normalize() { // x, rstd, mean?, weight?, bias?
  Operand layer = saved("layer_norm", {0}, 2), mean = saved("layer_norm", {0}, 1), rms = saved("rms_norm", {0}, 1);
  auto vector = [](int64_t columns) { return range({columns}, 0.5, 1.5); };
  return {{{t({3, 5}), layer, mean, vector(5), t({5})}, {}},
          {{t({2, 2, 4}), layer, mean}, {}},
          {{t({3, 5}), rms, none(), vector(5)}, {}},
          ragged({{t({7, 257}), layer, mean, vector(257), t({257})}, {}})};
}
Recipes layerNorm() {
  return {{{t({3, 5}), range({5}, 0.5, 1.5), t({5})}, {}},
          {{t({2, 2, 4}), range({4}, 0.5, 1.5)}, {}},
          {{t({3, 5}), none(), t({5})}, {{"eps", 0.1}}},
          {{t({7})}, {}},
          ragged({{t({3, 31}), range({31}, 0.5, 1.5), t({31})}, {}}),
          ragged({{t({2, 4097}), range({4097}, 0.5, 1.5), t({4097})}, {}}),
          ragged({{range({3, 257}, 99, 101), range({257}, 0.5, 1.5), t({257})}, {}}), // mean much larger than deviation
          ragged({{t({0, 8}), t({8}), t({8})}, {}})};
}
Recipes layerNormGrad(bool weight) { // dy, x, mean, rstd, weight?
  auto make = [&](Shape shape) {
    Recipe r{{t(shape), t(shape), saved("layer_norm", {1}, 1), saved("layer_norm", {1}, 2)}};
    if (weight) r.operands.push_back(range({shape.back()}, 0.5, 1.5));
    return r;
  };
  return {make({3, 5}), make({2, 2, 4}), ragged(make({7, 257}))};
}
Recipes layerNormGradBoth() {
  Recipes all = layerNormGrad(true);
  for (Recipe &r : layerNormGrad(false)) all.push_back(std::move(r));
  return all;
}
Recipes rmsNorm() {
  return {{{t({3, 5}), range({5}, 0.5, 1.5)}, {}},
          {{t({2, 2, 4})}, {}},
          {{t({7}), t({7})}, {{"eps", 0.1}}},
          ragged({{t({2, 4097}), range({4097}, 0.5, 1.5)}, {}}),
          ragged({{t({0, 8}), t({8})}, {}})};
}
Recipes rmsNormGrad(bool weight) { // dy, x, rstd, weight?
  auto make = [&](Shape shape) {
    Recipe r{{t(shape), t(shape), saved("rms_norm", {1}, 1)}};
    if (weight) r.operands.push_back(range({shape.back()}, 0.5, 1.5));
    return r;
  };
  return {make({3, 5}), make({2, 2, 4}), ragged(make({7, 257}))};
}
Recipes rmsNormGradBoth() {
  Recipes all = rmsNormGrad(true);
  for (Recipe &r : rmsNormGrad(false)) all.push_back(std::move(r));
  return all;
}

// --- attention

struct AttentionShape {
  int64_t batch, tq, tk, heads, kv, d;
  bool causal;
  int64_t window;
  bool masked;
  int64_t length; // -1: not given
  bool isRagged = false;
};
constexpr AttentionShape kAttentions[] = {
    {2, 3, 3, 2, 2, 2, false, 0, false, -1}, // plain
    {1, 4, 4, 2, 2, 2, true, 0, false, -1},  // causal
    {1, 3, 3, 4, 2, 2, true, 0, false, -1},  // grouped queries
    {1, 3, 3, 4, 1, 2, false, 0, false, -1}, // one key head
    {2, 3, 4, 2, 2, 2, false, 0, true, -1},  // key mask
    {1, 5, 5, 1, 1, 2, true, 2, false, -1},  // sliding window
    {1, 2, 6, 2, 2, 2, true, 0, false, 4},   // cache with a capacity of 6 and 4 keys
    {1, 3, 5, 2, 1, 2, true, 2, true, 4},    // everything at once
    {1, 4, 2, 1, 1, 2, true, 0, false, -1},  // more queries than keys: the first see nothing
    {1, 3, 3, 1, 1, 2, false, 0, false, 0},  // no key at all
    {1, 33, 33, 2, 1, 16, true, 0, false, -1, true},
    {2, 17, 65, 4, 2, 8, true, 0, true, 63, true},
    {1, 1, 129, 2, 2, 64, true, 0, false, 77, true}, // decoding
    {0, 3, 3, 2, 2, 2, false, 0, false, -1, true},
};
Attrs attentionAttrs(const AttentionShape &s) {
  Attrs attrs{{"heads", s.heads}};
  if (s.kv != s.heads) attrs.set("kv_heads", s.kv);
  if (s.causal) attrs.set("causal", true);
  if (s.window) attrs.set("window", s.window);
  return attrs;
}
std::vector<Operand> attentionInputs(const AttentionShape &s) {
  return {t({s.batch, s.tq, s.heads * s.d}), t({s.batch, s.tk, s.kv * s.d}), t({s.batch, s.tk, s.kv * s.d})};
}
void addOptional(std::vector<Operand> &operands, const AttentionShape &s) {
  operands.push_back(s.masked ? mask({s.batch, s.tk}) : none());
  operands.push_back(s.length >= 0 ? scalar(static_cast<double>(s.length), DType::i32) : none());
}
Recipes attention() {
  Recipes all;
  for (const AttentionShape &s : kAttentions) {
    Recipe r{attentionInputs(s), attentionAttrs(s)};
    addOptional(r.operands, s);
    r.isRagged = s.isRagged;
    all.push_back(r);
    // A bias for all, for keys of each batch entry, for each head, for everything; once beside each mask.
    const Shape biases[] = {
        {1, 1, s.tq, s.tk}, {s.batch, 1, 1, s.tk}, {1, s.heads, 1, 1}, {s.batch, s.heads, s.tq, s.tk}};
    r.operands.push_back(t(biases[all.size() / 2 % 4]));
    r.operands.back().accumulates = true;
    if (s.causal && all.size() / 2 % 2) r.attrs.set("hidden", -0.5);
    all.push_back(std::move(r));
  }
  all.push_back({attentionInputs(kAttentions[0]), {{"heads", kI * 2}, {"scale", 0.3}}});
  all.push_back({attentionInputs(kAttentions[1]), {{"heads", kI * 2}, {"causal", true}, {"hidden", -10000.0}}});
  return all;
}
Recipes attentionGrad() { // dy, q, k, v, y, lse, key_mask?, kv_length?
  Recipes all;
  for (const AttentionShape &s : kAttentions) {
    Recipe r{{t({s.batch, s.tq, s.heads * s.d})}, attentionAttrs(s)};
    for (Operand &o : attentionInputs(s)) r.operands.push_back(std::move(o));
    r.operands.push_back(saved("attention", {1, 2, 3, 6, 7}, 0));
    r.operands.push_back(saved("attention", {1, 2, 3, 6, 7}, 1));
    addOptional(r.operands, s);
    r.isRagged = s.isRagged;
    all.push_back(std::move(r));
  }
  return all;
}
Recipes rope() {
  Recipes all;
  for (bool interleaved : {false, true})
    for (bool inverse : {false, true})
      all.push_back(
          {{t({2, 3, 8}), ints({3}, 0, 40)}, {{"heads", kI * 2}, {"interleaved", interleaved}, {"inverse", inverse}}});
  all.push_back(ragged({{t({2, 33, 96}), ints({33}, 0, 4000)}, {{"heads", kI * 3}}}));
  return all;
}
Recipes rotary() {
  return {{{t({2, 3, 8}), t({3, 8}), t({1, 3, 8})}, {}},
          {{t({4}), t({4}), t({4})}, {}},
          ragged({{t({2, 3, 33, 64}), t({1, 1, 33, 64}), t({33, 64})}, {}})};
}
Recipes cacheWrite() {
  return {{{t({2, 5, 3}), t({2, 2, 3}), scalar(1, DType::i32)}, {}},
          {{t({1, 4, 2}), t({1, 3, 2}), scalar(2, DType::i32)}, {}}, // runs past the capacity
          ragged({{t({2, 33, 17}), t({2, 5, 17}), scalar(11, DType::i64)}, {}})};
}

// --- embedding and loss

Recipes embedding() {
  return {{{t({5, 3}), ints({2, 3}, 0, 4)}, {}},
          {{t({5, 3}), ints({4}, -1, 5, DType::i64)}, {}},
          ragged({{t({96, 31}), ints({4, 33}, 0, 95)}, {}}),
          ragged({{t({5, 3}), ints({0}, 0, 4)}, {}})};
}
Recipes embeddingGrad() {
  return {{{t({2, 3, 4}), ints({2, 3}, 0, 4)}, {{"rows", Shape{5}}}},
          ragged({{t({4, 33, 31}), ints({4, 33}, 0, 95)}, {{"rows", Shape{96}}}})};
}
Recipes crossEntropy() {
  return {{{t({4, 5}), ints({4}, 0, 4)}, {}},
          {{t({2, 3, 5}), ints({2, 3}, 0, 4, DType::i64)}, {}},
          {{t({6, 3}), ints({6}, 0, 3)}, {{"ignore_index", kI * 3}}}, // a quarter of the targets do not count
          {{t({3, 4}), ints({3}, -100, -100)}, {}},                   // none counts: loss 0
          {{t({5}), ints({}, 2, 2)}, {}},
          ragged({{range({31, 513}, -30, 30), ints({31}, 0, 512)}, {}}),
          ragged({{t({0, 5}), ints({0}, 0, 4)}, {}})};
}
Recipes crossEntropyGrad() { // dloss, logits, targets, lse, count
  Recipes all;
  for (bool large : {false, true}) {
    int64_t rows = large ? 31 : 4, columns = large ? 513 : 5;
    Recipe r{{t({}), t({rows, columns}), ints({rows}, 0, static_cast<double>(columns) - 1),
              saved("cross_entropy", {1, 2}, 1), saved("cross_entropy", {1, 2}, 2)},
             {{"ignore_index", kI * 2}}};
    r.isRagged = large;
    all.push_back(std::move(r));
  }
  return all;
}

// --- FP8, random, optimizer

Recipes quantize() {
  return {{{range({3, 5}, -600, 600), scalar(0.75)}, {}},
          {{t({33}), scalar(100)}, {{"dtype", DType::f8e5m2}}},
          ragged({{t({31, 129}), scalar(16)}, {{"contract", kI * 0}}}),
          ragged({{t({0, 3}), scalar(16)}, {}})};
}
Recipes fp8Cast() {
  return {{{range({3, 5}, -600, 600), scalar(0.75)}, {}},
          {{t({33}), scalar(100)}, {{"dtype", DType::f8e5m2}}},
          ragged({{t({0, 3}), scalar(16)}, {}})};
}
Recipes amax() { return {{{range({3, 5}, -600, 600)}, {}}, {{scalar(-3)}, {}}, ragged({{t({31, 129})}, {}})}; }
Recipes dequantize() { return {{{fp8({3, 5})}, {}}, {{fp8({31})}, {{"to", DType::bf16}}}, ragged({{fp8({0})}, {}})}; }
Recipes amaxUpdate() {
  Recipes all;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double amax : {0.0, 1.5, 1e-30, kInf, std::numeric_limits<double>::quiet_NaN()})
    for (const char *algo : {"max", "most_recent", "max_finite", "most_recent_finite"})
      all.push_back({{{.shape = {16}, .dtype = DType::f32, .low = 0, .high = 3}, scalar(2), scalar(amax)},
                     {{"algo", std::string(algo)}, {"margin", kI}}});
  all.push_back(
      {{{.shape = {1}, .dtype = DType::f32, .low = 0, .high = 3}, scalar(2), scalar(4)}, {{"dtype", DType::f8e5m2}}});
  return all;
}
Recipes gradQuantize() { return {{{t({3, 5}), scalar(2)}, {}}}; }
Recipes uniform() {
  return {{{scalar(7, DType::i64)}, {{"shape", Shape{3, 5}}}},
          {{scalar(7, DType::i32)}, {{"shape", Shape{33}}, {"stream", kI * 3}}},
          ragged({{scalar(7, DType::i64)}, {{"shape", Shape{4097}}}})};
}
Recipes dropout() {
  return {{{t({4, 5}), scalar(7, DType::i64)}, {{"rate", 0.4}, {"stream", kI * 2}}},
          {{t({6}), scalar(7, DType::i64)}, {{"rate", 0.0}}},
          {{t({6}), scalar(7, DType::i64)}, {{"rate", 1.0}}},
          ragged({{t({31, 33}), scalar(9, DType::i64)}, {}})};
}
Recipes globalNorm() { return {{{t({3, 5}), t({7})}, {}}, {{t({})}, {}}, ragged({{t({4097}), t({0}), t({31})}, {}})}; }
Recipes adamw() {
  auto f32 = [](Shape shape, double low, double high) {
    return Operand{.shape = std::move(shape), .dtype = DType::f32, .low = low, .high = high};
  };
  auto make = [&](Shape shape, double step) {
    return Recipe{
        {f32(shape, -1, 1), range(shape, -1, 1), f32(shape, -1, 1), f32(shape, 0, 1), scalar(step), scalar(3e-4)}};
  };
  Recipe scaled = make({3, 5}, 3);
  scaled.operands.push_back(scalar(0.125));
  return {make({5}, 1), make({3, 5}, 1000), scaled, ragged(make({4097}, 2)), ragged(make({0}, 2))};
}

struct Entry {
  llvm::StringLiteral op;
  Recipes (*recipes)();
};
constexpr Entry kEntries[] = {
    {"constant", constant},
    {"extent", extent},
    {"sum", reduce},
    {"mean", reduce},
    {"reduce_max", reduce},
    {"reduce_min", reduce},
    {"arg_reduce", argReduce},
    {"reshape", reshape},
    {"transpose", transpose},
    {"broadcast", broadcast},
    {"slice", slice},
    {"slice_grad", sliceGrad},
    {"pad", pad},
    {"split", split},
    {"concat", concat},
    {"gather", gather},
    {"scatter_add", scatterAdd},
    {"iota", iota},
    {"matmul", matmul},
    {"linear", linear},
    {"linear_input_grad", linearInputGrad},
    {"linear_weight_grad", linearWeightGrad},
    {"softmax", softmax},
    {"softmax_grad", [] { return softmaxGrad("softmax"); }},
    {"log_softmax", softmax},
    {"log_softmax_grad", [] { return softmaxGrad("log_softmax"); }},
    {"normalize", normalize},
    {"layer_norm", layerNorm},
    {"layer_norm_grad", layerNormGradBoth},
    {"layer_norm_param_grad", [] { return layerNormGrad(false); }},
    {"rms_norm", rmsNorm},
    {"rms_norm_grad", rmsNormGradBoth},
    {"rms_norm_param_grad", [] { return rmsNormGrad(false); }},
    {"attention", attention},
    {"attention_grad", attentionGrad},
    {"rope", rope},
    {"rotary", rotary},
    {"cache_write", cacheWrite},
    {"embedding", embedding},
    {"embedding_grad", embeddingGrad},
    {"cross_entropy", crossEntropy},
    {"cross_entropy_grad", crossEntropyGrad},
    {"quantize", quantize},
    {"fp8_cast", fp8Cast},
    {"amax", amax},
    {"dequantize", dequantize},
    {"amax_update", amaxUpdate},
    {"grad_quantize", gradQuantize},
    {"random_uniform", uniform},
    {"dropout", dropout},
    {"global_norm", globalNorm},
    {"adamw", adamw},
};

} // namespace

std::vector<Recipe> recipesOf(llvm::StringRef op) {
  for (const Entry &entry : kEntries)
    if (entry.op == op) return entry.recipes();
  return {};
}

} // namespace fusor::tests
