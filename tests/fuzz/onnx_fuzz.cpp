// An ONNX file is hostile until checked: the importer refuses with words or returns a module that verifies, through the
// passes that `fusor import` runs too, and prints to text that reads back.
#include "frontend/onnx/import.h"
#include "frontend/text/parser.h"
#include "ir/verify/verify.h"
#include "passes/pipeline.h"
#include <cstdio>
#include <cstdlib>

using namespace fusor;

static void expectWhole(const ir::Module &module, const char *what) {
  auto problems = ir::findProblems(module);
  if (problems.empty()) return;
  std::fprintf(stderr, "the %s module is wrong: %s\n%s\n", what, problems.front().message.c_str(),
               module.str().c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto imported = onnx::importBytes({reinterpret_cast<const char *>(data), size}, "fuzz.onnx", "");
  if (!imported) {
    if (llvm::toString(imported.takeError()).empty()) std::abort(); // refused without a word
    return 0;
  }
  ir::Module &module = *imported->module;
  expectWhole(module, "imported");
  const std::string once = module.str();
  auto again = frontend::parseModule(once, "again.fir");
  if (!again || (*again)->str() != once) {
    std::fprintf(stderr, "printed text does not read back:\n%s\n%s\n", once.c_str(),
                 again ? (*again)->str().c_str() : llvm::toString(again.takeError()).c_str());
    std::abort();
  }
  passes::PassOptions options;
  options.explain = true;
  passes::PassContext context(options);
  if (auto error = passes::runPasses(module, {"simplify", "lift"}, context)) {
    if (llvm::toString(std::move(error)).empty()) std::abort();
    return 0;
  }
  expectWhole(module, "lifted");
  return 0;
}
