// The instructions of codegen/device/mma_sm80.cuh as host C++, under the same names. Part of shim.h.
//
// ldmatrix and mma are collective: each lane reads its operands, all exchange them, none goes on before all have. Sums
// of mma run over k in ascending order in f32; hardware adds in another order, so bits may differ in the last place.
#pragma once

namespace fusor::emulator {

struct PendingCopy {
  void *to;
  const void *from; // null: zeros
  int bytes;
};
// cp.async of one thread: groups committed, oldest first, and the copies since.
struct CopyQueue {
  static constexpr int kCapacity = 256;
  PendingCopy copies[kCapacity];
  int ends[kCapacity]; // of each committed group
  int groups = 0, count = 0;
};
inline CopyQueue &copyQueue() {
  static CopyQueue queues[1024]; // a block's threads
  const Lane &lane = *fusor_emulator_lane;
  return queues[lane.threadIndex.x + lane.blockShape.x * (lane.threadIndex.y + lane.blockShape.y * lane.threadIndex.z)];
}
inline void forgetCopies() { copyQueue().groups = copyQueue().count = 0; }
// At the end of a kernel: what was never waited for, committed or not, arrives at any time until then.
inline void expectNoCopies() {
  if (copyQueue().count != 0) fusor_emulator_hooks->fail("the kernel ends with cp.async that were not waited for", 0);
}

inline void perform(const PendingCopy &copy) {
  if (copy.bytes == 0) return; // arrived at once
  if (copy.from)
    std::memcpy(copy.to, copy.from, copy.bytes);
  else
    std::memset(copy.to, 0, copy.bytes);
}

// What lane `lane` offered to an exchange of N words.
template <int N> struct Offered { unsigned long long words[N][32]; };
template <int N> Offered<N> exchangeWords(const unsigned long long (&mine)[N], int line) {
  Offered<N> all;
  for (int i = 0; i < N; ++i)
    std::memcpy(all.words[i], fusor_emulator_hooks->exchange(WarpOp::Matrix, 0xffffffffu, mine[i], line), 32 * 8);
  return all;
}

// Four 8x8 matrices: lane l brings row l % 8 of matrix l / 8.
inline void loadMatrices(unsigned (&registers)[4], const void *row, bool transposed, int line) {
  if (reinterpret_cast<unsigned long long>(row) % 16 != 0)
    fusor_emulator_hooks->fail("ldmatrix reads rows that are aligned to 16 bytes", line);
  unsigned long long mine[2];
  std::memcpy(mine, row, 16);
  const Offered<2> all = exchangeWords(mine, line);
  auto element = [&](int matrix, int r, int c) {
    return unsigned(all.words[c / 4][matrix * 8 + r] >> (c % 4 * 16)) & 0xffffu;
  };
  const int lane = int(fusor_emulator_lane->index), group = lane / 4, first = lane % 4 * 2;
  for (int m = 0; m < 4; ++m)
    registers[m] = transposed ? element(m, first, group) | element(m, first + 1, group) << 16
                              : element(m, group, first) | element(m, group, first + 1) << 16;
}

} // namespace fusor::emulator

inline void ldmatrix4(unsigned (&matrices)[4], const void *row, int line = __builtin_LINE()) {
  fusor::emulator::loadMatrices(matrices, row, false, line);
}
inline void ldmatrix4Transposed(unsigned (&matrices)[4], const void *row, int line = __builtin_LINE()) {
  fusor::emulator::loadMatrices(matrices, row, true, line);
}

// sums[16][8] += a[16][16] · b[16][8], T with a `bits` of 16 bits and a toFloat().
template <class T>
void mma16x8x16(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, int line = __builtin_LINE()) {
  const unsigned long long mine[3] = {a[0] | (unsigned long long)a[1] << 32, a[2] | (unsigned long long)a[3] << 32,
                                      b0 | (unsigned long long)b1 << 32};
  const auto all = fusor::emulator::exchangeWords(mine, line);
  auto half = [&](int lane, int reg, int which) { // reg 0..3 of a, 4..5 of b
    return toFloat(T{(unsigned short)(all.words[reg / 2][lane] >> (reg % 2 * 32 + which * 16))});
  };
  const int lane = int(fusor_emulator_lane->index), group = lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    const int row = group + i / 2 * 8, col = column + i % 2;
    for (int k = 0; k < 16; ++k)
      sums[i] +=
          half(row % 8 * 4 + k % 8 / 2, k / 8 * 2 + row / 8, k % 2) * half(col * 4 + k % 8 / 2, 4 + k / 8, k % 2);
  }
}

inline void copyAsync(void *to, const void *from, bool exists, int bytes, int line) {
  using namespace fusor::emulator;
  const auto addresses = reinterpret_cast<unsigned long long>(to) | reinterpret_cast<unsigned long long>(from) * exists;
  if (addresses % bytes != 0) fusor_emulator_hooks->fail("cp.async moves words that are aligned to their size", line);
  PendingCopy copy = {to, exists ? from : nullptr, bytes};
  if (fusor_emulator_lane->blockIndex.x % 2 == 1) perform(copy), copy = {to, nullptr, 0};
  CopyQueue &queue = copyQueue();
  if (queue.count == CopyQueue::kCapacity) fusor_emulator_hooks->fail("too many cp.async in flight", line);
  queue.copies[queue.count++] = copy;
}
inline void copyAsync16(void *to, const void *from, bool exists, int line = __builtin_LINE()) {
  copyAsync(to, from, exists, 16, line);
}
inline void copyAsync4(void *to, const void *from, bool exists, int line = __builtin_LINE()) {
  copyAsync(to, from, exists, 4, line);
}
inline void commitCopies(int line = __builtin_LINE()) {
  using namespace fusor::emulator;
  CopyQueue &queue = copyQueue();
  if (queue.groups == CopyQueue::kCapacity) fusor_emulator_hooks->fail("too many groups of cp.async", line);
  queue.ends[queue.groups++] = queue.count;
}
// Until at most kInFlight of the newest groups are in flight.
template <int kInFlight> void waitForCopies() {
  using namespace fusor::emulator;
  CopyQueue &queue = copyQueue();
  const int done = queue.groups - kInFlight;
  if (done <= 0) return;
  const int arrived = queue.ends[done - 1];
  for (int i = 0; i < arrived; ++i) perform(queue.copies[i]);
  queue.count -= arrived, queue.groups -= done;
  std::memmove(queue.copies, queue.copies + arrived, queue.count * sizeof(PendingCopy));
  for (int i = 0; i < queue.groups; ++i) queue.ends[i] = queue.ends[i + done] - arrived;
}
