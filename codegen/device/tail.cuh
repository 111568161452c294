// needs: types.cuh vector.cuh
// kCount neighbours, or those of them that exist at the end of a tensor. The pointers are aligned to the group.

template <int kCount, class T> __device__ inline void loadUpTo(const T *p, i64 left, ComputeOf<T> (&values)[kCount]) {
  if (left >= kCount) return loadVector(p, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = i < left ? load(p + i) : ComputeOf<T>();
}

template <int kCount, class T, class V> __device__ inline void storeUpTo(T *p, i64 left, const V (&values)[kCount]) {
  if (left >= kCount) return storeVector(p, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    if (i < left) store(p + i, values[i]);
}
