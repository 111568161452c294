// The headers that emulated kernels are compiled with (shim.h, shim_mma.h, hooks.h), as text embedded at build time:
// the command brings them along.
#pragma once

namespace fusor::emulator {

struct EmbeddedFile {
  const char *name; // "shim.h"
  const char *text;
};
extern const EmbeddedFile kEmbeddedFiles[]; // generated, sorted by name
extern const unsigned kEmbeddedFileCount;

} // namespace fusor::emulator
