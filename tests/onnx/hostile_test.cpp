// Hostile files through the command itself: how it ends, and what time and memory it takes. In build-asan (`make asan`)
// the same runs are under AddressSanitizer and UBSan; FUSOR_BINARY=build-fuzz/fusor before the test program takes
// another build of the command.
#include "tests/onnx/model_builder.h"
#include "tests/onnx/model_folder.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fusor::tests {
namespace {

constexpr double kMostSeconds = 2; // of the process's own time: others may have the machine
constexpr long kMostKiB = 1 << 20;
constexpr unsigned kGivesUpAfter = 60; // seconds on the wall

struct Ended {
  int exit = -1;
  std::string signal; // empty: it exited
  double seconds = 0;
  long kib = 0; // most memory it had
  std::string text;
};

Ended runFusor(std::vector<std::string> arguments, const std::string &outputFile) {
  const char *other = std::getenv("FUSOR_BINARY");
  arguments.insert(arguments.begin(), other ? other : FUSOR_BINARY_DIR "/fusor");
  std::vector<char *> argv;
  for (std::string &argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int out = open(outputFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1), dup2(out, 2);
    alarm(kGivesUpAfter);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Ended ended;
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  auto seconds = [](const timeval &t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  ended.seconds = seconds(used.ru_utime) + seconds(used.ru_stime), ended.kib = used.ru_maxrss;
  if (WIFEXITED(status)) ended.exit = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = strsignal(WTERMSIG(status));
  if (auto text = llvm::MemoryBuffer::getFile(outputFile)) ended.text = (*text)->getBuffer().str();
  return ended;
}

void expectBounded(const Ended &ended) {
  EXPECT_EQ(ended.signal, "") << ended.text;
  EXPECT_EQ(ended.text.find("Sanitizer"), std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find("runtime error"), std::string::npos) << ended.text;
  EXPECT_LT(ended.seconds, kMostSeconds);
  EXPECT_LT(ended.kib, kMostKiB);
}

std::string temporaryFile() {
  llvm::SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("fusor-hostile", "txt", path)) llvm::report_fatal_error("no temporary file");
  return path.str().str();
}

// cmake/setup/onnx.sh makes them, where ../shared and pip are there.
TEST(Hostile, MalformedFiles) {
  const std::string folder = FUSOR_SOURCE_DIR "/.deps/onnx-malformed";
  auto table = llvm::MemoryBuffer::getFile(folder + "/expectations.tsv");
  if (!table) GTEST_SKIP() << folder << "/expectations.tsv is not there: sh cmake/setup/onnx.sh makes it";
  const std::string output = temporaryFile();
  llvm::SmallVector<llvm::StringRef, 320> lines;
  (*table)->getBuffer().split(lines, '\n', -1, false);
  unsigned cases = 0;
  double slowest = 0;
  long largest = 0;
  for (llvm::StringRef line : llvm::makeArrayRef(lines).drop_front()) {
    auto [file, rest] = line.split('\t');
    llvm::StringRef must = rest.split('\t').first;
    SCOPED_TRACE(file.str() + ", " + must.str());
    const Ended ended = runFusor({"import", folder + "/" + file.str()}, output);
    expectBounded(ended);
    if (must == "reject") {
      EXPECT_EQ(ended.exit, 1) << ended.text;
      EXPECT_NE(ended.text.find("error: "), std::string::npos) << ended.text;
    } else if (must == "load") {
      EXPECT_EQ(ended.exit, 0) << ended.text;
    } else {
      EXPECT_TRUE(ended.exit == 0 || ended.exit == 1) << ended.exit << ended.text;
    }
    slowest = std::max(slowest, ended.seconds), largest = std::max(largest, ended.kib);
    ++cases;
  }
  EXPECT_EQ(cases, 301u);
  std::printf("%u files, the slowest took %.2f s, the largest %ld MiB\n", cases, slowest, largest >> 10);
  llvm::sys::fs::remove(output);
}

// 256 MiB of weights: at most 1.3 times that and 200 MB, transposed copies for kernels included.
TEST(ImportMemory, WeightsAreThereOnce) {
  if (std::string(FUSOR_BINARY_DIR).find("asan") != std::string::npos)
    GTEST_SKIP() << "AddressSanitizer keeps freed memory";
  constexpr int64_t kNarrow = 2048, kWide = 4096, kWeights = 8, kBytes = kNarrow * kWide * 4;
  TemporaryFolder folder;
  {
    ModelBuilder m;
    m.input("x0", {"B", std::to_string(kNarrow)}).output("x" + std::to_string(kWeights));
    for (int64_t i = 0; i < kWeights; ++i) {
      const std::string n = std::to_string(i);
      std::vector<int64_t> dims = i % 2 ? std::vector<int64_t>{kWide, kNarrow} : std::vector<int64_t>{kNarrow, kWide};
      std::string bytes(kBytes, '\0');
      for (int64_t b = 0; b < kBytes; b += 512) bytes[b + 1] = static_cast<char>(b / 512 + i); // no two are equal
      m.initializer("w" + n, dims, 1).set_raw_data(std::move(bytes));
      m.node("MatMul", {"x" + n, "w" + n}, {"x" + std::to_string(i + 1)});
    }
    folder.write("m.onnx", m.bytes());
  }
  const Ended ended = runFusor({"import", folder.path("m.onnx")}, folder.path("out"));
  EXPECT_EQ(ended.exit, 0) << ended.text;
  EXPECT_NE(ended.text.find("lifted    8 linear"), std::string::npos) << ended.text;
  const double most = 1.3 * kWeights * kBytes + 200e6;
  EXPECT_LE(static_cast<double>(ended.kib) * 1024, most);
  std::printf("%.0f MB of weights, %.0f MB at most\n", kWeights * kBytes / 1e6,
              static_cast<double>(ended.kib) * 1024e-6);
}

TEST(Hostile, BugCasesAreBounded) {
  const std::string bugs = sharedOnnx("bugs");
  if (bugs.empty()) GTEST_SKIP() << "../shared/onnx/bugs is not there";
  const std::string output = temporaryFile();
  for (const std::string &folder : foldersIn(bugs))
    for (const std::string &set : foldersIn(folder, "set")) {
      SCOPED_TRACE(set);
      const Ended ended = runFusor({"run", folder + "/model.onnx", "--device", "cpu", "--inputs", set}, output);
      expectBounded(ended);
      EXPECT_TRUE(ended.exit == 0 || ended.exit == 1) << ended.exit << ended.text;
    }
  llvm::sys::fs::remove(output);
}

} // namespace
} // namespace fusor::tests
