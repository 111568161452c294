// needs: vector.cuh
// FP8 matrices that are stored transposed by the kernel that makes them row by row: out[column][row]. A block gathers a
// tile of rows in shared memory and then stores its columns, kRows neighbours in memory each.
//
//   TransposedTile<f8e4m3, 32, 768, 8> y_tile(memory); // 32 rows, 768 columns; threads have 8 neighbouring columns
//   y_tile.put(row, column, values);                   // of the tile; column: a multiple of 8
//   __syncthreads();
//   y_tile.store(out, rows, first, end, columns);      // the block: rows first to end, as many columns as there are
//
//   word (column c, rows 4g to 4g + 3) lies at c * kRows / 4 + c / kWidth + g: a word between the columns of two
//   threads, so that a warp with neighbouring vectors of one row meets no bank twice, nor does one that reads columns
template <class T, int kRows, int kColumns, int kWidth> struct TransposedTile {
  static constexpr int kWords = kRows / 4; // of a column
  static constexpr int kBytes = 4 * (kColumns * kWords + kColumns / kWidth);
  u32 *words;
  static_assert(kRows % 4 == 0 && kColumns % kWidth == 0, "whole words, whole vectors");

  __device__ explicit TransposedTile(u8 *memory) : words((u32 *)memory) {}
  __device__ static int at(int column, int group) { return column * kWords + column / kWidth + group; }

  __device__ void put(int row, int column, const float (&values)[kWidth]) const {
    VectorBits<T, kWidth> raw;
    pack(raw, values);
    u8 *to = (u8 *)(words + at(column, row / 4)) + row % 4;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) to[kRows * e] = raw.elements[e].bits;
  }
  __device__ void put(int row, int column, float value) const {
    ((u8 *)(words + at(column, row / 4)))[row % 4] = convert<T>(value).bits;
  }

  // out: [..][rows] from the tile's first column on. Rows that are no multiple of 4 go one by one. The block's threads
  // are a multiple of kWords: each has the same rows of every column.
  __device__ void store(T *out, i64 rows, i64 first, i64 end, i64 columns) const {
    const int group = threadIdx.x % kWords;
    const i64 row = first + 4 * group, last = columns < kColumns ? columns : kColumns;
    if (row >= end) return;
    for (int column = threadIdx.x / kWords; column < last; column += blockDim.x / kWords) {
      const u32 word = words[at(column, group)];
      T *to = out + column * rows + row;
      if (rows % 4 == 0)
        *(u32 *)to = word;
      else
        for (int r = 0; r < 4 && row + r < end; ++r) to[r].bits = (u8)(word >> 8 * r);
    }
  }
};
