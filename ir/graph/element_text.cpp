#include "ir/graph/element_text.h"
#include "ir/graph/literal.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace fusor::ir {
namespace {

template <typename T> T load(const char *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// The shortest text that reads back as the same float; a double's shortest would show digits that f32 does not have.
std::string floatLiteral(float value) {
  if (!std::isfinite(value)) return realLiteral(value);
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string elementText(DType type, const char *data, int64_t index) {
  switch (type) {
  case DType::i64: return std::to_string(load<int64_t>(data, index));
  case DType::u64: return std::to_string(load<uint64_t>(data, index));
  case DType::f32: return floatLiteral(load<float>(data, index));
  default: break;
  }
  double value = loadElement(type, data, index);
  return isFloat(type) ? realLiteral(value) : std::to_string(static_cast<int64_t>(value));
}

// "[...]", or "" where some element would not read back to the same bits.
std::string elementList(DType type, llvm::ArrayRef<char> data, int64_t count) {
  std::string text = "[";
  std::vector<char> back(data.size());
  for (int64_t i = 0; i < count; ++i) {
    std::string element = elementText(type, data.data(), i);
    if (!storeElementText(type, back.data(), i, element)) return "";
    text += (i ? ", " : "") + element;
  }
  return llvm::makeArrayRef(back) == data ? text + "]" : "";
}

template <typename T> bool storeInteger(void *data, int64_t index, llvm::StringRef text) {
  T value;
  if (text.getAsInteger(10, value)) return false;
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
  return true;
}

} // namespace

std::string elementsText(const TensorType &type, llvm::ArrayRef<char> data) {
  Dim elements = type.elements();
  if (elements.isConstant() && elements.value() <= kMaxListedElements &&
      elements.value() * byteSize(type.dtype) == int64_t(data.size())) {
    std::string list = elementList(type.dtype, data, elements.value());
    if (!list.empty()) return list;
  }
  return "hex \"" + llvm::toHex(llvm::StringRef(data.data(), data.size()), /*LowerCase=*/true) + "\"";
}

bool storeElementText(DType type, void *data, int64_t index, llvm::StringRef text) {
  switch (type) {
  case DType::i64: return storeInteger<int64_t>(data, index, text);
  case DType::i32: return storeInteger<int32_t>(data, index, text);
  case DType::i16: return storeInteger<int16_t>(data, index, text);
  case DType::i8: return storeInteger<int8_t>(data, index, text);
  case DType::u64: return storeInteger<uint64_t>(data, index, text);
  case DType::u32: return storeInteger<uint32_t>(data, index, text);
  case DType::u16: return storeInteger<uint16_t>(data, index, text);
  case DType::u8: return storeInteger<uint8_t>(data, index, text);
  case DType::i1:
    if (text != "0" && text != "1") return false;
    static_cast<char *>(data)[index] = text == "1";
    return true;
  default: break;
  }
  auto value = parseReal(text);
  if (value) storeElement(type, data, index, *value);
  return value.has_value();
}

std::optional<double> parseReal(llvm::StringRef text) {
  bool negative = text.consume_front("-");
  double sign = negative ? -1 : 1;
  if (text == "inf") return sign * std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text.empty() || !llvm::isDigit(text[0])) return std::nullopt;
  double value = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return sign * value;
}

} // namespace fusor::ir
