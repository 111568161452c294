#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_header.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::runtime {

using ir::DType;

namespace {

bool isUtf8(llvm::StringRef text) {
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  return llvm::isLegalUTF8String(&begin, reinterpret_cast<const llvm::UTF8 *>(text.end()));
}

} // namespace

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

llvm::Expected<SafetensorsWriter> SafetensorsWriter::create(llvm::StringRef path, llvm::ArrayRef<TensorInfo> tensors,
                                                            const Metadata &metadata) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  for (const auto &[key, value] : metadata)
    if (!isUtf8(key) || !isUtf8(value)) return wrong("metadata " + quotedName(key) + " is not UTF-8 text");

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
    if (!isUtf8(info->name)) return wrong("tensor name " + quotedName(info->name) + " is not UTF-8 text");
    if (info->name == "__metadata__") return wrong("a tensor cannot be called '__metadata__'");
    int64_t begin = end;
    if (!bytes || llvm::AddOverflow(begin, int64_t(*bytes), end))
      return wrong("tensor " + quotedName(info->name) + ": shape " + shapeText(info->shape) + " is too large");
    if (!slots.try_emplace(info->name, Slot{uint64_t(begin), *bytes, false}).second)
      return wrong("two tensors are called " + quotedName(info->name));
  }
  std::string header = safetensorsHeaderText(ordered, metadata);

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
