// Finding NVIDIA's libraries at run time: nothing of CUDA is linked, so one binary runs with and without a GPU.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace fusor::runtime {

/// What was tried, in order, for `fusor doctor`:
///   /usr/local/cuda/lib64/libnvrtc.so.13   loaded, NVRTC 13.0
///   libnvrtc.so.12                         cannot open shared object file: No such file or directory
struct SearchLine {
  std::string place;
  std::string outcome;
};
using SearchLog = std::vector<SearchLine>;

/// "  place   outcome" lines, as a note under an error.
std::string searchText(const SearchLog &log);

/// An open library. Never closed: NVRTC and cuBLASLt leave threads and exit handlers behind that would run into the
/// void.
class Library {
public:
  /// Null when `symbol` is missing.
  void *symbol(const char *symbol) const;
  /// Sets `function` to the address of `name`; false when it is missing.
  template <typename Function> bool find(const char *name, Function *&function) const {
    function = reinterpret_cast<Function *>(symbol(name));
    return function != nullptr;
  }
  /// The file it was loaded from.
  std::string path() const;

  /// dlopen; an empty handle and `why` when it fails.
  static Library open(const std::string &place, std::string &why);
  explicit operator bool() const { return handle != nullptr; }

private:
  void *handle = nullptr;
};

/// Where a library may be.
struct LibrarySearch {
  std::string explicitPath = {};            ///< a file or a folder; if set, the only place
  std::vector<std::string> fileNames = {};  ///< best first: {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}
  std::vector<std::string> wheelRoots = {}; ///< folders that hold nvidia/*/lib, or folders that hold those (.deps)
};

/// All places in order: toolkits ($CUDA_HOME, $CUDA_PATH, /usr/local/cuda, then /usr/local/cuda-* newest first), the
/// system's loader, PyPI wheels (`wheelRoots`, .deps/ beside the executable or above it, $VIRTUAL_ENV, the system's
/// site-packages). Only files that exist, and the bare names.
std::vector<std::string> libraryPlaces(const LibrarySearch &search);

} // namespace fusor::runtime
