// needs: types.cuh reduce.cuh
// Delayed scaling, one tensor a block: the amax of this step goes last into the history, and the scale follows from its
// largest value (kNewest: from the newest). Transformer Engine's rule to the last edge case, see ir/ops/quantize.cpp;
// kFiniteOnly: an amax of Inf counts as 0.
//
//   history  [0, a, b, c] -> [0, b, c, amax]     slot 0 is being collected: it does not count, and is 0 afterwards
//   scale    top / max(a, b, c, amax)            kept where that maximum is no positive finite number
//   inverse  1 / scale                           rounded as the division is: what products are multiplied by
//
// The new history and scale may be where the old ones are.
template <bool kNewest, bool kFiniteOnly>
__device__ inline void amaxUpdate(const float *history, const float *scale, const float *amax, float *newHistory,
                                  float *newScale, float *newInverse, i64 length, float top) {
  const float given = *amax, kept = *scale, highest = bitsToFloat(0x7f7fffffu);
  const bool counts = !kFiniteOnly || given <= highest;
  const float newest = counts ? given : 0.0f;
  float largest = 0.0f;
  for (i64 i = 1 + threadIdx.x; i < length && !kNewest; i += blockDim.x)
    largest = history[i] > largest && (!kFiniteOnly || history[i] <= highest) ? history[i] : largest;
  largest = blockReduce<MaxNumber>(largest); // every thread has read what the first one overwrites below
  for (i64 base = 0; base < length; base += blockDim.x) {
    const i64 i = base + threadIdx.x;
    float value = 0.0f;
    if (i < length && newest == 0.0f)
      value = counts || i > 0 ? history[i] : 0.0f;
    else if (i > 0 && i < length)
      value = i + 1 < length ? history[i + 1] : newest;
    __syncthreads(); // neighbours read before they are overwritten
    if (i < length) newHistory[i] = value;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const float used = largest > newest ? largest : newest;
  const bool follows = newest != 0.0f && used > 0.0f && used <= highest;
  float next = follows ? top / used : kept;
  if (follows && next > highest) next = highest;
  *newScale = next;
  *newInverse = 1.0f / next;
}
