// Verbs whose rooms below are not there yet.
#include "frontend/cli/verbs.h"
#include <cstdio>

namespace fusor::frontend::cli {
namespace {
int notYet(const char *verb) {
  std::fprintf(stderr, "error: `fusor %s` is not available yet\n", verb);
  return 64;
}
} // namespace

int bench(const CommonOptions &, const BenchOptions &) { return notYet("bench"); }
int emit(const CommonOptions &, const EmitOptions &) { return notYet("emit"); }
int fuzz(const CommonOptions &, const FuzzOptions &) { return notYet("fuzz"); }

} // namespace fusor::frontend::cli
