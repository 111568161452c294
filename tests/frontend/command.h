// Runs build/fusor as a user does.
#pragma once
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <sys/wait.h>

namespace fusor::tests {

struct Ran {
  int exit = -1;
  std::string out, err;
};

inline std::string contents(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, false, false);
  return file ? (*file)->getBuffer().str() : "";
}

inline Ran runBinary(const std::string &binary, const std::string &arguments, const std::string &before = "") {
  TemporaryFolder folder;
  std::string command =
      before + " " + binary + " " + arguments + " >" + folder.path("out") + " 2>" + folder.path("err") + " </dev/null";
  int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder.path("out")), contents(folder.path("err"))};
}
inline Ran runFusor(const std::string &arguments, const std::string &before = "") {
  return runBinary(FUSOR_BINARY_DIR "/fusor", arguments, before);
}

/// Every line of `text` as a JSON object; a failure for one that is not.
inline std::vector<llvm::json::Object> objects(const std::string &text) {
  std::vector<llvm::json::Object> result;
  llvm::SmallVector<llvm::StringRef, 16> lines;
  llvm::SplitString(text, lines, "\n");
  for (llvm::StringRef line : lines) {
    auto value = llvm::json::parse(line);
    if (value && value->getAsObject())
      result.push_back(*value->getAsObject());
    else
      ADD_FAILURE() << "no JSON object: " << line.str() << (value ? "" : llvm::toString(value.takeError()));
  }
  return result;
}

} // namespace fusor::tests

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
