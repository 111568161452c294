#include "runtime/cuda/gemm_choice.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/StringExtras.h"
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

// Nothing when the bytes are not a candidate's.
std::optional<GemmCandidate> candidateOf(llvm::StringRef bytes) {
  GemmCandidate candidate;
  if (bytes.size() != sizeof candidate) return std::nullopt;
  std::memcpy(&candidate, bytes.data(), sizeof candidate);
  return candidate;
}

} // namespace

// What an algorithm's bytes mean is known to one version of the library on one kind of device.
std::string GemmChooser::environment() const {
  const CudaDevice &device = context_->device();
  return llvm::formatv("{0}, {1} multiprocessors, cuBLASLt {2}", device.name, device.multiprocessors,
                       library_->version());
}

GemmPlans GemmChooser::plans() const {
  GemmPlans plans{environment(), adopted_};
  for (const auto &[shape, candidate] : known_) plans.text[shape] = llvm::toHex(bytesOf(candidate));
  return plans;
}

void GemmChooser::adopt(const GemmPlans &plans) {
  if (plans.text.empty()) return;
  if (plans.environment == environment())
    adopted_ = plans.text;
  else
    choices_.notes.push_back(llvm::formatv("GEMM plans for {0} cannot be used with {1}: chosen anew, so later bits may "
                                           "differ",
                                           plans.environment, environment()));
}

std::optional<GemmCandidate> GemmChooser::kept(const GemmShape &shape) {
  std::string text = shape.text(), bytes;
  if (auto adopted = adopted_.find(text); adopted != adopted_.end()) {
    auto candidate = llvm::tryGetFromHex(adopted->second, bytes) ? candidateOf(bytes) : std::nullopt;
    if (candidate && library_->accepts(shape, *candidate)) return ++choices_.adopted, candidate;
    choices_.notes.push_back("the GEMM plan for " + text +
                             " is damaged or unknown to cuBLASLt: chosen anew, so later "
                             "bits may differ");
  }
  auto entry = cache_ && timing_ ? cache_->get(kPlan, keyOf(shape)) : std::nullopt;
  if (!entry) return std::nullopt;
  auto candidate = candidateOf(*entry);
  if (candidate && library_->accepts(shape, *candidate)) return ++choices_.fromCache, candidate;
  choices_.notes.push_back("cache: the GEMM plan for " + text + " is unknown to cuBLASLt: measured anew");
  return std::nullopt;
}

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
  if (auto candidate = kept(shape)) return it->second = *candidate;
  auto candidates = library_->candidates(shape, kWorkspaceBytes, timing_ ? kCandidates : 1);
  if (!candidates) return forget(candidates.takeError());
  auto best = candidates->size() == 1 ? llvm::Expected<GemmCandidate>(candidates->front())
                                      : fastest(shape, buffers, stream, workspace, *candidates);
  if (!best) return forget(best.takeError());
  it->second = *best;
  if (!cache_ || !timing_ || isCacheClosed_) return *best;
  // Another process may have measured the same shape meanwhile, and found another one: the first counts for all.
  auto stored = cache_->putFirst(kPlan, keyOf(shape), bytesOf(*best));
  if (!stored) {
    isCacheClosed_ = true;
    choices_.notes.push_back("cache: GEMM plans are not kept: " + llvm::toString(stored.takeError()));
  } else if (auto candidate = candidateOf(*stored); candidate && library_->accepts(shape, *candidate)) {
    it->second = *candidate;
  }
  return it->second;
}

llvm::Expected<GemmCandidate> GemmChooser::fastest(const GemmShape &shape, GemmBuffers buffers,
                                                   const CudaStream &stream, DevicePointer workspace,
                                                   llvm::ArrayRef<GemmCandidate> candidates) {
  ++choices_.timed;
  auto scratch = DeviceMemory::allocate(context_, shape.m * shape.n * shape.batch * ir::byteSize(shape.outputType),
                                        "timing " + shape.text());
  if (!scratch) { // what fits only without a second output has the library's favourite
    auto error = llvm::handleErrors(scratch.takeError(), [&](const OutOfMemoryError &) {
      choices_.notes.push_back("no memory is left to time " + shape.text() + ": cuBLASLt's favourite is used");
    });
    if (error) return error;
    return candidates.front();
  }
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
