#include "frontend/bench/loop_timing.h"
#include <chrono>
#include <cstring>
#include <deque>

namespace fusor::frontend::bench {

llvm::Expected<LoopTimes> timeLoop(runtime::Program &program, llvm::StringRef function,
                                   llvm::ArrayRef<runtime::TensorView> inputs,
                                   llvm::ArrayRef<runtime::TensorView> outputs, int64_t warmup, int64_t iterations) {
  using Clock = std::chrono::steady_clock;
  auto msSince = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  LoopTimes times;
  std::deque<unsigned> unread;
  int64_t read = 0;
  Clock::time_point since = Clock::now();
  auto readDownTo = [&](size_t left) -> llvm::Error {
    while (unread.size() > left) {
      if (auto error = program.finish(unread.front(), outputs)) return error;
      unread.pop_front();
      if (++read > warmup) times.ms.push_back(msSince(since)); // the end of run `warmup` is where time begins
      since = Clock::now();
    }
    return llvm::Error::success();
  };
  for (int64_t number = 1; number <= warmup + iterations; ++number) {
    std::vector<runtime::TensorView> staged(inputs.begin(), inputs.end());
    auto begin = Clock::now();
    if (auto error = program.stage(function, staged)) return error;
    double hostMs = msSince(begin);
    for (auto [from, to] : llvm::zip(inputs, staged))
      if (to.data != from.data) std::memcpy(to.data, from.data, from.bytes());
    begin = Clock::now();
    auto run = program.start(function, staged);
    if (!run) return run.takeError();
    if (number > warmup && program.isDeferred()) times.hostUs.push_back(1000 * (hostMs + msSince(begin)));
    unread.push_back(*run);
    if (auto error = readDownTo(program.leftUnread(unread.size()))) return error;
  }
  if (auto error = readDownTo(0)) return error;
  return times;
}

} // namespace fusor::frontend::bench
