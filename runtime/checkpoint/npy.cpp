#include "runtime/checkpoint/npy.h"

#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::runtime {
namespace {

using ir::DType;

constexpr llvm::StringLiteral kNpyMagic("\x93NUMPY");

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, a Python literal with keys in any order. Each
/// method takes something off the front of `rest` or leaves a message in `problem`.
class HeaderParser {
public:
  explicit HeaderParser(llvm::StringRef text) : rest(text) {}

  std::string problem;
  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<llvm::SmallVector<int64_t, 4>> shape;

  bool parse() {
    if (!take("{")) return expected("'{'");
    while (!take("}")) {
      std::string key;
      if (!string(key) || !(take(":") || expected("':'"))) return false;
      if (key == "descr" && !descr) {
        if (peek("[")) return fail("expected a plain element type, found a structured one; save one field by itself");
        if (!string(descr.emplace())) return false;
      } else if (key == "fortran_order" && !fortranOrder) {
        if (take("True"))
          fortranOrder = true;
        else if (take("False"))
          fortranOrder = false;
        else
          return expected("True or False");
      } else if (key == "shape" && !shape) {
        if (!tuple(shape.emplace())) return false;
      } else {
        return fail("expected the keys 'descr', 'fortran_order' and 'shape' once each, found " + quotedName(key));
      }
      if (!take(",") && !peek("}")) return expected("',' or '}'");
    }
    rest = rest.ltrim();
    if (!rest.empty()) return expected("nothing after '}'");
    if (!descr || !fortranOrder || !shape) return fail("expected the keys 'descr', 'fortran_order' and 'shape'");
    return true;
  }

private:
  bool fail(const std::string &text) {
    if (problem.empty()) problem = text;
    return false;
  }
  bool expected(const char *what) {
    return fail(std::string("expected ") + what + " in the header, found " + quotedName(rest.take_front(20)));
  }
  bool peek(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.startswith(token);
  }
  bool take(llvm::StringRef token) { return peek(token) && rest.consume_front(token); }

  bool string(std::string &value) {
    llvm::StringRef quote = peek("'") ? "'" : "\"";
    if (!take(quote)) return expected("a string");
    size_t end = rest.find(quote);
    if (end == llvm::StringRef::npos) return expected("the end of a string");
    value = rest.take_front(end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool tuple(llvm::SmallVector<int64_t, 4> &extents) {
    if (!take("(")) return expected("'(' of the shape");
    while (!take(")")) {
      int64_t extent;
      rest = rest.ltrim();
      if (rest.startswith("-") || rest.consumeInteger(10, extent)) return expected("an extent from 0 to 2^63-1");
      rest.consume_front("L"); // Python 2
      extents.push_back(extent);
      if (!take(",") && !peek(")")) return expected("',' or ')'");
    }
    return true;
  }

  llvm::StringRef rest;
};

/// "<f4" -> f32. `problem` says why not.
std::optional<DType> parseDescr(llvm::StringRef descr, std::string &problem) {
  llvm::StringRef kind = descr.drop_front(descr.empty() ? 0 : 1);
  char order = descr.empty() ? 0 : descr.front();
  for (DType dtype : ir::kAllDTypes) {
    std::optional<llvm::StringRef> known = npyDescr(dtype);
    if (!known || known->drop_front(1) != kind) continue;
    if (order == '<' || order == '|' || order == '=' || (order == '>' && ir::byteSize(dtype) == 1)) return dtype;
    if (order == '>') {
      problem =
          "expected little-endian data, found " + quotedName(descr) + "; save with array.astype('<" + kind.str() + "')";
      return std::nullopt;
    }
  }
  problem = "expected an element type of f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 or b1, found " + quotedName(descr);
  return std::nullopt;
}

} // namespace

std::optional<llvm::StringRef> npyDescr(DType dtype) {
  switch (dtype) {
  case DType::f64: return "<f8";
  case DType::f32: return "<f4";
  case DType::f16: return "<f2";
  case DType::i64: return "<i8";
  case DType::i32: return "<i4";
  case DType::i16: return "<i2";
  case DType::i8: return "|i1";
  case DType::u64: return "<u8";
  case DType::u32: return "<u4";
  case DType::u16: return "<u2";
  case DType::u8: return "|u1";
  case DType::i1: return "|b1";
  case DType::bf16:
  case DType::f8e4m3:
  case DType::f8e5m2:
  case DType::f8e8m0: return std::nullopt;
  }
  llvm_unreachable("no such dtype");
}

llvm::Expected<NpyArray> readNpy(llvm::StringRef path) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return llvm::make_error<FileError>(FileError::Action::Read, path, buffer.getError());
  llvm::StringRef rest = (*buffer)->getBuffer();

  if (!rest.consume_front(kNpyMagic))
    return wrong("expected a .npy file, which begins with \\x93NUMPY, found " + quotedName(rest.take_front(6)));
  if (rest.size() < 2) return wrong("the file is cut off within its version");
  unsigned major = uint8_t(rest[0]), minor = uint8_t(rest[1]);
  if ((major != 1 && major != 2) || minor != 0)
    return wrong(llvm::formatv("expected .npy version 1.0 or 2.0, found {0}.{1}", major, minor));
  rest = rest.drop_front(2);
  unsigned lengthBytes = major == 1 ? 2 : 4;
  if (rest.size() < lengthBytes) return wrong("the file is cut off within its header length");
  uint64_t length =
      major == 1 ? llvm::support::endian::read16le(rest.data()) : llvm::support::endian::read32le(rest.data());
  rest = rest.drop_front(lengthBytes);
  if (length > rest.size())
    return wrong(llvm::formatv("expected a header of {0} bytes, found {1}; the file is cut off", length, rest.size()));

  HeaderParser header(rest.take_front(length));
  if (!header.parse()) return wrong(header.problem);
  llvm::StringRef data = rest.drop_front(length);
  std::string problem;
  std::optional<DType> dtype = parseDescr(*header.descr, problem);
  if (!dtype) return wrong(problem);
  if (*header.fortranOrder && header.shape->size() > 1) // with one axis both orders are the same
    return wrong("expected C order, found Fortran order; save with numpy.ascontiguousarray(array)");
  std::optional<uint64_t> bytes = tensorBytes(*dtype, *header.shape);
  if (!bytes) return wrong("the product of the shape " + shapeText(*header.shape) + " is too large");
  if (*bytes != data.size())
    return wrong(llvm::formatv("expected {0} bytes of data for {1}{2}, found {3}", *bytes, ir::name(*dtype),
                               shapeText(*header.shape), data.size()));

  NpyArray array;
  array.dtype = *dtype;
  array.shape = *header.shape;
  array.bytes = llvm::arrayRefFromStringRef(data);
  array.file = std::move(*buffer);
  return array;
}

llvm::Error writeNpy(llvm::StringRef path, DType dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<uint8_t> bytes) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  std::optional<llvm::StringRef> descr = npyDescr(dtype);
  if (!descr)
    return wrong("NumPy has no type for " + ir::name(dtype) + "; convert to f32, or write a .safetensors file");
  std::optional<uint64_t> expected = tensorBytes(dtype, shape);
  if (!expected || *expected != bytes.size())
    return wrong(llvm::formatv("expected {0} bytes for {1}{2}, found {3}", expected.value_or(0), ir::name(dtype),
                               shapeText(shape), bytes.size()));

  std::string extents;
  for (int64_t extent : shape) extents += llvm::itostr(extent) + ", ";
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  if (shape.size() == 1) extents.pop_back(); // a tuple of one: (5,)
  std::string text =
      llvm::formatv("{{'descr': '{0}', 'fortran_order': False, 'shape': ({1}), }", *descr, extents).str();
  // Data begin at a multiple of 64, as NumPy does it; a newline ends the header.
  bool longHeader = text.size() + 1 + 10 + 63 > 65535;
  size_t before = kNpyMagic.size() + 2 + (longHeader ? 4 : 2);
  text.resize(llvm::alignTo(before + text.size() + 1, 64) - before - 1, ' ');
  text += '\n';
  std::string start = kNpyMagic.str() + (longHeader ? '\2' : '\1') + '\0';
  for (unsigned i = 0; i < (longHeader ? 4u : 2u); ++i) start += char(text.size() >> 8 * i);

  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.takeError();
  if (llvm::Error error = file->write(llvm::StringRef(start + text))) return error;
  if (llvm::Error error = file->write(bytes)) return error;
  return file->commit();
}

} // namespace fusor::runtime
