#include "frontend/onnx/import.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/names.h"
#include "frontend/text/diagnostic.h"
#include "ir/verify/verify.h"
#include "model.pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace fusor::onnx {
namespace {

using frontend::Diagnostic, frontend::DiagnosticError;

llvm::Error diagnostic(llvm::StringRef file, std::string message, std::string hint = "") {
  Diagnostic d;
  d.location = {file.str(), 0, 0};
  d.message = std::move(message), d.hint = std::move(hint);
  return llvm::make_error<DiagnosticError>(std::vector<Diagnostic>{std::move(d)});
}

llvm::Expected<ModelPointer> readFile(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return diagnostic(path, "cannot be read: " + code.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file) return diagnostic(path, "is no regular file");
  if (static_cast<int64_t>(status.getSize()) > kMaxModelBytes)
    return diagnostic(path, "is larger than 2 GiB, the limit of the format",
                      "export it with its weights in side files");
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file) return diagnostic(path, "cannot be read: " + llvm::toString(file.takeError()));
  auto model = parseModelFile(*file); // a stream: the file and its messages are not in memory together
  llvm::sys::fs::closeFile(*file);
  if (!model) return diagnostic(path, llvm::toString(model.takeError()));
  return std::move(*model);
}

constexpr unsigned kMaxAttempts = 5;

// Whether no symbol is on both sides of the equations then.
bool canAdd(const EqualSizes &equal, const EqualSizes::value_type &more) {
  bool apart = !equal.count(more.first);
  more.second.forEachSymbol([&](llvm::StringRef name) { apart &= !equal.count(name.str()); });
  for (const auto &entry : equal)
    entry.second.forEachSymbol([&](llvm::StringRef name) { apart &= name != more.first; });
  return apart;
}

llvm::Expected<Imported> importParsed(Model &model, llvm::StringRef name, llvm::StringRef folder,
                                      const ImportOptions &options) {
  const TakenTensors taken = takeInitializers(model);
  EqualSizes equal; // one more each time: a mask's length that is P + S, say
  std::optional<GraphImporter> attempt;
  Imported imported;
  for (unsigned i = 0; i < kMaxAttempts; ++i) {
    attempt.emplace(model, folder, options, taken, equal);
    imported = attempt->run();
    const EqualSizes &found = attempt->equalSizes();
    if (found.empty() || !canAdd(equal, *found.begin())) break;
    equal.insert(*found.begin());
  }
  GraphImporter &importer = *attempt;
  if (importer.problemCount()) {
    std::vector<Diagnostic> all;
    for (const std::string &text : importer.problems()) {
      Diagnostic &d = all.emplace_back();
      d.location = {name.str(), 0, 0};
      d.message = text;
    }
    if (importer.problemCount() > all.size())
      all.back().hint = llvm::formatv("{0} more are not listed", importer.problemCount() - all.size()).str();
    return llvm::make_error<DiagnosticError>(std::move(all));
  }
  if (auto problems = ir::findProblems(*imported.module); !problems.empty())
    return diagnostic(name, "is imported into a module that is wrong, a bug of Fusor: " + problems.front().message);
  return imported;
}

} // namespace

llvm::Expected<Imported> importBytes(llvm::StringRef bytes, llvm::StringRef name, llvm::StringRef folder,
                                     const ImportOptions &options) {
  auto model = parseModelFile(bytes);
  if (!model) return diagnostic(name, llvm::toString(model.takeError()));
  return importParsed(**model, name, folder, options);
}

llvm::Expected<Imported> importModel(llvm::StringRef path, const ImportOptions &options) {
  auto model = readFile(path);
  if (!model) return model.takeError();
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  return importParsed(**model, path, parent.empty() ? "." : parent, options);
}

llvm::Expected<Declared> readDeclared(llvm::StringRef path) {
  auto model = readFile(path);
  if (!model) return model.takeError();
  Declared declared;
  llvm::StringSet<> initializers;
  for (const Tensor &tensor : (*model)->graph().initializer()) initializers.insert(tensor.name());
  for (const ValueInfo &input : (*model)->graph().input()) {
    if (initializers.contains(input.name())) continue;
    auto element = elementTypeOf(input.type().tensor_type().elem_type());
    declared.inputs.push_back({input.name(), element ? std::optional<ir::DType>(element->dtype) : std::nullopt});
    if (!element) llvm::consumeError(element.takeError());
  }
  for (const Node &node : (*model)->graph().node()) declared.operators.push_back(shown(node.op_type()));
  for (const OperatorSet &set : (*model)->opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") declared.opset = set.version();
  return declared;
}

} // namespace fusor::onnx
