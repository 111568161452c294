#include "frontend/cli/profile_table.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend::cli {
namespace {

struct Row {
  std::string name, kind;
  unsigned count = 0;
  double ms = 0, bytes = 0, flops = 0;
};

std::string rate(double amount, double ms, double unit) {
  return amount > 0 && ms > 0 ? llvm::formatv("{0:f1}", amount / ms / unit).str() : "-";
}
llvm::json::Value rateJson(double amount, double ms, double unit) {
  return amount > 0 && ms > 0 ? llvm::json::Value(amount / ms / unit) : llvm::json::Value(nullptr);
}

} // namespace

void showProfile(Console &console, const StepProfile &profile, double stepMs) {
  std::vector<Row> rows;
  llvm::StringMap<size_t> number;
  double total = 0;
  for (const runtime::StepTime &step : profile.launches) {
    auto [it, isNew] = number.try_emplace(step.name, rows.size());
    if (isNew) rows.push_back({step.name, step.kind});
    Row &row = rows[it->second];
    ++row.count, row.ms += step.ms, row.bytes += step.bytes, row.flops += step.flops, total += step.ms;
  }
  llvm::stable_sort(rows, [](const Row &a, const Row &b) { return a.ms > b.ms; });
  constexpr double kGb = 1e6, kTflop = 1e9; // per ms
  console.say(" count        ms      %     GB/s  TFLOP/s  kind          kernel");
  for (const Row &row : rows) {
    console.say(llvm::formatv("{0,6} {1,9:f4} {2,6:f1} {3,8} {4,8}  {5,-12}  {6}", row.count, row.ms,
                              100 * row.ms / total, rate(row.bytes, row.ms, kGb), rate(row.flops, row.ms, kTflop),
                              row.kind, row.name)
                    .str());
    console.object({{"kernel", row.name},
                    {"kind", row.kind},
                    {"count", row.count},
                    {"ms", row.ms},
                    {"percent", 100 * row.ms / total},
                    {"gb_per_s", rateJson(row.bytes, row.ms, kGb)},
                    {"tflops", rateJson(row.flops, row.ms, kTflop)}});
  }
  double idle = std::max(0.0, stepMs - profile.backToBackMs);
  console.say(llvm::formatv("{0,6} {1,9:f4} ms one by one, each with the event behind it; back to back {2:f4} ms; a "
                            "step of the run {3:f4} ms, of which the device was idle {4:f4} ms ({5:f1} %)",
                            profile.launches.size(), total, profile.backToBackMs, stepMs, idle,
                            stepMs > 0 ? 100 * idle / stepMs : 0)
                  .str());
  console.object({{"profile_ms", total},
                  {"back_to_back_ms", profile.backToBackMs},
                  {"step_ms", stepMs},
                  {"idle_ms", idle},
                  {"launches", profile.launches.size()}});
}

} // namespace fusor::frontend::cli
