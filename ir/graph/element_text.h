// The contents of a `const` as text: [1.0, 2.0] for small ones, hex "0011..." for large ones. Exact for every bit
// pattern.
#pragma once
#include "ir/types/type.h"
#include "llvm/Support/Error.h"

namespace fusor::ir {

/// More elements than this are printed as hex.
inline constexpr int64_t kMaxListedElements = 64;

/// "[1.0, 2.0]", or hex where a list would be long or would not give the same bits back (NaN payloads).
std::string elementsText(const TensorType &type, llvm::ArrayRef<char> data);

/// Reads one element, "3", "-0.5", "1e-05", "inf", and stores it as element `index` of `data`. False where `text` is no
/// number or, for integer types, not one of the type's values.
bool storeElementText(DType type, void *data, int64_t index, llvm::StringRef text);

/// A real number, with an optional sign: "3", "0.1", "1e-05", "inf", "nan". Absent where it is no number or out of a
/// double's range.
std::optional<double> parseReal(llvm::StringRef text);

} // namespace fusor::ir
