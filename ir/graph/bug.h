// Our own mistakes. A user's mistake is an llvm::Error; this prints what went wrong and exits 70.
#pragma once
#include "llvm/Support/FormatVariadic.h"
#include <string>

namespace fusor::ir {

/// Prints "fusor: bug: TEXT (FILE:LINE)" with what the compiler was doing (see BugContext) and ends the process with
/// exit code 70.
[[noreturn]] void reportBug(const std::string &text, const char *file, int line);

/// While alive, a bug report says what was being done and how to reproduce it: "pass 'fusion'; reproduce with: fusor
/// opt ...".
class BugContext {
public:
  explicit BugContext(std::string doing);
  ~BugContext();
  BugContext(const BugContext &) = delete;

private:
  friend void reportBug(const std::string &, const char *, int);
  std::string doing_;
  BugContext *outer_;
};

} // namespace fusor::ir

#define FUSOR_BUG(...) ::fusor::ir::reportBug(llvm::formatv(__VA_ARGS__).str(), __FILE__, __LINE__)
