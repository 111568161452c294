#include "runtime/cuda/kernel_build.h"
#include "runtime/execute/run_error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <mutex>
#include <thread>

namespace fusor::runtime {

namespace {

constexpr llvm::StringLiteral kCubin = "cubin";

// Of a kernel that does not compile: the path of a new file among the temporary ones, or why it could not be written.
std::string keepSource(const codegen::Kernel &kernel) {
  llvm::SmallString<256> path;
  int descriptor = -1;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile(kernel.name, "cu", descriptor, path))
    return (path + ": " + error.message()).str();
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << kernel.source;
  return path.str().str();
}

// Threads that compile, from 1 in the order they first ask.
class ThreadNumbers {
public:
  unsigned number() {
    std::lock_guard<std::mutex> lock(mutex_);
    return numbers_.try_emplace(std::this_thread::get_id(), numbers_.size() + 1).first->second;
  }

private:
  std::mutex mutex_;
  std::map<std::thread::id, unsigned> numbers_;
};

CacheKey keyOf(const codegen::Kernel &kernel, const KernelBuild &build) {
  CacheKeyBuilder key;
  key.add("source", kernel.source).add("arch", build.arch).add("nvrtc", build.compilerVersion);
  for (const std::string &option : build.options) key.add("option", option);
  return key.key();
}

} // namespace

llvm::Expected<std::vector<std::string>> buildKernels(llvm::ArrayRef<const codegen::Kernel *> kernels,
                                                      const KernelBuild &build, CompileStats &stats) {
  auto start = std::chrono::steady_clock::now();
  std::vector<std::string> images(kernels.size());
  std::vector<llvm::Optional<llvm::Error>> failures(kernels.size());
  std::vector<unsigned> missing;
  for (unsigned i = 0; i < kernels.size(); ++i) {
    auto image = build.cache ? build.cache->get(kCubin, keyOf(*kernels[i], build)) : std::nullopt;
    if (image)
      images[i] = std::move(*image), ++stats.fromCache;
    else
      missing.push_back(i);
  }
  ThreadNumbers threads;
  std::vector<CompileSpan> spans(kernels.size());
  {
    llvm::ThreadPool pool(llvm::hardware_concurrency(build.threads));
    for (unsigned i : missing)
      pool.async([&, i] {
        CompileSpan &span = spans[i];
        span = {"nvrtc", kernels[i]->name, threads.number(), spanClockMs(), 0};
        auto compiled = build.compile(
            {.source = kernels[i]->source, .name = kernels[i]->name, .arch = build.arch, .options = build.options});
        if (compiled)
          images[i] = std::move(compiled->image);
        else
          failures[i].emplace(compiled.takeError());
        span.ms = spanClockMs() - span.beginMs;
      });
    pool.wait();
  }
  llvm::Error first = llvm::Error::success();
  for (unsigned i : missing) {
    if (!failures[i]) continue;
    if (first) {
      llvm::consumeError(std::move(*failures[i]));
      continue;
    }
    llvm::consumeError(std::move(first));
    first = llvm::handleErrors(std::move(*failures[i]), [&](const KernelCompileError &e) -> llvm::Error {
      std::string log = e.compilerLog().rtrim().str() + "\nits text is kept: " + keepSource(*kernels[i]);
      return llvm::make_error<KernelCompileError>(e.kernel().str(), e.arch().str(), e.reason().str(), std::move(log));
    });
  }
  if (first) return first;
  bool isCacheWritable = true;
  for (unsigned i : missing) {
    ++stats.compiled;
    stats.spans.push_back(std::move(spans[i]));
    if (!build.cache || !isCacheWritable) continue;
    if (auto error = build.cache->put(kCubin, keyOf(*kernels[i], build), images[i])) {
      isCacheWritable = false; // said once
      stats.notes.push_back("cache: kernels are not kept: " + llvm::toString(std::move(error)));
    }
  }
  if (build.cache)
    for (std::string &note : build.cache->takeNotes()) stats.notes.push_back(std::move(note));
  stats.milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return images;
}

llvm::Expected<std::string> archToCompileFor(llvm::StringRef target, llvm::ArrayRef<int> supported) {
  llvm::StringRef number = target;
  int arch = 0;
  bool isPtx = number.consume_front("compute_");
  if ((!isPtx && !number.consume_front("sm_")) || number.consumeInteger(10, arch) || supported.empty())
    return llvm::make_error<DeviceError>(
        ("'" + target + "' is no CUDA architecture; expected one such as sm_90a").str());
  if (llvm::is_contained(supported, arch)) return target.str();
  if (arch > supported.back()) return "compute_" + std::to_string(supported.back());
  return llvm::make_error<DeviceError>(llvm::formatv("this NVRTC compiles for sm_{0} and newer, the device is {1}: "
                                                     "install nvidia-cuda-nvrtc-cu12 and set FUSOR_NVRTC to it",
                                                     supported.front(), target));
}

} // namespace fusor::runtime
