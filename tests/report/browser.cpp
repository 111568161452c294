#include "tests/report/browser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"
#include "gtest/gtest.h"
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fusor::tests {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

std::optional<std::string> Browser::program() {
  if (const char *named = std::getenv("FUSOR_CHROMIUM")) return std::string(named);
  for (const char *name : {"chromium-headless-shell", "chromium", "google-chrome"})
    if (auto path = llvm::sys::findProgramByName(name)) return *path;
  return std::nullopt;
}

Browser::Browser(const std::string &program, int width, int height) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) {
    ADD_FAILURE() << "no pipe";
    return;
  }
  // No sandbox: Chromium refuses to run as root with one, and it opens nothing but our own page.
  std::vector<std::string> arguments = {program,
                                        "--headless",
                                        "--no-sandbox",
                                        "--disable-gpu",
                                        "--disable-dev-shm-usage",
                                        "--no-first-run",
                                        "--hide-scrollbars",
                                        "--remote-debugging-pipe",
                                        "--user-data-dir=" + profile_.path("profile"),
                                        "about:blank"};
  std::vector<char *> pointers;
  for (std::string &argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    // The protocol is on descriptors 3 (in) and 4 (out); copies above them, so that neither overwrites the other.
    int in = fcntl(to[0], F_DUPFD, 10), out = fcntl(from[1], F_DUPFD, 10), nothing = ::open("/dev/null", O_RDWR);
    dup2(nothing, 0), dup2(nothing, 1), dup2(nothing, 2);
    dup2(in, 3), dup2(out, 4);
    execv(program.c_str(), pointers.data());
    _exit(127);
  }
  close(to[0]), close(from[1]);
  write_ = to[1], read_ = from[0];

  Object targets = command("Target.getTargets", Object{});
  std::string target;
  if (const Array *infos = targets.getArray("targetInfos"))
    for (const Value &info : *infos)
      if (info.getAsObject() && info.getAsObject()->getString("type").getValueOr("") == "page")
        target = info.getAsObject()->getString("targetId").getValueOr("").str();
  Object attached = command("Target.attachToTarget", Object{{"targetId", target}, {"flatten", true}});
  session_ = attached.getString("sessionId").getValueOr("").str();
  if (session_.empty()) {
    ADD_FAILURE() << program << " opens no page";
    return;
  }
  for (const char *domain : {"Page.enable", "Runtime.enable", "Log.enable"}) command(domain, Object{});
  command("Emulation.setDeviceMetricsOverride",
          Object{{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", width < 600}});
}

Browser::~Browser() {
  if (write_ >= 0) close(write_);
  if (read_ >= 0) close(read_);
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

/// The next message; none where Chromium is gone or silent for a minute.
std::optional<Object> Browser::message() {
  constexpr int kPatienceMs = 60000;
  size_t end;
  while ((end = buffer_.find('\0')) == std::string::npos) {
    pollfd waiting{read_, POLLIN, 0};
    char bytes[1 << 16];
    ssize_t count = poll(&waiting, 1, kPatienceMs) == 1 ? read(read_, bytes, sizeof bytes) : -1;
    if (count <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<size_t>(count));
  }
  auto value = llvm::json::parse(llvm::StringRef(buffer_).take_front(end));
  buffer_.erase(0, end + 1);
  if (value && value->getAsObject()) return std::move(*value->getAsObject());
  llvm::consumeError(value.takeError());
  return std::nullopt;
}

void Browser::note(const Object &event) {
  llvm::StringRef method = event.getString("method").getValueOr("");
  const Object *parameters = event.getObject("params");
  if (method == "Page.loadEventFired") loaded_ = true;
  if (!parameters) return;
  std::string text = llvm::formatv("{0}", Value(Object(*parameters)));
  if (method == "Runtime.exceptionThrown") complaints_.push_back(text);
  if (method == "Runtime.consoleAPICalled") {
    llvm::StringRef type = parameters->getString("type").getValueOr("");
    if (type == "error" || type == "warning" || type == "assert") complaints_.push_back(text);
  }
  if (method == "Log.entryAdded")
    if (const Object *entry = parameters->getObject("entry")) {
      llvm::StringRef level = entry->getString("level").getValueOr("");
      if (level == "error" || level == "warning") complaints_.push_back(text);
    }
}

Object Browser::command(const std::string &method, Object parameters) {
  int64_t id = next_++;
  Object request{{"id", id}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) request["sessionId"] = session_;
  std::string text = llvm::formatv("{0}", Value(std::move(request)));
  text.push_back('\0');
  for (size_t sent = 0; sent < text.size();) {
    ssize_t count = write(write_, text.data() + sent, text.size() - sent);
    if (count <= 0) {
      ADD_FAILURE() << method << ": Chromium is gone";
      return {};
    }
    sent += static_cast<size_t>(count);
  }
  while (auto answer = message()) {
    if (answer->getInteger("id").getValueOr(0) != id) {
      note(*answer);
      continue;
    }
    if (const Object *error = answer->getObject("error"))
      ADD_FAILURE() << method << ": " << llvm::formatv("{0}", Value(Object(*error))).str();
    Object *result = answer->getObject("result");
    return result ? std::move(*result) : Object{};
  }
  ADD_FAILURE() << method << ": no answer";
  return {};
}

double Browser::open(const std::string &file) {
  loaded_ = false;
  command("Page.navigate", Object{{"url", "file://" + file}});
  for (int i = 0; i < 3000 && !loaded_; ++i) {
    if (::testing::Test::HasFailure()) return -1;
    command("Runtime.evaluate", Object{{"expression", "1"}});
    std::this_thread::sleep_for(std::chrono::milliseconds(loaded_ ? 0 : 10));
  }
  EXPECT_TRUE(loaded_) << file;
  return number("performance.getEntriesByType('navigation')[0].loadEventEnd");
}

Value Browser::evaluate(const std::string &expression) {
  Object answer =
      command("Runtime.evaluate", Object{{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (const Object *thrown = answer.getObject("exceptionDetails"))
    ADD_FAILURE() << expression << ": " << llvm::formatv("{0}", Value(Object(*thrown))).str();
  const Object *result = answer.getObject("result");
  const Value *value = result ? result->get("value") : nullptr;
  return value ? *value : Value(nullptr);
}

std::string Browser::text(const std::string &expression) {
  Value value = evaluate(expression);
  if (auto text = value.getAsString()) return text->str();
  ADD_FAILURE() << expression << " is no text: " << llvm::formatv("{0}", value).str();
  return "";
}
double Browser::number(const std::string &expression) {
  Value value = evaluate(expression);
  if (auto number = value.getAsNumber()) return *number;
  ADD_FAILURE() << expression << " is no number: " << llvm::formatv("{0}", value).str();
  return 0;
}
bool Browser::becomes(const std::string &expression) {
  for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) {
    if (evaluate("!!(" + expression + ")").getAsBoolean().getValueOr(false)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

void Browser::click(const std::string &selector) {
  std::string quoted = llvm::formatv("{0}", Value(selector));
  Value place = evaluate("(() => { const e = document.querySelector(" + quoted +
                         "); if (!e) return null; if (!(e instanceof SVGElement)) e.scrollIntoView({block: 'center'});"
                         " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()");
  const Array *point = place.getAsArray();
  if (!point) {
    ADD_FAILURE() << "nothing to click: " << selector;
    return;
  }
  for (const char *type : {"mousePressed", "mouseReleased"})
    command("Input.dispatchMouseEvent",
            Object{{"type", type}, {"x", (*point)[0]}, {"y", (*point)[1]}, {"button", "left"}, {"clickCount", 1}});
}

void Browser::press(const std::string &key) {
  bool isText = key.size() == 1;
  Object down{{"type", "keyDown"}, {"key", key}};
  if (isText) down["text"] = key;
  if (key == "Enter") down["text"] = "\r";
  command("Input.dispatchKeyEvent", std::move(down));
  command("Input.dispatchKeyEvent", Object{{"type", "keyUp"}, {"key", key}});
}

} // namespace fusor::tests
