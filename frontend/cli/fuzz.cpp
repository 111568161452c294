// fusor fuzz: random graphs, the fused program against the reference.
#include "frontend/api/random_graph.h"
#include "frontend/cli/console.h"
#include "frontend/cli/interrupt.h"
#include "frontend/cli/verbs.h"
#include "frontend/dump/dump_folder.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/wait.h>
#include <unistd.h>

namespace fusor::frontend::cli {
namespace {

/// Runs `test` in a child process, so that a crash or a FUSOR_BUG is a failure like any other: what it returned, or its
/// last words.
std::optional<std::string> inChild(llvm::function_ref<std::optional<std::string>()> test) {
  int ends[2];
  if (pipe(ends) != 0) return "cannot make a pipe";
  pid_t child = fork();
  if (child < 0) return "cannot start a process";
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]), close(ends[1]);
    auto failure = test();
    if (failure) llvm::errs() << *failure;
    llvm::errs().flush();
    _exit(failure ? 1 : 0);
  }
  close(ends[1]);
  std::string words;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) words.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFSIGNALED(status)) words += llvm::formatv("ended by signal {0}", WTERMSIG(status)).str();
  return words;
}

/// The difference, or why it cannot run: either is a failure here.
std::optional<std::string> failureOf(const ir::Module &module, uint64_t seed, unsigned threads) {
  return inChild([&]() -> std::optional<std::string> {
    auto difference = findDifference(module, seed, threads);
    return difference ? *difference : llvm::toString(difference.takeError());
  });
}

} // namespace

int fuzz(const CommonOptions &common, const FuzzOptions &options) {
  Console console(common);
  InterruptFlag interrupt;
  Stopwatch watch;
  int64_t graphs = 0;
  constexpr unsigned kMaxOps = 24;
  for (uint64_t seed = common.seed; watch.ms() < options.seconds * 1000 && !interrupt.flag(); ++seed, ++graphs) {
    auto module = randomModule(seed, 2 + static_cast<unsigned>(seed % kMaxOps));
    console.progress(static_cast<int64_t>(watch.ms()), static_cast<int64_t>(options.seconds * 1000),
                     llvm::Twine(graphs) + " graphs agree");
    auto failure = failureOf(*module, seed, common.threads);
    if (!failure) continue;
    auto small =
        shrink(std::move(module), [&](const ir::Module &m) { return failureOf(m, seed, common.threads).has_value(); });
    std::string file = "fuzz_" + std::to_string(seed) + ".fir";
    if (auto error = writeInto(common.dump.empty() ? "." : common.dump, file, small->str()))
      return console.fail(std::move(error));
    console.object({{"seed", static_cast<int64_t>(seed)}, {"failure", *failure}, {"file", file}});
    console.result(small->str());
    return console.fail(
        inputError("graph {0} fails: {1}\nnote: the shrunk graph is in {2}; again with: fusor fuzz --seed "
                   "{0} --seconds 1",
                   seed, failureOf(*small, seed, common.threads).value_or(*failure), file));
  }
  console.endProgress();
  console.object({{"graphs", graphs}, {"seconds", watch.ms() / 1000}});
  console.result(llvm::Twine(graphs) + " random graphs: the fused program and the reference agree");
  return interrupt.flag() ? static_cast<int>(ErrorKind::interrupted) : 0;
}

} // namespace fusor::frontend::cli
