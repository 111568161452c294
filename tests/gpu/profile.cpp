// fusor_gpu_profile CONFIG PRECISION BATCH [own]: ms a step as a graph, then each kernel by itself: calls, ms, share,
// GB/s.
#include "tests/gpu/support.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <map>

using namespace fusor;
using namespace fusor::runtime;

namespace {

struct Row {
  std::string kind;
  unsigned calls = 0;
  double ms = 0, bytes = 0;
};

llvm::Error profile(const nn::GptConfig &config, ir::DType precision, int64_t batch, bool ownGemm) {
  using Clock = std::chrono::steady_clock;
  CompileOptions options;
  options.ownGemm = ownGemm;
  auto start = Clock::now();
  auto program = tests::trainingProgram(config, precision, tests::gpuTarget(), options);
  if (!program) return program.takeError();
  const CompileStats &stats = (*program)->compileStats();
  auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  llvm::outs() << llvm::formatv("compile {0:f0} ms (kernels {1:f0} ms: {2} compiled, {3} cached)\n",
                                ms(Clock::now() - start), stats.milliseconds, stats.compiled, stats.fromCache);
  for (const std::string &note : stats.notes) llvm::outs() << "note: " << note << "\n";
  for (const Fallback &f : (*program)->fallbacks()) llvm::outs() << "fallback: " << f.where << ": " << f.reason << "\n";
  std::vector<double> times;
  float loss = 0;
  for (int64_t i = 0; i < 40; ++i) {
    start = Clock::now();
    auto result = tests::trainStep(**program, config, batch, i);
    if (!result) return result.takeError();
    loss = *result;
    times.push_back(ms(Clock::now() - start));
  }
  std::sort(times.begin() + 10, times.end());
  llvm::outs() << llvm::formatv(
      "step {0:f3} ms (median of 30, with tokens and loss), {1} kernels, {2} launches, peak {3:f0} MiB, loss {4:f4}\n",
      times[25], (*program)->kernelsPerRun(), (*program)->launchesPerRun(), (*program)->peakBytes() / 1048576.0, loss);
  program->reset();

  options.profile = true;
  program = tests::trainingProgram(config, precision, tests::gpuTarget(), options);
  if (!program) return program.takeError();
  std::map<std::string, Row> rows;
  double total = 0;
  constexpr int kRuns = 5;
  for (int64_t i = 0; i < 3 + kRuns; ++i) {
    if (auto result = tests::trainStep(**program, config, batch, i); !result) return result.takeError();
    if (i < 3) continue;
    for (const StepTime &time : (*program)->stepTimes()) {
      Row &row = rows[time.name];
      row.kind = time.kind, ++row.calls, row.ms += time.ms, total += time.ms;
    }
  }
  std::map<std::string, double> bytesOf;
  for (const KernelInfo &info : (*program)->kernels())
    if (info.function == "train_step") bytesOf[info.name] = static_cast<double>(info.bytes);
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) { return a.second.ms > b.second.ms; });
  llvm::outs() << llvm::formatv("\nlaunch by launch {0:f3} ms a step\n", total / kRuns)
               << "   calls       ms      %     GB/s  kind          kernel\n";
  for (auto &[name, row] : sorted) {
    double bytes = bytesOf.count(name) ? bytesOf[name] * row.calls : 0;
    llvm::outs() << llvm::format("%8u %8.3f %6.1f %8.0f  %-12s  %s\n", row.calls / kRuns, row.ms / kRuns,
                                 100 * row.ms / total, bytes / row.ms / 1e6, row.kind.c_str(), name.c_str());
  }
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    llvm::errs() << "usage: fusor_gpu_profile CONFIG bf16|f32 BATCH [own]\n";
    return 2;
  }
  auto config = nn::configuration(argv[1]);
  auto precision = ir::parseDType(argv[2]);
  int64_t batch = 0;
  if (!config || !precision || llvm::StringRef(argv[3]).getAsInteger(10, batch)) return 2;
  if (std::string why = tests::whyNoGpu(); !why.empty()) {
    llvm::errs() << why << "\n";
    return 69;
  }
  if (auto error = profile(*config, *precision, batch, argc > 4)) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
