#include "runtime/cpu/parallel.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

using namespace fusor::runtime;

namespace {

TEST(CpuParallel, RunsEachTaskOnce) {
  for (unsigned threads : {0u, 1u, 2u, 3u, 5u}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), std::max(threads, 1u));
    for (int64_t tasks : {0, 1, 2, 3, 100, 1000}) {
      std::vector<std::atomic<int>> count(tasks);
      workers.forEach(tasks, [&](int64_t task) { ++count[task]; });
      for (auto &c : count) ASSERT_EQ(c.load(), 1);
    }
  }
}

TEST(CpuParallel, WritesAreVisibleAfterManyShortRegions) {
  Workers workers(3);
  std::vector<int64_t> values(7, 0);
  for (int64_t region = 1; region <= 20000; ++region) {
    workers.forEach(7, [&](int64_t task) { values[task] += task; });
    if (region % 1000 == 0) {
      for (int64_t task = 0; task < 7; ++task) ASSERT_EQ(values[task], task * region);
    }
  }
}

TEST(CpuParallel, UsesSeveralThreads) {
  Workers workers(2);
  std::atomic<int> arrived{0};
  // Each task waits for the other one: this ends only if two threads run them.
  workers.forEach(2, [&](int64_t) {
    ++arrived;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived.load() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(CpuParallel, WakesSleepingThreads) {
  Workers workers(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // longer than the threads spin
    std::atomic<int> arrived{0};
    workers.forEach(2, [&](int64_t) {
      ++arrived;
      auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (arrived.load() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    ASSERT_EQ(arrived.load(), 2);
  }
}

TEST(CpuParallel, NestedRegionsRunSerially) {
  Workers workers(2), others(2);
  std::atomic<int> total{0};
  workers.forEach(4, [&](int64_t) {
    std::thread::id here = std::this_thread::get_id();
    workers.forEach(5, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++total;
    });
    others.forEach(5, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++total;
    });
  });
  EXPECT_EQ(total.load(), 40);
}

TEST(CpuParallel, RegionsOfSeveralCallersDoNotMix) {
  Workers workers(2);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::atomic<int64_t> sum{0};
        workers.forEach(10, [&](int64_t task) { sum += task; });
        EXPECT_EQ(sum.load(), 45);
        total += sum;
      }
    });
  for (std::thread &caller : callers) caller.join();
  EXPECT_EQ(total.load(), 3 * 500 * 45);
}

TEST(CpuParallel, LongLastTaskIsWaitedFor) {
  Workers workers(2);
  std::atomic<bool> finished{false};
  workers.forEach(2, [&](int64_t task) {
    if (task == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    finished = true;
  });
  EXPECT_TRUE(finished.load());
}

} // namespace
