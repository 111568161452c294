// ---- embedding_add_layer_norm__f32_32_64 ----
// embedding_add_layer_norm__f32_32_64   (row kernel)
//   %emb = embedding %emb_weight, %tokens                                                          : f32[B, 32, 64]
//   %embedded = add %emb, %pos_weight                                                              : f32[B, 32, 64]
//   %ln1, %layer_norm, %layer_norm2 = layer_norm %embedded, weight = %ln1_weight, bias = %ln1_bias : f32[B, 32, 64], f32[B, 32, 1], f32[B, 32, 1]
// 3 ops -> 1 kernel; reads emb_weight tokens pos_weight ln1_weight ln1_bias, writes embedded ln1; saves 3 passes over [B, 32, 64].
// grid = ceil(32*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
embedding_add_layer_norm__f32_32_64(const float *__restrict__ emb_weight, const i32 *__restrict__ tokens, const float *__restrict__ pos_weight, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, float *__restrict__ embedded, float *__restrict__ ln1, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (32 * B)) return; // whole warps
  // load
  float v4[4];                                                                  // this thread's columns
  float pos_weight4[4];                                                         // this thread's columns
  {
    const int c = thread * 4;
    if (c < 64) {
      const i64 row2 = wrapIndex(load(tokens + row), 96);
      if (row2 >= 0)
        loadVector(emb_weight + c + row2 * 64, v4);
      else
        for (int e = 0; e < 4; ++e) v4[e] = 0.0f;
      loadVector(pos_weight + row % 32 * 64 + c, pos_weight4);
    }
  }
  // compute and store: sum
  float sum_acc = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      float embedded4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        embedded4[e] = v4[e] + pos_weight4[e];                                  // f32[B, 32, 64]
        sum_acc += embedded4[e];
      }
      storeVector(embedded + row * 64 + c, embedded4);
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 64.0f;                                            // f32[B, 32, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float embedded2 = v4[e] + pos_weight4[e];                         // f32[B, 32, 64]
        const float sub = embedded2 - div;                                      // f32[B, 32, 64]
        const float mul = sub * sub;                                            // f32[B, 32, 64]
        sum_acc2 += mul;
      }
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 64.0f;                                          // f32[B, 32, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 32, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 32, 1]
  // compute and store
  {
    const int c = thread * 4;
    if (c < 64) {
      float ln1_weight4[4];
      loadVector(ln1_weight + c, ln1_weight4);
      float ln1_bias4[4];
      loadVector(ln1_bias + c, ln1_bias4);
      float add4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float embedded3 = v4[e] + pos_weight4[e];                         // f32[B, 32, 64]
        const float sub2 = embedded3 - div;                                     // f32[B, 32, 64]
        const float mul2 = sub2 * rsqrt2;                                       // f32[B, 32, 64]
        const float mul3 = mul2 * ln1_weight4[e];                               // f32[B, 32, 64]
        add4[e] = mul3 + ln1_bias4[e];                                          // f32[B, 32, 64]
      }
      storeVector(ln1 + row * 64 + c, add4);
    }
  }
}

// ---- linear__f32_32_192 ----
// linear__f32_32_192   (contraction kernel)
//   %qkv = linear %ln1, %qkv_weight, bias = %qkv_bias : f32[B, 32, 192]
// 1 op -> 1 kernel; reads ln1 qkv_weight qkv_bias, writes qkv.
// grid = ceil(32*B / 128) * 2, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear__f32_32_192(const float *__restrict__ ln1, const float *__restrict__ qkv_weight, const float *__restrict__ qkv_bias2, float *__restrict__ qkv, i64 B) {
  const GemmOperands<float, float> operands = {ln1, qkv_weight, (32 * B), 192, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float qkv_bias = load(qkv_bias2 + c);
    const float add = acc + qkv_bias;                                           // f32[B, 32, 192]
    store(qkv + row * 192 + c, add);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- split_attention__f32_32_64 ----
// split_attention__f32_32_64   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [64, 64, 64]}                            : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %attention, %attention2 = attention %q, %k, %v {causal = true, heads = 2} : f32[B, 32, 64], f32[B, 2, 32]
// 2 ops -> 1 kernel; reads qkv, writes attention; saves 6 passes over [B, 32, 64].
// grid = 2*B, block = 128, online softmax on CUDA cores: the kernel tier is simt
extern "C" __global__ void __launch_bounds__(128)
split_attention__f32_32_64(const float *__restrict__ qkv, float *__restrict__ attention, i64 B) {
  const AttentionShape shape = {B, 2, 2, 32, 32,                                // batch, heads, key heads, queries, keys
    0.17677669f, true, -1, nullptr, nullptr};                                   // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const float> q_view = {qkv, 6144, 192, 32};                    // strides of batch, token, head
  const HeadView<const float> k_view = {qkv + 64, 6144, 192, 32};               // strides of batch, token, head
  const HeadView<const float> v_view = {qkv + 128, 6144, 192, 32};              // strides of batch, token, head
  const HeadView<float> y_view = {attention, 2048, 64, 32};                     // strides of batch, token, head
  // the weights meet v unrounded: the IR has no rounding there
  attentionForward<32, false>(q_view, k_view, v_view, y_view, (float *)nullptr, shape);
}

// ---- linear_add__f32_32_64 ----
// linear_add__f32_32_64   (contraction kernel)
//   %proj = linear %attention, %proj_weight, bias = %proj_bias : f32[B, 32, 64]
//   %mid = add %embedded, %proj                                : f32[B, 32, 64]
// 2 ops -> 1 kernel; reads attention proj_weight proj_bias embedded, writes mid; saves 2 passes over [B, 32, 64].
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_add__f32_32_64(const float *__restrict__ attention, const float *__restrict__ proj_weight, const float *__restrict__ proj_bias2, const float *embedded2, float *mid2, i64 B) {
  const GemmOperands<float, float> operands = {attention, proj_weight, (32 * B), 64, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float proj_bias = load(proj_bias2 + c);
    const float embedded = load(embedded2 + row * 64 + c);
    const float add = acc + proj_bias;                                          // f32[B, 32, 64]
    const float mid = embedded + add;                                           // f32[B, 32, 64]
    store(mid2 + row * 64 + c, mid);
    return acc;
  };
  gemmSimt<GemmTile64, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- layer_norm__f32_32_64 ----
// layer_norm__f32_32_64   (row kernel)
//   %ln2, %layer_norm, %layer_norm2 = layer_norm %mid, weight = %ln2_weight, bias = %ln2_bias : f32[B, 32, 64], f32[B, 32, 1], f32[B, 32, 1]
// 1 op -> 1 kernel; reads mid ln2_weight ln2_bias, writes ln2.
// grid = ceil(32*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__f32_32_64(const float *mid, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, float *ln2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (32 * B)) return; // whole warps
  // load
  float mid4[4];                                                                // this thread's columns
  {
    const int c = thread * 4;
    if (c < 64) {
      loadVector(mid + row * 64 + c, mid4);
    }
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum_acc += mid4[e];
      }
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 64.0f;                                            // f32[B, 32, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float sub = mid4[e] - div;                                        // f32[B, 32, 64]
        const float mul = sub * sub;                                            // f32[B, 32, 64]
        sum_acc2 += mul;
      }
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 64.0f;                                          // f32[B, 32, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 32, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 32, 1]
  // compute and store
  {
    const int c = thread * 4;
    if (c < 64) {
      float ln2_weight4[4];
      loadVector(ln2_weight + c, ln2_weight4);
      float ln2_bias4[4];
      loadVector(ln2_bias + c, ln2_bias4);
      float add4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float sub2 = mid4[e] - div;                                       // f32[B, 32, 64]
        const float mul2 = sub2 * rsqrt2;                                       // f32[B, 32, 64]
        const float mul3 = mul2 * ln2_weight4[e];                               // f32[B, 32, 64]
        add4[e] = mul3 + ln2_bias4[e];                                          // f32[B, 32, 64]
      }
      storeVector(ln2 + row * 64 + c, add4);
    }
  }
}

// ---- linear_gelu__f32_32_256 ----
// linear_gelu__f32_32_256   (contraction kernel)
//   %fc1 = linear %ln2, %fc1_weight, bias = %fc1_bias : f32[B, 32, 256]
//   %activation = gelu %fc1                           : f32[B, 32, 256]
// 2 ops -> 1 kernel; reads ln2 fc1_weight fc1_bias, writes activation; saves 2 passes over [B, 32, 256].
// grid = ceil(32*B / 128) * 2, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_gelu__f32_32_256(const float *__restrict__ ln2, const float *__restrict__ fc1_weight, const float *__restrict__ fc1_bias2, float *__restrict__ activation2, i64 B) {
  const GemmOperands<float, float> operands = {ln2, fc1_weight, (32 * B), 256, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1_bias = load(fc1_bias2 + c);
    const float add = acc + fc1_bias;                                           // f32[B, 32, 256]
    const float activation = 0.5f * add * (1.0f + math::tanhBesideOne(0.7978846f * (add + 0.044715f * add * add * add)));  // f32[B, 32, 256]
    store(activation2 + row * 256 + c, activation);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_add__f32_32_64_v2 ----
// linear_add__f32_32_64_v2   (contraction kernel)
//   %fc2 = linear %activation, %fc2_weight, bias = %fc2_bias : f32[B, 32, 64]
//   %out = add %mid, %fc2                                    : f32[B, 32, 64]
// 2 ops -> 1 kernel; reads activation fc2_weight fc2_bias mid, writes out; saves 2 passes over [B, 32, 64].
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_add__f32_32_64_v2(const float *__restrict__ activation, const float *__restrict__ fc2_weight, const float *__restrict__ fc2_bias2, const float *mid2, float *out2, i64 B) {
  const GemmOperands<float, float> operands = {activation, fc2_weight, (32 * B), 64, 256,  // A, B, M, N, K
    256, 256, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc2_bias = load(fc2_bias2 + c);
    const float mid = load(mid2 + row * 64 + c);
    const float add = acc + fc2_bias;                                           // f32[B, 32, 64]
    const float out = mid + add;                                                // f32[B, 32, 64]
    store(out2 + row * 64 + c, out);
    return acc;
  };
  gemmSimt<GemmTile64, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear__f32_32_96 ----
// linear__f32_32_96   (contraction kernel)
//   %logits = linear %ln_f, %head_weight : f32[B, 32, 96]
// 1 op -> 1 kernel; reads ln_f head_weight, writes logits.
// grid = ceil(32*B / 64) * 2, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear__f32_32_96(const float *__restrict__ ln_f, const float *__restrict__ head_weight, float *__restrict__ logits, i64 B) {
  const GemmOperands<float, float> operands = {ln_f, head_weight, (32 * B), 96, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(logits + row * 96 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- cross_entropy__f32_rows ----
// cross_entropy__f32_rows   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 32, 1], f32[]
// 1 op -> several kernels, this is step 'rows'; reads logits targets, writes loss; saves 1 pass over [B, 32, 1].
// grid = min(ceil(32*B / 4), 2048), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
cross_entropy__f32_rows(const float *__restrict__ logits, const i32 *__restrict__ targets, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (32 * B) * chunk / gridDim.x, endRow = (32 * B) * (chunk + 1) / gridDim.x;
  float sum_sum = Sum::identity<float>();
  float sum_sum2 = Sum::identity<float>();
  for (i64 row = firstRow + warp; row < endRow; row += 4) {
    // load
    float logits4[4];                                                           // this thread's columns
    {
      const int c = thread * 4;
      if (c < 96) {
        loadVector(logits + row * 96 + c, logits4);
      }
    }
    const i32 reshape = load(targets + row);
    const bool ne = reshape != (i32)-100;                                       // i1[B, 32, 1]
    const float cast = convert<float>(ne);                                      // f32[B, 32, 1]
    // compute: reduce_max, sum
    float reduce_max_acc = Max::identity<float>();
    float sum_acc = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const i32 iota = (i32)(c + e);                                        // i32[96]
          const bool eq = iota == reshape;                                      // i1[B, 32, 96]
          const float select = eq ? logits4[e] : 0.0f;                          // f32[B, 32, 96]
          reduce_max_acc = Max::combine(reduce_max_acc, logits4[e]);
          sum_acc += select;
        }
      }
    }
    reduce_max_acc = warpReduce<Max>(reduce_max_acc);
    sum_acc = warpReduce<Sum>(sum_acc);
    // compute: sum
    float sum_acc2 = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub = logits4[e] - reduce_max_acc;                        // f32[B, 32, 96]
          const float exp = math::exp(sub);                                     // f32[B, 32, 96]
          sum_acc2 += exp;
        }
      }
    }
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float log = math::log(sum_acc2);                                      // f32[B, 32, 1]
    const float add = log + reduce_max_acc;                                     // f32[B, 32, 1]
    const float sub2 = add - sum_acc;                                           // f32[B, 32, 1]
    const float select2 = ne ? sub2 : 0.0f;                                     // f32[B, 32, 1]
    sum_sum += select2;
    sum_sum2 += cast;
  }
  // store, partial sums of this chunk of rows
  if (thread > 0) sum_sum = Sum::identity<float>();
  sum_sum = blockReduce<Sum>(sum_sum);
  if (threadIdx.x == 0) partials2[chunk] = sum_sum;
  if (thread > 0) sum_sum2 = Sum::identity<float>();
  sum_sum2 = blockReduce<Sum>(sum_sum2);
  if (threadIdx.x == 0) partials3[chunk] = sum_sum2;
}

// ---- cross_entropy__f32_finish ----
// cross_entropy__f32_finish   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 32, 1], f32[]
// 1 op -> several kernels, this is step 'finish'; reads logits targets, writes loss; saves 1 pass over [B, 32, 1].
// grid = 1, block = 512, adds min(ceil(32*B / 4), 2048) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
cross_entropy__f32_finish(float *__restrict__ loss, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  // the sums: barriers inside, so for all threads
  const float sum = scalarTotal<Sum>(partials2, ((((32 * B) + 3) / 4) < 2048 ? (((32 * B) + 3) / 4) : 2048));  // f32[]
  const float sum2 = scalarTotal<Sum>(partials3, ((((32 * B) + 3) / 4) < 2048 ? (((32 * B) + 3) / 4) : 2048));  // f32[]
  const float max = math::maximum(sum2, 1.0f);                                  // f32[]
  const float div = sum / max;                                                  // f32[]
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(loss + 0, div);
  }
}

// ---- embedding_add_layer_norm__f32_32_64_v2 ----
// embedding_add_layer_norm__f32_32_64_v2   (row kernel)
//   %emb = embedding %emb_weight, %tokens                                                          : f32[B, 32, 64]
//   %embedded = add %emb, %pos_weight                                                              : f32[B, 32, 64]
//   %ln1, %layer_norm, %layer_norm2 = layer_norm %embedded, weight = %ln1_weight, bias = %ln1_bias : f32[B, 32, 64], f32[B, 32, 1], f32[B, 32, 1]
// 3 ops -> 1 kernel; reads emb_weight tokens pos_weight ln1_weight ln1_bias, writes embedded ln1 layer_norm layer_norm2; saves 3 passes over [B, 32, 64].
// grid = ceil(32*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
embedding_add_layer_norm__f32_32_64_v2(const float *__restrict__ emb_weight, const i32 *__restrict__ tokens, const float *__restrict__ pos_weight, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, float *__restrict__ embedded, float *__restrict__ ln1, float *__restrict__ layer_norm, float *__restrict__ layer_norm2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (32 * B)) return; // whole warps
  // load
  float v4[4];                                                                  // this thread's columns
  float pos_weight4[4];                                                         // this thread's columns
  {
    const int c = thread * 4;
    if (c < 64) {
      const i64 row2 = wrapIndex(load(tokens + row), 96);
      if (row2 >= 0)
        loadVector(emb_weight + c + row2 * 64, v4);
      else
        for (int e = 0; e < 4; ++e) v4[e] = 0.0f;
      loadVector(pos_weight + row % 32 * 64 + c, pos_weight4);
    }
  }
  // compute and store: sum
  float sum_acc = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      float embedded4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        embedded4[e] = v4[e] + pos_weight4[e];                                  // f32[B, 32, 64]
        sum_acc += embedded4[e];
      }
      storeVector(embedded + row * 64 + c, embedded4);
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 64.0f;                                            // f32[B, 32, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float embedded2 = v4[e] + pos_weight4[e];                         // f32[B, 32, 64]
        const float sub = embedded2 - div;                                      // f32[B, 32, 64]
        const float mul = sub * sub;                                            // f32[B, 32, 64]
        sum_acc2 += mul;
      }
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 64.0f;                                          // f32[B, 32, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 32, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 32, 1]
  // compute and store
  {
    const int c = thread * 4;
    if (c < 64) {
      float ln1_weight4[4];
      loadVector(ln1_weight + c, ln1_weight4);
      float ln1_bias4[4];
      loadVector(ln1_bias + c, ln1_bias4);
      float add4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float embedded3 = v4[e] + pos_weight4[e];                         // f32[B, 32, 64]
        const float sub2 = embedded3 - div;                                     // f32[B, 32, 64]
        const float mul2 = sub2 * rsqrt2;                                       // f32[B, 32, 64]
        const float mul3 = mul2 * ln1_weight4[e];                               // f32[B, 32, 64]
        add4[e] = mul3 + ln1_bias4[e];                                          // f32[B, 32, 64]
      }
      storeVector(ln1 + row * 64 + c, add4);
    }
  }
  // store, one thread a row
  if (thread == 0) {
    store(layer_norm + row, div);
  }
  if (thread == 0) {
    store(layer_norm2 + row, rsqrt2);
  }
}

// ---- split_attention__f32_32_64_v2 ----
// split_attention__f32_32_64_v2   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [64, 64, 64]}                            : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %attention, %attention2 = attention %q, %k, %v {causal = true, heads = 2} : f32[B, 32, 64], f32[B, 2, 32]
// 2 ops -> 1 kernel; reads qkv, writes attention attention2; saves 6 passes over [B, 32, 64].
// grid = 2*B, block = 128, online softmax on CUDA cores: the kernel tier is simt
extern "C" __global__ void __launch_bounds__(128)
split_attention__f32_32_64_v2(const float *__restrict__ qkv, float *__restrict__ attention, float *__restrict__ attention2, i64 B) {
  const AttentionShape shape = {B, 2, 2, 32, 32,                                // batch, heads, key heads, queries, keys
    0.17677669f, true, -1, nullptr, nullptr};                                   // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const float> q_view = {qkv, 6144, 192, 32};                    // strides of batch, token, head
  const HeadView<const float> k_view = {qkv + 64, 6144, 192, 32};               // strides of batch, token, head
  const HeadView<const float> v_view = {qkv + 128, 6144, 192, 32};              // strides of batch, token, head
  const HeadView<float> y_view = {attention, 2048, 64, 32};                     // strides of batch, token, head
  // the weights meet v unrounded: the IR has no rounding there
  attentionForward<32, false>(q_view, k_view, v_view, y_view, attention2, shape);
}

// ---- layer_norm__f32_32_64_v2 ----
// layer_norm__f32_32_64_v2   (row kernel)
//   %ln2, %layer_norm, %layer_norm2 = layer_norm %mid, weight = %ln2_weight, bias = %ln2_bias : f32[B, 32, 64], f32[B, 32, 1], f32[B, 32, 1]
// 1 op -> 1 kernel; reads mid ln2_weight ln2_bias, writes ln2 layer_norm layer_norm2.
// grid = ceil(32*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__f32_32_64_v2(const float *mid, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, float *ln2, float *__restrict__ layer_norm, float *__restrict__ layer_norm2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (32 * B)) return; // whole warps
  // load
  float mid4[4];                                                                // this thread's columns
  {
    const int c = thread * 4;
    if (c < 64) {
      loadVector(mid + row * 64 + c, mid4);
    }
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum_acc += mid4[e];
      }
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 64.0f;                                            // f32[B, 32, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  {
    const int c = thread * 4;
    if (c < 64) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float sub = mid4[e] - div;                                        // f32[B, 32, 64]
        const float mul = sub * sub;                                            // f32[B, 32, 64]
        sum_acc2 += mul;
      }
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 64.0f;                                          // f32[B, 32, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 32, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 32, 1]
  // compute and store
  {
    const int c = thread * 4;
    if (c < 64) {
      float ln2_weight4[4];
      loadVector(ln2_weight + c, ln2_weight4);
      float ln2_bias4[4];
      loadVector(ln2_bias + c, ln2_bias4);
      float add4[4];
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float sub2 = mid4[e] - div;                                       // f32[B, 32, 64]
        const float mul2 = sub2 * rsqrt2;                                       // f32[B, 32, 64]
        const float mul3 = mul2 * ln2_weight4[e];                               // f32[B, 32, 64]
        add4[e] = mul3 + ln2_bias4[e];                                          // f32[B, 32, 64]
      }
      storeVector(ln2 + row * 64 + c, add4);
    }
  }
  // store, one thread a row
  if (thread == 0) {
    store(layer_norm + row, div);
  }
  if (thread == 0) {
    store(layer_norm2 + row, rsqrt2);
  }
}

// ---- linear_gelu__f32_32_256_v2 ----
// linear_gelu__f32_32_256_v2   (contraction kernel)
//   %fc1 = linear %ln2, %fc1_weight, bias = %fc1_bias : f32[B, 32, 256]
//   %activation = gelu %fc1                           : f32[B, 32, 256]
// 2 ops -> 1 kernel; reads ln2 fc1_weight fc1_bias, writes fc1 activation; saves 1 pass over [B, 32, 256].
// grid = ceil(32*B / 128) * 2, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_gelu__f32_32_256_v2(const float *__restrict__ ln2, const float *__restrict__ fc1_weight, const float *__restrict__ fc1_bias2, float *__restrict__ fc1, float *__restrict__ activation2, i64 B) {
  const GemmOperands<float, float> operands = {ln2, fc1_weight, (32 * B), 256, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1_bias = load(fc1_bias2 + c);
    const float add = acc + fc1_bias;                                           // f32[B, 32, 256]
    const float activation = 0.5f * add * (1.0f + math::tanhBesideOne(0.7978846f * (add + 0.044715f * add * add * add)));  // f32[B, 32, 256]
    store(fc1 + row * 256 + c, add);
    store(activation2 + row * 256 + c, activation);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- cross_entropy__f32_rows_v2 ----
// cross_entropy__f32_rows_v2   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 32, 1], f32[]
// 1 op -> several kernels, this is step 'rows'; reads logits targets, writes loss cross_entropy cross_entropy2.
// grid = min(ceil(32*B / 4), 2048), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
cross_entropy__f32_rows_v2(const float *__restrict__ logits, const i32 *__restrict__ targets, float *__restrict__ cross_entropy, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (32 * B) * chunk / gridDim.x, endRow = (32 * B) * (chunk + 1) / gridDim.x;
  float sum_sum = Sum::identity<float>();
  float sum_sum2 = Sum::identity<float>();
  for (i64 row = firstRow + warp; row < endRow; row += 4) {
    // load
    float logits4[4];                                                           // this thread's columns
    {
      const int c = thread * 4;
      if (c < 96) {
        loadVector(logits + row * 96 + c, logits4);
      }
    }
    const i32 reshape = load(targets + row);
    const bool ne = reshape != (i32)-100;                                       // i1[B, 32, 1]
    const float cast = convert<float>(ne);                                      // f32[B, 32, 1]
    // compute: reduce_max, sum
    float reduce_max_acc = Max::identity<float>();
    float sum_acc = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const i32 iota = (i32)(c + e);                                        // i32[96]
          const bool eq = iota == reshape;                                      // i1[B, 32, 96]
          const float select = eq ? logits4[e] : 0.0f;                          // f32[B, 32, 96]
          reduce_max_acc = Max::combine(reduce_max_acc, logits4[e]);
          sum_acc += select;
        }
      }
    }
    reduce_max_acc = warpReduce<Max>(reduce_max_acc);
    sum_acc = warpReduce<Sum>(sum_acc);
    // compute: sum
    float sum_acc2 = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub = logits4[e] - reduce_max_acc;                        // f32[B, 32, 96]
          const float exp = math::exp(sub);                                     // f32[B, 32, 96]
          sum_acc2 += exp;
        }
      }
    }
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float log = math::log(sum_acc2);                                      // f32[B, 32, 1]
    const float add = log + reduce_max_acc;                                     // f32[B, 32, 1]
    const float sub2 = add - sum_acc;                                           // f32[B, 32, 1]
    const float select2 = ne ? sub2 : 0.0f;                                     // f32[B, 32, 1]
    // store, one thread a row
    if (thread == 0) {
      store(cross_entropy + row, add);
    }
    sum_sum += select2;
    sum_sum2 += cast;
  }
  // store, partial sums of this chunk of rows
  if (thread > 0) sum_sum = Sum::identity<float>();
  sum_sum = blockReduce<Sum>(sum_sum);
  if (threadIdx.x == 0) partials2[chunk] = sum_sum;
  if (thread > 0) sum_sum2 = Sum::identity<float>();
  sum_sum2 = blockReduce<Sum>(sum_sum2);
  if (threadIdx.x == 0) partials3[chunk] = sum_sum2;
}

// ---- cross_entropy__f32_finish_v2 ----
// cross_entropy__f32_finish_v2   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 32, 1], f32[]
// 1 op -> several kernels, this is step 'finish'; reads logits targets, writes loss cross_entropy cross_entropy2.
// grid = 1, block = 512, adds min(ceil(32*B / 4), 2048) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
cross_entropy__f32_finish_v2(float *__restrict__ loss, float *__restrict__ cross_entropy2, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  // the sums: barriers inside, so for all threads
  const float sum = scalarTotal<Sum>(partials2, ((((32 * B) + 3) / 4) < 2048 ? (((32 * B) + 3) / 4) : 2048));  // f32[]
  const float sum2 = scalarTotal<Sum>(partials3, ((((32 * B) + 3) / 4) < 2048 ? (((32 * B) + 3) / 4) : 2048));  // f32[]
  const float max = math::maximum(sum2, 1.0f);                                  // f32[]
  const float div = sum / max;                                                  // f32[]
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(loss + 0, div);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(cross_entropy2 + 0, sum2);
  }
}

// ---- cross_entropy_grad__f32_32_96 ----
// cross_entropy_grad__f32_32_96   (pointwise kernel)
//   %d_loss = constant {value = 1.0}                                   : f32[]
//   %d_logits = cross_entropy_grad %d_loss, %logits, %targets, %x, %x2 : f32[B, 32, 96]
// 2 ops -> 1 kernel; reads logits targets x x2, writes d_logits.
// grid = min(ceil(3072*B / 1024), 1048576), block = 256, 4 elements a thread at once
extern "C" __global__ void __launch_bounds__(256)
cross_entropy_grad__f32_32_96(const float *logits, const i32 *__restrict__ targets, const float *__restrict__ x3, const float *__restrict__ x2_2, float *d_logits, i64 B) {
  const i64 count = (3072 * B), step = (i64)gridDim.x * 1024;
  for (i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 4; i < count; i += step) {
    const i64 row = i / 96;
    const i64 c = i % 96;
    // load
    const i32 reshape = load(targets + row);
    const float x2 = load(x2_2 + 0);
    float logits4[4];
    loadVector(logits + i, logits4);
    const float x = load(x3 + row);
    // compute
    float mul4[4];
    const bool ne = reshape != (i32)-100;                                       // i1[B, 32, 1]
    const float max = math::maximum(x2, 1.0f);                                  // f32[]
    const float div = 1.0f / max;                                               // f32[]
    const float select = ne ? div : 0.0f;                                       // f32[B, 32, 1]
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const i32 iota = (i32)(c + e);                                            // i32[96]
      const bool eq = iota == reshape;                                          // i1[B, 32, 96]
      const float sub = logits4[e] - x;                                         // f32[B, 32, 96]
      const float exp = math::exp(sub);                                         // f32[B, 32, 96]
      const float cast = convert<float>(eq);                                    // f32[B, 32, 96]
      const float sub2 = exp - cast;                                            // f32[B, 32, 96]
      mul4[e] = sub2 * select;                                                  // f32[B, 32, 96]
    }
    // store
    storeVector(d_logits + i, mul4);
  }
}

// ---- linear_input_grad__f32_32_64 ----
// linear_input_grad__f32_32_64   (contraction kernel)
//   %d_ln_f = linear_input_grad %d_logits, %head_weight : f32[B, 32, 64]
// 1 op -> 1 kernel; reads d_logits head_weight, writes d_ln_f.
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__f32_32_64(const float *__restrict__ d_logits, const float *__restrict__ head_weight, float *__restrict__ d_ln_f, i64 B) {
  const GemmOperands<float, float> operands = {d_logits, head_weight, (32 * B), 64, 96,  // A, B, M, N, K
    96, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_ln_f + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows   (row kernel)
//   %ln_f = normalize %out, %x, mean = %x2, weight = %ln_f_weight, bias = %ln_f_bias : f32[B, 32, 64]
//   %d_out = layer_norm_grad %d_ln_f, %out, %x2, %x, weight = %ln_f_weight           : f32[B, 32, 64]
//   %d_ln_f_weight, %d_ln_f_bias = layer_norm_param_grad %d_ln_f, %out, %x2, %x      : f32[64], f32[64]
//   %d_fc2_bias = sum %d_out {dims = [0, 1]}                                         : f32[64]
// 4 ops -> several kernels, this is step 'rows'; reads out x x2 ln_f_weight ln_f_bias d_ln_f, writes ln_f d_out d_ln_f_weight d_ln_f_bias d_fc2_bias; saves 4 passes over [B, 32, 64].
// grid = min(ceil(32*B / 4), 256), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows(const float *out, const float *__restrict__ x3, const float *__restrict__ x2_2, const float *__restrict__ ln_f_weight, const float *__restrict__ ln_f_bias, const float *d_ln_f, float *ln_f, float *d_out, float *__restrict__ partials2, float *__restrict__ partials3, float *__restrict__ d_fc2_bias_partials, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (32 * B) * chunk / gridDim.x, endRow = (32 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[4];                                                             // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum[e] = Sum::identity<float>();
  float sum_sum2[4];                                                            // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum2[e] = Sum::identity<float>();
  float d_fc2_bias_sum[4];                                                      // this thread's columns
  for (int e = 0; e < 4; ++e)
    d_fc2_bias_sum[e] = Sum::identity<float>();
  for (i64 row = firstRow + warp; row < endRow; row += 4) {
    // load
    float out4[4];                                                              // this thread's columns
    float d_ln_f4[4];                                                           // this thread's columns
    {
      const int c = thread * 4;
      if (c < 64) {
        loadVector(out + row * 64 + c, out4);
        loadVector(d_ln_f + row * 64 + c, d_ln_f4);
      }
    }
    const float x2 = load(x2_2 + row);
    const float x = load(x3 + row);
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln_f_weight4[4];
        loadVector(ln_f_weight + c, ln_f_weight4);
        float ln_f_bias4[4];
        loadVector(ln_f_bias + c, ln_f_bias4);
        float add4[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub = out4[e] - x2;                                       // f32[B, 32, 64]
          const float mul = sub * x;                                            // f32[B, 32, 64]
          const float mul2 = mul * ln_f_weight4[e];                             // f32[B, 32, 64]
          add4[e] = mul2 + ln_f_bias4[e];                                       // f32[B, 32, 64]
          const float mul3 = d_ln_f4[e] * ln_f_weight4[e];                      // f32[B, 32, 64]
          const float mul4 = mul3 * mul;                                        // f32[B, 32, 64]
          const float mul5 = d_ln_f4[e] * mul;                                  // f32[B, 32, 64]
          sum_acc += mul4;
          sum_acc2 += mul3;
          sum_sum[e] += mul5;
          sum_sum2[e] += d_ln_f4[e];
        }
        storeVector(ln_f + row * 64 + c, add4);
      }
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 64.0f;                                          // f32[B, 32, 1]
    const float div2 = sum_acc2 / 64.0f;                                        // f32[B, 32, 1]
    // compute and store
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln_f_weight4_2[4];
        loadVector(ln_f_weight + c, ln_f_weight4_2);
        float mul4_2[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub2 = out4[e] - x2;                                      // f32[B, 32, 64]
          const float mul6 = sub2 * x;                                          // f32[B, 32, 64]
          const float mul7 = d_ln_f4[e] * ln_f_weight4_2[e];                    // f32[B, 32, 64]
          const float mul8 = mul6 * div;                                        // f32[B, 32, 64]
          const float sub3 = mul7 - div2;                                       // f32[B, 32, 64]
          const float sub4 = sub3 - mul8;                                       // f32[B, 32, 64]
          mul4_2[e] = x * sub4;                                                 // f32[B, 32, 64]
          d_fc2_bias_sum[e] += mul4_2[e];
        }
        storeVector(d_out + row * 64 + c, mul4_2);
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 4, 4>(partials2 + chunk * 64, 64, sum_sum);
  storeColumnSums<Sum, 4, 4>(partials3 + chunk * 64, 64, sum_sum2);
  storeColumnSums<Sum, 4, 4>(d_fc2_bias_partials + chunk * 64, 64, d_fc2_bias_sum);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish   (row kernel)
//   %ln_f = normalize %out, %x, mean = %x2, weight = %ln_f_weight, bias = %ln_f_bias : f32[B, 32, 64]
//   %d_out = layer_norm_grad %d_ln_f, %out, %x2, %x, weight = %ln_f_weight           : f32[B, 32, 64]
//   %d_ln_f_weight, %d_ln_f_bias = layer_norm_param_grad %d_ln_f, %out, %x2, %x      : f32[64], f32[64]
//   %d_fc2_bias = sum %d_out {dims = [0, 1]}                                         : f32[64]
// 4 ops -> several kernels, this is step 'finish'; reads out x x2 ln_f_weight ln_f_bias d_ln_f, writes ln_f d_out d_ln_f_weight d_ln_f_bias d_fc2_bias; saves 4 passes over [B, 32, 64].
// grid = 4, block = 512, adds min(ceil(32*B / 4), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish(float *__restrict__ d_ln_f_weight, float *__restrict__ d_ln_f_bias, float *__restrict__ d_fc2_bias2, const float *__restrict__ partials2, const float *__restrict__ partials3, const float *__restrict__ d_fc2_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 64;
  // the sums: barriers inside, so for all threads
  const float *const parts[3] = {partials2, partials3, d_fc2_bias_partials};
  float totals[3];
  columnTotals<Sum, 16>(parts, ((((32 * B) + 3) / 4) < 256 ? (((32 * B) + 3) / 4) : 256), 64, c, exists, totals);
  const float sum = totals[0];                                                  // f32[64]
  const float sum2 = totals[1];                                                 // f32[64]
  const float d_fc2_bias = totals[2];                                           // f32[64]
  if (exists && threadIdx.x < 16) {
    store(d_ln_f_weight + c, sum);
    store(d_ln_f_bias + c, sum2);
    store(d_fc2_bias2 + c, d_fc2_bias);
  }
}

// ---- linear_weight_grad__f32_96_64 ----
// linear_weight_grad__f32_96_64   (contraction kernel)
//   %d_head_weight = linear_weight_grad %d_logits, %ln_f {out = f32} : f32[96, 64]
// 1 op -> 1 kernel; reads d_logits ln_f, writes d_head_weight.
// grid = 2, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_96_64(const float *__restrict__ d_logits, const float *__restrict__ ln_f, float *__restrict__ d_head_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_logits, ln_f, 96, 64, (32 * B),  // A, B, M, N, K
    96, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_head_weight + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad_gelu_gelu_grad_sum__f32_32_256_gemm ----
// linear_input_grad_gelu_gelu_grad_sum__f32_32_256_gemm   (contraction kernel)
//   %d_activation = linear_input_grad %d_out, %fc2_weight : f32[B, 32, 256]
//   %activation = gelu %fc1                               : f32[B, 32, 256]
//   %d_fc1 = gelu_grad %d_activation, %fc1                : f32[B, 32, 256]
//   %d_fc1_bias = sum %d_fc1 {dims = [0, 1]}              : f32[256]
// 4 ops -> several kernels, this is step 'gemm'; reads d_out fc2_weight fc1, writes activation d_fc1 d_fc1_bias; saves 4 passes over [B, 32, 256].
// grid = ceil(32*B / 128) * 2, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad_gelu_gelu_grad_sum__f32_32_256_gemm(const float *__restrict__ d_out, const float *__restrict__ fc2_weight, const float *fc1_2, float *activation2, float *d_fc1_2, float *__restrict__ d_fc1_bias_partials, i64 B) {
  const GemmOperands<float, float> operands = {d_out, fc2_weight, (32 * B), 256, 64,  // A, B, M, N, K
    64, 256, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1 = load(fc1_2 + row * 256 + c);
    const float activation = 0.5f * fc1 * (1.0f + math::tanhBesideOne(0.7978846f * (fc1 + 0.044715f * fc1 * fc1 * fc1)));  // f32[B, 32, 256]
    const float gelu_grad_part = math::tanhBesideOne(0.7978846f * (fc1 + 0.044715f * fc1 * fc1 * fc1));
    const float d_fc1 = acc * (0.5f * (1.0f + gelu_grad_part) + 0.5f * fc1 * (1.0f - gelu_grad_part * gelu_grad_part) * 0.7978846f * (1.0f + 0.134145f * fc1 * fc1));  // f32[B, 32, 256]
    store(activation2 + row * 256 + c, activation);
    store(d_fc1_2 + row * 256 + c, d_fc1);
    return d_fc1;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<true>(epilogue), d_fc1_bias_partials);
}

// ---- linear_input_grad_gelu_gelu_grad_sum__f32_32_256_finish ----
// linear_input_grad_gelu_gelu_grad_sum__f32_32_256_finish   (contraction kernel)
//   %d_activation = linear_input_grad %d_out, %fc2_weight : f32[B, 32, 256]
//   %activation = gelu %fc1                               : f32[B, 32, 256]
//   %d_fc1 = gelu_grad %d_activation, %fc1                : f32[B, 32, 256]
//   %d_fc1_bias = sum %d_fc1 {dims = [0, 1]}              : f32[256]
// 4 ops -> several kernels, this is step 'finish'; reads d_out fc2_weight fc1, writes activation d_fc1 d_fc1_bias; saves 4 passes over [B, 32, 256].
// grid = 16, block = 512, adds ceil(32*B / 128) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
linear_input_grad_gelu_gelu_grad_sum__f32_32_256_finish(float *__restrict__ d_fc1_bias2, const float *__restrict__ d_fc1_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 256;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_fc1_bias_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, (((32 * B) + 127) / 128), 256, c, exists, totals);
  const float d_fc1_bias = totals[0];                                           // f32[256]
  if (exists && threadIdx.x < 16) {
    store(d_fc1_bias2 + c, d_fc1_bias);
  }
}

// ---- linear_weight_grad__f32_64_256 ----
// linear_weight_grad__f32_64_256   (contraction kernel)
//   %d_fc2_weight = linear_weight_grad %d_out, %activation {out = f32} : f32[64, 256]
// 1 op -> 1 kernel; reads d_out activation, writes d_fc2_weight.
// grid = 4, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_64_256(const float *__restrict__ d_out, const float *__restrict__ activation, float *__restrict__ d_fc2_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_out, activation, 64, 256, (32 * B),  // A, B, M, N, K
    64, 256, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_fc2_weight + row * 256 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__f32_32_64_v2 ----
// linear_input_grad__f32_32_64_v2   (contraction kernel)
//   %d_ln2 = linear_input_grad %d_fc1, %fc1_weight : f32[B, 32, 64]
// 1 op -> 1 kernel; reads d_fc1 fc1_weight, writes d_ln2.
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__f32_32_64_v2(const float *__restrict__ d_fc1, const float *__restrict__ fc1_weight, float *__restrict__ d_ln2, i64 B) {
  const GemmOperands<float, float> operands = {d_fc1, fc1_weight, (32 * B), 64, 256,  // A, B, M, N, K
    256, 64, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_ln2 + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v2 ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v2   (row kernel)
//   %ln2 = normalize %mid, %x, mean = %x2, weight = %ln2_weight, bias = %ln2_bias : f32[B, 32, 64]
//   %d_mid_part = layer_norm_grad %d_ln2, %mid, %x2, %x, weight = %ln2_weight     : f32[B, 32, 64]
//   %d_ln2_weight, %d_ln2_bias = layer_norm_param_grad %d_ln2, %mid, %x2, %x      : f32[64], f32[64]
//   %d_mid = add %d_out, %d_mid_part                                              : f32[B, 32, 64]
//   %d_proj_bias = sum %d_mid {dims = [0, 1]}                                     : f32[64]
// 5 ops -> several kernels, this is step 'rows'; reads mid x x2 ln2_weight ln2_bias d_ln2 d_out, writes ln2 d_ln2_weight d_ln2_bias d_mid d_proj_bias; saves 6 passes over [B, 32, 64].
// grid = min(ceil(32*B / 4), 256), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v2(const float *mid, const float *__restrict__ x3, const float *__restrict__ x2_2, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, const float *d_ln2, const float *d_out, float *ln2, float *d_mid, float *__restrict__ partials2, float *__restrict__ partials3, float *__restrict__ d_proj_bias_partials, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (32 * B) * chunk / gridDim.x, endRow = (32 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[4];                                                             // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum[e] = Sum::identity<float>();
  float sum_sum2[4];                                                            // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum2[e] = Sum::identity<float>();
  float d_proj_bias_sum[4];                                                     // this thread's columns
  for (int e = 0; e < 4; ++e)
    d_proj_bias_sum[e] = Sum::identity<float>();
  for (i64 row = firstRow + warp; row < endRow; row += 4) {
    // load
    float mid4[4];                                                              // this thread's columns
    float d_ln24[4];                                                            // this thread's columns
    float d_out4[4];                                                            // this thread's columns
    {
      const int c = thread * 4;
      if (c < 64) {
        loadVector(mid + row * 64 + c, mid4);
        loadVector(d_ln2 + row * 64 + c, d_ln24);
        loadVector(d_out + row * 64 + c, d_out4);
      }
    }
    const float x2 = load(x2_2 + row);
    const float x = load(x3 + row);
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln2_weight4[4];
        loadVector(ln2_weight + c, ln2_weight4);
        float ln2_bias4[4];
        loadVector(ln2_bias + c, ln2_bias4);
        float add4[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub = mid4[e] - x2;                                       // f32[B, 32, 64]
          const float mul = sub * x;                                            // f32[B, 32, 64]
          const float mul2 = mul * ln2_weight4[e];                              // f32[B, 32, 64]
          add4[e] = mul2 + ln2_bias4[e];                                        // f32[B, 32, 64]
          const float mul3 = d_ln24[e] * ln2_weight4[e];                        // f32[B, 32, 64]
          const float mul4 = mul3 * mul;                                        // f32[B, 32, 64]
          const float mul5 = d_ln24[e] * mul;                                   // f32[B, 32, 64]
          sum_acc += mul4;
          sum_acc2 += mul3;
          sum_sum[e] += mul5;
          sum_sum2[e] += d_ln24[e];
        }
        storeVector(ln2 + row * 64 + c, add4);
      }
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 64.0f;                                          // f32[B, 32, 1]
    const float div2 = sum_acc2 / 64.0f;                                        // f32[B, 32, 1]
    // compute and store
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln2_weight4_2[4];
        loadVector(ln2_weight + c, ln2_weight4_2);
        float d_mid4[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub2 = mid4[e] - x2;                                      // f32[B, 32, 64]
          const float mul6 = sub2 * x;                                          // f32[B, 32, 64]
          const float mul7 = d_ln24[e] * ln2_weight4_2[e];                      // f32[B, 32, 64]
          const float mul8 = mul6 * div;                                        // f32[B, 32, 64]
          const float sub3 = mul7 - div2;                                       // f32[B, 32, 64]
          const float sub4 = sub3 - mul8;                                       // f32[B, 32, 64]
          const float mul9 = x * sub4;                                          // f32[B, 32, 64]
          d_mid4[e] = d_out4[e] + mul9;                                         // f32[B, 32, 64]
          d_proj_bias_sum[e] += d_mid4[e];
        }
        storeVector(d_mid + row * 64 + c, d_mid4);
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 4, 4>(partials2 + chunk * 64, 64, sum_sum);
  storeColumnSums<Sum, 4, 4>(partials3 + chunk * 64, 64, sum_sum2);
  storeColumnSums<Sum, 4, 4>(d_proj_bias_partials + chunk * 64, 64, d_proj_bias_sum);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v2 ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v2   (row kernel)
//   %ln2 = normalize %mid, %x, mean = %x2, weight = %ln2_weight, bias = %ln2_bias : f32[B, 32, 64]
//   %d_mid_part = layer_norm_grad %d_ln2, %mid, %x2, %x, weight = %ln2_weight     : f32[B, 32, 64]
//   %d_ln2_weight, %d_ln2_bias = layer_norm_param_grad %d_ln2, %mid, %x2, %x      : f32[64], f32[64]
//   %d_mid = add %d_out, %d_mid_part                                              : f32[B, 32, 64]
//   %d_proj_bias = sum %d_mid {dims = [0, 1]}                                     : f32[64]
// 5 ops -> several kernels, this is step 'finish'; reads mid x x2 ln2_weight ln2_bias d_ln2 d_out, writes ln2 d_ln2_weight d_ln2_bias d_mid d_proj_bias; saves 6 passes over [B, 32, 64].
// grid = 4, block = 512, adds min(ceil(32*B / 4), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v2(float *__restrict__ d_ln2_weight, float *__restrict__ d_ln2_bias, float *__restrict__ d_proj_bias2, const float *__restrict__ partials2, const float *__restrict__ partials3, const float *__restrict__ d_proj_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 64;
  // the sums: barriers inside, so for all threads
  const float *const parts[3] = {partials2, partials3, d_proj_bias_partials};
  float totals[3];
  columnTotals<Sum, 16>(parts, ((((32 * B) + 3) / 4) < 256 ? (((32 * B) + 3) / 4) : 256), 64, c, exists, totals);
  const float sum = totals[0];                                                  // f32[64]
  const float sum2 = totals[1];                                                 // f32[64]
  const float d_proj_bias = totals[2];                                          // f32[64]
  if (exists && threadIdx.x < 16) {
    store(d_ln2_weight + c, sum);
    store(d_ln2_bias + c, sum2);
    store(d_proj_bias2 + c, d_proj_bias);
  }
}

// ---- linear_weight_grad__f32_256_64 ----
// linear_weight_grad__f32_256_64   (contraction kernel)
//   %d_fc1_weight = linear_weight_grad %d_fc1, %ln2 {out = f32} : f32[256, 64]
// 1 op -> 1 kernel; reads d_fc1 ln2, writes d_fc1_weight.
// grid = 4, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_256_64(const float *__restrict__ d_fc1, const float *__restrict__ ln2, float *__restrict__ d_fc1_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_fc1, ln2, 256, 64, (32 * B),   // A, B, M, N, K
    256, 64, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_fc1_weight + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__f32_32_64_v3 ----
// linear_input_grad__f32_32_64_v3   (contraction kernel)
//   %d_attention = linear_input_grad %d_mid, %proj_weight : f32[B, 32, 64]
// 1 op -> 1 kernel; reads d_mid proj_weight, writes d_attention.
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__f32_32_64_v3(const float *__restrict__ d_mid, const float *__restrict__ proj_weight, float *__restrict__ d_attention, i64 B) {
  const GemmOperands<float, float> operands = {d_mid, proj_weight, (32 * B), 64, 64,  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_attention + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- split_attention_grad_concat__f32_32_192_delta ----
// split_attention_grad_concat__f32_32_192_delta   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [64, 64, 64]} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_q, %d_k, %d_v = attention_grad %d_attention, %q, %k, %v, %attention, %x {causal = true, heads = 2} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_qkv = concat %d_q, %d_k, %d_v               : f32[B, 32, 192]
// 3 ops -> several kernels, this is step 'delta'; reads qkv d_attention attention x, writes d_qkv.
// grid = ceil(64*B / 4), block = 128, a warp a row: delta = sum(dy * y); on CUDA cores: the kernel tier is simt
extern "C" __global__ void __launch_bounds__(128)
split_attention_grad_concat__f32_32_192_delta(const float *__restrict__ d_attention, const float *__restrict__ attention, float *__restrict__ delta, i64 B) {
  const AttentionShape shape = {B, 2, 2, 32, 32,                                // batch, heads, key heads, queries, keys
    0.17677669f, true, -1, nullptr, nullptr};                                   // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const float> y_view = {attention, 2048, 64, 32};               // strides of batch, token, head
  const HeadView<const float> dy_view = {d_attention, 2048, 64, 32};            // strides of batch, token, head
  attentionDelta<32>(y_view, dy_view, delta, shape);
}

// ---- split_attention_grad_concat__f32_32_192_dq ----
// split_attention_grad_concat__f32_32_192_dq   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [64, 64, 64]} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_q, %d_k, %d_v = attention_grad %d_attention, %q, %k, %v, %attention, %x {causal = true, heads = 2} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_qkv = concat %d_q, %d_k, %d_v               : f32[B, 32, 192]
// 3 ops -> several kernels, this is step 'dq'; reads qkv d_attention attention x, writes d_qkv.
// grid = 2*B, block = 128, a block a tile of queries
extern "C" __global__ void __launch_bounds__(128)
split_attention_grad_concat__f32_32_192_dq(const float *__restrict__ qkv, const float *__restrict__ d_attention, const float *__restrict__ x, float *__restrict__ d_qkv, const float *__restrict__ delta, i64 B) {
  const AttentionShape shape = {B, 2, 2, 32, 32,                                // batch, heads, key heads, queries, keys
    0.17677669f, true, -1, nullptr, nullptr};                                   // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const float> q_view = {qkv, 6144, 192, 32};                    // strides of batch, token, head
  const HeadView<const float> k_view = {qkv + 64, 6144, 192, 32};               // strides of batch, token, head
  const HeadView<const float> v_view = {qkv + 128, 6144, 192, 32};              // strides of batch, token, head
  const HeadView<const float> dy_view = {d_attention, 2048, 64, 32};            // strides of batch, token, head
  const HeadView<float> dq_view = {d_qkv, 6144, 192, 32};                       // strides of batch, token, head
  attentionQueryGrad<32, false>(q_view, k_view, v_view, dy_view, dq_view, x, delta, shape);
}

// ---- split_attention_grad_concat__f32_32_192_dkv ----
// split_attention_grad_concat__f32_32_192_dkv   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [64, 64, 64]} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_q, %d_k, %d_v = attention_grad %d_attention, %q, %k, %v, %attention, %x {causal = true, heads = 2} : f32[B, 32, 64], f32[B, 32, 64], f32[B, 32, 64]
//   %d_qkv = concat %d_q, %d_k, %d_v               : f32[B, 32, 192]
// 3 ops -> several kernels, this is step 'dkv'; reads qkv d_attention attention x, writes d_qkv.
// grid = 2*B, block = 128, a block a tile of keys
extern "C" __global__ void __launch_bounds__(128)
split_attention_grad_concat__f32_32_192_dkv(const float *__restrict__ qkv, const float *__restrict__ d_attention, const float *__restrict__ x, float *__restrict__ d_qkv, const float *__restrict__ delta, i64 B) {
  const AttentionShape shape = {B, 2, 2, 32, 32,                                // batch, heads, key heads, queries, keys
    0.17677669f, true, -1, nullptr, nullptr};                                   // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const float> q_view = {qkv, 6144, 192, 32};                    // strides of batch, token, head
  const HeadView<const float> k_view = {qkv + 64, 6144, 192, 32};               // strides of batch, token, head
  const HeadView<const float> v_view = {qkv + 128, 6144, 192, 32};              // strides of batch, token, head
  const HeadView<const float> dy_view = {d_attention, 2048, 64, 32};            // strides of batch, token, head
  const HeadView<float> dk_view = {d_qkv + 64, 6144, 192, 32};                  // strides of batch, token, head
  const HeadView<float> dv_view = {d_qkv + 128, 6144, 192, 32};                 // strides of batch, token, head
  attentionKeyGrad<32, false>(q_view, k_view, v_view, dy_view, dk_view, dv_view, x, delta, shape);
}

// ---- linear_weight_grad__f32_64_64 ----
// linear_weight_grad__f32_64_64   (contraction kernel)
//   %d_proj_weight = linear_weight_grad %d_mid, %attention {out = f32} : f32[64, 64]
// 1 op -> 1 kernel; reads d_mid attention, writes d_proj_weight.
// grid = 1, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_64_64(const float *__restrict__ d_mid, const float *__restrict__ attention, float *__restrict__ d_proj_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_mid, attention, 64, 64, (32 * B),  // A, B, M, N, K
    64, 64, 0, 0};                                                              // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_proj_weight + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__f32_32_64_v4 ----
// linear_input_grad__f32_32_64_v4   (contraction kernel)
//   %d_ln1 = linear_input_grad %d_qkv, %qkv_weight : f32[B, 32, 64]
// 1 op -> 1 kernel; reads d_qkv qkv_weight, writes d_ln1.
// grid = ceil(32*B / 64), block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__f32_32_64_v4(const float *__restrict__ d_qkv, const float *__restrict__ qkv_weight, float *__restrict__ d_ln1, i64 B) {
  const GemmOperands<float, float> operands = {d_qkv, qkv_weight, (32 * B), 64, 192,  // A, B, M, N, K
    192, 64, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_ln1 + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_weight_grad__f32_192_64 ----
// linear_weight_grad__f32_192_64   (contraction kernel)
//   %d_qkv_weight = linear_weight_grad %d_qkv, %ln1 {out = f32} : f32[192, 64]
// 1 op -> 1 kernel; reads d_qkv ln1, writes d_qkv_weight.
// grid = 3, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_192_64(const float *__restrict__ d_qkv, const float *__restrict__ ln1, float *__restrict__ d_qkv_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_qkv, ln1, 192, 64, (32 * B),   // A, B, M, N, K
    192, 64, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_qkv_weight + row * 64 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- sum__f32_192_rows ----
// sum__f32_192_rows   (column kernel)
//   %d_qkv_bias = sum %d_qkv {dims = [0, 1]} : f32[192]
// 1 op -> several kernels, this is step 'rows'; reads d_qkv, writes d_qkv_bias.
// grid = ceil(32*B / 32) * 2, block = 256, a warp has 128 columns of 4 rows
extern "C" __global__ void __launch_bounds__(256, 4)
sum__f32_192_rows(const float *__restrict__ d_qkv, float *__restrict__ d_qkv_bias_partials, i64 B) {
  const i64 tile = blockIdx.x % 2, chunk = blockIdx.x / 2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 c = tile * 128 + lane * 4;
  const i64 firstRow = chunk * 32, endRow = firstRow + 32 < (32 * B) ? firstRow + 32 : (32 * B);
  float d_qkv_bias_sum[4];
  for (int e = 0; e < 4; ++e) d_qkv_bias_sum[e] = Sum::identity<float>();
  if (c < 192) {
    #pragma unroll 4
    for (i64 row = firstRow + warp; row < endRow; row += 8) {
      // load
      float d_qkv4[4];
      loadVector(d_qkv + row * 192 + c, d_qkv4);
      // compute
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        d_qkv_bias_sum[e] += d_qkv4[e];
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 4>(d_qkv_bias_partials + chunk * 192 + tile * 128, 192 - tile * 128, d_qkv_bias_sum);
}

// ---- sum__f32_192_finish ----
// sum__f32_192_finish   (column kernel)
//   %d_qkv_bias = sum %d_qkv {dims = [0, 1]} : f32[192]
// 1 op -> several kernels, this is step 'finish'; reads d_qkv, writes d_qkv_bias.
// grid = 12, block = 512, adds ceil(32*B / 32) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
sum__f32_192_finish(float *__restrict__ d_qkv_bias2, const float *__restrict__ d_qkv_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 192;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_qkv_bias_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, (((32 * B) + 31) / 32), 192, c, exists, totals);
  const float d_qkv_bias = totals[0];                                           // f32[192]
  if (exists && threadIdx.x < 16) {
    store(d_qkv_bias2 + c, d_qkv_bias);
  }
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v3 ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v3   (row kernel)
//   %ln1 = normalize %embedded, %x, mean = %x2, weight = %ln1_weight, bias = %ln1_bias  : f32[B, 32, 64]
//   %d_embedded_part = layer_norm_grad %d_ln1, %embedded, %x2, %x, weight = %ln1_weight : f32[B, 32, 64]
//   %d_ln1_weight, %d_ln1_bias = layer_norm_param_grad %d_ln1, %embedded, %x2, %x       : f32[64], f32[64]
//   %d_embedded = add %d_mid, %d_embedded_part                                          : f32[B, 32, 64]
// 4 ops -> several kernels, this is step 'rows'; reads embedded x x2 ln1_weight ln1_bias d_ln1 d_mid, writes ln1 d_ln1_weight d_ln1_bias d_embedded; saves 5 passes over [B, 32, 64].
// grid = min(ceil(32*B / 4), 256), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_rows_v3(const float *embedded, const float *__restrict__ x3, const float *__restrict__ x2_2, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, const float *d_ln1, const float *d_mid, float *ln1, float *d_embedded, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (32 * B) * chunk / gridDim.x, endRow = (32 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[4];                                                             // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum[e] = Sum::identity<float>();
  float sum_sum2[4];                                                            // this thread's columns
  for (int e = 0; e < 4; ++e)
    sum_sum2[e] = Sum::identity<float>();
  for (i64 row = firstRow + warp; row < endRow; row += 4) {
    // load
    float embedded4[4];                                                         // this thread's columns
    float d_ln14[4];                                                            // this thread's columns
    float d_mid4[4];                                                            // this thread's columns
    {
      const int c = thread * 4;
      if (c < 64) {
        loadVector(embedded + row * 64 + c, embedded4);
        loadVector(d_ln1 + row * 64 + c, d_ln14);
        loadVector(d_mid + row * 64 + c, d_mid4);
      }
    }
    const float x2 = load(x2_2 + row);
    const float x = load(x3 + row);
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln1_weight4[4];
        loadVector(ln1_weight + c, ln1_weight4);
        float ln1_bias4[4];
        loadVector(ln1_bias + c, ln1_bias4);
        float add4[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub = embedded4[e] - x2;                                  // f32[B, 32, 64]
          const float mul = sub * x;                                            // f32[B, 32, 64]
          const float mul2 = mul * ln1_weight4[e];                              // f32[B, 32, 64]
          add4[e] = mul2 + ln1_bias4[e];                                        // f32[B, 32, 64]
          const float mul3 = d_ln14[e] * ln1_weight4[e];                        // f32[B, 32, 64]
          const float mul4 = mul3 * mul;                                        // f32[B, 32, 64]
          const float mul5 = d_ln14[e] * mul;                                   // f32[B, 32, 64]
          sum_acc += mul4;
          sum_acc2 += mul3;
          sum_sum[e] += mul5;
          sum_sum2[e] += d_ln14[e];
        }
        storeVector(ln1 + row * 64 + c, add4);
      }
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 64.0f;                                          // f32[B, 32, 1]
    const float div2 = sum_acc2 / 64.0f;                                        // f32[B, 32, 1]
    // compute and store
    {
      const int c = thread * 4;
      if (c < 64) {
        float ln1_weight4_2[4];
        loadVector(ln1_weight + c, ln1_weight4_2);
        float d_embedded4[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float sub2 = embedded4[e] - x2;                                 // f32[B, 32, 64]
          const float mul6 = sub2 * x;                                          // f32[B, 32, 64]
          const float mul7 = d_ln14[e] * ln1_weight4_2[e];                      // f32[B, 32, 64]
          const float mul8 = mul6 * div;                                        // f32[B, 32, 64]
          const float sub3 = mul7 - div2;                                       // f32[B, 32, 64]
          const float sub4 = sub3 - mul8;                                       // f32[B, 32, 64]
          const float mul9 = x * sub4;                                          // f32[B, 32, 64]
          d_embedded4[e] = d_mid4[e] + mul9;                                    // f32[B, 32, 64]
        }
        storeVector(d_embedded + row * 64 + c, d_embedded4);
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 4, 4>(partials2 + chunk * 64, 64, sum_sum);
  storeColumnSums<Sum, 4, 4>(partials3 + chunk * 64, 64, sum_sum2);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v3 ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v3   (row kernel)
//   %ln1 = normalize %embedded, %x, mean = %x2, weight = %ln1_weight, bias = %ln1_bias  : f32[B, 32, 64]
//   %d_embedded_part = layer_norm_grad %d_ln1, %embedded, %x2, %x, weight = %ln1_weight : f32[B, 32, 64]
//   %d_ln1_weight, %d_ln1_bias = layer_norm_param_grad %d_ln1, %embedded, %x2, %x       : f32[64], f32[64]
//   %d_embedded = add %d_mid, %d_embedded_part                                          : f32[B, 32, 64]
// 4 ops -> several kernels, this is step 'finish'; reads embedded x x2 ln1_weight ln1_bias d_ln1 d_mid, writes ln1 d_ln1_weight d_ln1_bias d_embedded; saves 5 passes over [B, 32, 64].
// grid = 4, block = 512, adds min(ceil(32*B / 4), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__f32_32_64_finish_v3(float *__restrict__ d_ln1_weight, float *__restrict__ d_ln1_bias, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 64;
  // the sums: barriers inside, so for all threads
  const float *const parts[2] = {partials2, partials3};
  float totals[2];
  columnTotals<Sum, 16>(parts, ((((32 * B) + 3) / 4) < 256 ? (((32 * B) + 3) / 4) : 256), 64, c, exists, totals);
  const float sum = totals[0];                                                  // f32[64]
  const float sum2 = totals[1];                                                 // f32[64]
  if (exists && threadIdx.x < 16) {
    store(d_ln1_weight + c, sum);
    store(d_ln1_bias + c, sum2);
  }
}

// ---- sum__f32_32_64_rows ----
// sum__f32_32_64_rows   (column kernel)
//   %d_pos_weight = sum %d_embedded {dims = [0]} : f32[32, 64]
// 1 op -> several kernels, this is step 'rows'; reads d_embedded, writes d_pos_weight.
// grid = ceil(B / 128) * 16, block = 256, a warp has 128 columns of 16 rows
extern "C" __global__ void __launch_bounds__(256, 4)
sum__f32_32_64_rows(const float *__restrict__ d_embedded, float *__restrict__ d_pos_weight_partials, i64 B) {
  const i64 tile = blockIdx.x % 16, chunk = blockIdx.x / 16;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 c = tile * 128 + lane * 4;
  const i64 firstRow = chunk * 128, endRow = firstRow + 128 < B ? firstRow + 128 : B;
  float d_pos_weight_sum[4];
  for (int e = 0; e < 4; ++e) d_pos_weight_sum[e] = Sum::identity<float>();
  if (c < 2048) {
    #pragma unroll 4
    for (i64 row = firstRow + warp; row < endRow; row += 8) {
      // load
      float d_embedded4[4];
      loadVector(d_embedded + row * 2048 + c, d_embedded4);
      // compute
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        d_pos_weight_sum[e] += d_embedded4[e];
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 4>(d_pos_weight_partials + chunk * 2048 + tile * 128, 2048 - tile * 128, d_pos_weight_sum);
}

// ---- sum__f32_32_64_finish ----
// sum__f32_32_64_finish   (column kernel)
//   %d_pos_weight = sum %d_embedded {dims = [0]} : f32[32, 64]
// 1 op -> several kernels, this is step 'finish'; reads d_embedded, writes d_pos_weight.
// grid = 128, block = 512, adds ceil(B / 128) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
sum__f32_32_64_finish(float *__restrict__ d_pos_weight2, const float *__restrict__ d_pos_weight_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 2048;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_pos_weight_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, ((B + 127) / 128), 2048, c, exists, totals);
  const float d_pos_weight = totals[0];                                         // f32[32, 64]
  if (exists && threadIdx.x < 16) {
    store(d_pos_weight2 + c, d_pos_weight);
  }
}

// ---- embedding_grad__f32_96_64_order ----
// embedding_grad__f32_96_64_order   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 64]
// 1 op -> several kernels, this is step 'order'; reads d_embedded tokens, writes d_emb_weight.
// grid = 12, block = 1024, a block for 8 rows of the table
extern "C" __global__ void __launch_bounds__(1024)
embedding_grad__f32_96_64_order(const i32 *__restrict__ tokens, u32 *__restrict__ offsets, u32 *__restrict__ positions, u32 *__restrict__ found, i64 B) {
  gatherOrder<8>(tokens, (32 * B), 96, offsets, positions, found);
}

// ---- embedding_grad__f32_96_64_parts ----
// embedding_grad__f32_96_64_parts   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 64]
// 1 op -> several kernels, this is step 'parts'; reads d_embedded tokens, writes d_emb_weight.
// grid = 1536, block = 128, up to 16 blocks a row of the table
extern "C" __global__ void __launch_bounds__(128)
embedding_grad__f32_96_64_parts(const float *__restrict__ d_embedded, const u32 *__restrict__ offsets, const u32 *__restrict__ positions, float *__restrict__ partials2) {
  gatherPartSums<16, 4, 32, 4>(d_embedded, 96, 64, offsets, positions, partials2);
}

// ---- embedding_grad__f32_96_64_add ----
// embedding_grad__f32_96_64_add   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 64]
// 1 op -> several kernels, this is step 'add'; reads d_embedded tokens, writes d_emb_weight.
// grid = 96, block = 32, a block a row of the table
extern "C" __global__ void __launch_bounds__(32)
embedding_grad__f32_96_64_add(float *__restrict__ d_emb_weight, const u32 *__restrict__ offsets, const float *__restrict__ partials2) {
  const auto put = [=](i64 row, i64 column, const float (&sums)[4]) {
    storeVector(d_emb_weight + row * 64 + column, sums);
  };
  gatherPartTotals<16, 32, 4>(partials2, 96, 64, offsets, put);
}

// ---- add__i32 ----
// add__i32   (pointwise kernel)
//   %constant = constant {dtype = i32, value = 1.0} : i32[]
//   %new_adamw_step = add %adamw_step, %constant    : i32[]
// 2 ops -> 1 kernel; reads adamw_step, writes new_adamw_step.
// grid = 1, block = 256, one element a thread at once
extern "C" __global__ void __launch_bounds__(256)
add__i32(const i32 *adamw_step2, i32 *new_adamw_step2) {
  const i64 count = 1, step = (i64)gridDim.x * 256;
  for (i64 i = ((i64)blockIdx.x * 256 + threadIdx.x); i < count; i += step) {
    // load
    const i32 adamw_step = load(adamw_step2 + i);
    // compute
    const i32 new_adamw_step = convert<i32>((double)adamw_step + (double)(i32)1);  // i32[]
    // store
    store(new_adamw_step2 + i, new_adamw_step);
  }
}

// ---- adamw__f32_96_64 ----
// adamw__f32_96_64   (multi_tensor kernel)
//   %new_emb_weight, %m_emb_weight2, %v_emb_weight2 = adamw %emb_weight, %d_emb_weight, %m_emb_weight, %v_emb_weight, %new_adamw_step, %optimizer_lr : f32[96, 64], f32[96, 64], f32[96, 64]
//   %new_pos_weight, %m_pos_weight2, %v_pos_weight2 = adamw %pos_weight, %d_pos_weight, %m_pos_weight, %v_pos_weight, %new_adamw_step, %optimizer_lr : f32[32, 64], f32[32, 64], f32[32, 64]
//   %new_ln1_weight, %m_ln1_weight3, %v_ln1_weight3 = adamw %ln1_weight, %d_ln1_weight, %m_ln1_weight, %v_ln1_weight, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln1_bias, %m_ln1_bias3, %v_ln1_bias3 = adamw %ln1_bias, %d_ln1_bias, %m_ln1_bias, %v_ln1_bias, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_qkv_weight, %m_qkv_weight3, %v_qkv_weight3 = adamw %qkv_weight, %d_qkv_weight, %m_qkv_weight, %v_qkv_weight, %new_adamw_step, %optimizer_lr : f32[192, 64], f32[192, 64], f32[192, 64]
//   %new_qkv_bias, %m_qkv_bias3, %v_qkv_bias3 = adamw %qkv_bias, %d_qkv_bias, %m_qkv_bias, %v_qkv_bias, %new_adamw_step, %optimizer_lr : f32[192], f32[192], f32[192]
//   %new_proj_weight, %m_proj_weight3, %v_proj_weight3 = adamw %proj_weight, %d_proj_weight, %m_proj_weight, %v_proj_weight, %new_adamw_step, %optimizer_lr : f32[64, 64], f32[64, 64], f32[64, 64]
//   %new_proj_bias, %m_proj_bias3, %v_proj_bias3 = adamw %proj_bias, %d_proj_bias, %m_proj_bias, %v_proj_bias, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln2_weight, %m_ln2_weight3, %v_ln2_weight3 = adamw %ln2_weight, %d_ln2_weight, %m_ln2_weight, %v_ln2_weight, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln2_bias, %m_ln2_bias3, %v_ln2_bias3 = adamw %ln2_bias, %d_ln2_bias, %m_ln2_bias, %v_ln2_bias, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_fc1_weight, %m_fc1_weight3, %v_fc1_weight3 = adamw %fc1_weight, %d_fc1_weight, %m_fc1_weight, %v_fc1_weight, %new_adamw_step, %optimizer_lr : f32[256, 64], f32[256, 64], f32[256, 64]
//   %new_fc1_bias, %m_fc1_bias3, %v_fc1_bias3 = adamw %fc1_bias, %d_fc1_bias, %m_fc1_bias, %v_fc1_bias, %new_adamw_step, %optimizer_lr : f32[256], f32[256], f32[256]
//   %new_fc2_weight, %m_fc2_weight3, %v_fc2_weight3 = adamw %fc2_weight, %d_fc2_weight, %m_fc2_weight, %v_fc2_weight, %new_adamw_step, %optimizer_lr : f32[64, 256], f32[64, 256], f32[64, 256]
//   %new_fc2_bias, %m_fc2_bias3, %v_fc2_bias3 = adamw %fc2_bias, %d_fc2_bias, %m_fc2_bias, %v_fc2_bias, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln1_weight2, %m_ln1_weight4, %v_ln1_weight4 = adamw %ln1_weight2, %d_ln1_weight2, %m_ln1_weight2, %v_ln1_weight2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln1_bias2, %m_ln1_bias4, %v_ln1_bias4 = adamw %ln1_bias2, %d_ln1_bias2, %m_ln1_bias2, %v_ln1_bias2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_qkv_weight2, %m_qkv_weight4, %v_qkv_weight4 = adamw %qkv_weight2, %d_qkv_weight2, %m_qkv_weight2, %v_qkv_weight2, %new_adamw_step, %optimizer_lr : f32[192, 64], f32[192, 64], f32[192, 64]
//   %new_qkv_bias2, %m_qkv_bias4, %v_qkv_bias4 = adamw %qkv_bias2, %d_qkv_bias2, %m_qkv_bias2, %v_qkv_bias2, %new_adamw_step, %optimizer_lr : f32[192], f32[192], f32[192]
//   %new_proj_weight2, %m_proj_weight4, %v_proj_weight4 = adamw %proj_weight2, %d_proj_weight2, %m_proj_weight2, %v_proj_weight2, %new_adamw_step, %optimizer_lr : f32[64, 64], f32[64, 64], f32[64, 64]
//   %new_proj_bias2, %m_proj_bias4, %v_proj_bias4 = adamw %proj_bias2, %d_proj_bias2, %m_proj_bias2, %v_proj_bias2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln2_weight2, %m_ln2_weight4, %v_ln2_weight4 = adamw %ln2_weight2, %d_ln2_weight2, %m_ln2_weight2, %v_ln2_weight2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln2_bias2, %m_ln2_bias4, %v_ln2_bias4 = adamw %ln2_bias2, %d_ln2_bias2, %m_ln2_bias2, %v_ln2_bias2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_fc1_weight2, %m_fc1_weight4, %v_fc1_weight4 = adamw %fc1_weight2, %d_fc1_weight2, %m_fc1_weight2, %v_fc1_weight2, %new_adamw_step, %optimizer_lr : f32[256, 64], f32[256, 64], f32[256, 64]
//   %new_fc1_bias2, %m_fc1_bias4, %v_fc1_bias4 = adamw %fc1_bias2, %d_fc1_bias2, %m_fc1_bias2, %v_fc1_bias2, %new_adamw_step, %optimizer_lr : f32[256], f32[256], f32[256]
//   %new_fc2_weight2, %m_fc2_weight4, %v_fc2_weight4 = adamw %fc2_weight2, %d_fc2_weight2, %m_fc2_weight2, %v_fc2_weight2, %new_adamw_step, %optimizer_lr : f32[64, 256], f32[64, 256], f32[64, 256]
//   %new_fc2_bias2, %m_fc2_bias4, %v_fc2_bias4 = adamw %fc2_bias2, %d_fc2_bias2, %m_fc2_bias2, %v_fc2_bias2, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln_f_weight, %m_ln_f_weight2, %v_ln_f_weight2 = adamw %ln_f_weight, %d_ln_f_weight, %m_ln_f_weight, %v_ln_f_weight, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_ln_f_bias, %m_ln_f_bias2, %v_ln_f_bias2 = adamw %ln_f_bias, %d_ln_f_bias, %m_ln_f_bias, %v_ln_f_bias, %new_adamw_step, %optimizer_lr : f32[64], f32[64], f32[64]
//   %new_head_weight, %m_head_weight2, %v_head_weight2 = adamw %head_weight, %d_head_weight, %m_head_weight, %v_head_weight, %new_adamw_step, %optimizer_lr : f32[96, 64], f32[96, 64], f32[96, 64]
// 29 ops -> 1 kernel; reads emb_weight d_emb_weight m_emb_weight v_emb_weight new_adamw_step optimizer_lr pos_weight d_pos_weight m_pos_weight v_pos_weight ln1_weight d_ln1_weight m_ln1_weight v_ln1_weight ln1_bias d_ln1_bias m_ln1_bias v_ln1_bias qkv_weight d_qkv_weight m_qkv_weight v_qkv_weight qkv_bias d_qkv_bias m_qkv_bias v_qkv_bias proj_weight d_proj_weight m_proj_weight v_proj_weight proj_bias d_proj_bias m_proj_bias v_proj_bias ln2_weight d_ln2_weight m_ln2_weight v_ln2_weight ln2_bias d_ln2_bias m_ln2_bias v_ln2_bias fc1_weight d_fc1_weight m_fc1_weight v_fc1_weight fc1_bias d_fc1_bias m_fc1_bias v_fc1_bias fc2_weight d_fc2_weight m_fc2_weight v_fc2_weight fc2_bias d_fc2_bias m_fc2_bias v_fc2_bias ln1_weight2 d_ln1_weight2 m_ln1_weight2 v_ln1_weight2 ln1_bias2 d_ln1_bias2 m_ln1_bias2 v_ln1_bias2 qkv_weight2 d_qkv_weight2 m_qkv_weight2 v_qkv_weight2 qkv_bias2 d_qkv_bias2 m_qkv_bias2 v_qkv_bias2 proj_weight2 d_proj_weight2 m_proj_weight2 v_proj_weight2 proj_bias2 d_proj_bias2 m_proj_bias2 v_proj_bias2 ln2_weight2 d_ln2_weight2 m_ln2_weight2 v_ln2_weight2 ln2_bias2 d_ln2_bias2 m_ln2_bias2 v_ln2_bias2 fc1_weight2 d_fc1_weight2 m_fc1_weight2 v_fc1_weight2 fc1_bias2 d_fc1_bias2 m_fc1_bias2 v_fc1_bias2 fc2_weight2 d_fc2_weight2 m_fc2_weight2 v_fc2_weight2 fc2_bias2 d_fc2_bias2 m_fc2_bias2 v_fc2_bias2 ln_f_weight d_ln_f_weight m_ln_f_weight v_ln_f_weight ln_f_bias d_ln_f_bias m_ln_f_bias v_ln_f_bias head_weight d_head_weight m_head_weight v_head_weight, writes new_emb_weight m_emb_weight2 v_emb_weight2 new_pos_weight m_pos_weight2 v_pos_weight2 new_ln1_weight m_ln1_weight3 v_ln1_weight3 new_ln1_bias m_ln1_bias3 v_ln1_bias3 new_qkv_weight m_qkv_weight3 v_qkv_weight3 new_qkv_bias m_qkv_bias3 v_qkv_bias3 new_proj_weight m_proj_weight3 v_proj_weight3 new_proj_bias m_proj_bias3 v_proj_bias3 new_ln2_weight m_ln2_weight3 v_ln2_weight3 new_ln2_bias m_ln2_bias3 v_ln2_bias3 new_fc1_weight m_fc1_weight3 v_fc1_weight3 new_fc1_bias m_fc1_bias3 v_fc1_bias3 new_fc2_weight m_fc2_weight3 v_fc2_weight3 new_fc2_bias m_fc2_bias3 v_fc2_bias3 new_ln1_weight2 m_ln1_weight4 v_ln1_weight4 new_ln1_bias2 m_ln1_bias4 v_ln1_bias4 new_qkv_weight2 m_qkv_weight4 v_qkv_weight4 new_qkv_bias2 m_qkv_bias4 v_qkv_bias4 new_proj_weight2 m_proj_weight4 v_proj_weight4 new_proj_bias2 m_proj_bias4 v_proj_bias4 new_ln2_weight2 m_ln2_weight4 v_ln2_weight4 new_ln2_bias2 m_ln2_bias4 v_ln2_bias4 new_fc1_weight2 m_fc1_weight4 v_fc1_weight4 new_fc1_bias2 m_fc1_bias4 v_fc1_bias4 new_fc2_weight2 m_fc2_weight4 v_fc2_weight4 new_fc2_bias2 m_fc2_bias4 v_fc2_bias4 new_ln_f_weight m_ln_f_weight2 v_ln_f_weight2 new_ln_f_bias m_ln_f_bias2 v_ln_f_bias2 new_head_weight m_head_weight2 v_head_weight2.
// grid = 47, block = 256, 29 tensors in chunks of 4096 elements
extern "C" __global__ void __launch_bounds__(256)
adamw__f32_96_64(const i32 *__restrict__ new_adamw_step2, const float *__restrict__ optimizer_lr2, const u64 *__restrict__ pointer_table, const i64 *__restrict__ size_table, const i64 *__restrict__ chunk_table, i64 tensor_count) {
  const TensorTable table = {pointer_table, size_table, chunk_table, tensor_count};
  const TensorChunk chunk = findChunk(table, blockIdx.x, 4096);
  const float *emb_weight = tensorPointer<const float>(table, 0, chunk.tensor);
  const float *d_emb_weight = tensorPointer<const float>(table, 1, chunk.tensor);
  const float *m_emb_weight = tensorPointer<const float>(table, 2, chunk.tensor);
  const float *v_emb_weight = tensorPointer<const float>(table, 3, chunk.tensor);
  float *v = tensorPointer<float>(table, 4, chunk.tensor);
  float *v2 = tensorPointer<float>(table, 5, chunk.tensor);
  float *v3 = tensorPointer<float>(table, 6, chunk.tensor);
  const i32 new_adamw_step = load(new_adamw_step2);
  const float cast = convert<float>(new_adamw_step);                            // f32[]
  const float mul = cast * -0.105360515f;                                       // f32[]
  const float expm1 = math::expm1(mul);                                         // f32[]
  const float neg = -expm1;                                                     // f32[]
  const float mul2 = cast * -0.0010005003f;                                     // f32[]
  const float expm1_2 = math::expm1(mul2);                                      // f32[]
  const float neg2 = -expm1_2;                                                  // f32[]
  const float optimizer_lr = load(optimizer_lr2);
  const float mul3 = optimizer_lr * 0.01f;                                      // f32[]
  const float sub = 1.0f - mul3;                                                // f32[]
  for (i64 i = chunk.begin + threadIdx.x * 4; i < chunk.end; i += 1024) {
    const i64 left = chunk.end - i;
    // load
    float d_emb_weight4[4];
    loadUpTo(d_emb_weight + i, left, d_emb_weight4);
    float m_emb_weight4[4];
    loadUpTo(m_emb_weight + i, left, m_emb_weight4);
    float v_emb_weight4[4];
    loadUpTo(v_emb_weight + i, left, v_emb_weight4);
    float emb_weight4[4];
    loadUpTo(emb_weight + i, left, emb_weight4);
    // compute
    float v4[4];
    float v4_2[4];
    float v4_3[4];
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float mul4 = d_emb_weight4[e] * 0.1f;                               // f32[n]
      const float mul5 = m_emb_weight4[e] * 0.9f;                               // f32[n]
      v4_2[e] = mul5 + mul4;                                                    // f32[n]
      const float mul6 = d_emb_weight4[e] * d_emb_weight4[e];                   // f32[n]
      const float mul7 = mul6 * 0.001f;                                         // f32[n]
      const float mul8 = v_emb_weight4[e] * 0.999f;                             // f32[n]
      v4_3[e] = mul8 + mul7;                                                    // f32[n]
      const float div = v4_3[e] / neg2;                                         // f32[n]
      const float sqrt = math::sqrt(div);                                       // f32[n]
      const float add = sqrt + 1e-08f;                                          // f32[n]
      const float div2 = v4_2[e] / neg;                                         // f32[n]
      const float div3 = div2 / add;                                            // f32[n]
      const float mul9 = optimizer_lr * div3;                                   // f32[n]
      const float mul10 = emb_weight4[e] * sub;                                 // f32[n]
      v4[e] = mul10 - mul9;                                                     // f32[n]
    }
    // store
    storeUpTo(v + i, left, v4);
    storeUpTo(v2 + i, left, v4_2);
    storeUpTo(v3 + i, left, v4_3);
  }
}

