// needs: types.cuh
// Matrices transposed through shared memory: out[b][c][r] = in[b][r][c], elements of 1, 2 or 4 bytes as they are.
//
//   tile      128 x 128 bytes, 64 x 64 halves or 32 x 32 floats: a block of 256 threads
//   load      a lane a word of a row, as many rows as a word has elements; turned in registers (4 x 4 bytes)
//   store     a lane a word of a column: both sides of memory see 128 bytes a warp
//
//   tile word (column c, rows of group g) lies at c * 32 + (g ^ c / elements): loads and stores meet no bank twice
//
// Rows that are no multiple of a word go element by element. Launch: tiles of a matrix times batches.
template <class Element> struct TransposeTile {
  static constexpr int kPerWord = 4 / (int)sizeof(Element), kSide = 32 * kPerWord, kBits = 8 * (int)sizeof(Element);
};

// Up to a word of elements from `p`, `left` of which are there.
template <class Element> __device__ inline u32 loadTransposeWord(const Element *p, i64 left, bool isWord) {
  typedef TransposeTile<Element> Tile;
  if (isWord && left >= Tile::kPerWord) return *(const u32 *)p;
  u32 word = 0;
#pragma unroll
  for (int i = 0; i < Tile::kPerWord; ++i)
    if (i < left) word |= (u32)p[i] << (i * Tile::kBits % 32);
  return word;
}

template <class Element> __device__ inline void storeTransposeWord(Element *p, i64 left, bool isWord, u32 word) {
  typedef TransposeTile<Element> Tile;
  if (isWord && left >= Tile::kPerWord) {
    *(u32 *)p = word;
    return;
  }
#pragma unroll
  for (int i = 0; i < Tile::kPerWord; ++i)
    if (i < left) p[i] = (Element)(word >> (i * Tile::kBits % 32));
}

// in [batch][rows][columns] with `inRow` and `inBatch` elements between; out [batch][columns][rows].
// Element: u8, u16 or u32.
template <class Element>
__device__ inline void transposeTiles(const Element *in, Element *out, i64 rows, i64 columns, i64 inRow, i64 inBatch) {
  typedef TransposeTile<Element> Tile;
  constexpr int kPerWord = Tile::kPerWord, kWarps = 8;
  constexpr u32 kMask = sizeof(Element) == 4 ? ~0u : (1u << (Tile::kBits % 32)) - 1;
  __shared__ u32 tile[Tile::kSide * 32]; // [column][group of rows]
  const i64 across = (columns + Tile::kSide - 1) / Tile::kSide, down = (rows + Tile::kSide - 1) / Tile::kSide;
  const i64 batch = blockIdx.x / (across * down), at = blockIdx.x % (across * down);
  const i64 row0 = at / across * Tile::kSide, column0 = at % across * Tile::kSide;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  in += batch * inBatch, out += batch * rows * columns;
  const bool inWords = inRow % kPerWord == 0 && (u64)in % 4 == 0, outWords = rows % kPerWord == 0 && (u64)out % 4 == 0;
#pragma unroll
  for (int group = warp; group < 32; group += kWarps) {
    u32 words[kPerWord]; // a row each
    const i64 column = column0 + lane * kPerWord;
#pragma unroll
    for (int r = 0; r < kPerWord; ++r) {
      const i64 row = row0 + group * kPerWord + r;
      words[r] = row < rows ? loadTransposeWord(in + row * inRow + column, columns - column, inWords) : 0;
    }
#pragma unroll
    for (int c = 0; c < kPerWord; ++c) { // a column each
      u32 turned = 0;
#pragma unroll
      for (int r = 0; r < kPerWord; ++r)
        turned |= ((words[r] >> (c * Tile::kBits % 32)) & kMask) << (r * Tile::kBits % 32);
      tile[(lane * kPerWord + c) * 32 + (group ^ lane)] = turned;
    }
  }
  __syncthreads();
  const i64 row = row0 + lane * kPerWord;
  for (int c = warp; c < Tile::kSide && column0 + c < columns; c += kWarps)
    if (row < rows)
      storeTransposeWord(out + (column0 + c) * rows + row, rows - row, outWords, tile[c * 32 + (lane ^ c / kPerWord)]);
}
