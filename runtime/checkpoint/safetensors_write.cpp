#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/safetensors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::runtime {

using ir::DType;

llvm::StringRef safetensorsName(DType dtype) {
  switch (dtype) {
  case DType::f64: return "F64";
  case DType::f32: return "F32";
  case DType::f16: return "F16";
  case DType::bf16: return "BF16";
  case DType::f8e4m3: return "F8_E4M3";
  case DType::f8e5m2: return "F8_E5M2";
  case DType::f8e8m0: return "F8_E8M0";
  case DType::i64: return "I64";
  case DType::i32: return "I32";
  case DType::i16: return "I16";
  case DType::i8: return "I8";
  case DType::u64: return "U64";
  case DType::u32: return "U32";
  case DType::u16: return "U16";
  case DType::u8: return "U8";
  case DType::i1: return "BOOL";
  }
  llvm_unreachable("no such dtype");
}

std::optional<DType> parseSafetensorsDType(llvm::StringRef text) {
  for (DType dtype : ir::kAllDTypes)
    if (safetensorsName(dtype) == text) return dtype;
  return std::nullopt;
}

namespace {

/// The JSON text for tensors whose data lie behind each other in this order, padded to a multiple of 8 bytes.
std::string headerText(llvm::ArrayRef<const TensorInfo *> tensors, const Metadata &metadata) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  int64_t end = 0;
  json.objectBegin();
  if (!metadata.empty())
    json.attributeObject("__metadata__", [&] {
      for (const auto &[key, value] : metadata) json.attribute(key, value);
    });
  for (const TensorInfo *info : tensors) {
    int64_t begin = end;
    end += int64_t(*tensorBytes(info->dtype, info->shape));
    json.attributeObject(info->name, [&] {
      json.attribute("dtype", safetensorsName(info->dtype));
      json.attributeArray("shape", [&] {
        for (int64_t extent : info->shape) json.value(extent);
      });
      json.attributeArray("data_offsets", [&] {
        json.value(begin);
        json.value(end);
      });
    });
  }
  json.objectEnd();
  os.flush();
  text.resize(llvm::alignTo(text.size(), 8), ' ');
  return text;
}

} // namespace

llvm::Expected<SafetensorsWriter> SafetensorsWriter::create(llvm::StringRef path, llvm::ArrayRef<TensorInfo> tensors,
                                                            const Metadata &metadata) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  for (const auto &[key, value] : metadata)
    if (!llvm::json::isUTF8(key) || !llvm::json::isUTF8(value))
      return wrong("metadata " + quotedName(key) + " is not UTF-8 text");

  // Wide types first: then every tensor is aligned for its type.
  std::vector<const TensorInfo *> ordered;
  for (const TensorInfo &info : tensors) ordered.push_back(&info);
  llvm::stable_sort(ordered, [](const TensorInfo *a, const TensorInfo *b) {
    return ir::byteSize(a->dtype) > ir::byteSize(b->dtype);
  });

  llvm::StringMap<Slot> slots;
  int64_t end = 0;
  for (const TensorInfo *info : ordered) {
    std::optional<uint64_t> bytes = tensorBytes(info->dtype, info->shape);
    if (!llvm::json::isUTF8(info->name)) return wrong("tensor name " + quotedName(info->name) + " is not UTF-8 text");
    if (info->name == "__metadata__") return wrong("a tensor cannot be called '__metadata__'");
    int64_t begin = end;
    if (!bytes || llvm::AddOverflow(begin, int64_t(*bytes), end))
      return wrong("tensor " + quotedName(info->name) + ": shape " + shapeText(info->shape) + " is too large");
    if (!slots.try_emplace(info->name, Slot{uint64_t(begin), *bytes, false}).second)
      return wrong("two tensors are called " + quotedName(info->name));
  }
  std::string header = headerText(ordered, metadata);

  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.takeError();
  uint8_t length[8];
  llvm::support::endian::write64le(length, header.size());
  if (llvm::Error error = file->write(length)) return error;
  if (llvm::Error error = file->write(llvm::StringRef(header))) return error;

  SafetensorsWriter writer(std::move(*file));
  for (auto &slot : slots) slot.second.offset += sizeof length + header.size();
  writer.slots = std::move(slots);
  return writer;
}

llvm::Error SafetensorsWriter::write(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes) {
  auto wrong = [&](const llvm::Twine &problem) {
    return llvm::make_error<FileContentError>(file.path(), "tensor " + quotedName(name) + ": " + problem);
  };
  auto slot = slots.find(name);
  if (slot == slots.end()) return wrong("was not announced when the file was created");
  if (slot->second.written) return wrong("is written twice");
  if (slot->second.bytes != bytes.size())
    return wrong(llvm::formatv("expected {0} bytes, found {1}", slot->second.bytes, bytes.size()));
  slot->second.written = true;
  return file.writeAt(slot->second.offset, bytes);
}

llvm::Error SafetensorsWriter::commit() {
  std::string missing;
  for (const auto &slot : slots)
    if (!slot.second.written && (missing.empty() || slot.first() < missing)) missing = slot.first().str();
  if (!missing.empty())
    return llvm::make_error<FileContentError>(file.path(), "tensor " + quotedName(missing) + ": was never written");
  return file.commit();
}

} // namespace fusor::runtime
