// fusor opt: run passes over a module and print it.
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "runtime/checkpoint/atomic_file.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend::cli {
namespace {

llvm::Error writeText(llvm::StringRef path, llvm::StringRef text) {
  auto file = runtime::AtomicFile::create(path);
  if (!file) return file.takeError();
  if (auto error = file->write(text)) return error;
  return file->commit();
}

llvm::Error optimize(Console &console, const CommonOptions &common, const OptOptions &options) {
  auto loaded = loadModule(options);
  if (!loaded) return loaded.takeError();
  auto passOpts = passOptions(common, options, *loaded->module);
  if (!passOpts) return passOpts.takeError();
  if (!options.printAfter.empty() && options.printAfter != "all" && !passes::findPass(options.printAfter))
    return failure(ErrorKind::usage, "--print-after: there is no pass called '{0}'", options.printAfter);

  ir::Module &module = *loaded->module;
  passes::PassContext context(*passOpts);
  auto observe = [&](const passes::PassReport &report, const ir::Module &after) {
    console.object({{"pass", report.name}, {"changed", report.changed}, {"ms", report.timeMs}});
    if (options.printAfter == "all" || options.printAfter == report.name)
      console.result(llvm::StringRef(passes::printed(report, after)).rtrim('\n'));
  };
  if (!options.passes.empty()) {
    if (auto error = passes::runPasses(module, options.passes, context, observe)) return error;
  } else if (options.pipelineGiven || loaded->isConfig) {
    if (auto error = passes::runPipeline(module, loaded->pipeline, context, observe)) return error;
  }
  std::string text = module.str();
  if (!options.output.empty()) return writeText(options.output, text);
  console.object({{"module", text}});
  console.result(llvm::StringRef(text).rtrim('\n'));
  return llvm::Error::success();
}

} // namespace

int opt(const CommonOptions &common, const OptOptions &options) {
  Console console(common);
  return console.fail(optimize(console, common, options));
}

} // namespace fusor::frontend::cli
