// The element types of tensors: names, sizes, and the rounding each one stands for.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace fusor::ir {

enum class DType : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, f8e8m0, i64, i32, i16, i8, u64, u32, u16, u8, i1 };

inline constexpr DType kAllDTypes[] = {DType::f64,    DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                       DType::f8e8m0, DType::i64, DType::i32, DType::i16,  DType::i8,     DType::u64,
                                       DType::u32,    DType::u16, DType::u8,  DType::i1};

/// The spelling in IR text: "bf16".
llvm::StringRef name(DType type);
std::optional<DType> parseDType(llvm::StringRef text);

/// Bytes of one element in memory; i1 takes one byte.
unsigned byteSize(DType type);

inline bool isFloat(DType t) { return t <= DType::f8e8m0; }
inline bool isFp8(DType t) { return t >= DType::f8e4m3 && t <= DType::f8e8m0; }
inline bool isInteger(DType t) { return t >= DType::i64 && t <= DType::u8; }
inline bool isSigned(DType t) { return t >= DType::i64 && t <= DType::i8; }
/// Floats narrower than f32: arithmetic on them is done in f32 and rounded once, at the op's result.
inline bool isNarrowFloat(DType t) { return t >= DType::f16 && t <= DType::f8e8m0; }

/// The largest finite value: 448 for f8e4m3, 57344 for f8e5m2.
double maxFinite(DType type);

/// `value` rounded to `type` (nearest even). FP8 saturates (E4M3 has no infinity); integers truncate towards zero and
/// saturate.
double roundTo(DType type, double value);
/// The same where what is too large for FP8 becomes Inf in f8e5m2 and NaN in f8e4m3, as in ONNX's saturate = 0.
double roundUnsaturated(DType type, double value);

/// Element `index` of an array of `type` in memory, as a double (exact for all types but 64-bit integers above 2^53).
double loadElement(DType type, const void *data, int64_t index);
/// Stores `value`, rounded, as element `index`. An Inf stays one in f8e5m2: whoever saturates has done so.
void storeElement(DType type, void *data, int64_t index, double value);

} // namespace fusor::ir
