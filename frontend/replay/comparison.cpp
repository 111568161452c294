#include "frontend/replay/comparison.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/cpu/reference_step.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>

namespace fusor::frontend {
namespace {

void note(Difference &d, int64_t i, double found, double expected, bool differs) {
  double apart = std::abs(found - expected);
  if (std::isfinite(apart)) {
    d.absolute = std::max(d.absolute, apart);
    if (expected != 0) d.relative = std::max(d.relative, apart / std::abs(expected));
  }
  if (!differs) return;
  if (d.differing++ == 0) d.first = i, d.found = found, d.expected = expected;
}

} // namespace

Difference differenceOf(ir::DType dtype, llvm::ArrayRef<char> found, llvm::ArrayRef<char> expected) {
  Difference d;
  int64_t size = ir::byteSize(dtype);
  for (int64_t i = 0; i < static_cast<int64_t>(found.size()) / size; ++i)
    note(d, i, ir::loadElement(dtype, found.data(), i), ir::loadElement(dtype, expected.data(), i),
         std::memcmp(found.data() + i * size, expected.data() + i * size, size) != 0);
  return d;
}

Difference differenceOf(ir::DType dtype, llvm::ArrayRef<char> found, const ir::RefTensor &expected, double allowed) {
  Difference d;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    double a = ir::loadElement(dtype, found.data(), i), b = expected.data[i];
    bool isClose = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed;
    note(d, i, a, b, !isClose);
  }
  return d;
}

llvm::Expected<std::vector<ir::RefTensor>> referenceOf(const ReplayCase &given) {
  std::vector<ir::RefTensor> inputs;
  auto arguments = given.function().block().arguments();
  for (auto [argument, tensor] : llvm::zip(arguments, given.inputs))
    inputs.push_back(runtime::readTensor(argument.type(), tensor.bytes.data(), given.symbols));
  auto result = ir::evaluate(given.function(), inputs, {}, given.symbols);
  if (!result) return result.takeError();
  return std::move(result->results);
}

double allowedFor(const ReplayCase &given, unsigned number, const ir::RefTensor &reference) {
  auto returns = given.function().returns();
  return runtime::allowedDifference(
      reference, runtime::bodyTolerance(given.function().block(), returns[number].value.dtype(), given.symbols));
}

std::string indexText(int64_t number, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<std::string, 4> parts(shape.size());
  for (size_t d = shape.size(); d-- > 0;) parts[d] = std::to_string(number % shape[d]), number /= shape[d];
  return "[" + llvm::join(parts, ", ") + "]";
}

} // namespace fusor::frontend
