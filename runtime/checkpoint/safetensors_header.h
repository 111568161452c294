// The JSON header of a safetensors file, parsed; nlohmann/json is included by its .cpp only.
#pragma once
#include "runtime/checkpoint/safetensors.h"

namespace fusor::runtime {

struct SafetensorsHeader {
  struct Entry {
    TensorInfo info;
    uint64_t begin = 0, end = 0; ///< data_offsets
  };
  std::vector<Entry> entries; ///< in the order of the text
  Metadata metadata;
};

/// Parses `text`, which may be anything. Checks the JSON and every key, type and value by itself; offsets are checked
/// against shapes and each other by SafetensorsFile::open. `problem` in the error does not name the path.
llvm::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef path, llvm::StringRef text);

/// The other way: the header of `tensors` whose data lie behind each other in this order, padded with spaces to a
/// multiple of 8 bytes. Names and metadata are UTF-8.
std::string safetensorsHeaderText(llvm::ArrayRef<const TensorInfo *> tensors, const Metadata &metadata);

} // namespace fusor::runtime
