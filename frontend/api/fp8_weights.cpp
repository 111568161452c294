#include "frontend/api/fp8_weights.h"
#include "ir/reference/initial_values.h"
#include <cmath>
#include <limits>

namespace fusor::frontend {

Fp8Weight quantiseWeight(ir::DType dtype, const void *elements, int64_t count) {
  double amax = 0;
  for (int64_t i = 0; i < count; ++i)
    if (double size = std::fabs(ir::loadElement(dtype, elements, i)); std::isfinite(size)) amax = std::max(amax, size);
  float scale = 1;
  if (amax > 0)
    scale = static_cast<float>(std::clamp<double>(ir::maxFinite(ir::DType::f8e4m3) / amax,
                                                  std::numeric_limits<float>::min(), // so that 1 / scale is finite
                                                  std::numeric_limits<float>::max()));
  Fp8Weight weight{std::vector<char>(count), 1 / scale};
  for (int64_t i = 0; i < count; ++i)
    ir::storeElement(ir::DType::f8e4m3, weight.data.data(), i,
                     static_cast<float>(ir::loadElement(dtype, elements, i)) * scale);
  return weight;
}

llvm::Error writeFp8Weight(runtime::Program &program, llvm::StringRef name, const Fp8Weight &weight) {
  if (auto error = program.writePersistent(name, weight.data)) return error;
  return program.writePersistent(passes::weightInverseName(name),
                                 {reinterpret_cast<const char *>(&weight.inverse), sizeof(weight.inverse)});
}

llvm::Error initializeFp8Weights(runtime::Program &program, uint64_t seed) {
  for (const auto &p : program.module().persistents()) {
    if (!passes::isFp8Weight(program.module(), *p)) continue;
    auto count = program.persistentBytes(p->name);
    if (!count) return count.takeError();
    ir::Persistent wide = *p;
    wide.type.dtype = ir::DType::f32;
    std::vector<float> values(*count);
    ir::storeInitialValues(wide, seed, 0, *count, values.data());
    if (auto error = writeFp8Weight(program, p->name, quantiseWeight(ir::DType::f32, values.data(), *count)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<WeightBytes> fp8WeightBytes(runtime::Program &program) {
  WeightBytes bytes;
  for (const auto &p : program.module().persistents()) {
    if (!passes::isFp8Weight(program.module(), *p)) continue;
    auto count = program.persistentBytes(p->name);
    if (!count) return count.takeError();
    bytes.fp8 += *count + static_cast<int64_t>(sizeof(float));
    bytes.bf16 += 2 * *count;
  }
  return bytes;
}

} // namespace fusor::frontend
