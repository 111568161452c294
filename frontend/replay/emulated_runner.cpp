#include "frontend/api/errors.h"
#include "frontend/replay/kernel_runner.h"
#include "runtime/emulator/emulator.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fusor::frontend {

using Kind = codegen::KernelArg::Kind;
using emulator::EmulatedModule, emulator::GuardedBuffer;

namespace {

GuardedBuffer bufferOf(llvm::ArrayRef<char> bytes) {
  GuardedBuffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

void *valueOf(const GuardedBuffer &buffer) { return const_cast<void *>(static_cast<const void *>(buffer.address())); }

llvm::Expected<ReplayedRun> runHere(const ReplayCase &given, const std::map<std::string, EmulatedModule> &modules) {
  std::vector<GuardedBuffer> inputs, outputs, workspaces;
  for (const HostTensor &tensor : given.inputs) inputs.push_back(bufferOf(tensor.bytes));
  for (const HostTensor &tensor : given.outputs) outputs.emplace_back(tensor.bytes.size());
  if (given.productOutput) {
    const std::vector<char> &product = given.outputs[*given.productOutput].bytes;
    std::memcpy(outputs[*given.productOutput].data(), product.data(), product.size());
  }
  for (int64_t bytes : given.workspaces) workspaces.emplace_back(bytes);
  if (!given.product.empty()) std::memcpy(workspaces[0].data(), given.product.data(), given.product.size());
  std::vector<uint64_t> pointers;
  const void *arrays[3] = {};
  long long count = 0;
  if (given.table) {
    for (const auto &pointer : given.table->pointers)
      pointers.push_back(reinterpret_cast<uint64_t>((pointer.isOutput ? outputs : inputs)[pointer.index].data()));
    arrays[0] = pointers.data(), arrays[1] = given.table->sizes.data(), arrays[2] = given.table->chunks.data();
    count = static_cast<long long>(given.table->tensors);
  }

  auto start = std::chrono::steady_clock::now();
  for (const ReplayedLaunch &launch : given.launches) {
    if (launch.grid == 0) continue;
    std::vector<long long> numbers(launch.arguments.size());
    std::vector<void *> values;
    for (auto [argument, number] : llvm::zip(launch.arguments, numbers)) {
      switch (argument.kind) {
      case Kind::input: values.push_back(valueOf(inputs[argument.index])); break;
      case Kind::output: values.push_back(valueOf(outputs[argument.index])); break;
      case Kind::workspace: values.push_back(valueOf(workspaces[argument.index])); break;
      case Kind::symbol:
        number = given.symbols.lookup(argument.symbol);
        values.push_back(&number);
        break;
      case Kind::tablePointers: values.push_back(&arrays[0]); break;
      case Kind::tableSizes: values.push_back(&arrays[1]); break;
      case Kind::tableChunks: values.push_back(&arrays[2]); break;
      case Kind::tableCount:
        number = count;
        values.push_back(&number);
        break;
      }
    }
    emulator::LaunchShape shape;
    shape.grid.x = launch.grid, shape.block.x = launch.block, shape.sharedBytes = launch.sharedBytes;
    if (auto error = modules.at(launch.kernel).launch(launch.kernel, shape, values))
      return inputError("kernel '{0}': {1}", launch.kernel, llvm::toString(std::move(error)));
    for (auto *buffers : {&inputs, &outputs, &workspaces})
      for (GuardedBuffer &buffer : *buffers)
        if (auto error = buffer.check("kernel '" + launch.kernel + "'"))
          return inputError("{0}", llvm::toString(std::move(error)));
  }
  ReplayedRun run;
  run.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (const GuardedBuffer &buffer : outputs) {
    auto bytes = buffer.as<char>();
    run.outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return run;
}

/// Memory that a process shares with those it forks.
class SharedMemory {
public:
  explicit SharedMemory(size_t bytes)
      : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedMemory() {
    if (*this) munmap(data_, bytes_);
  }
  SharedMemory(const SharedMemory &) = delete;
  explicit operator bool() const { return data_ != MAP_FAILED; }
  char *data() const { return static_cast<char *>(data_); }

private:
  size_t bytes_;
  void *data_;
};

/// What the process that ran says, before the outputs.
struct Report {
  double ms = 0;
  char error[4096] = {}; // empty: it went well
};

} // namespace

llvm::Expected<ReplayedRun> runInEmulator(const ReplayCase &given, TextOf text, const std::string &folder) {
  std::map<std::string, EmulatedModule> modules;
  for (const ReplayedLaunch &launch : given.launches) {
    if (modules.count(launch.kernel)) continue;
    auto module = emulator::Emulator(folder).compile(text(launch.kernel));
    if (!module) return inputError("kernel '{0}': {1}", launch.kernel, llvm::toString(module.takeError()));
    modules.emplace(launch.kernel, std::move(*module));
  }
  // An edited kernel may write anywhere: it runs in a process of its own.
  size_t bytes = sizeof(Report);
  for (const HostTensor &tensor : given.outputs) bytes += tensor.bytes.size();
  SharedMemory shared(bytes);
  Report *report = shared ? new (shared.data()) Report : nullptr;
  pid_t child = report ? fork() : -1;
  if (child < 0) return failure(ErrorKind::memory, "no memory to run kernel '{0}' in", given.name);
  if (child == 0) {
    auto run = runHere(given, modules);
    if (run) {
      char *to = shared.data() + sizeof(Report);
      for (const std::vector<char> &output : run->outputs) to = std::copy(output.begin(), output.end(), to);
      report->ms = run->ms;
    } else {
      std::string text = llvm::toString(run.takeError());
      std::strncpy(report->error, text.c_str(), sizeof(report->error) - 1);
    }
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0)
    return inputError("kernel '{0}' crashed in the emulator{1}: it reads or writes far outside its buffers", given.name,
                      WIFSIGNALED(status) ? llvm::formatv(" (signal {0})", WTERMSIG(status)).str() : std::string());
  if (report->error[0]) return inputError("{0}", report->error);
  ReplayedRun run;
  run.ms = report->ms;
  const char *from = shared.data() + sizeof(Report);
  for (const HostTensor &tensor : given.outputs) {
    run.outputs.emplace_back(from, from + tensor.bytes.size());
    from += tensor.bytes.size();
  }
  return run;
}

} // namespace fusor::frontend
