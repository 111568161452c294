#include "ir/reference/initial_values.h"
#include "ir/ops/counter_rng.h"

namespace fusor::ir {

void storeInitialValues(const Persistent &persistent, uint64_t seed, int64_t first, int64_t count, void *to) {
  const Initializer &init = persistent.init;
  DType dtype = persistent.type.dtype;
  if (init.kind != Initializer::Kind::normal) {
    double value = init.kind == Initializer::Kind::constant ? init.value : 0.0;
    for (int64_t i = 0; i < count; ++i) storeElement(dtype, to, i, value);
    return;
  }
  uint64_t stream = 0xcbf29ce484222325ull; // FNV-1a of the name
  for (char c : persistent.name) stream = (stream ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  uint64_t key = rngKey(seed, stream);
  auto value = [&](int64_t i) { return init.value * rngNormal(key, static_cast<uint64_t>(first + i)); };
  if (dtype == DType::f32) // what nearly all are, without a look at the dtype for each
    for (int64_t i = 0; i < count; ++i) static_cast<float *>(to)[i] = static_cast<float>(value(i));
  else
    for (int64_t i = 0; i < count; ++i) storeElement(dtype, to, i, roundTo(dtype, value(i)));
}

std::vector<double> initialValues(const Persistent &persistent, uint64_t seed, int64_t elements) {
  std::vector<char> raw(elements * byteSize(persistent.type.dtype));
  storeInitialValues(persistent, seed, 0, elements, raw.data());
  std::vector<double> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = loadElement(persistent.type.dtype, raw.data(), i);
  return values;
}

} // namespace fusor::ir
