#include "frontend/cli/console.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/ioctl.h>
#include <unistd.h>

namespace fusor::frontend::cli {

Console::Console(const CommonOptions &o)
    : json_(o.json), quiet_(o.quiet), progress_(!o.json && !o.quiet && isatty(STDERR_FILENO)) {}

void Console::say(const llvm::Twine &line) {
  if (!json_ && !quiet_) result(line);
}
void Console::result(const llvm::Twine &line) {
  if (json_) return;
  endProgress();
  llvm::outs() << line << '\n';
  llvm::outs().flush(); // a reader behind a pipe sees the run while it goes
}
void Console::object(llvm::json::Object object) {
  if (!json_) return;
  llvm::outs() << llvm::json::Value(std::move(object)) << '\n';
  llvm::outs().flush();
}
void Console::warning(const llvm::Twine &text) {
  endProgress();
  llvm::errs() << "warning: " << text << '\n';
}
void Console::note(const llvm::Twine &text) {
  if (quiet_) return;
  endProgress();
  llvm::errs() << "note: " << text << '\n';
}
int Console::fail(llvm::Error error) {
  endProgress();
  return report(toPublic(std::move(error)));
}

void Console::progress(int64_t done, int64_t total, const llvm::Twine &text) {
  if (!progress_) return;
  winsize size{};
  unsigned columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  std::string line = text.str();
  constexpr unsigned kBar = 20;
  if (line.size() + kBar + 5 < columns) {
    unsigned filled = total > 0 ? static_cast<unsigned>(kBar * done / total) : 0;
    line += "  [" + std::string(filled, '#') + std::string(kBar - filled, ' ') + "]";
  }
  if (line.size() + 1 > columns) line.resize(columns - 1);
  llvm::errs() << "\r\033[K" << line;
  shown_ = true;
}
void Console::endProgress() {
  if (shown_) llvm::errs() << "\r\033[K";
  shown_ = false;
}

std::string bytesText(int64_t bytes) {
  static constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  unsigned unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(units)) amount /= 1024, ++unit;
  return llvm::formatv(unit == 0 || amount >= 100 ? "{0:f0} {1}" : "{0:f1} {1}", amount, units[unit]).str();
}

} // namespace fusor::frontend::cli
