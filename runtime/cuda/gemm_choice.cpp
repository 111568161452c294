#include "runtime/cuda/gemm_choice.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstring>
#include <thread>

namespace fusor::runtime {

namespace {

constexpr llvm::StringLiteral kPlan = "gemm-plan";
constexpr unsigned kCandidates = 16, kRounds = 5;
// Under load the chip's power limit would slow whoever comes later, so there is a pause before each measurement.
constexpr auto kPause = std::chrono::microseconds(500);

std::string bytesOf(const GemmCandidate &candidate) {
  std::string bytes(sizeof candidate, '\0');
  std::memcpy(bytes.data(), &candidate, sizeof candidate);
  return bytes;
}

} // namespace

CacheKey GemmChooser::keyOf(const GemmShape &shape) const {
  const CudaDevice &device = context_->device();
  return CacheKeyBuilder()
      .add("shape", shape.text())
      .add("device", device.name)
      .add("multiprocessors", std::to_string(device.multiprocessors))
      .add("cublaslt", std::to_string(library_->version()))
      .add("driver", std::to_string(context_->driverVersion()))
      .key();
}

llvm::Expected<GemmCandidate> GemmChooser::choose(const GemmShape &shape, const GemmBuffers &buffers,
                                                  const CudaStream &stream, DevicePointer workspace) {
  auto [it, isNew] = known_.try_emplace(shape.text());
  if (!isNew) return it->second;
  auto forget = [&, key = it->first](llvm::Error error) {
    known_.erase(key);
    return error;
  };
  if (auto bytes = cache_ && timing_ ? cache_->get(kPlan, keyOf(shape)) : std::nullopt;
      bytes && bytes->size() == sizeof(GemmCandidate)) {
    std::memcpy(&it->second, bytes->data(), sizeof(GemmCandidate));
    ++choices_.fromCache;
    return it->second;
  }
  auto candidates = library_->candidates(shape, kWorkspaceBytes, timing_ ? kCandidates : 1);
  if (!candidates) return forget(candidates.takeError());
  auto best = candidates->size() == 1 ? llvm::Expected<GemmCandidate>(candidates->front())
                                      : fastest(shape, buffers, stream, workspace, *candidates);
  if (!best) return forget(best.takeError());
  it->second = *best;
  if (cache_ && timing_)
    if (auto error = cache_->put(kPlan, keyOf(shape), bytesOf(*best)))
      choices_.notes.push_back("cache: GEMM plans are not kept: " + llvm::toString(std::move(error)));
  return *best;
}

llvm::Expected<GemmCandidate> GemmChooser::fastest(const GemmShape &shape, GemmBuffers buffers,
                                                   const CudaStream &stream, DevicePointer workspace,
                                                   llvm::ArrayRef<GemmCandidate> candidates) {
  ++choices_.timed;
  auto scratch = DeviceMemory::allocate(context_, shape.m * shape.n * shape.batch * ir::byteSize(shape.outputType),
                                        "timing " + shape.text());
  if (!scratch) return scratch.takeError();
  buffers.output = scratch->address();
  auto start = CudaEvent::create(context_, true);
  if (!start) return start.takeError();
  auto end = CudaEvent::create(context_, true);
  if (!end) return end.takeError();

  std::vector<CublasLt::Plan> plans;
  std::vector<double> best(candidates.size(), 1e30);
  for (const GemmCandidate &candidate : candidates) {
    auto plan = library_->plan(shape, buffers, candidate);
    if (!plan) return plan.takeError();
    plans.push_back(std::move(*plan));
  }
  for (unsigned round = 0; round <= kRounds; ++round) // round 0 loads the kernels
    for (unsigned i = 0; i < plans.size(); ++i) {
      if (best[i] < 0) continue;
      std::this_thread::sleep_for(kPause);
      if (auto error = stream.record(*start)) return error;
      // Some of what the heuristic names does not run for every alignment: passed over.
      if (auto error = plans[i].run(stream, workspace)) {
        llvm::consumeError(std::move(error));
        best[i] = -1;
        continue;
      }
      if (auto error = stream.record(*end)) return error;
      if (auto error = stream.synchronize("timing " + shape.text())) return error;
      auto milliseconds = start->millisecondsTo(*end);
      if (!milliseconds) return milliseconds.takeError();
      if (round > 0) best[i] = std::min(best[i], *milliseconds);
    }
  unsigned winner = 0;
  for (unsigned i = 1; i < plans.size(); ++i)
    if (best[i] > 0 && (best[winner] < 0 || best[i] < best[winner])) winner = i;
  return candidates[winner];
}

} // namespace fusor::runtime
