// What a verb says: results on stdout, diagnostics and progress on stderr.
#pragma once
#include "frontend/api/errors.h"
#include "frontend/cli/options.h"
#include "llvm/Support/JSON.h"
#include <chrono>

namespace fusor::frontend::cli {

class Console {
public:
  explicit Console(const CommonOptions &options);

  bool json() const { return json_; }
  /// A line for people, on stdout; nothing under --json or --quiet.
  void say(const llvm::Twine &line);
  /// A result for people, on stdout; nothing under --json.
  void result(const llvm::Twine &line);
  /// One object on a line of stdout, under --json only.
  void object(llvm::json::Object object);
  void object(std::initializer_list<llvm::json::Object::KV> fields) { object(llvm::json::Object(fields)); }
  /// "warning: TEXT" and "note: TEXT" on stderr; a note is left out under --quiet.
  void warning(const llvm::Twine &text);
  void note(const llvm::Twine &text);
  /// "error: TEXT" on stderr; returns the exit code.
  int fail(llvm::Error error);

  /// One line that is written over on a terminal: "step 12/60  loss 3.2145  41 ms  12k tokens/s  ETA 2 s  [###   ]".
  /// Off a terminal nothing.
  void progress(int64_t done, int64_t total, const llvm::Twine &text);
  /// Clears that line.
  void endProgress();
  bool showsProgress() const { return progress_; }

private:
  bool json_, quiet_, progress_, shown_ = false;
};

/// Milliseconds since it was made.
class Stopwatch {
public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "1.5 GiB", "320 KiB"
std::string bytesText(int64_t bytes);

} // namespace fusor::frontend::cli
