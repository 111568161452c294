// fusor fuzz: random graphs, the fused program against the reference.
#include "frontend/api/compile_module.h"
#include "frontend/api/random_graph.h"
#include "frontend/cli/console.h"
#include "frontend/cli/interrupt.h"
#include "frontend/cli/verbs.h"

namespace fusor::frontend::cli {
namespace {

/// The difference, or why it cannot run: either is a failure here.
std::optional<std::string> failureOf(const ir::Module &module, uint64_t seed, unsigned threads) {
  auto difference = findDifference(module, seed, threads);
  return difference ? *difference : llvm::toString(difference.takeError());
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
    if (auto error = writeDump(common.dump.empty() ? "." : common.dump, file, small->str()))
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
