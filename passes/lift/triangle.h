// What is known of a mask over symbolic sizes: it is one number, counts up along its rows and columns, or has one
// number up to a diagonal and another behind it.
//
//   iota {axis = -2} + P           i + P               a ramp
//   iota {axis = -1} <= that       j <= i + P          a triangle: 1 up to diagonal P, 0 behind it
//   select(that, 0, -inf)          0 | -inf
//   slice of a stored triangle from row P, [S, P+S]: the same triangle, P further to the right
#pragma once
#include "ir/graph/graph.h"
#include <optional>

namespace fusor::passes {

/// Element (i, j) of the last two dims, the dims in front being repeated: `before` where j <= i + diagonal, else
/// `behind`. A number everywhere: both are equal, and the diagonal means nothing.
struct Triangle {
  double before = 0, behind = 0;
  ir::Dim diagonal;
  bool isNumber() const { return before == behind; }
};

/// Absent where `value` is none, or is not known to be one.
std::optional<Triangle> triangleOf(ir::Value value);

} // namespace fusor::passes
