// The device library (codegen/device/*.cuh) as text, embedded at build time. Generated kernels are self-contained: an
// emitter puts deviceLibrary({...}) in front of what it writes, and nothing is included at run time.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::codegen {

// Text of one file, by name: deviceSource("reduce.cuh"). An unknown name is our bug and ends the process.
llvm::StringRef deviceSource(llvm::StringRef name);

// All names, sorted.
llvm::ArrayRef<llvm::StringRef> deviceSourceNames();

// The named files and all they need (their first line: `// needs: types.cuh reduce.cuh`), each once, what is needed
// first. The order depends on the names only, so kernel text is byte-equal from run to run.
std::string deviceLibrary(llvm::ArrayRef<llvm::StringRef> names);

namespace device {

struct EmbeddedFile {
  const char *name;
  const char *text;
};
extern const EmbeddedFile kEmbeddedFiles[]; // generated, sorted by name
extern const unsigned kEmbeddedFileCount;

} // namespace device
} // namespace fusor::codegen
