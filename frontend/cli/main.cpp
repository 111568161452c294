#include "frontend/cli/options.h"

int main(int argc, char **argv) {
  auto command = fusor::frontend::cli::parseCommandLine(argc, argv);
  return command.run ? command.run() : command.exit;
}
