#include "frontend/cli/interrupt.h"
#include <csignal>

namespace fusor::frontend::cli {
namespace {

// A signal handler reaches nothing but statics.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void onSignal(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL); // the second one ends the process
}

} // namespace

InterruptFlag::InterruptFlag() {
  interrupted = false;
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
}
InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}
const std::atomic<bool> &InterruptFlag::flag() const { return interrupted; }

} // namespace fusor::frontend::cli
