// needs: types.cuh
// Kernels over many tensors in one launch (optimizer steps, global norms, casts): each block works on one chunk of one
// tensor and looks up which.
//
// The table lies in device memory, built once by the host; T tensors, C pointers each:
//   pointers:    u64[C][T]        pointers[c * T + t]: operand c of tensor t (say 0 = weight, 1 = gradient, 2 = moment)
//   sizes:       i64[T]           elements of tensor t; matrices in tiles: i64[2][T], then their columns
//   chunkPrefix: i64[T + 1]       chunks of the tensors before t: chunkPrefix[t + 1] - chunkPrefix[t] =
//                                 ceil(sizes[t] / chunkElements); grid.x = chunkPrefix[T]
//
//   TensorTable table = {pointers, sizes, chunkPrefix, T};
//   TensorChunk chunk = findChunk(table, blockIdx.x, 4096);
//   float *weight = tensorPointer<float>(table, 0, chunk.tensor);
//   for (i64 i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x) ...

struct TensorTable {
  const u64 *pointers;
  const i64 *sizes;
  const i64 *chunkPrefix;
  i64 tensors;
};

struct TensorChunk {
  i64 tensor;
  i64 begin, end; // elements of that tensor
};

// The tensor with chunkPrefix[t] <= chunk < chunkPrefix[t + 1]; tensors of size 0 have no chunk and are never found.
__device__ inline TensorChunk findChunk(const TensorTable &table, i64 chunk, i64 chunkElements) {
  i64 low = 0, high = table.tensors; // chunkPrefix[low] <= chunk < chunkPrefix[high]
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (table.chunkPrefix[middle] <= chunk)
      low = middle;
    else
      high = middle;
  }
  const i64 begin = (chunk - table.chunkPrefix[low]) * chunkElements;
  const i64 end = begin + chunkElements;
  return TensorChunk{low, begin, end < table.sizes[low] ? end : table.sizes[low]};
}

// Matrices in tiles instead: a block has kSide x kSide elements of one, and chunkPrefix counts tiles.
struct TensorTile {
  i64 tensor;
  i64 row0, column0; // of its first element
  i64 rows, columns; // of the matrix
};
template <int kSide> __device__ inline TensorTile findTile(const TensorTable &table, i64 block) {
  const i64 tensor = findChunk(table, block, 1).tensor, columns = table.sizes[table.tensors + tensor];
  const i64 tile = block - table.chunkPrefix[tensor], across = (columns + kSide - 1) / kSide;
  return TensorTile{tensor, tile / across * kSide, tile % across * kSide, table.sizes[tensor] / columns, columns};
}

// A tile of bytes that goes out transposed: columns become rows of `kSide` bytes. Rows and columns of the matrix are
// multiples of 4. A column takes 17 words, so the 4-byte words of a warp's store lie in different banks.
template <int kSide> struct TurnedTile {
  u8 bytes[kSide][kSide + 4]; // [column][row]

  template <class T> __device__ void put(int row, int column, const float (&values)[4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) bytes[column + e][row] = convert<T>(values[e]).bits;
  }
  // The whole block, behind a barrier.
  template <class T> __device__ void store(T *out, const TensorTile &tile) const {
    for (int c = threadIdx.x / (kSide / 4); c < kSide; c += blockDim.x / (kSide / 4)) {
      const int r = threadIdx.x % (kSide / 4) * 4;
      if (tile.column0 + c >= tile.columns || tile.row0 + r >= tile.rows) continue;
      *(u32 *)(out + (tile.column0 + c) * tile.rows + tile.row0 + r) = *(const u32 *)&bytes[c][r];
    }
  }
};

template <class T> __device__ inline T *tensorPointer(const TensorTable &table, i64 operand, i64 tensor) {
  return (T *)table.pointers[operand * table.tensors + tensor];
}
