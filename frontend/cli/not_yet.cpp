// Verbs whose rooms below are not there yet.
#include "frontend/cli/verbs.h"
#include <cstdio>

namespace fusor::frontend::cli {

int emit(const CommonOptions &, const EmitOptions &) {
  std::fprintf(stderr, "error: `fusor emit` is not available yet\n");
  return 64;
}

} // namespace fusor::frontend::cli
