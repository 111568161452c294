#include "runtime/cuda/gemm_notes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {

void noteOwnGemms(CompileStats &stats, const llvm::Twine &where, llvm::ArrayRef<DeviceCode> codes,
                  llvm::function_ref<std::string(const DeviceCode &)> why) {
  unsigned own = 0, all = 0;
  std::string first;
  for (const DeviceCode &step : codes) {
    all += step.gemm || !step.whyOwn.empty();
    std::string reason = why(step);
    if (!reason.empty() && own++ == 0) first = step.name + ": " + reason;
  }
  if (own == 0) return;
  stats.ownGemms += own;
  stats.notes.push_back(llvm::formatv("{0}: {1} of {2} products run as fusor's own kernels, which are slower than "
                                      "cuBLASLt's ({3})",
                                      where.str(), own, all, first));
}

void noteGemmChoices(CompileStats &stats, const GemmChoices &choices) {
  stats.timedGemms = choices.timed;
  auto isAboutWriting = [](llvm::StringRef note) { return note.startswith("cache: ") && note.contains("not kept"); };
  bool isSaid = llvm::any_of(stats.notes, isAboutWriting); // of kernels: once is enough
  for (const std::string &note : choices.notes)
    if (!(isSaid && isAboutWriting(note)) && !llvm::is_contained(stats.notes, note)) stats.notes.push_back(note);
}

} // namespace fusor::runtime
