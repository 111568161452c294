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
  double ratedMs = 0, leastMs = 0; // of the launches whose least time is known
};

std::string rate(double amount, double ms, double unit) {
  return amount > 0 && ms > 0 ? llvm::formatv("{0:f1}", amount / ms / unit).str() : "-";
}
llvm::json::Value rateJson(double amount, double ms, double unit) {
  return amount > 0 && ms > 0 ? llvm::json::Value(amount / ms / unit) : llvm::json::Value(nullptr);
}
constexpr double kGb = 1e6, kTflop = 1e9, kPercent = 0.01; // per ms; a share

} // namespace

void showProfile(Console &console, const StepProfile &profile, double stepMs) {
  std::vector<Row> rows;
  llvm::StringMap<size_t> number;
  const double total = profile.launchesMs();
  for (auto [step, fact] : llvm::zip(profile.launches, profile.facts)) {
    auto [it, isNew] = number.try_emplace(step.name, rows.size());
    if (isNew) rows.push_back({step.name, step.kind});
    Row &row = rows[it->second];
    ++row.count, row.ms += step.ms, row.bytes += step.bytes, row.flops += step.flops;
    if (fact.leastMs) row.ratedMs += step.ms, row.leastMs += *fact.leastMs;
  }
  llvm::stable_sort(rows, [](const Row &a, const Row &b) { return a.ms > b.ms; });
  console.say(" count        ms      %     GB/s  TFLOP/s  % of roofline  kind          kernel");
  for (const Row &row : rows) {
    console.say(llvm::formatv("{0,6} {1,9:f4} {2,6:f1} {3,8} {4,8} {5,14}  {6,-12}  {7}", row.count, row.ms,
                              100 * row.ms / total, rate(row.bytes, row.ms, kGb), rate(row.flops, row.ms, kTflop),
                              rate(row.leastMs, row.ratedMs, kPercent), row.kind, row.name)
                    .str());
    console.object({{"kernel", row.name},
                    {"kind", row.kind},
                    {"count", row.count},
                    {"ms", row.ms},
                    {"percent", 100 * row.ms / total},
                    {"gb_per_s", rateJson(row.bytes, row.ms, kGb)},
                    {"tflops", rateJson(row.flops, row.ms, kTflop)},
                    {"roofline_percent", rateJson(row.leastMs, row.ratedMs, kPercent)}});
  }
  double idle = std::max(0.0, stepMs - profile.backToBackMs), accounted = total + idle;
  console.say(
      llvm::formatv("{0,6} {1,9:f4} ms one by one, and {2:f4} ms idle: {3:f1} % of a step of the run, {4:f4} ms; "
                    "back to back {5:f4} ms",
                    profile.launches.size(), total, idle, stepMs > 0 ? 100 * accounted / stepMs : 0, stepMs,
                    profile.backToBackMs)
          .str());
  if (profile.eventUs > 0)
    console.say(
        llvm::formatv("       the events between launches cost {0:f2} us each, which is taken off", profile.eventUs)
            .str());
  console.object({{"profile_ms", total},
                  {"event_us", profile.eventUs},
                  {"back_to_back_ms", profile.backToBackMs},
                  {"step_ms", stepMs},
                  {"idle_ms", idle},
                  {"launches", profile.launches.size()}});
}

} // namespace fusor::frontend::cli
