#include "frontend/onnx/tensor.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/external_file.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace fusor::onnx {
namespace {

using ir::DType;

// ONNX's numbers from 1; the types Fusor has, and why not the others.
struct NamedType {
  const char *name;
  std::optional<DType> dtype;
  const char *why = nullptr; // of a type that is not supported, or is not everywhere
};
constexpr const char *kNibbleWhy = "a 4-bit type can be dequantized, converted from and moved only";
constexpr NamedType kElementTypes[] = {
    {"undefined", {}, "the type is missing"},
    {"float32", DType::f32},
    {"uint8", DType::u8},
    {"int8", DType::i8},
    {"uint16", DType::u16},
    {"int16", DType::i16},
    {"int32", DType::i32},
    {"int64", DType::i64},
    {"string", {}, "strings are not computed with"},
    {"bool", DType::i1},
    {"float16", DType::f16},
    {"float64", DType::f64},
    {"uint32", DType::u32},
    {"uint64", DType::u64},
    {"complex64", {}, "complex numbers are not supported"},
    {"complex128", {}, "complex numbers are not supported"},
    {"bfloat16", DType::bf16},
    {"float8e4m3fn", DType::f8e4m3},
    {"float8e4m3fnuz", {}, "FNUZ types belong to other hardware; export with float8e4m3fn"},
    {"float8e5m2", DType::f8e5m2},
    {"float8e5m2fnuz", {}, "FNUZ types belong to other hardware; export with float8e5m2"},
    {"uint4", DType::u8, kNibbleWhy},
    {"int4", DType::i8, kNibbleWhy},
    {"float4e2m1", {}, "4-bit floats are not supported yet"},
    {"float8e8m0", {}, "block scales are not supported yet"},
    {"uint2", {}, "2-bit types are not supported"},
    {"int2", {}, "2-bit types are not supported"},
};

// Dims that are sizes, and their product.
llvm::Expected<int64_t> elementCount(const Tensor &tensor) {
  if (tensor.dims_size() > static_cast<int>(kMaxRank))
    return problem("has {0} dims, at most {1} are read", tensor.dims_size(), kMaxRank);
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0) return problem("has a negative dim, {0}", dim);
    if (dim == 0) isEmpty = true;
    if (dim != 0 && llvm::MulOverflow(count, dim, count)) return problem("has more elements than can be counted");
  }
  if (isEmpty) return 0;
  if (count > kMaxElements) return problem("has {0} elements, at most {1} are read", count, kMaxElements);
  return count;
}

struct Payload {
  const char *field;
  int64_t entries;
};

// The typed fields that hold something.
llvm::SmallVector<Payload, 2> typedPayloads(const Tensor &t) {
  llvm::SmallVector<Payload, 2> found;
  for (Payload p : {Payload{"float_data", t.float_data_size()}, Payload{"int32_data", t.int32_data_size()},
                    Payload{"int64_data", t.int64_data_size()}, Payload{"double_data", t.double_data_size()},
                    Payload{"uint64_data", t.uint64_data_size()}, Payload{"string_data", t.string_data_size()}})
    if (p.entries) found.push_back(p);
  return found;
}

// The typed field that elements of `dtype` are stored in.
const char *fieldOf(DType dtype) {
  switch (dtype) {
  case DType::f32: return "float_data";
  case DType::f64: return "double_data";
  case DType::i64: return "int64_data";
  case DType::u64:
  case DType::u32: return "uint64_data";
  default: return "int32_data";
  }
}

template <typename Stored, typename Field> void store(const Field &field, char *to) {
  for (auto entry : field) {
    auto element = static_cast<Stored>(entry);
    std::memcpy(to, &element, sizeof element);
    to += sizeof element;
  }
}

// Whether entries of int32_data are values of a narrower type: bits of f16, bf16 and FP8, numbers of integers.
llvm::Error checkRange(const Tensor &t, DType dtype) {
  unsigned bits = ir::byteSize(dtype) * 8;
  if (bits >= 32) return llvm::Error::success();
  int64_t low = ir::isSigned(dtype) ? -(int64_t(1) << (bits - 1)) : 0;
  int64_t high = low + (int64_t(1) << bits) - 1;
  for (int32_t entry : t.int32_data())
    if (entry < low || entry > high)
      return problem("has the entry {0} in int32_data, which is no {1}", entry, ir::name(dtype));
  return llvm::Error::success();
}

// One entry an element; narrow types keep their bits in the low part of an int32.
void storeTyped(const Tensor &t, DType dtype, char *to) {
  switch (dtype) {
  case DType::f32: return store<float>(t.float_data(), to);
  case DType::f64: return store<double>(t.double_data(), to);
  case DType::i64: return store<int64_t>(t.int64_data(), to);
  case DType::u64: return store<uint64_t>(t.uint64_data(), to);
  case DType::u32: return store<uint32_t>(t.uint64_data(), to);
  default: break;
  }
  switch (ir::byteSize(dtype)) {
  case 1: return store<uint8_t>(t.int32_data(), to);
  case 2: return store<uint16_t>(t.int32_data(), to);
  default: return store<int32_t>(t.int32_data(), to);
  }
}

llvm::Error checkTyped(const Tensor &t, DType dtype, int64_t count) {
  auto payloads = typedPayloads(t);
  if (payloads.size() > 1) return problem("has both {0} and {1}", payloads[0].field, payloads[1].field);
  const char *field = fieldOf(dtype);
  int64_t entries = payloads.empty() ? 0 : payloads[0].entries;
  if (entries && llvm::StringRef(payloads[0].field) != field)
    return problem("keeps its elements in {0}, {1} belong in {2}", payloads[0].field, ir::name(dtype), field);
  if (entries != count) return problem("has {0} entries in {1}, its dims ask for {2}", entries, field, count);
  return llvm::Error::success();
}

// Two elements a byte, the first in its low half.
std::vector<char> unpacked(const std::vector<char> &pairs, int64_t count, bool isSigned) {
  std::vector<char> elements(count);
  for (int64_t i = 0; i < count; ++i) {
    int half = static_cast<unsigned char>(pairs[i / 2]) >> (i % 2 * 4) & 15;
    elements[i] = static_cast<char>(isSigned && half >= 8 ? half - 16 : half);
  }
  return elements;
}

Data withBytes(Data data, int64_t count, std::vector<char> bytes) {
  if (data.isNibble) bytes = unpacked(bytes, count, ir::isSigned(data.dtype));
  if (data.dtype == DType::i1) // any other byte than 0 is true
    for (char &byte : bytes) byte = byte != 0;
  data.bytes = std::make_shared<const std::vector<char>>(std::move(bytes));
  return data;
}

} // namespace

std::string str(llvm::ArrayRef<int64_t> shape) {
  return llvm::join(llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); }), ", ");
}

std::string Data::typeText() const { return (ir::name(dtype) + "[" + str(shape) + "]").str(); }

llvm::Expected<ElementType> elementTypeOf(int32_t elementType) {
  if (elementType < 0 || elementType >= static_cast<int32_t>(std::size(kElementTypes)))
    return problem("its element type is {0}, which ONNX does not define", elementType);
  const NamedType &type = kElementTypes[elementType];
  if (type.dtype) return ElementType{*type.dtype, type.why == kNibbleWhy};
  return problem("its element type is {0}: {1}", type.name, type.why);
}

llvm::Expected<DType> dtypeOf(int32_t elementType) {
  auto type = elementTypeOf(elementType);
  if (!type) return type.takeError();
  if (type->isNibble) return problem("its element type is {0}: {1}", kElementTypes[elementType].name, kNibbleWhy);
  return type->dtype;
}

llvm::Expected<Data> readTensor(const Tensor &t, llvm::StringRef folder) {
  if (t.has_segment()) return problem("is one segment of a tensor, which is not supported");
  auto type = elementTypeOf(t.data_type());
  if (!type) return type.takeError();
  auto count = elementCount(t);
  if (!count) return count.takeError();
  Data data{type->dtype, {t.dims().begin(), t.dims().end()}, nullptr, type->isNibble};
  // As it is stored: two 4-bit elements are one byte.
  const DType stored = type->isNibble ? DType::u8 : type->dtype;
  const int64_t entries = type->isNibble ? (*count + 1) / 2 : *count, bytes = entries * ir::byteSize(stored);

  if (t.data_location() != 0 || t.external_data_size() != 0) {
    if (t.data_location() != 1) return problem("has external_data and data_location {0}", t.data_location());
    if (t.has_raw_data() || !typedPayloads(t).empty()) return problem("is external and has elements in the model too");
    auto content = readExternal(t, folder, bytes);
    if (!content) return content.takeError();
    return withBytes(std::move(data), *count, std::move(*content));
  }
  if (t.has_raw_data()) {
    if (!typedPayloads(t).empty() && !t.raw_data().empty())
      return problem("has both raw_data and {0}", typedPayloads(t)[0].field);
    if (typedPayloads(t).empty()) {
      if (static_cast<int64_t>(t.raw_data().size()) != bytes)
        return problem("has {0} bytes of raw_data, {1} needs {2}", t.raw_data().size(), data.typeText(), bytes);
      return withBytes(std::move(data), *count, {t.raw_data().begin(), t.raw_data().end()});
    }
  }
  if (auto error = checkTyped(t, stored, entries)) return error;
  if (auto error = checkRange(t, stored)) return error;
  std::vector<char> content(bytes);
  storeTyped(t, stored, content.data());
  return withBytes(std::move(data), *count, std::move(content));
}

} // namespace fusor::onnx
