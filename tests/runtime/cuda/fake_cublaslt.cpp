// A libcublasLt that multiplies on the host, column-major as the real one: what CublasLt says to it is tested, not
// speed. Algorithms are numbered from 0; number 1 refuses to run, as some of the real ones do.
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

struct Product {
  int32_t transposeA = 0, transposeB = 0, epilogue = 1;
  const void *bias = nullptr;
  const float *scales[2] = {nullptr, nullptr};
  int8_t fast = 0;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading, stride = 0;
  int32_t count = 1;
};
struct Result {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

bool isFp8(int type) { return type == 28 || type == 29; }

float fp8(uint8_t bits, int mantissa) { // E4M3 and E5M2, finite
  int bias = mantissa == 3 ? 7 : 15, exponent = (bits & 127) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  float value = exponent ? std::ldexp(float((1 << mantissa) + fraction), exponent - bias - mantissa)
                         : std::ldexp(float(fraction), 1 - bias - mantissa);
  return bits & 128 ? -value : value;
}

float load(const void *data, int64_t i, int type) {
  if (type == 0) return static_cast<const float *>(data)[i];
  if (isFp8(type)) return fp8(static_cast<const uint8_t *>(data)[i], type == 28 ? 3 : 2);
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(data)[i]) << 16; // bf16
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
void store(void *data, int64_t i, int type, float value) {
  if (type == 0) {
    static_cast<float *>(data)[i] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  static_cast<uint16_t *>(data)[i] = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// FP8 exists with both operands along the sum, not of two E5M2, and in multiples of 16.
bool exists(const Product *p, const Layout *a, const Layout *b, const Layout *d) {
  if (!isFp8(a->type) && !isFp8(b->type)) return a->type == b->type && !p->scales[0] && !p->scales[1] && !p->fast;
  return isFp8(a->type) && isFp8(b->type) && (a->type == 28 || b->type == 28) && p->transposeA && !p->transposeB &&
         a->leading % 16 == 0 && b->leading % 16 == 0 && d->rows % 16 == 0 && a->rows % 16 == 0 &&
         (d->type == 14 || (d->type == 0 && p->epilogue != 4));
}

} // namespace

extern "C" {
int fakeCublasLtFp8Products = 0, fakeCublasLtFastProducts = 0; // that ran
size_t cublasLtGetVersion() { return 130000; }
int cublasLtCreate(void **handle) { return *handle = new int, 0; }
int cublasLtDestroy(void *handle) { return delete static_cast<int *>(handle), 0; }
int cublasLtMatmulDescCreate(Product **product, int compute, int scale) {
  *product = new Product;
  return compute == 68 && scale == 0 ? 0 : 7;
}
int cublasLtMatmulDescDestroy(Product *product) { return delete product, 0; }
int cublasLtMatmulDescSetAttribute(Product *product, int attribute, const void *value, size_t bytes) {
  switch (attribute) {
  case 3: return std::memcpy(&product->transposeA, value, bytes), 0;
  case 4: return std::memcpy(&product->transposeB, value, bytes), 0;
  case 7: return std::memcpy(&product->epilogue, value, bytes), 0;
  case 8: return std::memcpy(&product->bias, value, bytes), 0;
  case 17: return std::memcpy(&product->scales[0], value, bytes), 0;
  case 18: return std::memcpy(&product->scales[1], value, bytes), 0;
  case 25: return std::memcpy(&product->fast, value, bytes), 0;
  default: return 7;
  }
}
int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new Layout{type, rows, columns, leading};
  return leading >= static_cast<int64_t>(rows) ? 0 : 7;
}
int cublasLtMatrixLayoutDestroy(Layout *layout) { return delete layout, 0; }
int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
  if (attribute == 5) return std::memcpy(&layout->count, value, bytes), 0;
  if (attribute == 6) return std::memcpy(&layout->stride, value, bytes), 0;
  return 7;
}
int cublasLtMatmulPreferenceCreate(void **preference) { return *preference = new int, 0; }
int cublasLtMatmulPreferenceDestroy(void *preference) { return delete static_cast<int *>(preference), 0; }
int cublasLtMatmulPreferenceSetAttribute(void *, int attribute, const void *, size_t) {
  return attribute == 1 || attribute == 3 ? 0 : 7;
}
int cublasLtMatmulAlgoGetHeuristic(void *, Product *product, Layout *a, Layout *b, Layout *, Layout *d, void *,
                                   int most, Result *results, int *found) {
  if (!exists(product, a, b, d)) return 15;
  *found = most < 3 ? most : 3;
  for (int i = 0; i < *found; ++i) results[i] = {{static_cast<uint64_t>(i)}, 1024, 0, 1, {}};
  return 0;
}
int cublasLtMatmulAlgoCheck(void *, Product *, Layout *, Layout *, Layout *, Layout *, const uint64_t *algorithm,
                            Result *result) {
  *result = {{*algorithm}, 1024, 0, 1, {}};
  return *algorithm < 3 ? 0 : 15;
}
int cublasLtMatmul(void *, Product *p, const float *alpha, const void *a, Layout *la, const void *b, Layout *lb,
                   const float *beta, const void *, Layout *, void *d, Layout *ld, const uint64_t *algorithm,
                   void *workspace, size_t, void *) {
  if (*algorithm == 1) return 15;
  uint64_t k = p->transposeA ? la->rows : la->columns;
  if (!exists(p, la, lb, ld)) return 15;
  fakeCublasLtFp8Products += isFp8(la->type), fakeCublasLtFastProducts += p->fast;
  float scale = (p->scales[0] ? *p->scales[0] : 1) * (p->scales[1] ? *p->scales[1] : 1);
  bool fits = (p->transposeA ? la->columns : la->rows) == ld->rows &&
              (p->transposeB ? lb->rows : lb->columns) == ld->columns &&
              (p->transposeB ? lb->columns : lb->rows) == k && la->count == ld->count && lb->count == ld->count;
  if (!fits || !workspace || *alpha != 1 || *beta != 0) return 7;
  for (int batch = 0; batch < ld->count; ++batch)
    for (uint64_t j = 0; j < ld->columns; ++j)
      for (uint64_t i = 0; i < ld->rows; ++i) {
        float sum = 0;
        for (uint64_t q = 0; q < k; ++q)
          sum += load(a, batch * la->stride + (p->transposeA ? i * la->leading + q : q * la->leading + i), la->type) *
                 load(b, batch * lb->stride + (p->transposeB ? q * lb->leading + j : j * lb->leading + q), lb->type);
        sum *= scale;
        if (p->epilogue == 4) sum += load(p->bias, i, ld->type);
        store(d, batch * ld->stride + j * ld->leading + i, ld->type, sum);
      }
  return 0;
}
}
