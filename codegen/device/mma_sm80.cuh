// needs: types.cuh async_copy.cuh
// Tensor-core instructions of sm_80 and later, one function each, and tiles of 16-bit elements in shared memory that
// feed them. What a lane holds of a product d[16][8] += a[16][16] · b[16][8], with group = lane / 4, pair = lane % 4:
//
//   a[0..3]  rows group, group + 8, group, group + 8; columns 2 pair, 2 pair + 1 of the left, left, right, right half
//   b0, b1   rows 2 pair, 2 pair + 1 of the upper and of the lower half; column group
//   d[0..3]  row group: columns 2 pair, 2 pair + 1; row group + 8: the same
//
// So the sums of two neighbouring products, rounded and packed, are the `a` of a further one: no exchange between
// lanes. Products are exact, sums f32. All lanes of a warp take part in ldmatrix and mma.

#ifndef FUSOR_EMULATOR // which has these functions under the same names: runtime/emulator/shim_mma.h
// Four 8x8 matrices. Lane l points at row l % 8 of matrix l / 8: 16 aligned bytes. The lane gets, of each, row `group`,
// columns 2 pair and 2 pair + 1 (transposed: rows and columns change places).
__device__ inline void ldmatrix4(u32 (&matrices)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(sharedAddress(row))
               : "memory");
}
__device__ inline void ldmatrix4Transposed(u32 (&matrices)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(sharedAddress(row))
               : "memory");
}

template <class T> __device__ void mma16x8x16(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ inline void mma16x8x16<bf16>(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ inline void mma16x8x16<f16>(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// Two values rounded to T in one register, `low` in its lower half.
template <class T> __device__ inline u32 packedPair(float low, float high) {
  return (u32)fromFloat<T>(low).bits | (u32)fromFloat<T>(high).bits << 16;
}
#ifndef FUSOR_EMULATOR // one instruction with the same bits but for the payload of a NaN
template <> __device__ inline u32 packedPair<bf16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <> __device__ inline u32 packedPair<f16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

// Sums[16][16 * kSteps], rounded to T, as the left operand of a further product.
template <class T, int kSteps>
__device__ inline void packLeft(u32 (&left)[kSteps][4], const float (&sums)[2 * kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      left[k][2 * half] = packedPair<T>(sums[2 * k + half][0], sums[2 * k + half][1]);
      left[k][2 * half + 1] = packedPair<T>(sums[2 * k + half][2], sums[2 * k + half][3]);
    }
}
template <int kTiles> __device__ inline void clear(float (&sums)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
}

// [kRows][kColumns] of T in shared memory. Columns are padded with zeros to a multiple of 16, rows to an odd number of
// 16-byte groups, so that eight neighbouring rows of ldmatrix meet no bank conflict. For blocks of kThreads threads.
template <class T, int kRows, int kColumns, int kThreads> struct MmaTile {
  static_assert(kColumns % 8 == 0, "16-byte groups of a row");
  static constexpr int kWidth = (kColumns + 15) / 16 * 16;
  static constexpr int kPitch = kWidth + 8;
  static constexpr int kGroups = kWidth / 8;
  alignas(16) T elements[kRows * kPitch];

  __device__ const T *at(int row, int column) const { return elements + row * kPitch + column; }

  // Starts copying; all threads of the block. `rows` rows exist from `source` on, the others become zeros.
  __device__ void fill(const T *source, i64 rowStride, int rows) {
#pragma unroll
    for (int first = 0; first < kRows * kGroups; first += kThreads) {
      const int i = first + threadIdx.x;
      if (kRows * kGroups % kThreads != 0 && i >= kRows * kGroups) break;
      const int row = i / kGroups, group = i % kGroups;
      const bool exists = row < rows && (kColumns == kWidth || group * 8 < kColumns);
      copyAsync16(elements + row * kPitch + group * 8, source + row * rowStride + group * 8, exists);
    }
  }
  // Rows row .. row + 15, columns column .. column + 15 as an `a`, and all columns as `a`s for the products below.
  __device__ void loadLeft(u32 (&a)[4], int row, int column) const {
    ldmatrix4(a, at(row + threadIdx.x % 16, column + threadIdx.x % 32 / 16 * 8));
  }
  __device__ void loadLeft(u32 (&left)[kWidth / 16][4], int row) const {
#pragma unroll
    for (int d = 0; d < kWidth / 16; ++d) loadLeft(left[d], row, d * 16);
  }
  // Rows row .. row + 15, columns column .. column + 15 as two `b`s each. Transposed: b[0], b[1] have rows row .. row +
  // 7 as their columns, b[2], b[3] the next eight. Plain: b[0], b[1] have columns column .. column + 7, and so on.
  __device__ void loadRightTransposed(u32 (&b)[4], int row, int column) const {
    const int lane = threadIdx.x % 32;
    ldmatrix4(b, at(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
  }
  __device__ void loadRight(u32 (&b)[4], int row, int column) const {
    ldmatrix4Transposed(b, at(row + threadIdx.x % 16, column + threadIdx.x % 32 / 16 * 8));
  }
  // sums[16][8 * kTiles] += left[16][kWidth] · (rows row .. row + 8 * kTiles - 1)ᵀ
  template <int kTiles>
  __device__ void addTransposed(float (*sums)[4], const u32 (&left)[kWidth / 16][4], int row) const {
    constexpr int kDepth = kWidth / 16;
#pragma unroll
    for (int i = 0; i < kTiles / 2 * kDepth; ++i) { // one loop: the schedule is 3 % better than that of two
      const int n = i / kDepth, d = i % kDepth;
      u32 b[4];
      loadRightTransposed(b, row + n * 16, d * 16);
      mma16x8x16<T>(sums[2 * n], left[d], b[0], b[1]);
      mma16x8x16<T>(sums[2 * n + 1], left[d], b[2], b[3]);
    }
  }
  // The same with rows leftRow .. leftRow + 15 of another tile, read on the way: four registers instead of kWidth / 4.
  template <int kTiles, class Left>
  __device__ void addTransposed(float (*sums)[4], const Left &left, int leftRow, int row) const {
#pragma unroll
    for (int d = 0; d < kWidth / 16; ++d) {
      u32 a[4];
      left.loadLeft(a, leftRow, d * 16);
#pragma unroll
      for (int n = 0; n < kTiles / 2; ++n) {
        u32 b[4];
        loadRightTransposed(b, row + n * 16, d * 16);
        mma16x8x16<T>(sums[2 * n], a, b[0], b[1]);
        mma16x8x16<T>(sums[2 * n + 1], a, b[2], b[3]);
      }
    }
  }
  // sums[16][kWidth] += left[16][16 * kSteps] · (rows row .. row + 16 * kSteps - 1)
  template <int kSteps> __device__ void add(float (&sums)[kWidth / 8][4], const u32 (*left)[4], int row) const {
    constexpr int kDepth = kWidth / 16;
#pragma unroll
    for (int i = 0; i < kSteps * kDepth; ++i) {
      const int k = i / kDepth, d = i % kDepth;
      u32 b[4];
      loadRight(b, row + k * 16, d * 16);
      mma16x8x16<T>(sums[2 * d], left[k], b[0], b[1]);
      mma16x8x16<T>(sums[2 * d + 1], left[k], b[2], b[3]);
    }
  }

  // Rows row .. row + 15 of sums[kWidth / 8] (of one warp, times `low` for rows group, `high` for rows group + 8),
  // rounded to T, through this tile into memory in 16-byte words. `rows` rows of the tile exist from `target` on. One
  // warp; the 16 rows are its own.
  __device__ void store(T *target, i64 rowStride, int rows, int row, const float (&sums)[kWidth / 8][4], float low,
                        float high) {
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
    __syncwarp(); // what this warp's lanes still read of the rows
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      *(u32 *)(elements + (row + group) * kPitch + n * 8 + pair * 2) =
          packedPair<T>(sums[n][0] * low, sums[n][1] * low);
      *(u32 *)(elements + (row + group + 8) * kPitch + n * 8 + pair * 2) =
          packedPair<T>(sums[n][2] * high, sums[n][3] * high);
    }
    __syncwarp();
    constexpr int kStored = kColumns / 8; // groups of a row
#pragma unroll
    for (int first = 0; first < 16 * kStored; first += 32) {
      const int i = first + lane, r = row + i / kStored, c = i % kStored * 8;
      if ((16 * kStored % 32 == 0 || i < 16 * kStored) && r < rows)
        *(uint4 *)(target + r * rowStride + c) = *(const uint4 *)at(r, c);
    }
  }
};
