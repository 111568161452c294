// Verbs whose rooms below are not there yet.
#include "frontend/cli/verbs.h"
#include <cstdio>
int fusor::frontend::cli::demo(const CommonOptions &) {
  std::fprintf(stderr, "error: `fusor demo` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::train(const CommonOptions &, const TrainOptions &) {
  std::fprintf(stderr, "error: `fusor train` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::generate(const CommonOptions &, const GenerateOptions &) {
  std::fprintf(stderr, "error: `fusor generate` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::bench(const CommonOptions &, const BenchOptions &) {
  std::fprintf(stderr, "error: `fusor bench` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::emit(const CommonOptions &, const EmitOptions &) {
  std::fprintf(stderr, "error: `fusor emit` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::run(const CommonOptions &, const RunOptions &) {
  std::fprintf(stderr, "error: `fusor run` is not available yet\n");
  return 64;
}
int fusor::frontend::cli::fuzz(const CommonOptions &, const FuzzOptions &) {
  std::fprintf(stderr, "error: `fusor fuzz` is not available yet\n");
  return 64;
}
