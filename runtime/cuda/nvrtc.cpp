#include "runtime/cuda/nvrtc.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::runtime {

char KernelCompileError::ID = 0;

namespace {

/// As in nvrtc.h of CUDA 11.2 and later: results are enums, 0 is success; programs are opaque pointers.
using Result = int;
using ProgramHandle = struct NvrtcProgram *;
constexpr Result kOutOfMemory = 1;

/// "sm_90a" -> 90, "compute_75" -> 75, otherwise 0.
int archNumber(llvm::StringRef arch) {
  int number = 0;
  if (!arch.consume_front("sm_") && !arch.consume_front("compute_")) return 0;
  return arch.consumeInteger(10, number) ? 0 : number;
}

std::string archList(llvm::ArrayRef<int> archs) {
  std::string text;
  for (int arch : archs) text += (text.empty() ? "sm_" : ", sm_") + std::to_string(arch);
  return text;
}

} // namespace

struct Nvrtc::Api {
  Library library, builtins;
  int major = 0, minor = 0;
  std::vector<int> archs;
  SearchLog search;

  const char *(*errorString)(Result);
  Result (*version)(int *major, int *minor);
  Result (*numSupportedArchs)(int *count);
  Result (*supportedArchs)(int *archs);
  Result (*createProgram)(ProgramHandle *, const char *source, const char *name, int headers, const char *const *texts,
                          const char *const *includeNames);
  Result (*destroyProgram)(ProgramHandle *);
  Result (*compileProgram)(ProgramHandle, int options, const char *const *texts);
  Result (*logSize)(ProgramHandle, size_t *);
  Result (*log)(ProgramHandle, char *);
  Result (*cubinSize)(ProgramHandle, size_t *);
  Result (*cubin)(ProgramHandle, char *);
  Result (*ptxSize)(ProgramHandle, size_t *);
  Result (*ptx)(ProgramHandle, char *);

  /// Opens `place` and asks it for its version; what is wrong with it, or an empty string.
  std::string open(const std::string &place) {
    std::string why;
    library = Library::open(place, why);
    if (!library) return why;
    bool complete =
        library.find("nvrtcGetErrorString", errorString) && library.find("nvrtcVersion", version) &&
        library.find("nvrtcGetNumSupportedArchs", numSupportedArchs) &&
        library.find("nvrtcGetSupportedArchs", supportedArchs) && library.find("nvrtcCreateProgram", createProgram) &&
        library.find("nvrtcDestroyProgram", destroyProgram) && library.find("nvrtcCompileProgram", compileProgram) &&
        library.find("nvrtcGetProgramLogSize", logSize) && library.find("nvrtcGetProgramLog", log) &&
        library.find("nvrtcGetCUBINSize", cubinSize) && library.find("nvrtcGetCUBIN", cubin) &&
        library.find("nvrtcGetPTXSize", ptxSize) && library.find("nvrtcGetPTX", ptx);
    if (!complete) return "is no NVRTC of CUDA 11.2 or later: functions are missing";
    int count = 0;
    if (version(&major, &minor) != 0 || numSupportedArchs(&count) != 0 || count <= 0) return "does not say its version";
    archs.resize(count);
    if (supportedArchs(archs.data()) != 0) return "does not say its architectures";
    llvm::sort(archs);
    // NVRTC opens its builtins by their bare name. The 13.0 wheel says no RUNPATH, so the loader finds them only where
    // they are loaded already. Where they are missing, NVRTC says so itself.
    llvm::SmallString<128> sibling = llvm::sys::path::parent_path(library.path());
    llvm::sys::path::append(sibling, llvm::formatv("libnvrtc-builtins.so.{0}.{1}", major, minor).str());
    if (llvm::sys::fs::exists(sibling)) builtins = Library::open(sibling.str().str(), why);
    return "";
  }

  /// The log or image of a program: a size call and a copy call.
  std::string take(ProgramHandle program, Result (*size)(ProgramHandle, size_t *),
                   Result (*copy)(ProgramHandle, char *)) const {
    size_t bytes = 0;
    if (size(program, &bytes) != 0 || bytes == 0) return "";
    std::string text(bytes, '\0');
    if (copy(program, text.data()) != 0) return "";
    return text;
  }
};

NvrtcOptions NvrtcOptions::fromEnvironment() {
  NvrtcOptions options;
  if (auto path = llvm::sys::Process::GetEnv("FUSOR_NVRTC")) options.path = *path;
  return options;
}

void KernelCompileError::log(llvm::raw_ostream &os) const {
  os << "kernel '" << kernelName << "' does not compile for " << archName << ": " << why;
  llvm::StringRef text = llvm::StringRef(messages).rtrim();
  if (!text.empty()) os << '\n' << text;
}

int Nvrtc::major() const { return api->major; }
int Nvrtc::minor() const { return api->minor; }
std::string Nvrtc::version() const { return llvm::formatv("{0}.{1}", api->major, api->minor).str(); }
std::string Nvrtc::path() const { return api->library.path(); }
llvm::ArrayRef<int> Nvrtc::supportedArchs() const { return api->archs; }
const SearchLog &Nvrtc::search() const { return api->search; }

llvm::Expected<CompiledKernel> Nvrtc::compile(const KernelSource &kernel) const {
  auto refused = [&](std::string reason, std::string log = "") {
    return llvm::make_error<KernelCompileError>(kernel.name.str(), kernel.arch.str(), std::move(reason),
                                                std::move(log));
  };
  int arch = archNumber(kernel.arch);
  if (arch == 0) return refused("expected an architecture such as sm_90a or compute_75");
  if (!supports(arch))
    return refused(llvm::formatv("NVRTC {0} has {1}; {2}", version(), archList(supportedArchs()),
                                 arch < supportedArchs().front()
                                     ? "for older devices install nvidia-cuda-nvrtc-cu12 and set FUSOR_NVRTC to it"
                                     : "a newer NVRTC is needed"));

  ProgramHandle program = nullptr;
  std::string source = kernel.source.str(), file = (kernel.name + ".cu").str();
  if (Result result = api->createProgram(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr))
    return refused(api->errorString(result));
  auto destroy = llvm::make_scope_exit([&] { api->destroyProgram(&program); });

  std::string architecture = ("--gpu-architecture=" + kernel.arch).str();
  std::vector<const char *> options = {architecture.c_str()};
  for (const std::string &option : kernel.options) options.push_back(option.c_str());
  Result result = api->compileProgram(program, int(options.size()), options.data());
  std::string log = api->take(program, api->logSize, api->log);
  while (!log.empty() && log.back() == '\0') log.pop_back();
  if (result != 0) return refused(api->errorString(result), std::move(log));

  CompiledKernel compiled;
  compiled.isPtx = kernel.arch.startswith("compute_");
  compiled.log = std::move(log);
  compiled.image =
      compiled.isPtx ? api->take(program, api->ptxSize, api->ptx) : api->take(program, api->cubinSize, api->cubin);
  if (compiled.image.empty()) return refused(api->errorString(kOutOfMemory), std::move(compiled.log));
  return compiled;
}

llvm::Expected<Nvrtc> loadNvrtc(const NvrtcOptions &options, SearchLog *log) {
  LibrarySearch search;
  search.explicitPath = options.path;
  search.wheelRoots = options.wheelRoots;
  for (int major : {13, 12}) // the newest we know; a driver of CUDA 12 cannot load what a compiler of CUDA 13 makes
    if (options.newestMajor == 0 || major <= options.newestMajor)
      search.fileNames.push_back("libnvrtc.so." + std::to_string(major));
  search.fileNames.push_back("libnvrtc.so");

  SearchLog tried;
  std::shared_ptr<Nvrtc::Api> found;
  for (const std::string &place : libraryPlaces(search)) {
    auto api = std::make_shared<Nvrtc::Api>();
    std::string problem = api->open(place);
    std::string version = llvm::formatv("NVRTC {0}.{1}", api->major, api->minor).str();
    if (problem.empty() && options.newestMajor != 0 && api->major > options.newestMajor)
      problem = version + llvm::formatv(" is too new for a driver of CUDA {0}", options.newestMajor).str();
    if (problem.empty() && options.requiredArch != 0 && !llvm::is_contained(api->archs, options.requiredArch))
      problem =
          version + llvm::formatv(" has no sm_{0} (it has {1})", options.requiredArch, archList(api->archs)).str();
    tried.push_back({place, problem.empty() ? "loaded, " + version : problem});
    if (problem.empty()) {
      found = std::move(api);
      break;
    }
  }
  if (log) *log = tried;
  if (!found)
    return llvm::createStringError(std::errc::no_such_file_or_directory,
                                   "found no usable NVRTC, the compiler of CUDA kernels; install a CUDA toolkit or the "
                                   "PyPI wheel nvidia-cuda-nvrtc, or set "
                                   "FUSOR_NVRTC to libnvrtc.so; tried:%s",
                                   searchText(tried).c_str());
  found->search = std::move(tried);
  Nvrtc nvrtc;
  nvrtc.api = std::move(found);
  return nvrtc;
}

} // namespace fusor::runtime
