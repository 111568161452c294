// needs: types.cuh
// Rows looked up by an index from memory, as the IR's gather reads them.

// The row that `index` names among `rows`: negative ones count from the end. -1 where there is no such row, which reads
// as zeros.
template <class T> __device__ inline i64 wrapIndex(T index, i64 rows) {
  const i64 at = (i64)index < 0 ? (i64)index + rows : (i64)index;
  return at >= 0 && at < rows ? at : -1;
}
