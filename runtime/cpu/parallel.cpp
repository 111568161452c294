#include "runtime/cpu/parallel.h"

#include "llvm/Support/ThreadPool.h"
#include <atomic>
#include <chrono>
#include <thread>

namespace fusor::runtime {
namespace {

/// How long an idle thread watches for the next region before it sleeps. Waking a sleeper costs 20 to 60 us, so this
/// covers the serial stretches between the regions of a step, and no more: the core may be wanted by others.
constexpr int kSpinMicroseconds = 100;
/// After this long a spinning thread of a team that is larger than the machine lets the others onto its core between
/// looks. Where each has a core it does not: what yields to another process gets its core back after that one's slice.
constexpr int kYieldAfterMicroseconds = 5;

/// Regions with more tasks are run in several rounds, so that a count fits into half a ticket.
constexpr int64_t kMaxRound = int64_t(1) << 31;

thread_local bool insideRegion = false;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `done()` holds or the time is up; says whether it held.
template <typename Predicate> bool spinUntil(Predicate done, int microseconds, bool yields) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 64; ++i) {
    if (done()) return true;
    pause();
  }
  Clock::time_point start = Clock::now();
  while (true) {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause();
    }
    auto waited = Clock::now() - start;
    if (waited > std::chrono::microseconds(microseconds)) return done();
    if (yields && waited > std::chrono::microseconds(kYieldAfterMicroseconds)) std::this_thread::yield();
  }
}

} // namespace

/// How a region is handed out. `ticket` holds the round in its upper half and the number of unclaimed tasks in its
/// lower half. Claiming a task is one compare-and-swap of ticket -> ticket - 1, which fails if the round has ended
/// meanwhile, so a thread that wakes up late can never touch a finished region: the caller waits for tasks, not for
/// threads.
class Workers::Team {
public:
  explicit Team(unsigned threads)
      : threadCount(threads), yields(threads > std::max(1u, std::thread::hardware_concurrency())),
        pool(llvm::hardware_concurrency(threads - 1)) {
    for (unsigned i = 1; i < threads; ++i) pool.async([this] { serve(); });
  }

  ~Team() {
    stopping.store(true);
    announce();
    pool.wait();
  }

  unsigned threads() const { return threadCount; }

  /// Takes the team for one region; false while it is taken.
  bool tryOpen() { return !open.exchange(true, std::memory_order_acquire); }
  void close() { open.store(false, std::memory_order_release); }

  void run(int64_t begin, int64_t tasks, llvm::function_ref<void(int64_t)> f) {
    function.store(&f, std::memory_order_relaxed);
    end.store(begin + tasks, std::memory_order_relaxed);
    unfinished.store(int(tasks), std::memory_order_relaxed);
    uint64_t round = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
    ticket.store(round << 32 | uint64_t(tasks), std::memory_order_release);
    announce();
    help();
    // A long last task elsewhere: sleep instead of burning the core.
    if (spinUntil([&] { return unfinished.load(std::memory_order_acquire) == 0; }, kSpinMicroseconds, yields)) return;
    while (int left = unfinished.load(std::memory_order_acquire)) unfinished.wait(left, std::memory_order_acquire);
  }

private:
  /// Runs tasks of the current round until none is unclaimed.
  void help() {
    insideRegion = true;
    uint64_t seen = ticket.load(std::memory_order_acquire);
    while (uint32_t unclaimed = uint32_t(seen)) {
      // Read before the claim: once the claim succeeds the round was open all along, so these belong to it.
      auto *f = function.load(std::memory_order_relaxed);
      int64_t task = end.load(std::memory_order_relaxed) - unclaimed;
      if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      (*f)(task);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_all();
      seen = ticket.load(std::memory_order_acquire);
    }
    insideRegion = false;
  }

  void announce() {
    signal.fetch_add(1);
    signal.notify_all(); // no system call while nobody sleeps
  }

  void serve() {
    int seen = 0;
    while (true) {
      if (!spinUntil([&] { return signal.load(std::memory_order_acquire) != seen; }, kSpinMicroseconds, yields))
        signal.wait(seen);
      seen = signal.load(std::memory_order_acquire);
      if (stopping.load()) return;
      help();
    }
  }

  const unsigned threadCount;
  const bool yields;
  alignas(64) std::atomic<uint64_t> ticket{0};
  std::atomic<const llvm::function_ref<void(int64_t)> *> function{nullptr};
  std::atomic<int64_t> end{0};                ///< one past the round's last task
  alignas(64) std::atomic<int> unfinished{0}; ///< tasks of the round not yet run to their end
  alignas(64) std::atomic<int> signal{0};     ///< counts announcements; what sleepers sleep on
  std::atomic<bool> stopping{false};
  std::atomic<bool> open{false};
  llvm::ThreadPool pool; ///< last: its threads use all of the above
};

Workers::Workers(unsigned threads) {
  if (threads > 1) team = std::make_unique<Team>(threads);
}

Workers::~Workers() = default;

unsigned Workers::threads() const { return team ? team->threads() : 1; }

void Workers::forEach(int64_t tasks, llvm::function_ref<void(int64_t task)> f) {
  if (!team || tasks <= 1 || insideRegion || !team->tryOpen()) {
    for (int64_t task = 0; task < tasks; ++task) f(task);
    return;
  }
  for (int64_t begin = 0; begin < tasks; begin += kMaxRound - 1)
    team->run(begin, std::min(tasks - begin, kMaxRound - 1), f);
  team->close();
}

} // namespace fusor::runtime
