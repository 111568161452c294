#pragma once
#include "llvm/ADT/STLExtras.h"
#include <cstdint>
#include <memory>

namespace fusor::runtime {

/// A fixed team of threads for many short parallel regions.
///
///   Workers workers(2);
///   workers.forEach(rows, [&](int64_t row) { softmax(x + row * n, y + row * n, n); });
///
/// A training step opens hundreds of regions of 20 to 500 us each, so opening one must cost about a microsecond: after
/// a region the threads spin for a while (kSpinMicroseconds in the .cpp) and only then sleep in the kernel.
///
/// Which thread runs which task is not fixed. Results are the same for any number of threads as long as the caller's
/// split into tasks does not look at threads() and no two tasks write to one place.
class Workers {
public:
  /// `threads` counts the calling thread: 1 (and 0) start none.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  unsigned threads() const;

  /// Runs f(0) ... f(tasks - 1), each once, and returns when all are done; what they wrote is visible to the caller.
  /// Runs them inline and in order when there is one thread or one task, when called from inside a region (of any
  /// Workers), and while another thread has a region of this team open.
  void forEach(int64_t tasks, llvm::function_ref<void(int64_t task)> f);

private:
  class Team;
  std::unique_ptr<Team> team; ///< null with one thread
};

} // namespace fusor::runtime
