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

int emit(const CommonOptions &, const EmitOptions &) { return notYet("emit"); }

} // namespace fusor::frontend::cli
