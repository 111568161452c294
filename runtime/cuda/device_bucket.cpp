#include "runtime/cuda/device_bucket.h"
#include "ir/graph/bug.h"
#include "ir/ops/flops.h"
#include "ir/ops/traffic.h"
#include "runtime/execute/constants.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::runtime {

using namespace ir;
using passes::PlaceKind;

namespace {

constexpr int64_t kAlignment = 256; // cuBLASLt's and TMA's wishes, and more than any vector access

int64_t aligned(int64_t bytes) { return static_cast<int64_t>(llvm::alignTo(bytes, kAlignment)); }

int64_t evaluated(const Dim &dim, const SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  if (!value) FUSOR_BUG("{0} has no value in a planned function", dim.str());
  return *value;
}
int64_t evaluated(const codegen::Count &count, const SymbolValues &symbols) {
  auto value = count.evaluate(symbols);
  if (!value) FUSOR_BUG("{0} has no value in a planned function", count.str());
  return *value;
}

llvm::Error planIo(const Function &function, DeviceBucket &bucket) {
  auto add = [&](const TensorType &type, auto &offsets, auto &sizes) -> llvm::Error {
    auto bytes = passes::storageBytes(type, bucket.symbols);
    if (!bytes) return opError("a border of @{0} is {1}: its symbols need values", function.name(), type.str());
    offsets.push_back(bucket.ioTotal);
    sizes.push_back(*bytes);
    bucket.ioTotal += aligned(*bytes);
    return llvm::Error::success();
  };
  for (Value argument : function.block().arguments())
    if (auto error = add(argument.type(), bucket.inputOffsets, bucket.inputBytes)) return error;
  bucket.inputTotal = bucket.ioTotal;
  for (const ReturnEntry &entry : function.returns())
    if (entry.kind == ReturnKind::result)
      if (auto error = add(entry.value.type(), bucket.outputOffsets, bucket.outputBytes)) return error;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::unique_ptr<DeviceBucket>>
makeDeviceBucket(const Function &function, llvm::ArrayRef<DeviceCode> codes, const SymbolValues &symbols) {
  auto bucket = std::make_unique<DeviceBucket>();
  bucket->symbols = symbols;
  llvm::DenseMap<const Op *, const DeviceCode *> codeOf;
  for (const DeviceCode &code : codes) codeOf[code.op] = &code.forSizes(symbols);
  auto overwrite = [&](const Op &op, unsigned result, unsigned operand) {
    const DeviceCode *code = codeOf.lookup(&op);
    return code && code->mayOverwrite(result, operand);
  };
  passes::MemoryOptions options;
  options.alignment = kAlignment;
  options.mayOverwrite = overwrite;
  auto memory = passes::planMemory(function, symbols, options);
  if (!memory) return memory.takeError();
  bucket->memory = std::move(*memory);
  bucket->constants.resize(bucket->memory.constantBytes);
  if (auto error = fillConstants(function, bucket->memory, symbols, bucket->constants.data())) return error;
  if (auto error = planIo(function, *bucket)) return error;
  for (const DeviceCode &any : codes) {
    const DeviceCode &code = any.forSizes(symbols);
    DeviceBucket::Step step;
    step.code = &code;
    auto add = [&](Value value, llvm::SmallVectorImpl<unsigned> &into) {
      into.push_back(bucket->memory.bufferOf[value.def()]);
    };
    for (Value input : code.inputs) add(input, step.inputs);
    for (Value result : code.op->results()) add(result, step.outputs);
    int64_t workspace = 0;
    for (const codegen::Count &bytes : code.set.workspaces) workspace += aligned(evaluated(bytes, symbols));
    bucket->workspaceBytes = std::max(bucket->workspaceBytes, workspace);
    step.bytes = movedBytes(*code.op, symbols), step.flops = contractionFlops(*code.op, symbols);
    bucket->steps.push_back(std::move(step));
  }
  bucket->memory.workspaceBytes = bucket->workspaceBytes;
  return bucket;
}

bool DeviceBucket::hasHostSteps() const {
  return llvm::any_of(steps, [](const Step &step) { return step.code->runsOnHost(); });
}

DevicePointer DeviceBucket::address(const passes::Place &place, const DeviceBuffers &shared) const {
  switch (place.kind) {
  case PlaceKind::arena: return shared.arena.address() + place.offset;
  case PlaceKind::input: return io.address() + inputOffsets[place.index];
  case PlaceKind::output: return io.address() + outputOffsets[place.index];
  case PlaceKind::persistent: return shared.persistent(place.name);
  case PlaceKind::constant: return constantMemory_.address() + place.offset;
  }
  llvm_unreachable("every kind of place is handled above");
}

llvm::SmallVector<DevicePointer, 4> DeviceBucket::workspacesOf(const Step &step, const DeviceBuffers &shared) const {
  llvm::SmallVector<DevicePointer, 4> at;
  DevicePointer next = shared.workspace.address();
  for (const codegen::Count &bytes : step.code->set.workspaces) {
    at.push_back(next);
    next += aligned(evaluated(bytes, symbols));
  }
  return at;
}

llvm::Error DeviceBucket::bind(const CudaContextRef &context, const CudaStream &stream, const DeviceBuffers &shared,
                               llvm::ArrayRef<DeviceKernels::Kernel> kernels, GemmChooser *gemm) {
  graph = CudaGraph(), timedGraph = CudaGraph();
  for (HostSide &side : sides) side.graph = CudaGraph();
  launches.clear(), gemms.clear();
  auto own = [&](DeviceMemory &held, int64_t bytes, llvm::StringRef purpose) -> llvm::Error {
    if (held || bytes == 0) return llvm::Error::success();
    auto memory = DeviceMemory::allocate(context, bytes, purpose + " of @" + this->memory.function);
    if (!memory) return memory.takeError();
    held = std::move(*memory);
    return llvm::Error::success();
  };
  if (!io && ioTotal > 0) {
    if (auto error = own(io, ioTotal, "inputs and outputs")) return error;
    if (auto error = stream.clear(io.address(), ioTotal)) return error; // what lies between them is copied too
  }
  if (!constantMemory_ && !constants.empty()) {
    if (auto error = own(constantMemory_, constants.size(), "constants")) return error;
    if (auto error = stream.upload(constantMemory_.address(), constants.data(), constants.size())) return error;
  }
  llvm::SmallVector<DevicePointer, 0> at;
  for (const auto &buffer : memory.buffers) at.push_back(address(buffer.place, shared));
  if (auto error = bindTables(at, context, stream)) return error;
  for (unsigned number = 0; number < steps.size(); ++number) {
    if (steps[number].code->gemm) {
      if (!gemm) FUSOR_BUG("a library GEMM in a program without cuBLASLt");
      if (auto error = bindGemm(number, at, workspacesOf(steps[number], shared), stream, shared, *gemm)) return error;
    }
    if (auto error = bindStep(number, at, shared, kernels)) return error;
  }
  auto copy = [&](DevicePointer to, DevicePointer from, int64_t bytes) {
    if (to == from || bytes == 0) return;
    DeviceLaunch launch;
    launch.kind = DeviceLaunch::Kind::copy, launch.step = DeviceLaunch::kBehindAllSteps, launch.name = "copy";
    launch.to = to, launch.from = from, launch.bytes = bytes;
    launches.push_back(std::move(launch));
  };
  auto addressOf = [&](Value value) { return at[memory.bufferOf[value.def()]]; };
  for (const auto &[output, value] : memory.resultCopies)
    copy(io.address() + outputOffsets[output], addressOf(value), outputBytes[output]);
  for (const passes::UpdateCopy &update : memory.updateCopies)
    if (update.stagingOffset >= 0)
      copy(shared.arena.address() + update.stagingOffset, addressOf(update.from),
           *passes::storageBytes(update.from.type(), symbols));
  for (const passes::UpdateCopy &update : memory.updateCopies)
    copy(shared.persistent(update.persistent),
         update.stagingOffset >= 0 ? shared.arena.address() + update.stagingOffset : addressOf(update.from),
         *passes::storageBytes(update.from.type(), symbols));
  boundTo = shared.version;
  return llvm::Error::success();
}

// The three arrays of every multi-tensor step, see codegen/device/multi_tensor.cuh.
llvm::Error DeviceBucket::bindTables(llvm::ArrayRef<DevicePointer> at, const CudaContextRef &context,
                                     const CudaStream &stream) {
  std::vector<uint64_t> words;
  std::vector<size_t> firstOf(steps.size());
  for (unsigned number = 0; number < steps.size(); ++number) {
    const Step &step = steps[number];
    firstOf[number] = words.size();
    if (!step.code->set.table || step.code->kernels.empty()) continue;
    const codegen::TensorTable &table = *step.code->set.table;
    for (unsigned c = 0; c < table.tensors.front().pointers.size(); ++c)
      for (const auto &tensor : table.tensors) {
        const auto &pointer = tensor.pointers[c];
        words.push_back(at[(pointer.isOutput ? step.outputs : step.inputs)[pointer.index]]);
      }
    for (const auto &tensor : table.tensors) words.push_back(evaluated(tensor.elements, symbols));
    if (table.tileSide)
      for (const auto &tensor : table.tensors) words.push_back(tensor.columns);
    uint64_t chunks = 0;
    words.push_back(0);
    for (size_t t = 0; t < table.tensors.size(); ++t)
      words.push_back(chunks += table.chunks(t, evaluated(table.tensors[t].elements, symbols)));
  }
  tableOf_.clear();
  if (words.empty()) {
    tableOf_.resize(steps.size());
    return llvm::Error::success();
  }
  if (!tables_) {
    auto memory = DeviceMemory::allocate(context, static_cast<int64_t>(words.size() * 8), "tables of tensors");
    if (!memory) return memory.takeError();
    tables_ = std::move(*memory);
  }
  for (size_t first : firstOf) tableOf_.push_back(tables_.address() + first * 8);
  if (auto error = stream.upload(tables_.address(), words.data(), static_cast<int64_t>(words.size() * 8))) return error;
  return stream.synchronize(); // `words` goes
}

llvm::Error DeviceBucket::bindStep(unsigned number, llvm::ArrayRef<DevicePointer> at, const DeviceBuffers &shared,
                                   llvm::ArrayRef<DeviceKernels::Kernel> kernels) {
  const Step &step = steps[number];
  const DeviceCode &code = *step.code;
  if (code.runsOnHost()) {
    DeviceLaunch launch;
    launch.kind = DeviceLaunch::Kind::host, launch.step = number, launch.name = code.name;
    launches.push_back(std::move(launch));
    return llvm::Error::success();
  }
  auto workspaces = workspacesOf(step, shared);
  uint64_t tensors = code.set.table ? code.set.table->tensors.size() : 0;
  uint64_t columns = tensors ? code.set.table->tensors.front().pointers.size() : 0; // of the table
  uint64_t sizes = tensors && code.set.table->tileSide ? 2 : 1;
  for (unsigned i = 0; i < code.kernels.size(); ++i) {
    const codegen::Kernel &kernel = code.set.kernels[i];
    if (kernel.skipWhereAliased) {
      auto [input, output] = *kernel.skipWhereAliased;
      if (at[step.inputs[input]] == at[step.outputs[output]]) continue;
    }
    int64_t grid = evaluated(kernel.grid, symbols);
    if (grid == 0) continue;
    if (grid < 0 || grid > INT32_MAX)
      return opError("kernel '{0}' would have {1} blocks, more than a launch can have; a smaller batch is needed",
                     kernel.name, grid);
    DeviceLaunch launch;
    launch.step = number;
    launch.name = kernels[code.kernels[i]].code.name;
    launch.kernel = code.kernels[i];
    launch.function = kernels[code.kernels[i]].function;
    launch.shape = {static_cast<unsigned>(grid), kernel.block, kernel.sharedBytes};
    for (const codegen::KernelArg &arg : kernel.args) {
      using Kind = codegen::KernelArg::Kind;
      switch (arg.kind) {
      case Kind::input: launch.arguments.push_back(at[step.inputs[arg.index]]); break;
      case Kind::output: launch.arguments.push_back(at[step.outputs[arg.index]]); break;
      case Kind::workspace: launch.arguments.push_back(workspaces[arg.index]); break;
      case Kind::symbol: launch.arguments.push_back(evaluated(Dim::symbol(arg.symbol), symbols)); break;
      case Kind::tablePointers: launch.arguments.push_back(tableOf_[number]); break;
      case Kind::tableSizes: launch.arguments.push_back(tableOf_[number] + 8 * columns * tensors); break;
      case Kind::tableChunks: launch.arguments.push_back(tableOf_[number] + 8 * (columns + sizes) * tensors); break;
      case Kind::tableCount: launch.arguments.push_back(tensors); break;
      }
    }
    launches.push_back(std::move(launch));
  }
  return llvm::Error::success();
}

llvm::Error DeviceBucket::bindGemm(unsigned number, llvm::ArrayRef<DevicePointer> at,
                                   llvm::ArrayRef<DevicePointer> workspaces, const CudaStream &stream,
                                   const DeviceBuffers &shared, GemmChooser &chooser) {
  const Step &step = steps[number];
  const GemmCall &call = *step.code->gemm;
  GemmShape shape;
  shape.m = evaluated(call.m, symbols), shape.n = evaluated(call.n, symbols), shape.k = evaluated(call.k, symbols);
  shape.batch = evaluated(call.batch, symbols);
  shape.typeA = call.a.dtype, shape.typeB = call.b.dtype, shape.outputType = call.outputType;
  shape.transposedA = call.a.transposed, shape.transposedB = call.b.transposed;
  shape.leadingA = evaluated(call.a.leadingStride, symbols), shape.leadingB = evaluated(call.b.leadingStride, symbols);
  shape.batchStrideA = evaluated(call.a.batchStride, symbols),
  shape.batchStrideB = evaluated(call.b.batchStride, symbols);
  shape.hasBias = call.bias.has_value();
  shape.fastAccumulation = call.fastAccumulation;
  if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return llvm::Error::success();
  GemmBuffers buffers;
  buffers.a = at[step.inputs[call.a.input]], buffers.b = at[step.inputs[call.b.input]];
  if (call.bias) buffers.bias = at[step.inputs[*call.bias]];
  for (int i = 0; i < 2; ++i)
    if (call.scales[i]) shape.hasScale[i] = true, buffers.scales[i] = at[step.inputs[*call.scales[i]]];
  buffers.output = call.output ? at[step.outputs[*call.output]] : workspaces[*call.workspace];
  auto candidate = chooser.choose(shape, buffers, stream, shared.gemmWorkspace.address());
  if (!candidate) return candidate.takeError();
  auto plan = chooser.library().plan(shape, buffers, *candidate);
  if (!plan) return plan.takeError();
  DeviceLaunch launch;
  launch.kind = DeviceLaunch::Kind::gemm, launch.step = number;
  launch.name = step.code->name + (step.code->kernels.empty() ? "" : ".gemm");
  launch.gemm = gemms.size();
  gemms.push_back(std::move(*plan));
  launches.push_back(std::move(launch));
  return llvm::Error::success();
}

} // namespace fusor::runtime
