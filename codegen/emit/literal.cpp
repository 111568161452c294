#include "codegen/emit/literal.h"
#include <charconv>
#include <cmath>

namespace fusor::codegen {

namespace {

// Shortest decimal that reads back as the same T; always with a point or an exponent, else it would be an integer.
template <typename T> std::string decimal(T value) {
  char buffer[64];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

} // namespace

std::string floatLiteral(double value) {
  auto single = static_cast<float>(value);
  if (std::isnan(single)) return "bitsToFloat(0x7fc00000u)";
  if (std::isinf(single)) return single < 0 ? "-bitsToFloat(0x7f800000u)" : "bitsToFloat(0x7f800000u)";
  return decimal(single) + "f";
}

std::string doubleLiteral(double value) {
  if (std::isnan(value)) return "(double)bitsToFloat(0x7fc00000u)";
  if (std::isinf(value)) return value < 0 ? "-(double)bitsToFloat(0x7f800000u)" : "(double)bitsToFloat(0x7f800000u)";
  return decimal(value);
}

std::string integerLiteral(int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807 - 1)";
  return std::to_string(value);
}

} // namespace fusor::codegen
