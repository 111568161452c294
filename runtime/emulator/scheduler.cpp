#include "runtime/emulator/scheduler.h"
#include "runtime/emulator/fiber_stacks.h"
#include "runtime/emulator/sanitizer.h"
#include "llvm/Support/FormatVariadic.h"
#include <boost/context/detail/fcontext.hpp>
#include <vector>

using namespace fusor::emulator;
using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

enum class State { Runnable, AtBarrier, AtExchange, Finished };

struct Fiber {
  Lane lane;
  fcontext_t context = nullptr;
  void *fakeStack = nullptr; // AddressSanitizer's, while the fiber is not running
  State state = State::Runnable;
  int line = 0; // of the barrier or exchange it waits at
  WarpOp op = WarpOp::Sync;
  unsigned mask = 0;
  unsigned long long offered = 0; // its value in the exchange
};

struct Warp {
  unsigned first = 0, count = 0;         // threads first .. first + count
  unsigned long long exchanged[32] = {}; // what the last exchange delivered, per lane
};

llvm::StringRef nameOf(WarpOp op) {
  switch (op) {
  case WarpOp::Sync: return "__syncwarp";
  case WarpOp::Shuffle: return "__shfl_sync";
  case WarpOp::Ballot: return "a vote";
  case WarpOp::Matrix: return "a matrix instruction";
  }
  llvm_unreachable("a warp operation without a name");
}

class BlockRun {
public:
  BlockRun(void (*kernel)(void **), void **arguments, const LaunchShape &shape, Lane **current, FiberStacks &stacks)
      : kernel(kernel), arguments(arguments), shape(shape), current(current), stacks(stacks) {}

  // Empty, or what went wrong.
  std::string run(Dim3 blockIndex, void *dynamicShared, bool descending);

  // Called on fibers, through the hooks.
  void waitAtBarrier(int line) {
    running->line = line;
    running->state = State::AtBarrier;
    leaveFiber();
  }
  const unsigned long long *exchange(WarpOp op, unsigned mask, unsigned long long value, int line) {
    Fiber &self = *running;
    self.op = op, self.mask = mask, self.offered = value, self.line = line;
    self.state = State::AtExchange;
    leaveFiber();
    return warps[threadOf(self) / 32].exchanged;
  }
  [[noreturn]] void fail(const char *message, int line) {
    failure = llvm::formatv("thread {0}, line {1}: {2}", threadOf(*running), line, message).str();
    leaveFiber();
    llvm_unreachable("a failed fiber is not resumed");
  }

private:
  unsigned threadOf(const Fiber &fiber) const { return static_cast<unsigned>(&fiber - fibers.data()); }
  static void enter(transfer_t from);
  void leaveFiber(bool forGood = false);
  void resume(Fiber &fiber);
  bool runWarp(Warp &warp, bool descending);
  bool releaseExchange(Warp &warp);
  std::string whyExchangeWaits(const Warp &warp) const;

  void (*kernel)(void **);
  void **arguments;
  const LaunchShape &shape;
  Lane **current;
  FiberStacks &stacks;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Fiber *running = nullptr;
  fcontext_t scheduler = nullptr;
  const void *schedulerStack = nullptr;
  size_t schedulerStackBytes = 0;
  std::string failure;
};

BlockRun *activeRun = nullptr; // hooks are plain functions; one launch at a time per process

void BlockRun::enter(transfer_t from) {
  auto *run = static_cast<BlockRun *>(from.data);
  afterSwitch(nullptr, &run->schedulerStack, &run->schedulerStackBytes);
  run->scheduler = from.fctx;
  run->kernel(run->arguments);
  run->running->state = State::Finished;
  run->leaveFiber(/*forGood=*/true);
}

void BlockRun::leaveFiber(bool forGood) {
  Fiber &self = *running;
  beforeSwitch(forGood ? nullptr : &self.fakeStack, schedulerStack, schedulerStackBytes);
  transfer_t back = jump_fcontext(scheduler, nullptr);
  afterSwitch(self.fakeStack, &schedulerStack, &schedulerStackBytes);
  scheduler = back.fctx;
}

void BlockRun::resume(Fiber &fiber) {
  running = &fiber;
  *current = &fiber.lane;
  void *ownFake = nullptr;
  FiberStacks::Stack stack = stacks[threadOf(fiber)];
  beforeSwitch(&ownFake, stack.bottom, stack.bytes);
  transfer_t back = jump_fcontext(fiber.context, this);
  afterSwitch(ownFake, nullptr, nullptr);
  fiber.context = back.fctx;
}

// Lets the lanes that wait for each other go on, if a complete set is there. Sets `failure` if one can never be.
bool BlockRun::releaseExchange(Warp &warp) {
  for (unsigned i = 0; i < warp.count; ++i) {
    Fiber &leader = fibers[warp.first + i];
    if (leader.state != State::AtExchange) continue;
    bool complete = true;
    for (unsigned lane = 0; lane < 32 && complete; ++lane) {
      if (!((leader.mask >> lane) & 1)) continue;
      complete = false;
      if (lane >= warp.count) break;
      const Fiber &other = fibers[warp.first + lane];
      complete = other.state == State::AtExchange && other.op == leader.op && other.mask == leader.mask;
    }
    if (!complete || !((leader.mask >> i) & 1)) continue;
    const unsigned mask = leader.mask;
    for (unsigned lane = 0; lane < warp.count; ++lane) {
      if (!((mask >> lane) & 1)) continue;
      warp.exchanged[lane] = fibers[warp.first + lane].offered;
      fibers[warp.first + lane].state = State::Runnable;
    }
    return true;
  }
  return false;
}

std::string BlockRun::whyExchangeWaits(const Warp &warp) const {
  for (unsigned i = 0; i < warp.count; ++i) {
    const Fiber &waiting = fibers[warp.first + i];
    if (waiting.state != State::AtExchange) continue;
    std::string where = llvm::formatv("thread {0} waits at {1} in line {2} with mask {3:x8}", warp.first + i,
                                      nameOf(waiting.op), waiting.line, waiting.mask);
    if (!((waiting.mask >> i) & 1)) return where + ", which does not name the thread itself";
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!((waiting.mask >> lane) & 1)) continue;
      if (lane >= warp.count)
        return llvm::formatv("{0}, which names lane {1}, but the warp has {2} threads", where, lane, warp.count);
      const Fiber &other = fibers[warp.first + lane];
      if (other.state == State::Finished)
        return llvm::formatv("{0}, but thread {1} has returned", where, warp.first + lane);
      if (other.state == State::AtBarrier)
        return llvm::formatv("{0}, but thread {1} waits at __syncthreads in line {2}", where, warp.first + lane,
                             other.line);
      if (other.op != waiting.op || other.mask != waiting.mask)
        return llvm::formatv("{0}, but thread {1} waits at {2} in line {3} with mask {4:x8}", where, warp.first + lane,
                             nameOf(other.op), other.line, other.mask);
    }
  }
  return "";
}

// Runs a warp until all of its lanes wait at a block barrier or have returned.
bool BlockRun::runWarp(Warp &warp, bool descending) {
  do {
    for (unsigned turn = 0; turn < warp.count; ++turn) {
      Fiber &fiber = fibers[warp.first + (descending ? warp.count - 1 - turn : turn)];
      if (fiber.state == State::Runnable) resume(fiber);
      if (!failure.empty()) return false;
    }
  } while (releaseExchange(warp));
  std::string why = whyExchangeWaits(warp);
  if (!why.empty()) failure = "deadlock: " + why;
  return failure.empty();
}

std::string BlockRun::run(Dim3 blockIndex, void *dynamicShared, bool descending) {
  const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
  failure.clear();
  fibers.assign(threads, Fiber());
  warps.assign((threads + 31) / 32, Warp());
  for (unsigned i = 0; i < threads; ++i) {
    Dim3 index = {i % shape.block.x, i / shape.block.x % shape.block.y, i / (shape.block.x * shape.block.y)};
    fibers[i].lane = {index, blockIndex, shape.block, shape.grid, i % 32, dynamicShared};
    FiberStacks::Stack stack = stacks[i];
    unpoison(stack.bottom, stack.bytes); // what an abandoned fiber left behind
    fibers[i].context = make_fcontext(static_cast<char *>(stack.bottom) + stack.bytes, stack.bytes, enter);
  }
  for (unsigned w = 0; w < warps.size(); ++w) warps[w] = {w * 32, std::min(32u, threads - w * 32), {}};

  activeRun = this;
  for (bool anyLeft = true; anyLeft && failure.empty();) {
    for (unsigned turn = 0; turn < warps.size(); ++turn)
      if (!runWarp(warps[descending ? warps.size() - 1 - turn : turn], descending)) break;
    if (!failure.empty()) break;
    anyLeft = false; // everyone waits at a barrier or has returned; the barrier has to be one and the same
    const Fiber *waiting = nullptr;
    for (Fiber &fiber : fibers) {
      if (fiber.state != State::AtBarrier) continue;
      if (waiting && waiting->line != fiber.line)
        failure = llvm::formatv("divergent barrier: thread {0} waits at __syncthreads in line {1}, thread {2} in line "
                                "{3}; all threads of a block must reach the same one",
                                threadOf(*waiting), waiting->line, threadOf(fiber), fiber.line);
      if (!failure.empty()) break;
      if (!waiting) waiting = &fiber;
    }
    if (waiting && failure.empty())
      for (Fiber &fiber : fibers) {
        if (fiber.state == State::Finished) {
          failure =
              llvm::formatv("divergent barrier: thread {0} waits at __syncthreads in line {1}, but thread {2} has "
                            "returned",
                            threadOf(*waiting), waiting->line, threadOf(fiber));
          break;
        }
        fiber.state = State::Runnable;
        anyLeft = true;
      }
  }
  activeRun = nullptr;
  return failure;
}

} // namespace

const Hooks &fusor::emulator::schedulerHooks() {
  static const Hooks hooks = {
      [](int line) { activeRun->waitAtBarrier(line); },
      [](WarpOp op, unsigned mask, unsigned long long value, int line) {
        return activeRun->exchange(op, mask, value, line);
      },
      [](const char *message, int line) { activeRun->fail(message, line); },
  };
  return hooks;
}

llvm::Error fusor::emulator::runGrid(llvm::StringRef name, void (*kernel)(void **), void **arguments,
                                     const LaunchShape &shape, Lane **lane) {
  auto error = [&](const llvm::Twine &what) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "kernel '" + name + "': " + what);
  };
  const unsigned long long threads = 1ull * shape.block.x * shape.block.y * shape.block.z;
  const Dim3 grid = shape.grid;
  if (threads == 0 || threads > 1024) return error(llvm::formatv("a block has 1 to 1024 threads, not {0}", threads));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    return error(llvm::formatv("grid ({0}, {1}, {2}) cannot be launched", grid.x, grid.y, grid.z));

  FiberStacks &stacks = FiberStacks::pool();
  stacks.ensure(static_cast<unsigned>(threads));
  BlockRun block(kernel, arguments, shape, lane, stacks);
  unsigned long long blockNumber = 0;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x, ++blockNumber) {
        GuardedBuffer dynamicShared(shape.sharedBytes);
        bool descending = shape.order == Order::Descending || (shape.order == Order::Alternate && blockNumber % 2 == 1);
        std::string failure = block.run({x, y, z}, dynamicShared.data(), descending);
        std::string where = llvm::formatv("block ({0}, {1}, {2})", x, y, z);
        if (!failure.empty()) return error(where + ": " + failure);
        if (llvm::Error damage = dynamicShared.check("kernel '" + name + "', " + where + ", dynamic shared memory"))
          return damage;
      }
  return llvm::Error::success();
}
