#include "runtime/emulator/emulator.h"
#include "runtime/emulator/headers.h"
#include "runtime/emulator/sanitizer.h"
#include "runtime/emulator/scheduler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace fusor::emulator;
using llvm::StringRef;

struct EmulatedModule::Library {
  std::vector<std::string> kernels;
  void *handle = nullptr;
  Lane **lane = nullptr;
};

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

// ---- the text as the host compiler gets it ------------------------------------------------------------------------

// `source` without its comments: an example in one is no kernel.
static std::string withoutComments(StringRef source) {
  std::string result;
  while (!source.empty()) {
    size_t at = std::min(source.find('/'), source.size()); // the next one only: texts have megabytes
    result += source.take_front(at);
    source = source.drop_front(at);
    if (source.startswith("//"))
      source = source.drop_front(std::min(source.find('\n'), source.size()));
    else if (source.startswith("/*"))
      source = source.drop_front(std::min(source.find("*/"), source.size()));
    else if (!source.empty())
      result += source.front(), source = source.drop_front();
  }
  return result;
}

// The names after `__global__ void [__launch_bounds__(...)]`, in order.
static std::vector<std::string> kernelNames(StringRef commented) {
  const std::string text = withoutComments(commented);
  StringRef source = text;
  llvm::Regex pattern("__global__[ \t\r\n]+void[ \t\r\n]+(__launch_bounds__\\([^)]*\\)[ \t\r\n]*)?"
                      "([A-Za-z_][A-Za-z0-9_]*)[ \t\r\n]*\\(");
  std::vector<std::string> names;
  llvm::SmallVector<StringRef, 3> match;
  while (pattern.match(source, &match)) {
    names.push_back(match[2].str());
    source = source.drop_front(match[0].end() - source.begin());
  }
  return names;
}

// `extern __shared__ float tile[];` has no host spelling: it becomes a pointer to the block's dynamic shared memory.
static std::string withDynamicShared(StringRef source) {
  llvm::Regex pattern("extern[ \t]+__shared__[ \t]+(__align__\\([0-9]+\\)[ \t]+|alignas\\([0-9]+\\)[ \t]+)?"
                      "([A-Za-z_][A-Za-z0-9_ ]*[ \t]+)([A-Za-z_][A-Za-z0-9_]*)\\[\\][ \t]*;");
  std::string result;
  llvm::SmallVector<StringRef, 4> match;
  while (pattern.match(source, &match)) {
    result += source.take_front(match[0].begin() - source.begin());
    result += llvm::formatv("{0} *const {1} = static_cast<{0} *>(fusor_emulator_lane->dynamicShared);", match[2].trim(),
                            match[3]);
    source = source.drop_front(match[0].end() - source.begin());
  }
  return result + source.str();
}

// Kernel text plus one `extern "C"` trampoline a kernel.
static std::string hostText(StringRef source, llvm::ArrayRef<std::string> kernels) {
  std::string text = "#line 1 \"kernel.cu\"\n" + withDynamicShared(source) + "\n#line 1 \"trampolines\"\n";
  for (const std::string &kernel : kernels)
    text += llvm::formatv("extern \"C\" void fusor_emulator_launch_{0}(void **arguments) {{ "
                          "fusor::emulator::launch(&{0}, arguments); }\n",
                          kernel);
  return text;
}

// ---- compiling ---------------------------------------------------------------------------------------------------

static llvm::Expected<std::string> findCompiler() {
  if (kAddressSanitizer) return std::string(FUSOR_EMULATOR_BUILT_BY);
  std::vector<std::string> candidates = {"g++", "clang++"};
  if (const char *fromEnvironment = std::getenv("CXX")) candidates.insert(candidates.begin(), fromEnvironment);
  for (const std::string &name : candidates)
    if (auto path = llvm::sys::findProgramByName(name)) return *path;
  return failure("emulator: no host C++ compiler found; set CXX or put " + llvm::join(candidates, " or ") +
                 " into PATH");
}

static std::vector<StringRef> compilerFlags() {
  std::vector<StringRef> flags = {"-x",
                                  "c++",
                                  "-std=c++17",
                                  "-O1",
                                  "-fPIC",
                                  "-shared",
                                  "-ffp-contract=off",
                                  "-fno-strict-aliasing", // vector.cuh reads T[] as uint4, as CUDA code does
                                  "-Wall",
                                  "-Werror",
                                  "-Wno-unused",
                                  "-Wno-unknown-warning-option",
                                  "-Wno-unknown-pragmas",
                                  "-Wno-pass-failed", // clang: a loop that it does not unroll
                                  "-Wno-maybe-uninitialized"};
  if (kAddressSanitizer)
    flags.insert(flags.end(), {"-g1", "-fsanitize=address,undefined", kWithoutTypes, "-fno-sanitize-recover=undefined",
                               "-fno-omit-frame-pointer"});
  return flags;
}

// Writes `text` to a file that other processes see whole or not at all.
static llvm::Error writeFile(StringRef path, StringRef text) {
  const std::string temporary = llvm::formatv("{0}.{1}", path, llvm::sys::Process::getProcessId());
  std::error_code error;
  {
    llvm::raw_fd_ostream out(temporary, error);
    if (!error) out << text, out.close(), error = out.error(), out.clear_error();
  }
  if (!error) error = llvm::sys::fs::rename(temporary, path);
  if (error) return failure("emulator: cannot write " + path + ": " + error.message());
  return llvm::Error::success();
}

// The folder under `folder` that the headers lie in, by the hash of what they say; they are written where it is new.
static llvm::Expected<std::string> headersIn(StringRef folder, StringRef hash) {
  const std::string root = (folder + "/headers-" + hash.take_front(16)).str();
  const std::string place = root + "/runtime/emulator/";
  if (std::error_code error = llvm::sys::fs::create_directories(place))
    return failure("emulator: cannot create " + place + ": " + error.message());
  for (const EmbeddedFile &file : llvm::makeArrayRef(kEmbeddedFiles, kEmbeddedFileCount))
    if (!llvm::sys::fs::exists(place + file.name))
      if (llvm::Error error = writeFile(place + file.name, file.text)) return error;
  return root;
}

static std::string hexOf(llvm::SHA1 &hash) { return llvm::toHex(hash.final(), /*LowerCase=*/true); }

// Path of the library for `text`, compiled unless it is in the cache.
static llvm::Expected<std::string> buildLibrary(StringRef text, const std::string &folder) {
  auto compiler = findCompiler();
  if (!compiler) return compiler.takeError();
  std::vector<StringRef> flags = compilerFlags();

  llvm::SHA1 headerHash, hash;
  for (const EmbeddedFile &file : llvm::makeArrayRef(kEmbeddedFiles, kEmbeddedFileCount)) headerHash.update(file.text);
  const std::string headers = hexOf(headerHash);
  hash.update(headers);
  for (const std::string &part : {*compiler, llvm::join(flags, " "), text.str()}) {
    hash.update(part);
    hash.update(StringRef("\0", 1));
  }
  const std::string base = folder + "/" + hexOf(hash);
  if (llvm::sys::fs::exists(base + ".so")) return base + ".so";

  auto root = headersIn(folder, headers);
  if (!root) return root.takeError();
  const std::string shim = *root + "/runtime/emulator/shim.h";
  std::string temporary = llvm::formatv("{0}.{1}", base, llvm::sys::Process::getProcessId());
  const std::string cu = temporary + ".cu", so = temporary + ".so", log = temporary + ".log";
  {
    std::error_code error;
    llvm::raw_fd_ostream out(cu, error);
    if (error) return failure("emulator: cannot write " + cu + ": " + error.message());
    out << text;
  }
  std::vector<StringRef> command = {*compiler};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-I", *root, "-include", shim, cu, "-o", so});
  std::string message;
  int status = llvm::sys::ExecuteAndWait(*compiler, command, llvm::None, {llvm::None, StringRef(log), StringRef(log)},
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status != 0) {
    auto output = llvm::MemoryBuffer::getFile(log);
    std::string said = output ? (*output)->getBuffer().take_front(6000).str() : message;
    return failure("emulator: " + *compiler + " refuses the kernel text (kept in " + cu + "):\n" + said);
  }
  llvm::sys::fs::rename(so, base + ".so"); // atomic: several processes may compile the same text
  llvm::sys::fs::rename(cu, base + ".cu");
  llvm::sys::fs::remove(log);
  return base + ".so";
}

llvm::Expected<EmulatedModule> Emulator::compile(StringRef source) const {
  auto library = std::make_shared<EmulatedModule::Library>();
  library->kernels = kernelNames(source);
  if (library->kernels.empty()) return failure("emulator: the text has no '__global__ void name(...)'");
  auto path = buildLibrary(hostText(source, library->kernels), folder);
  if (!path) return path.takeError();

  // Never closed: a sanitizer report may still need its symbols, and a process compiles few texts.
  library->handle = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return failure(llvm::Twine("emulator: ") + dlerror());
  library->lane = static_cast<Lane **>(dlsym(library->handle, "fusor_emulator_lane"));
  *static_cast<const Hooks **>(dlsym(library->handle, "fusor_emulator_hooks")) = &schedulerHooks();
  EmulatedModule module;
  module.library = std::move(library);
  return module;
}

// ---- launching ---------------------------------------------------------------------------------------------------

llvm::ArrayRef<std::string> EmulatedModule::kernels() const { return library->kernels; }

llvm::Error EmulatedModule::launch(StringRef kernel, const LaunchShape &shape, llvm::ArrayRef<void *> arguments) const {
  void *symbol = dlsym(library->handle, ("fusor_emulator_launch_" + kernel).str().c_str());
  if (!symbol)
    return failure("emulator: no kernel '" + kernel + "'; the text has " + llvm::join(library->kernels, ", "));
  return runGrid(kernel, reinterpret_cast<void (*)(void **)>(symbol), const_cast<void **>(arguments.data()), shape,
                 library->lane);
}
