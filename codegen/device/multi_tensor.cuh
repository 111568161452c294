// needs: types.cuh
// Kernels over many tensors in one launch (optimizer steps, global norms, casts): each block works on one chunk of one
// tensor and looks up which.
//
// The table lies in device memory, built once by the host; T tensors, C pointers each:
//   pointers:    u64[C][T]        pointers[c * T + t]: operand c of tensor t (say 0 = weight, 1 = gradient, 2 = moment)
//   sizes:       i64[T]           elements of tensor t
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

template <class T> __device__ inline T *tensorPointer(const TensorTable &table, i64 operand, i64 tensor) {
  return (T *)table.pointers[operand * table.tensors + tensor];
}
