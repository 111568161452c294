#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_header.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {
namespace {

/// The format's own limit on headers, in bytes; a longer one is a wrong file, and would take long to find out.
constexpr uint64_t kLongestHeader = 100'000'000;

/// The header's text, or what is wrong with the first 8 bytes.
llvm::Expected<llvm::StringRef> headerText(llvm::StringRef path, llvm::StringRef file) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  if (file.size() < 8)
    return wrong(llvm::formatv(
        "expected a safetensors file, which begins with 8 bytes of header length, found {0} bytes", file.size()));
  uint64_t length = llvm::support::endian::read64le(file.data());
  if (length > kLongestHeader)
    return wrong(llvm::formatv("expected a safetensors header of at most {0} bytes, found a length of {1}; is this a "
                               "safetensors file?",
                               kLongestHeader, length));
  if (length > file.size() - 8)
    return wrong(llvm::formatv("expected a header of {0} bytes, found {1} bytes after its length; the file is cut off",
                               length, file.size() - 8));
  llvm::StringRef text = file.substr(8, length);
  if (!text.startswith("{"))
    return wrong("expected the header to begin with '{', found " + quotedName(text.take_front(1)) +
                 "; is this a safetensors file?");
  return text;
}

} // namespace

llvm::Expected<SafetensorsFile> SafetensorsFile::open(llvm::StringRef path) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return llvm::make_error<FileError>(FileError::Action::Read, path, buffer.getError());
  llvm::StringRef contents = (*buffer)->getBuffer();
  llvm::Expected<llvm::StringRef> text = headerText(path, contents);
  if (!text) return text.takeError();
  llvm::Expected<SafetensorsHeader> header = parseSafetensorsHeader(path, *text);
  if (!header) return header.takeError();

  llvm::StringRef data = contents.drop_front(8 + text->size());
  SafetensorsFile file;
  uint64_t end = 0; // of the tensors so far
  llvm::stable_sort(header->entries, [](const SafetensorsHeader::Entry &a, const SafetensorsHeader::Entry &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  for (SafetensorsHeader::Entry &entry : header->entries) {
    std::string where = "tensor " + quotedName(entry.info.name) + ": ";
    std::string offsets = llvm::formatv("[{0}, {1}]", entry.begin, entry.end).str();
    if (entry.begin > entry.end) return wrong(where + "expected data_offsets in order, found " + offsets);
    if (entry.end > data.size())
      return wrong(where +
                   llvm::formatv("expected data_offsets within the {0} bytes of data, found {1}; the file is cut "
                                 "off or the header is wrong",
                                 data.size(), offsets));
    if (entry.begin < end)
      return wrong(where +
                   llvm::formatv("expected data from byte {0}, found data_offsets {1}, which overlap tensor {2}", end,
                                 offsets, quotedName(file.entries.back().info.name)));
    if (entry.begin > end)
      return wrong(where + llvm::formatv("expected data from byte {0}, found data_offsets {1}, which leave a hole", end,
                                         offsets));
    std::optional<uint64_t> bytes = tensorBytes(entry.info.dtype, entry.info.shape);
    if (!bytes) return wrong(where + "the product of the shape " + shapeText(entry.info.shape) + " is too large");
    if (*bytes != entry.end - entry.begin)
      return wrong(where + llvm::formatv("expected {0} bytes for {1}{2}, found data_offsets {3} ({4} bytes)", *bytes,
                                         safetensorsName(entry.info.dtype), shapeText(entry.info.shape), offsets,
                                         entry.end - entry.begin));
    end = entry.end;
    file.byName[entry.info.name] = file.entries.size();
    llvm::StringRef slice = data.slice(entry.begin, entry.end);
    file.entries.push_back({std::move(entry.info), llvm::arrayRefFromStringRef(slice)});
  }
  if (end != data.size())
    return wrong(llvm::formatv("expected {0} bytes of data, found {1}; nothing in the header describes the rest", end,
                               data.size()));
  file.meta = std::move(header->metadata);
  file.buffer = std::move(*buffer);
  return file;
}

const SafetensorsFile::Tensor *SafetensorsFile::find(llvm::StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &entries[it->second];
}

} // namespace fusor::runtime
