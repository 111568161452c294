// Elements in memory to lanes and back, for every dtype.
#pragma once
#include "ir/types/dtype.h"
#include "runtime/cpu/lanes/kernels.h"

namespace fusor::runtime {

/// What a value is computed in: f32 for floats up to f32 and i1, f64 for f64 and integers.
enum class Lane : uint8_t { f32, f64 };
inline Lane laneOf(ir::DType type) { return type == ir::DType::f64 || ir::isInteger(type) ? Lane::f64 : Lane::f32; }
inline int64_t laneBytes(Lane lane) { return lane == Lane::f32 ? 4 : 8; }

/// True where memory holds lanes as they are.
inline bool isLaneType(ir::DType type) { return type == ir::DType::f32 || type == ir::DType::f64; }

/// lanes[i] = element first + i * stride of an array of `type`; lanes are those of laneOf(type).
void loadLanes(const lanes::Kernels &kernels, ir::DType type, const void *data, int64_t first, int64_t stride,
               void *lanes, int64_t n);
/// The reverse; lanes are already rounded to `type`.
void storeLanes(const lanes::Kernels &kernels, ir::DType type, const void *lanes, void *data, int64_t first,
                int64_t stride, int64_t n);
/// Rounds lanes of laneOf(type) to `type`, from x to y (which may be x).
void roundLanes(const lanes::Kernels &kernels, ir::DType type, const void *x, void *y, int64_t n,
                bool saturates = true);

} // namespace fusor::runtime
