// How far the outputs of a replayed kernel are from its body in float64, and from what its original text computes.
#pragma once
#include "frontend/replay/replay_case.h"
#include "ir/reference/reference.h"

namespace fusor::frontend {

/// One output against others of its type.
struct Difference {
  double absolute = 0, relative = 0; // the largest |a - b|, and the largest |a - b| / |b| where b is not 0
  int64_t differing = 0;             // elements whose bits are not the same, or that are further apart than allowed
  int64_t first = -1;                // the first of them
  double found = 0, expected = 0;    // there
};

/// Bits count.
Difference differenceOf(ir::DType dtype, llvm::ArrayRef<char> found, llvm::ArrayRef<char> expected);
/// Elements further apart than `allowed` count; two NaN are equal.
Difference differenceOf(ir::DType dtype, llvm::ArrayRef<char> found, const ir::RefTensor &expected, double allowed);

/// The results of the body in float64.
llvm::Expected<std::vector<ir::RefTensor>> referenceOf(const ReplayCase &given);
/// How far result `number` may be from the reference, as --check has it.
double allowedFor(const ReplayCase &given, unsigned number, const ir::RefTensor &reference);

/// "[0, 3, 17]" of element `number`.
std::string indexText(int64_t number, llvm::ArrayRef<int64_t> shape);

} // namespace fusor::frontend
