#include "tests/support/fir_cases.h"
#include "frontend/text/parser.h"
#include "tests/support/expected_error.h"
#include "tests/support/filecheck.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

namespace fusor::tests {
namespace {

class FirCase : public testing::Test {
public:
  FirCase(std::string path, FirRunner runner) : path_(std::move(path)), runner_(runner) {}
  void TestBody() override {
    auto file = llvm::MemoryBuffer::getFile(path_);
    ASSERT_TRUE(bool(file)) << path_ << ": " << file.getError().message();
    std::string problem = checkFirCase(path_, (*file)->getBuffer(), runner_);
    if (!problem.empty()) ADD_FAILURE_AT(path_.c_str(), 1) << problem;
  }

private:
  std::string path_;
  FirRunner runner_;
};

// "case.fir:4:8: error: text" and "hint: text", as errors of the rooms this library does not know are printed.
frontend::Diagnostic readPrinted(llvm::StringRef printed) {
  frontend::Diagnostic diagnostic;
  llvm::SmallVector<llvm::StringRef, 4> lines;
  printed.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    if (line.consume_front("hint: ")) {
      diagnostic.hint = line.str();
      continue;
    }
    auto [place, message] = line.split(": error: ");
    if (message.empty())
      message = line;
    else if (auto [file, column] = place.rsplit(':'); true) {
      llvm::StringRef lineNumber = file.rsplit(':').second;
      if (lineNumber.getAsInteger(10, diagnostic.location.line)) diagnostic.location.line = 0;
      if (column.getAsInteger(10, diagnostic.location.column)) diagnostic.location.column = 0;
    }
    diagnostic.message += (diagnostic.message.empty() ? "" : "\n") + message.str();
  }
  return diagnostic;
}

// "" where `error` says what the comments of `text` expect.
std::string checkErrors(llvm::StringRef text, llvm::Error error) {
  std::string problem;
  llvm::handleAllErrors(
      std::move(error),
      [&](const frontend::DiagnosticError &e) { problem = checkExpectedErrors(text, e.diagnostics()); },
      [&](const llvm::ErrorInfoBase &other) { problem = checkExpectedErrors(text, readPrinted(other.message())); });
  return problem;
}

std::string checkPrintsBack(const FirRun &run, llvm::StringRef output) {
  auto module = frontend::parseModule(output, "output");
  if (!module)
    return "what was printed does not parse:\n" + llvm::toString(module.takeError()) + "\nin:\n" + output.str();
  std::string again = (*module)->str();
  if (again != output)
    return "what was printed is printed differently after parsing:\n" + again + "\nfirst:\n" + output.str();
  return "";
}

std::string checkRun(const FirRun &run, bool expectsErrors, FirRunner runner) {
  auto output = runner(run);
  if (!output && expectsErrors) return checkErrors(run.text, output.takeError());
  if (!output) return "it failed:\n" + llvm::toString(output.takeError());
  if (expectsErrors) return "it was to fail and printed:\n" + *output;
  std::string message;
  if (!fileCheck(*output, run.text, message, run.prefix)) return message + "\noutput:\n" + *output;
  return run.verb == "opt" ? checkPrintsBack(run, *output) : "";
}

} // namespace

llvm::StringRef FirRun::value(llvm::StringRef flag) const {
  for (llvm::StringRef argument : arguments)
    if (argument.consume_front(flag) && argument.consume_front("=")) return argument;
  return "";
}

llvm::Expected<std::vector<FirRun>> parseRunLines(llvm::StringRef path, llvm::StringRef text) {
  std::vector<FirRun> runs;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  text.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    llvm::StringRef command = line.trim();
    if (!command.consume_front("// RUN:")) continue;
    auto [fusor, check] = command.split('|');
    llvm::SmallVector<llvm::StringRef, 8> words;
    fusor.trim().split(words, ' ', -1, /*KeepEmpty=*/false);
    FirRun run{"", {}, "CHECK", path.str(), text.str()};
    check = check.trim();
    bool known = words.size() >= 2 && words[0] == "fusor";
    if (!check.empty()) known &= check.consume_front("FileCheck"), check = check.trim();
    if (!check.empty()) known &= check.consume_front("--check-prefix="), run.prefix = check.str();
    if (!known)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "expected 'RUN: fusor VERB FLAGS [| FileCheck [--check-prefix=X]]', found '%s'",
                                     line.str().c_str());
    run.verb = words[1].str();
    for (llvm::StringRef word : llvm::makeArrayRef(words).drop_front(2)) run.arguments.push_back(word.str());
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string checkFirCase(llvm::StringRef path, llvm::StringRef text, FirRunner runner) {
  auto runs = parseRunLines(path, text);
  if (!runs) return llvm::toString(runs.takeError());
  bool expectsErrors = text.contains("// expected-");
  if (runs->empty() && !expectsErrors) return "it has no RUN line";
  if (runs->empty()) {
    auto module = frontend::parseModule(text, path);
    return module ? "it was to fail and parses" : checkErrors(text, module.takeError());
  }
  for (const FirRun &run : *runs) {
    std::string problem = checkRun(run, expectsErrors, runner);
    if (!problem.empty()) return "RUN: fusor " + run.verb + " " + llvm::join(run.arguments, " ") + "\n" + problem;
  }
  return "";
}

unsigned registerFirCases(llvm::StringRef folder, llvm::StringRef suite, FirRunner runner) {
  llvm::SmallString<256> path(FUSOR_SOURCE_DIR);
  llvm::sys::path::append(path, folder);
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error))
    if (llvm::StringRef(it->path()).endswith(".fir")) files.push_back(it->path());
  llvm::sort(files);
  for (const std::string &file : files)
    testing::RegisterTest(suite.str().c_str(), llvm::sys::path::stem(file).str().c_str(), nullptr, nullptr,
                          file.c_str(), 1, [file, runner]() -> testing::Test * { return new FirCase(file, runner); });
  return files.size();
}

} // namespace fusor::tests
