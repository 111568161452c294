// Ctrl-C as a flag: the run looks at it between steps, saves, and ends with 130. A second Ctrl-C ends at once.
#pragma once
#include <atomic>

namespace fusor::frontend::cli {

/// While alive, SIGINT and SIGTERM set the flag.
class InterruptFlag {
public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag &) = delete;
  const std::atomic<bool> &flag() const;
};

} // namespace fusor::frontend::cli
