// Numbers in kernel text: the one place that decides how they are spelt. What is written reads back as the same bits.
#pragma once
#include <cstdint>
#include <string>

namespace fusor::codegen {

/// `value` rounded to float: "0.5f", "1e-05f", "-bitsToFloat(0x7f800000u)" for minus infinity.
std::string floatLiteral(double value);
/// "0.5", "1e-05", "(double)bitsToFloat(0x7fc00000u)" for NaN.
std::string doubleLiteral(double value);
/// "768", "3221225472"; the lowest i64 as "(-9223372036854775807 - 1)".
std::string integerLiteral(int64_t value);

} // namespace fusor::codegen
