#include "tests/onnx/node_tests.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/errors.h"
#include "frontend/api/tensor_files.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_file.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace fusor::tests {
namespace {

constexpr unsigned kSecondsEach = 60;

std::string place(llvm::StringRef folder, llvm::StringRef test, const llvm::Twine &file) {
  return (folder + "/" + test + "/" + file).str();
}

// input_<i>.pb or output_<i>.pb; absent where it is not there or no tensor that Fusor reads.
std::optional<onnx::Data> tensorFile(llvm::StringRef path, std::string *why = nullptr) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer) return std::nullopt;
  auto data = onnx::parseTensorFile((*buffer)->getBuffer());
  if (data) return *data;
  std::string text = llvm::toString(data.takeError());
  if (why) *why = text;
  return std::nullopt;
}

struct Verdict {
  Outcome outcome = Outcome::passed;
  std::string reason;
};
Verdict refused(llvm::Error error) { return {Outcome::refused, llvm::toString(std::move(error))}; }

// The official tolerances, but for f16 and bf16, whose reference rounds after each of its own steps; an FP8 value may
// be one step away where it was rounded from another precision.
struct Tolerance {
  double atol, rtol;
};
Tolerance toleranceOf(ir::DType dtype) {
  if (dtype == ir::DType::f16) return {6e-4, 1e-3};
  if (dtype == ir::DType::bf16) return {1e-2, 1e-2};
  if (dtype == ir::DType::f8e4m3) return {0.002, 0.125};
  if (dtype == ir::DType::f8e5m2) return {0.00002, 0.25};
  if (!ir::isFloat(dtype)) return {0, 0};
  return {1e-7, 1e-3};
}

Verdict compared(const frontend::HostTensor &found, const onnx::Data &expected, unsigned i) {
  std::string who = "output " + std::to_string(i) + ": ";
  runtime::TensorView view{found.dtype, found.shape};
  if (found.dtype != expected.dtype || found.shape != expected.shape)
    return {Outcome::wrong, who + view.typeText() + ", expected " + expected.typeText()};
  frontend::HostTensor wanted{expected.dtype, expected.shape, *expected.bytes};
  Tolerance t = toleranceOf(found.dtype);
  frontend::Comparison c = frontend::compare(found, wanted, t.atol, t.rtol);
  if (c.agrees) return {};
  return {Outcome::wrong, llvm::formatv("{0}{1} of {2} elements differ, element {3} is {4}, expected {5}", who,
                                        c.mismatches, wanted.elements(), c.first, c.found, c.expected)};
}

Verdict runHere(llvm::StringRef folder, llvm::StringRef test, llvm::StringRef on) {
  onnx::ImportOptions options;
  options.content = [&](unsigned i) {
    return tensorFile(place(folder, test, "test_data_set_0/input_" + llvm::Twine(i) + ".pb"));
  };
  auto imported = onnx::importModel(place(folder, test, "model.onnx"), options);
  if (!imported) return refused(imported.takeError());
  auto device = frontend::chooseDevice(on);
  if (!device) return refused(device.takeError());
  frontend::DeviceSettings settings;
  settings.device = on.str(), settings.threads = 1;
  auto compiled = frontend::compileModule(std::move(imported->module), *device, frontend::CompileRequest(settings));
  if (!compiled) return refused(compiled.takeError());
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(0)) return refused(std::move(error));

  const ir::Function &function = *program.module().function("forward");
  std::vector<frontend::HostTensor> inputs, outputs;
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (unsigned i = 0; i < function.block().argumentCount(); ++i) {
    std::string why = "is not there";
    auto data = tensorFile(place(folder, test, "test_data_set_0/input_" + llvm::Twine(i) + ".pb"), &why);
    if (!data) return {Outcome::refused, "input " + std::to_string(i) + " " + why};
    inputs.push_back({data->dtype, data->shape, *data->bytes});
  }
  for (frontend::HostTensor &t : inputs) inputViews.push_back(t.view());
  auto symbols = program.bindSymbols("forward", inputViews);
  if (!symbols) return refused(symbols.takeError());
  auto types = program.resultTypes("forward", *symbols);
  if (!types) return refused(types.takeError());
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (frontend::HostTensor &t : outputs) outputViews.push_back(t.view());
  if (auto error = program.run("forward", inputViews, outputViews, *symbols)) return refused(std::move(error));

  for (unsigned i = 0; i < outputs.size(); ++i) {
    std::string why = "is not there";
    auto expected = tensorFile(place(folder, test, "test_data_set_0/output_" + llvm::Twine(i) + ".pb"), &why);
    if (!expected) return {Outcome::refused, "expected output " + std::to_string(i) + " " + why};
    if (Verdict v = compared(outputs[i], *expected, i); v.outcome != Outcome::passed) return v;
  }
  return {};
}

} // namespace

llvm::StringRef name(Outcome outcome) {
  static constexpr const char *names[] = {"passed", "refused", "wrong", "crashed"};
  return names[static_cast<unsigned>(outcome)];
}

std::string nodeTestFolder() {
  std::string path = FUSOR_SOURCE_DIR "/.deps/onnx-node-tests/node";
  return llvm::sys::fs::is_directory(path) ? path : "";
}

std::vector<std::string> nodeTestNames(llvm::StringRef folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (llvm::sys::fs::exists(it->path() + "/model.onnx")) names.push_back(llvm::sys::path::filename(it->path()).str());
  std::sort(names.begin(), names.end());
  return names;
}

NodeTest runNodeTest(llvm::StringRef folder, llvm::StringRef test, llvm::StringRef device) {
  NodeTest result;
  result.test = test.str();
  result.isExpanded = test.contains("_expanded");
  if (auto declared = onnx::readDeclared(place(folder, test, "model.onnx"))) {
    result.opset = declared->opset;
    if (!declared->operators.empty()) result.op = declared->operators.front();
  } else {
    llvm::consumeError(declared.takeError());
  }
  int ends[2];
  if (pipe(ends) != 0) return result;
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kSecondsEach);
    Verdict verdict = runHere(folder, test, device);
    std::string text = std::string(1, static_cast<char>(verdict.outcome)) + verdict.reason.substr(0, 4000);
    bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !text.empty()) {
    result.outcome = static_cast<Outcome>(text[0]);
    result.reason = llvm::StringRef(text).drop_front().rtrim().str();
  } else {
    result.reason = WIFSIGNALED(status) ? std::string("signal ") + strsignal(WTERMSIG(status))
                                        : "exit " + std::to_string(WEXITSTATUS(status));
  }
  return result;
}

} // namespace fusor::tests
