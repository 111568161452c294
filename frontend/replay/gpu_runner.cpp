#include "frontend/bench/median.h"
#include "frontend/replay/kernel_runner.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {

using Kind = codegen::KernelArg::Kind;
using namespace runtime;

namespace {

constexpr unsigned kWarm = 3, kRounds = 7, kRunsARound = 20;

/// The step's buffers on a device.
class DeviceCase {
public:
  DeviceCase(const ReplayCase &given, const CudaPlatform &platform) : given_(given), platform_(platform) {}

  llvm::Error prepare(TextOf text) {
    if (auto error = platform_.context->makeCurrent()) return error;
    auto stream = CudaStream::create(platform_.context);
    if (!stream) return stream.takeError();
    stream_ = std::move(*stream);
    const std::vector<std::string> options = {"--std=c++17", "-lineinfo"};
    for (const ReplayedLaunch &launch : given_.launches) {
      if (functions_.count(launch.kernel)) continue;
      auto compiled = platform_.compile(
          {.source = text(launch.kernel), .name = launch.kernel, .arch = platform_.arch, .options = options});
      if (!compiled) return compiled.takeError();
      auto module = CudaModule::load(platform_.context, compiled->image, launch.kernel);
      if (!module) return module.takeError();
      auto function = module->function(launch.kernel, launch.sharedBytes);
      if (!function) return function.takeError();
      functions_[launch.kernel] = *function;
      modules_.push_back(std::move(*module));
    }
    for (const HostTensor &tensor : given_.inputs)
      if (auto error = add(inputs_, tensor.bytes.size(), tensor.bytes.data())) return error;
    std::vector<char> nothing;
    auto addEmpty = [&](std::vector<DeviceMemory> &to, size_t bytes) {
      nothing.assign(bytes, '\xff'); // NaN in every type: an element that nobody writes is seen
      return add(to, bytes, nothing.data());
    };
    for (const HostTensor &tensor : given_.outputs)
      if (auto error = addEmpty(outputs_, tensor.bytes.size())) return error;
    if (given_.productOutput) {
      const std::vector<char> &product = given_.outputs[*given_.productOutput].bytes;
      if (auto error = upload(outputs_[*given_.productOutput], product.data(), product.size())) return error;
    }
    for (int64_t bytes : given_.workspaces)
      if (auto error = addEmpty(workspaces_, bytes)) return error;
    if (!given_.product.empty())
      if (auto error = upload(workspaces_[0], given_.product.data(), given_.product.size())) return error;
    return addTable();
  }

  llvm::Error launchAll() {
    for (const ReplayedLaunch &launch : given_.launches) {
      if (launch.grid == 0) continue;
      std::vector<uint64_t> values;
      for (const codegen::KernelArg &argument : launch.arguments) values.push_back(valueOf(argument));
      if (auto error = stream_.launch(functions_[launch.kernel], {launch.grid, launch.block, launch.sharedBytes},
                                      values, launch.kernel))
        return error;
    }
    return llvm::Error::success();
  }

  llvm::Expected<std::vector<std::vector<char>>> read() {
    if (auto error = stream_.synchronize("kernel '" + given_.name + "'")) return error;
    std::vector<std::vector<char>> outputs;
    for (auto [tensor, memory] : llvm::zip(given_.outputs, outputs_)) {
      outputs.emplace_back(tensor.bytes.size());
      if (auto error = stream_.download(outputs.back().data(), memory.address(), outputs.back().size())) return error;
    }
    if (auto error = stream_.synchronize()) return error;
    return outputs;
  }

  llvm::Expected<double> time() {
    for (unsigned i = 0; i < kWarm; ++i)
      if (auto error = launchAll()) return error;
    auto begin = CudaEvent::create(platform_.context, true), end = CudaEvent::create(platform_.context, true);
    if (!begin) return begin.takeError();
    if (!end) return end.takeError();
    std::vector<double> rounds;
    for (unsigned round = 0; round < kRounds; ++round) {
      if (auto error = stream_.record(*begin)) return error;
      for (unsigned i = 0; i < kRunsARound; ++i)
        if (auto error = launchAll()) return error;
      if (auto error = stream_.record(*end)) return error;
      if (auto error = stream_.synchronize("kernel '" + given_.name + "'")) return error;
      auto ms = begin->millisecondsTo(*end);
      if (!ms) return ms.takeError();
      rounds.push_back(*ms / kRunsARound);
    }
    return medianOf(rounds);
  }

private:
  llvm::Error upload(const DeviceMemory &to, const void *from, size_t bytes) {
    if (bytes == 0) return llvm::Error::success();
    if (auto error = stream_.upload(to.address(), from, static_cast<int64_t>(bytes))) return error;
    return stream_.synchronize(); // `from` may go
  }
  llvm::Error add(std::vector<DeviceMemory> &to, size_t bytes, const void *content) {
    auto memory =
        DeviceMemory::allocate(platform_.context, std::max<int64_t>(1, static_cast<int64_t>(bytes)), "a replay");
    if (!memory) return memory.takeError();
    to.push_back(std::move(*memory));
    return upload(to.back(), content, bytes);
  }
  llvm::Error addTable() {
    if (!given_.table) return llvm::Error::success();
    std::vector<uint64_t> pointers;
    for (const auto &pointer : given_.table->pointers)
      pointers.push_back((pointer.isOutput ? outputs_ : inputs_)[pointer.index].address());
    if (auto error = add(tables_, pointers.size() * 8, pointers.data())) return error;
    for (const std::vector<int64_t> *numbers : {&given_.table->sizes, &given_.table->chunks})
      if (auto error = add(tables_, numbers->size() * 8, numbers->data())) return error;
    return llvm::Error::success();
  }
  uint64_t valueOf(const codegen::KernelArg &argument) const {
    switch (argument.kind) {
    case Kind::input: return inputs_[argument.index].address();
    case Kind::output: return outputs_[argument.index].address();
    case Kind::workspace: return workspaces_[argument.index].address();
    case Kind::symbol: return given_.symbols.lookup(argument.symbol);
    case Kind::tablePointers: return tables_[0].address();
    case Kind::tableSizes: return tables_[1].address();
    case Kind::tableChunks: return tables_[2].address();
    case Kind::tableCount: return given_.table->tensors;
    }
    llvm_unreachable("every kind of argument is handled above");
  }

  const ReplayCase &given_;
  const CudaPlatform &platform_;
  CudaStream stream_;
  std::vector<CudaModule> modules_;
  std::map<std::string, CudaFunctionHandle> functions_;
  std::vector<DeviceMemory> inputs_, outputs_, workspaces_, tables_;
};

} // namespace

llvm::Expected<ReplayedRun> runOnGpu(const ReplayCase &given, TextOf text, const CudaPlatform &platform) {
  DeviceCase device(given, platform);
  if (auto error = device.prepare(text)) return error;
  if (auto error = device.launchAll()) return error;
  auto outputs = device.read(); // of the first run, on fresh memory
  if (!outputs) return outputs.takeError();
  auto ms = device.time();
  if (!ms) return ms.takeError();
  return ReplayedRun{std::move(*outputs), *ms};
}

} // namespace fusor::frontend
