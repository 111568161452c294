// IR text is hostile until checked: the parser refuses with a diagnostic or returns a module that verifies, and what it
// returned prints to text that reads back to the same text.
#include "frontend/text/parser.h"
#include <cstdio>
#include <cstdlib>

using namespace fusor;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto module = frontend::parseModule(llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz.fir");
  if (!module) {
    if (llvm::toString(module.takeError()).empty()) std::abort(); // refused without a word
    return 0;
  }
  const std::string once = (*module)->str();
  auto again = frontend::parseModule(once, "again.fir");
  if (!again || (*again)->str() != once) {
    std::fprintf(stderr, "printed text does not read back:\n%s\n%s\n", once.c_str(),
                 again ? (*again)->str().c_str() : llvm::toString(again.takeError()).c_str());
    std::abort();
  }
  return 0;
}
