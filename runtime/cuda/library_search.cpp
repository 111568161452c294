#include "runtime/cuda/library_search.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <dlfcn.h>
#include <link.h>

namespace fusor::runtime {
namespace {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

std::string join(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> joined(folder);
  path::append(joined, name);
  return std::string(joined);
}

/// Folders in `folder` whose name starts with `prefix`, in order of name.
std::vector<std::string> foldersIn(llvm::StringRef folder, llvm::StringRef prefix = "") {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (path::filename(it->path()).startswith(prefix) && fs::is_directory(it->path())) found.push_back(it->path());
  llvm::sort(found);
  return found;
}

/// The same, last name first: cuda-13.0 before cuda-12.4.
std::vector<std::string> newestFoldersIn(llvm::StringRef folder, llvm::StringRef prefix = "") {
  std::vector<std::string> found = foldersIn(folder, prefix);
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<std::string> toolkitFolders() {
  std::vector<std::string> roots;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto value = llvm::sys::Process::GetEnv(variable)) roots.push_back(*value);
  roots.push_back("/usr/local/cuda");
  for (std::string &root : newestFoldersIn("/usr/local", "cuda-")) roots.push_back(root);
  std::vector<std::string> folders;
  for (const std::string &root : roots)
    for (const char *lib : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      folders.push_back(join(root, lib));
  return folders;
}

/// nvidia/cu13/lib, nvidia/cuda_nvrtc/lib, ... below `root` itself and below each folder in it.
void addWheelFolders(llvm::StringRef root, std::vector<std::string> &folders) {
  auto add = [&](const std::string &packages) {
    // cu13 before cu12's cuda_nvrtc: names in order, newest wheels are called cuNN.
    for (const std::string &package : foldersIn(join(packages, "nvidia"))) folders.push_back(join(package, "lib"));
  };
  add(root.str());
  for (const std::string &folder : newestFoldersIn(root)) add(folder);
}

std::vector<std::string> wheelFolders(llvm::ArrayRef<std::string> roots) {
  std::vector<std::string> folders;
  for (const std::string &root : roots) addWheelFolders(root, folders);
  // build/fusor, build/tests/runtime/..., and an installed bin/fusor: `make` fetches wheels into .deps/ of the source
  // tree.
  std::string executable = fs::getMainExecutable(nullptr, nullptr);
  llvm::StringRef folder = path::parent_path(executable);
  for (int level = 0; level < 4 && !folder.empty(); ++level, folder = path::parent_path(folder))
    addWheelFolders(join(folder, ".deps"), folders);
  std::vector<std::string> pythons;
  if (auto environment = llvm::sys::Process::GetEnv("VIRTUAL_ENV")) pythons.push_back(join(*environment, "lib"));
  if (auto home = llvm::sys::Process::GetEnv("HOME")) pythons.push_back(join(*home, ".local/lib"));
  pythons.push_back("/usr/local/lib");
  pythons.push_back("/usr/lib");
  for (const std::string &python : pythons)
    for (const std::string &version : newestFoldersIn(python, "python3"))
      for (const char *packages : {"site-packages", "dist-packages"})
        for (const std::string &package : foldersIn(join(join(version, packages), "nvidia")))
          folders.push_back(join(package, "lib"));
  return folders;
}

} // namespace

std::string searchText(const SearchLog &log) {
  std::string text;
  for (const SearchLine &line : log) text += "\n  " + line.place + ": " + line.outcome;
  return text;
}

Library Library::open(const std::string &place, std::string &why) {
  Library library;
  library.handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library.handle) {
    // "libnvrtc.so.13: cannot open ...": the place is known already.
    llvm::StringRef reason(::dlerror());
    reason.consume_front(place);
    reason.consume_front(": ");
    why = reason.str();
  }
  return library;
}

void *Library::symbol(const char *symbol) const { return ::dlsym(handle, symbol); }

std::string Library::path() const {
  struct link_map *map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return "";
  return map->l_name;
}

std::vector<std::string> libraryPlaces(const LibrarySearch &search) {
  std::vector<std::string> places;
  llvm::StringSet<> seen; // by real file, so that a toolkit behind two names is tried once
  auto addFile = [&](const std::string &file) {
    llvm::SmallString<256> real;
    if (fs::real_path(file, real)) return;
    if (seen.insert(real).second) places.push_back(file);
  };
  if (!search.explicitPath.empty()) {
    if (!fs::is_directory(search.explicitPath)) return {search.explicitPath};
    for (const std::string &name : search.fileNames) addFile(join(search.explicitPath, name));
    if (places.empty()) places.push_back(join(search.explicitPath, search.fileNames.front()));
    return places;
  }
  for (const std::string &folder : toolkitFolders())
    for (const std::string &name : search.fileNames) addFile(join(folder, name));
  for (const std::string &name : search.fileNames) places.push_back(name);
  for (const std::string &folder : wheelFolders(search.wheelRoots))
    for (const std::string &name : search.fileNames) addFile(join(folder, name));
  return places;
}

} // namespace fusor::runtime
