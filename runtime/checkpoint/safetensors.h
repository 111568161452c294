// Checkpoints: the safetensors format (huggingface.co/docs/safetensors), readable by PyTorch and the rest of the world.
//
// A file is: 8 bytes, the length of the header, little endian; the header, JSON, padded with spaces so that data begin
// at a multiple of 8; the data of all tensors, without holes.
//   {"__metadata__": {"step": "200"}, "w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
// Offsets count from the end of the header.
#pragma once
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/tensor_info.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>
#include <memory>

namespace fusor::runtime {

/// Sorted, so that equal contents make equal files.
using Metadata = std::map<std::string, std::string>;

/// "F32", "BF16", "F8_E4M3", "BOOL", ...
llvm::StringRef safetensorsName(ir::DType dtype);
std::optional<ir::DType> parseSafetensorsDType(llvm::StringRef text);

/// An open checkpoint. The data stay in the file (mapped into memory) until they are looked at.
///
/// A file is hostile until checked: open() accepts only what the format allows, so what it returns needs no check but
/// names, types and shapes against what the caller expects. Errors: FileError (read), FileContentError.
class SafetensorsFile {
public:
  struct Tensor {
    TensorInfo info;
    llvm::ArrayRef<uint8_t> bytes; ///< lives as long as the file; may be unaligned for its type: copy, do not cast
  };

  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);

  /// In the order of their data.
  llvm::ArrayRef<Tensor> tensors() const { return entries; }
  /// Null when there is none of that name.
  const Tensor *find(llvm::StringRef name) const;
  const Metadata &metadata() const { return meta; }

private:
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<Tensor> entries;
  llvm::StringMap<size_t> byName;
  Metadata meta;
};

/// Writes a checkpoint tensor by tensor, in any order; the old file stays until commit() succeeded.
///
///   auto writer = SafetensorsWriter::create(path, infos, {{"step", "200"}});
///   for (...) if (auto error = writer->write(name, bytes)) return error;
///   return writer->commit();
///
/// Errors: FileError (write); a FileContentError if what it is given cannot be a valid file (duplicate names, byte
/// counts that differ from the shape, tensors missing at commit).
class SafetensorsWriter {
public:
  static llvm::Expected<SafetensorsWriter> create(llvm::StringRef path, llvm::ArrayRef<TensorInfo> tensors,
                                                  const Metadata &metadata = {});
  llvm::Error write(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);
  llvm::Error commit();

private:
  struct Slot {
    uint64_t offset = 0, bytes = 0; ///< from the start of the file
    bool written = false;
  };
  explicit SafetensorsWriter(AtomicFile file) : file(std::move(file)) {}

  AtomicFile file;
  llvm::StringMap<Slot> slots;
};

} // namespace fusor::runtime
