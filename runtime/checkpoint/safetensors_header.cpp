#include "runtime/checkpoint/safetensors_header.h"

#include "runtime/checkpoint/file_error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>
#include <nlohmann/json.hpp>

namespace fusor::runtime {
namespace {

/// Receives the parts of the JSON text in order (a SAX handler): no tree is built, so nesting costs no memory or stack,
/// and duplicate keys are seen. Each callback returns false to stop; `problem` then says why.
class HeaderHandler {
public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  SafetensorsHeader header;
  std::string problem;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool binary(binary_t &) { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) { return unexpected(llvm::formatv("{0}", value).str()); }
  bool number_float(number_float_t, const string_t &text) { return unexpected(text); }

  bool number_unsigned(number_unsigned_t value) {
    if (value > uint64_t(std::numeric_limits<int64_t>::max())) return unexpected(llvm::formatv("{0}", value).str());
    if (place == Place::Shape) {
      entry.info.shape.push_back(int64_t(value));
      return true;
    }
    if (place == Place::Offsets) {
      if (offsets == 2) return fail("expected two data_offsets, found more");
      (offsets++ == 0 ? entry.begin : entry.end) = value;
      return true;
    }
    return unexpected(llvm::formatv("{0}", value).str());
  }

  bool string(string_t &value) {
    if (place == Place::Metadata) {
      header.metadata[field] = value;
      return true;
    }
    if (place == Place::Tensor && field == "dtype") {
      std::optional<ir::DType> dtype = parseSafetensorsDType(value);
      if (!dtype)
        return fail("expected a known dtype (F32, BF16, F8_E4M3, I64, BOOL, ...), found " + quotedName(value));
      entry.info.dtype = *dtype;
      return true;
    }
    return unexpected("the string " + quotedName(value));
  }

  bool start_object(std::size_t) {
    switch (place) {
    case Place::Start: place = Place::Top; return true;
    case Place::Top:
      place = name == "__metadata__" ? Place::Metadata : Place::Tensor;
      fields.clear();
      entry = {};
      entry.info.name = name;
      return true;
    default: return unexpected("an object");
    }
  }

  bool key(string_t &text) {
    field = text;
    if (place == Place::Top) {
      name = text;
      return names.insert(text).second || fail("the name occurs twice");
    }
    if (!fields.insert(text).second) return fail("the key " + quotedName(text) + " occurs twice");
    if (place == Place::Tensor && text != "dtype" && text != "shape" && text != "data_offsets")
      return fail("expected the keys dtype, shape and data_offsets, found " + quotedName(text));
    return true;
  }

  bool end_object() {
    if (place == Place::Tensor) {
      for (const char *wanted : {"dtype", "shape", "data_offsets"})
        if (!fields.count(wanted)) return fail(std::string("the key '") + wanted + "' is missing");
      header.entries.push_back(std::move(entry));
    }
    place = place == Place::Top ? Place::End : Place::Top;
    return true;
  }

  bool start_array(std::size_t) {
    if (place != Place::Tensor || field == "dtype") return unexpected("an array");
    place = field == "shape" ? Place::Shape : Place::Offsets;
    offsets = 0;
    return true;
  }

  bool end_array() {
    if (place == Place::Offsets && offsets != 2)
      return fail(llvm::formatv("expected two data_offsets, found {0}", offsets).str());
    place = Place::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string &, const nlohmann::json::exception &error) {
    problem = llvm::formatv("the header is not valid JSON at byte {0}: {1}", position, reason(error.what())).str();
    return false;
  }

private:
  enum class Place { Start, Top, Metadata, Tensor, Shape, Offsets, End };

  /// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." without its
  /// prefix.
  static std::string reason(llvm::StringRef text) {
    auto [before, after] = text.split(": ");
    return quotedName(after.empty() ? before : after);
  }

  bool fail(const std::string &text) {
    problem = (name.empty() ? "" : (name == "__metadata__" ? "metadata" : "tensor " + quotedName(name)) + ": ") + text;
    return false;
  }

  bool unexpected(const std::string &found) {
    const char *expected = "";
    switch (place) {
    case Place::Start: expected = "an object as header"; break;
    case Place::End: expected = "nothing after the header"; break;
    case Place::Top: expected = "an object"; break;
    case Place::Metadata: return fail("expected a string under " + quotedName(field) + ", found " + found);
    case Place::Tensor:
      return fail("expected " + wantedUnder(field) + " under " + quotedName(field) + ", found " + found);
    case Place::Shape: expected = "extents from 0 to 2^63-1 in the shape"; break;
    case Place::Offsets: expected = "offsets from 0 to 2^63-1 in data_offsets"; break;
    }
    return fail(std::string("expected ") + expected + ", found " + found);
  }

  static std::string wantedUnder(llvm::StringRef field) { return field == "dtype" ? "a string" : "an array"; }

  Place place = Place::Start;
  std::string name;  ///< the tensor at hand
  std::string field; ///< the key at hand within it
  llvm::StringSet<> names, fields;
  SafetensorsHeader::Entry entry;
  unsigned offsets = 0;
};

} // namespace

llvm::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef path, llvm::StringRef text) {
  // nlohmann takes a zero byte for the end of the text.
  if (size_t zero = text.find('\0'); zero != llvm::StringRef::npos)
    return llvm::make_error<FileContentError>(
        path, llvm::formatv("the header is not valid JSON at byte {0}: found a zero byte", zero + 1).str());
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler))
    return llvm::make_error<FileContentError>(path, handler.problem);
  return std::move(handler.header);
}

std::string safetensorsHeaderText(llvm::ArrayRef<const TensorInfo *> tensors, const Metadata &metadata) {
  // The library for strings only: its objects sort their keys, and here the order is the order of the data.
  auto string = [](llvm::StringRef text) {
    return nlohmann::json(text.str()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string text;
  llvm::ListSeparator comma(",");
  llvm::raw_string_ostream os(text);
  os << '{';
  if (!metadata.empty()) {
    os << comma << R"("__metadata__":{)";
    llvm::ListSeparator inner(",");
    for (const auto &[key, value] : metadata) os << inner << string(key) << ':' << string(value);
    os << '}';
  }
  uint64_t end = 0;
  for (const TensorInfo *info : tensors) {
    os << comma << string(info->name) << R"(:{"dtype":")" << safetensorsName(info->dtype) << R"(","shape":[)";
    llvm::interleave(info->shape, os, ",");
    os << R"(],"data_offsets":[)" << end << ',';
    end += *tensorBytes(info->dtype, info->shape);
    os << end << "]}";
  }
  os << '}';
  os.flush();
  text.resize(llvm::alignTo(text.size(), 8), ' ');
  return text;
}

} // namespace fusor::runtime
