// trace.json for chrome://tracing and ui.perfetto.dev: process 1 is compiling, a row a thread; process 2 a step, its
// launches one behind the other. The device's time between them is not measured one by one, so it is one event behind.
#include "frontend/dump/program_files.h"
#include <set>

namespace fusor::frontend {
namespace {

constexpr int kCompile = 1, kStep = 2;

llvm::json::Object named(int process, std::optional<unsigned> thread, const llvm::Twine &name) {
  llvm::json::Object event{{"ph", "M"},
                           {"pid", process},
                           {"name", thread ? "thread_name" : "process_name"},
                           {"args", llvm::json::Object{{"name", name.str()}}}};
  if (thread) event["tid"] = *thread;
  return event;
}

llvm::json::Object complete(int process, unsigned thread, std::string name, std::string category, double beginMs,
                            double ms) {
  return llvm::json::Object{{"ph", "X"},
                            {"pid", process},
                            {"tid", thread},
                            {"name", std::move(name)},
                            {"cat", std::move(category)},
                            {"ts", 1000 * beginMs},
                            {"dur", 1000 * ms}};
}

} // namespace

llvm::json::Object traceJson(const DumpedProgram &dumped, llvm::ArrayRef<runtime::CompileSpan> spans) {
  llvm::json::Array events;
  double first = 0, end = 0;
  std::set<unsigned> threads;
  for (const runtime::CompileSpan &span : spans) {
    first = threads.empty() ? span.beginMs : std::min(first, span.beginMs);
    threads.insert(span.thread);
  }
  events.push_back(named(kCompile, std::nullopt, "compile"));
  for (unsigned thread : threads)
    events.push_back(named(kCompile, thread, thread == 0 ? "passes and code" : "compiler " + llvm::Twine(thread)));
  for (const runtime::CompileSpan &span : spans) {
    events.push_back(
        complete(kCompile, span.thread, span.what + " " + span.name, span.what, span.beginMs - first, span.ms));
    end = std::max(end, span.beginMs - first + span.ms);
  }
  const runtime::Description &description = dumped.description;
  events.push_back(named(kStep, std::nullopt, "step @" + description.function->name()));
  events.push_back(named(kStep, 0, "launches"));
  llvm::ArrayRef<LaunchFacts> facts = dumped.facts;
  double at = end;
  for (unsigned i = 0; i < facts.size(); ++i) {
    if (!facts[i].ms) continue;
    const runtime::DescribedLaunch &launch = description.launches[i];
    std::string kind =
        launch.step == runtime::DescribedLaunch::kBehindAllSteps ? "copy" : description.steps[launch.step].kind;
    llvm::json::Object event = complete(kStep, 0, launch.name, std::move(kind), at, *facts[i].ms);
    llvm::json::Object details{{"launch", i}};
    if (facts[i].bytes > 0) details["bytes"] = static_cast<int64_t>(facts[i].bytes);
    if (auto percent = facts[i].rooflinePercent()) details["roofline_percent"] = *percent;
    event["args"] = std::move(details);
    events.push_back(std::move(event));
    at += *facts[i].ms;
  }
  return llvm::json::Object{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

} // namespace fusor::frontend
