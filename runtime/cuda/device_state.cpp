#include "runtime/cuda/device_state.h"
#include "ir/reference/initial_values.h"
#include "passes/memory/memory_plan.h"
#include "runtime/execute/run_error.h"
#include "runtime/execute/user_error.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <thread>

namespace fusor::runtime {

using namespace ir;

namespace {

constexpr int64_t kSmall = 4096;            // bytes
constexpr int64_t kPiece = 32 << 20;        // bytes of initial values that are computed before their copy starts
constexpr int64_t kElementsPerTask = 16384; // half a millisecond of normal numbers

} // namespace

llvm::Error DeviceState::allocate(const CompileOptions &options, const CudaStream &stream) {
  int64_t total = 0;
  for (const auto &persistent : module_.persistents()) {
    auto bytes = passes::storageBytes(persistent->type, options.symbols);
    if (!bytes)
      return userError("@{0} is {1}: its symbols must have a value when the module is compiled", persistent->name,
                       persistent->type.str());
    buffers_.offsetOf[persistent->name] = total;
    bytesOf_[persistent->name] = *bytes;
    total += static_cast<int64_t>(llvm::alignTo(*bytes, 256));
  }
  constexpr llvm::StringLiteral kAdvice = "a smaller width, fewer layers or a narrower optimizer state lower it";
  if (options.memoryLimitBytes && total > options.memoryLimitBytes)
    return llvm::make_error<OutOfMemoryError>(
        total, options.memoryLimitBytes,
        llvm::formatv("the persistent values alone need {0} bytes, more than the limit of {1}; {2}", total,
                      options.memoryLimitBytes, kAdvice));
  auto memory = DeviceMemory::allocate(context_, total, "the persistent values");
  if (!memory)
    return llvm::handleErrors(memory.takeError(), [&](const OutOfMemoryError &e) -> llvm::Error {
      return llvm::make_error<OutOfMemoryError>(total, 0, e.message() + "; " + kAdvice.str());
    });
  buffers_.persistents = std::move(*memory);
  for (const auto &persistent : module_.persistents())
    if (persistent->kind == PersistentKind::constant)
      if (auto error = write(persistent->name, *persistent->data, stream)) return error;
  return llvm::Error::success();
}

llvm::Error DeviceState::initialize(uint64_t seed, unsigned threads, const CudaStream &stream) {
  Workers workers(threads ? threads : std::max(1u, std::thread::hardware_concurrency()));
  large_ = std::make_unique<UploadRing>(2);
  for (const auto &persistent : module_.persistents()) {
    if (persistent->kind != PersistentKind::param && persistent->kind != PersistentKind::state) continue;
    if (auto error = fill(*persistent, seed, workers, stream)) return error;
  }
  auto error = stream.synchronize("initial values"); // their pinned memory goes
  large_.reset();
  return error;
}

llvm::Error DeviceState::fill(const Persistent &persistent, uint64_t seed, Workers &workers, const CudaStream &stream) {
  DevicePointer to = buffers_.persistent(persistent.name);
  int64_t bytes = bytesOf_[persistent.name], size = byteSize(persistent.type.dtype);
  const Initializer &init = persistent.init;
  if (init.kind == Initializer::Kind::zeros || (init.kind == Initializer::Kind::constant && init.value == 0))
    return stream.clear(to, bytes);
  for (int64_t begin = 0; begin < bytes; begin += kPiece) {
    int64_t length = std::min(kPiece, bytes - begin), elements = length / size;
    auto piece = large_->fill(context_, std::min(kPiece, std::max<int64_t>(length, kSmall)));
    if (!piece) return piece.takeError();
    workers.forEach(llvm::divideCeil(elements, kElementsPerTask), [&, at = *piece](int64_t task) {
      int64_t first = task * kElementsPerTask, count = std::min(kElementsPerTask, elements - first);
      storeInitialValues(persistent, seed, begin / size + first, count, at + first * size);
    });
    if (auto error = large_->send(stream, to + begin, length)) return error;
  }
  return llvm::Error::success();
}

llvm::Error DeviceState::write(llvm::StringRef name, llvm::ArrayRef<char> bytes, const CudaStream &stream) {
  DevicePointer to = buffers_.persistent(name);
  auto size = static_cast<int64_t>(bytes.size());
  if (size > kSmall) {
    if (auto error = stream.upload(to, bytes.data(), size)) return error;
    return stream.synchronize(llvm::Twine("writing @") + name);
  }
  auto slot = small_.fill(context_, kSmall);
  if (!slot) return slot.takeError();
  std::memcpy(*slot, bytes.data(), bytes.size());
  return small_.send(stream, to, size);
}

llvm::Error DeviceState::read(llvm::StringRef name, llvm::MutableArrayRef<char> bytes, const CudaStream &stream) const {
  if (auto error = stream.download(bytes.data(), buffers_.persistent(name), static_cast<int64_t>(bytes.size())))
    return error;
  return stream.synchronize(llvm::Twine("reading @") + name);
}

} // namespace fusor::runtime
