#include "frontend/api/fp8_calibration.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {
namespace {

llvm::Error copyPersistent(runtime::Program &from, runtime::Program &to, llvm::StringRef name) {
  auto bytes = from.persistentBytes(name);
  if (!bytes) return bytes.takeError();
  std::vector<char> content(*bytes);
  if (auto error = from.readPersistent(name, content)) return error;
  return to.writePersistent(name, content);
}

} // namespace

llvm::Error calibrateFp8(runtime::Program &program, std::unique_ptr<ir::Module> source, const ChosenDevice &device,
                         CompileRequest request, llvm::StringRef function, llvm::ArrayRef<runtime::TensorView> inputs) {
  passes::DelayedScaling &recipe = *request.passes.fp8;
  recipe.measureOnly = true, recipe.returnAmax = recipe.returnStats = false;
  request.passes.accumulate = 1;
  request.dumpFolder.clear();
  auto compiled = compileModule(std::move(source), device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &measuring = *compiled->program;
  if (auto error = measuring.initialize(0)) return error;
  for (const auto &p : measuring.module().persistents())
    if (p->kind == ir::PersistentKind::param)
      if (auto error = copyPersistent(program, measuring, p->name)) return error;

  auto symbols = measuring.bindSymbols(function, inputs);
  if (!symbols) return symbols.takeError();
  auto types = measuring.resultTypes(function, *symbols);
  if (!types) return types.takeError();
  std::vector<std::vector<char>> contents;
  std::vector<runtime::TensorView> results = *types;
  for (runtime::TensorView &result : results) result.data = contents.emplace_back(result.bytes()).data();
  if (auto error = measuring.run(function, inputs, results)) return error;

  for (const auto &p : measuring.module().persistents())
    if (p->kind == ir::PersistentKind::state && llvm::StringRef(p->name).endswith(".scale"))
      if (auto error = copyPersistent(measuring, program, p->name)) return error;
  return llvm::Error::success();
}

} // namespace fusor::frontend
