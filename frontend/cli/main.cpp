#include "frontend/cli/options.h"
#include "llvm/Support/raw_ostream.h"

namespace {

/// `exit`, or 74 where what was said on stdout did not get there: a full disk behind a redirection.
int afterFlush(int exit) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error()) return exit;
  llvm::errs() << "error: cannot write to stdout: " << out.error().message() << '\n';
  out.clear_error();
  constexpr int kCannotWrite = 74;
  return kCannotWrite;
}

} // namespace

int main(int argc, char **argv) {
  auto command = fusor::frontend::cli::parseCommandLine(argc, argv);
  return afterFlush(command.run ? command.run() : command.exit);
}
