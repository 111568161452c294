// Headless Chromium, driven through its DevTools protocol over two pipes: no port, no driver program, no library.
#pragma once
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fusor::tests {

class Browser {
public:
  /// Where Chromium is (chromium-headless-shell, chromium, google-chrome in $PATH, or $FUSOR_CHROMIUM); none: absent.
  static std::optional<std::string> program();

  /// Starts it with a window of `width` x `height` pixels. Everything that fails is a failure of the test that runs.
  explicit Browser(const std::string &program, int width = 1280, int height = 800);
  ~Browser();
  Browser(const Browser &) = delete;

  /// Loads a file and waits until it is loaded. Milliseconds from the start of the navigation to the end of `load`.
  double open(const std::string &file);
  /// The value of a JavaScript expression.
  llvm::json::Value evaluate(const std::string &expression);
  /// The same as text, number or truth value; a failure where it is something else.
  std::string text(const std::string &expression);
  double number(const std::string &expression);
  /// Waits until `expression` is true; false after 10 s.
  bool becomes(const std::string &expression);
  /// A mouse click in the middle of the element that `selector` finds, as a user makes it.
  void click(const std::string &selector);
  /// Keys as a user presses them: "Enter", "Tab", "a".
  void press(const std::string &key);

  /// Uncaught exceptions, errors and warnings of the console, in order.
  const std::vector<std::string> &complaints() const { return complaints_; }

private:
  llvm::json::Object command(const std::string &method, llvm::json::Object parameters);
  std::optional<llvm::json::Object> message();
  void note(const llvm::json::Object &event);

  TemporaryFolder profile_;
  pid_t process_ = -1;
  int write_ = -1, read_ = -1;
  int64_t next_ = 1;
  std::string session_, buffer_;
  bool loaded_ = false;
  std::vector<std::string> complaints_;
};

} // namespace fusor::tests
