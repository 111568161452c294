// needs: vector.cuh async_copy.cuh
// Rows on their way to a block that goes from row to row: a thread copies its own vectors of later rows into shared
// memory in the background, and reads them there itself. So what is on its way costs neither registers nor barriers.
//
//   extern __shared__ __align__(16) u8 rowMemory[];
//   RowRing<bf16, 8, 3, 256> x_rows(rowMemory);   // 3 vectors of 8 a thread, 256 threads; kBytes a stage
//   x_rows.fetch(stage, j, x + i);                // of a row; then commitCopies() and waitForCopies<kInFlight>()
//   x_rows.read(stage, j, values);
template <class T, int kWidth, int kTurns, int kThreads> struct RowRing {
  static constexpr int kBytes = sizeof(T) * kWidth * kTurns * kThreads; // of a stage
  VectorBits<T, kWidth> *vectors;                                       // [stage][turn][thread], from this thread on

  __device__ explicit RowRing(u8 *memory) : vectors((VectorBits<T, kWidth> *)memory + threadIdx.x) {}
  __device__ VectorBits<T, kWidth> &at(int stage, int turn) const {
    return vectors[(stage * kTurns + turn) * kThreads];
  }
  __device__ void fetch(int stage, int turn, const T *from) const {
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) * kWidth / 16; ++i)
      copyAsync16((u8 *)&at(stage, turn) + 16 * i, (const u8 *)from + 16 * i, true);
  }
  __device__ void read(int stage, int turn, ComputeOf<T> (&values)[kWidth]) const { unpack(at(stage, turn), values); }
};
