#include "ir/graph/bug.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

namespace fusor::ir {
namespace {
thread_local BugContext *innermost = nullptr; // a stack of what this thread is doing, for the report alone
} // namespace

BugContext::BugContext(std::string doing) : doing_(std::move(doing)), outer_(innermost) { innermost = this; }
BugContext::~BugContext() { innermost = outer_; }

void reportBug(const std::string &text, const char *file, int line) {
  llvm::errs() << "error: this is a bug in fusor: " << text << " (" << file << ":" << line << ")\n";
  for (BugContext *c = innermost; c; c = c->outer_) llvm::errs() << "note: while in " << c->doing_ << "\n";
  llvm::errs() << "hint: please report it with the module that caused it (fusor opt FILE --print-after all)\n";
  llvm::errs().flush();
  _exit(70);
}

} // namespace fusor::ir
