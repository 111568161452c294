// ---- embedding_add_layer_norm__bf16_256_768 ----
// embedding_add_layer_norm__bf16_256_768   (row kernel)
//   %emb = embedding %emb_weight, %tokens                                                           : f32[B, 256, 768]
//   %embedded = add %emb, %pos_weight                                                               : f32[B, 256, 768]
//   %embedded2 = cast %embedded {to = bf16}                                                         : bf16[B, 256, 768]
//   %ln1, %layer_norm, %layer_norm2 = layer_norm %embedded2, weight = %ln1_weight, bias = %ln1_bias : bf16[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 4 ops -> 1 kernel; reads emb_weight tokens pos_weight ln1_weight ln1_bias, writes embedded2 ln1; saves 5 passes over [B, 256, 768].
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
embedding_add_layer_norm__bf16_256_768(const float *__restrict__ emb_weight, const i32 *__restrict__ tokens, const float *__restrict__ pos_weight, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, bf16 *__restrict__ embedded2, bf16 *__restrict__ ln1, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float v8[3][8];                                                               // this thread's columns, turn by turn
  float pos_weight8[3][8];                                                      // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    const i64 row2 = wrapIndex(load(tokens + row), 96);
    if (row2 >= 0)
      loadVector(emb_weight + c + row2 * 768, v8[j]);
    else
      for (int e = 0; e < 8; ++e) v8[j][e] = 0.0f;
    loadVector(pos_weight + row % 256 * 768 + c, pos_weight8[j]);
  }
  // compute and store: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float embedded28[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded = v8[j][e] + pos_weight8[j][e];                      // f32[B, 256, 768]
      embedded28[e] = roundTo<bf16>(embedded);                                  // bf16[B, 256, 768]
      const float cast = embedded28[e];                                         // f32[B, 256, 768]
      sum_acc += cast;
    }
    storeVector(embedded2 + row * 768 + c, embedded28);
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded3 = v8[j][e] + pos_weight8[j][e];                     // f32[B, 256, 768]
      const float embedded2_2 = roundTo<bf16>(embedded3);                       // bf16[B, 256, 768]
      const float cast2 = embedded2_2;                                          // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln1_weight8[8];
    loadVector(ln1_weight + c, ln1_weight8);
    float ln1_bias8[8];
    loadVector(ln1_bias + c, ln1_bias8);
    float cast8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded4 = v8[j][e] + pos_weight8[j][e];                     // f32[B, 256, 768]
      const float embedded2_3 = roundTo<bf16>(embedded4);                       // bf16[B, 256, 768]
      const float cast3 = embedded2_3;                                          // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln1_weight8[e];                                 // f32[B, 256, 768]
      const float add2 = mul3 + ln1_bias8[e];                                   // f32[B, 256, 768]
      cast8[e] = roundTo<bf16>(add2);                                           // bf16[B, 256, 768]
    }
    storeVector(ln1 + row * 768 + c, cast8);
  }
}

// ---- linear__bf16_256_2304 ----
// linear__bf16_256_2304   (contraction kernel)
//   %qkv = linear %ln1, %qkv_weight, bias = %qkv_bias : bf16[B, 256, 2304]
// 1 op -> 1 kernel; reads ln1 qkv_weight qkv_bias, writes qkv.
// grid = ceil(256*B / 128) * 18, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear__bf16_256_2304(const bf16 *__restrict__ ln1, const bf16 *__restrict__ qkv_weight, const bf16 *__restrict__ qkv_bias2, bf16 *__restrict__ qkv, i64 B) {
  const GemmOperands<bf16, bf16> operands = {ln1, qkv_weight, (256 * B), 2304, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float qkv_bias = load(qkv_bias2 + c);
    const float cast = qkv_bias;                                                // f32[2304]
    const float add = acc + cast;                                               // f32[B, 256, 2304]
    const float cast2 = roundTo<bf16>(add);                                     // bf16[B, 256, 2304]
    store(qkv + row * 2304 + c, cast2);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- split_attention__bf16_256_768 ----
// split_attention__bf16_256_768   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [768, 768, 768]}                          : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %attention, %attention2 = attention %q, %k, %v {causal = true, heads = 12} : bf16[B, 256, 768], f32[B, 12, 256]
// 2 ops -> 1 kernel; reads qkv, writes attention; saves 6 passes over [B, 256, 768].
// grid = 48*B, block = 128, 46080 bytes of shared memory, online softmax on tensor cores, 64 queries by 64 keys
extern "C" __global__ void __launch_bounds__(128, 3)
split_attention__bf16_256_768(const bf16 *__restrict__ qkv, bf16 *__restrict__ attention, i64 B) {
  const AttentionShape shape = {B, 12, 12, 256, 256,                            // batch, heads, key heads, queries, keys
    0.125f, true, -1, nullptr, nullptr};                                        // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const bf16> q_view = {qkv, 589824, 2304, 64};                  // strides of batch, token, head
  const HeadView<const bf16> k_view = {qkv + 768, 589824, 2304, 64};            // strides of batch, token, head
  const HeadView<const bf16> v_view = {qkv + 1536, 589824, 2304, 64};           // strides of batch, token, head
  const HeadView<bf16> y_view = {attention, 196608, 768, 64};                   // strides of batch, token, head
  attentionForwardMma<64>(q_view, k_view, v_view, y_view, (float *)nullptr, shape);
}

// ---- linear_add__bf16_256_768 ----
// linear_add__bf16_256_768   (contraction kernel)
//   %proj = linear %attention, %proj_weight, bias = %proj_bias : bf16[B, 256, 768]
//   %mid = add %embedded, %proj                                : bf16[B, 256, 768]
// 2 ops -> 1 kernel; reads attention proj_weight proj_bias embedded, writes mid; saves 2 passes over [B, 256, 768].
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_add__bf16_256_768(const bf16 *__restrict__ attention, const bf16 *__restrict__ proj_weight, const bf16 *__restrict__ proj_bias2, const bf16 *embedded2, bf16 *mid2, i64 B) {
  const GemmOperands<bf16, bf16> operands = {attention, proj_weight, (256 * B), 768, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float proj_bias = load(proj_bias2 + c);
    const float embedded = load(embedded2 + row * 768 + c);
    const float cast = proj_bias;                                               // f32[768]
    const float add = acc + cast;                                               // f32[B, 256, 768]
    const float cast2 = roundTo<bf16>(add);                                     // bf16[B, 256, 768]
    const float mid = roundTo<bf16>(embedded + cast2);                          // bf16[B, 256, 768]
    store(mid2 + row * 768 + c, mid);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- layer_norm__bf16_256_768 ----
// layer_norm__bf16_256_768   (row kernel)
//   %ln2, %layer_norm, %layer_norm2 = layer_norm %mid, weight = %ln2_weight, bias = %ln2_bias : bf16[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 1 op -> 1 kernel; reads mid ln2_weight ln2_bias, writes ln2.
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__bf16_256_768(const bf16 *mid, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, bf16 *ln2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float mid8[3][8];                                                             // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    loadVector(mid + row * 768 + c, mid8[j]);
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast = mid8[j][e];                                            // f32[B, 256, 768]
      sum_acc += cast;
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast2 = mid8[j][e];                                           // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln2_weight8[8];
    loadVector(ln2_weight + c, ln2_weight8);
    float ln2_bias8[8];
    loadVector(ln2_bias + c, ln2_bias8);
    float cast8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast3 = mid8[j][e];                                           // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln2_weight8[e];                                 // f32[B, 256, 768]
      const float add2 = mul3 + ln2_bias8[e];                                   // f32[B, 256, 768]
      cast8[e] = roundTo<bf16>(add2);                                           // bf16[B, 256, 768]
    }
    storeVector(ln2 + row * 768 + c, cast8);
  }
}

// ---- linear_gelu__bf16_256_3072 ----
// linear_gelu__bf16_256_3072   (contraction kernel)
//   %fc1 = linear %ln2, %fc1_weight, bias = %fc1_bias : bf16[B, 256, 3072]
//   %activation = gelu %fc1                           : bf16[B, 256, 3072]
// 2 ops -> 1 kernel; reads ln2 fc1_weight fc1_bias, writes activation; saves 2 passes over [B, 256, 3072].
// grid = ceil(256*B / 128) * 24, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_gelu__bf16_256_3072(const bf16 *__restrict__ ln2, const bf16 *__restrict__ fc1_weight, const bf16 *__restrict__ fc1_bias2, bf16 *__restrict__ activation2, i64 B) {
  const GemmOperands<bf16, bf16> operands = {ln2, fc1_weight, (256 * B), 3072, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1_bias = load(fc1_bias2 + c);
    const float cast = fc1_bias;                                                // f32[3072]
    const float add = acc + cast;                                               // f32[B, 256, 3072]
    const float cast2 = roundTo<bf16>(add);                                     // bf16[B, 256, 3072]
    const float activation = roundTo<bf16>(0.5f * cast2 * (1.0f + math::tanhBesideOne(0.7978846f * (cast2 + 0.044715f * cast2 * cast2 * cast2))));  // bf16[B, 256, 3072]
    store(activation2 + row * 3072 + c, activation);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_add__bf16_256_768_v2 ----
// linear_add__bf16_256_768_v2   (contraction kernel)
//   %fc2 = linear %activation, %fc2_weight, bias = %fc2_bias : bf16[B, 256, 768]
//   %out = add %mid, %fc2                                    : bf16[B, 256, 768]
// 2 ops -> 1 kernel; reads activation fc2_weight fc2_bias mid, writes out; saves 2 passes over [B, 256, 768].
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_add__bf16_256_768_v2(const bf16 *__restrict__ activation, const bf16 *__restrict__ fc2_weight, const bf16 *__restrict__ fc2_bias2, const bf16 *mid2, bf16 *out2, i64 B) {
  const GemmOperands<bf16, bf16> operands = {activation, fc2_weight, (256 * B), 768, 3072,  // A, B, M, N, K
    3072, 3072, 0, 0};                                                          // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc2_bias = load(fc2_bias2 + c);
    const float mid = load(mid2 + row * 768 + c);
    const float cast = fc2_bias;                                                // f32[768]
    const float add = acc + cast;                                               // f32[B, 256, 768]
    const float cast2 = roundTo<bf16>(add);                                     // bf16[B, 256, 768]
    const float out = roundTo<bf16>(mid + cast2);                               // bf16[B, 256, 768]
    store(out2 + row * 768 + c, out);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- layer_norm__f32_256_768 ----
// layer_norm__f32_256_768   (row kernel)
//   %ln_f, %layer_norm, %layer_norm2 = layer_norm %out, weight = %ln_f_weight, bias = %ln_f_bias {out = f32} : f32[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 1 op -> 1 kernel; reads out ln_f_weight ln_f_bias, writes ln_f.
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__f32_256_768(const bf16 *__restrict__ out, const float *__restrict__ ln_f_weight, const float *__restrict__ ln_f_bias, float *__restrict__ ln_f, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float out8[3][8];                                                             // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    loadVector(out + row * 768 + c, out8[j]);
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast = out8[j][e];                                            // f32[B, 256, 768]
      sum_acc += cast;
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast2 = out8[j][e];                                           // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln_f_weight8[8];
    loadVector(ln_f_weight + c, ln_f_weight8);
    float ln_f_bias8[8];
    loadVector(ln_f_bias + c, ln_f_bias8);
    float add8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast3 = out8[j][e];                                           // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln_f_weight8[e];                                // f32[B, 256, 768]
      add8[e] = mul3 + ln_f_bias8[e];                                           // f32[B, 256, 768]
    }
    storeVector(ln_f + row * 768 + c, add8);
  }
}

// ---- linear__f32_256_96 ----
// linear__f32_256_96   (contraction kernel)
//   %logits = linear %ln_f, %head_weight : f32[B, 256, 96]
// 1 op -> 1 kernel; reads ln_f head_weight, writes logits.
// grid = ceil(256*B / 64) * 2, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear__f32_256_96(const float *__restrict__ ln_f, const float *__restrict__ head_weight, float *__restrict__ logits, i64 B) {
  const GemmOperands<float, float> operands = {ln_f, head_weight, (256 * B), 96, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(logits + row * 96 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- cross_entropy__f32_rows ----
// cross_entropy__f32_rows   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 256, 1], f32[]
// 1 op -> several kernels, this is step 'rows'; reads logits targets, writes loss; saves 1 pass over [B, 256, 1].
// grid = min(ceil(256*B / 4), 2048), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
cross_entropy__f32_rows(const float *__restrict__ logits, const i32 *__restrict__ targets, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (256 * B) * chunk / gridDim.x, endRow = (256 * B) * (chunk + 1) / gridDim.x;
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
    const bool ne = reshape != (i32)-100;                                       // i1[B, 256, 1]
    const float cast = convert<float>(ne);                                      // f32[B, 256, 1]
    // compute: reduce_max, sum
    float reduce_max_acc = Max::identity<float>();
    float sum_acc = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const i32 iota = (i32)(c + e);                                        // i32[96]
          const bool eq = iota == reshape;                                      // i1[B, 256, 96]
          const float select = eq ? logits4[e] : 0.0f;                          // f32[B, 256, 96]
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
          const float sub = logits4[e] - reduce_max_acc;                        // f32[B, 256, 96]
          const float exp = math::exp(sub);                                     // f32[B, 256, 96]
          sum_acc2 += exp;
        }
      }
    }
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float log = math::log(sum_acc2);                                      // f32[B, 256, 1]
    const float add = log + reduce_max_acc;                                     // f32[B, 256, 1]
    const float sub2 = add - sum_acc;                                           // f32[B, 256, 1]
    const float select2 = ne ? sub2 : 0.0f;                                     // f32[B, 256, 1]
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
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 256, 1], f32[]
// 1 op -> several kernels, this is step 'finish'; reads logits targets, writes loss; saves 1 pass over [B, 256, 1].
// grid = 1, block = 512, adds min(ceil(256*B / 4), 2048) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
cross_entropy__f32_finish(float *__restrict__ loss, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  // the sums: barriers inside, so for all threads
  const float sum = scalarTotal<Sum>(partials2, ((((256 * B) + 3) / 4) < 2048 ? (((256 * B) + 3) / 4) : 2048));  // f32[]
  const float sum2 = scalarTotal<Sum>(partials3, ((((256 * B) + 3) / 4) < 2048 ? (((256 * B) + 3) / 4) : 2048));  // f32[]
  const float max = math::maximum(sum2, 1.0f);                                  // f32[]
  const float div = sum / max;                                                  // f32[]
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(loss + 0, div);
  }
}

// ---- embedding_add_layer_norm__bf16_256_768_v2 ----
// embedding_add_layer_norm__bf16_256_768_v2   (row kernel)
//   %emb = embedding %emb_weight, %tokens                                                           : f32[B, 256, 768]
//   %embedded = add %emb, %pos_weight                                                               : f32[B, 256, 768]
//   %embedded2 = cast %embedded {to = bf16}                                                         : bf16[B, 256, 768]
//   %ln1, %layer_norm, %layer_norm2 = layer_norm %embedded2, weight = %ln1_weight, bias = %ln1_bias : bf16[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 4 ops -> 1 kernel; reads emb_weight tokens pos_weight ln1_weight ln1_bias, writes embedded2 ln1 layer_norm layer_norm2; saves 5 passes over [B, 256, 768].
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
embedding_add_layer_norm__bf16_256_768_v2(const float *__restrict__ emb_weight, const i32 *__restrict__ tokens, const float *__restrict__ pos_weight, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, bf16 *__restrict__ embedded2, bf16 *__restrict__ ln1, float *__restrict__ layer_norm, float *__restrict__ layer_norm2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float v8[3][8];                                                               // this thread's columns, turn by turn
  float pos_weight8[3][8];                                                      // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    const i64 row2 = wrapIndex(load(tokens + row), 96);
    if (row2 >= 0)
      loadVector(emb_weight + c + row2 * 768, v8[j]);
    else
      for (int e = 0; e < 8; ++e) v8[j][e] = 0.0f;
    loadVector(pos_weight + row % 256 * 768 + c, pos_weight8[j]);
  }
  // compute and store: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float embedded28[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded = v8[j][e] + pos_weight8[j][e];                      // f32[B, 256, 768]
      embedded28[e] = roundTo<bf16>(embedded);                                  // bf16[B, 256, 768]
      const float cast = embedded28[e];                                         // f32[B, 256, 768]
      sum_acc += cast;
    }
    storeVector(embedded2 + row * 768 + c, embedded28);
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded3 = v8[j][e] + pos_weight8[j][e];                     // f32[B, 256, 768]
      const float embedded2_2 = roundTo<bf16>(embedded3);                       // bf16[B, 256, 768]
      const float cast2 = embedded2_2;                                          // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln1_weight8[8];
    loadVector(ln1_weight + c, ln1_weight8);
    float ln1_bias8[8];
    loadVector(ln1_bias + c, ln1_bias8);
    float cast8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float embedded4 = v8[j][e] + pos_weight8[j][e];                     // f32[B, 256, 768]
      const float embedded2_3 = roundTo<bf16>(embedded4);                       // bf16[B, 256, 768]
      const float cast3 = embedded2_3;                                          // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln1_weight8[e];                                 // f32[B, 256, 768]
      const float add2 = mul3 + ln1_bias8[e];                                   // f32[B, 256, 768]
      cast8[e] = roundTo<bf16>(add2);                                           // bf16[B, 256, 768]
    }
    storeVector(ln1 + row * 768 + c, cast8);
  }
  // store, one thread a row
  if (thread == 0) {
    store(layer_norm + row, div);
  }
  if (thread == 0) {
    store(layer_norm2 + row, rsqrt2);
  }
}

// ---- split_attention__bf16_256_768_v2 ----
// split_attention__bf16_256_768_v2   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [768, 768, 768]}                          : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %attention, %attention2 = attention %q, %k, %v {causal = true, heads = 12} : bf16[B, 256, 768], f32[B, 12, 256]
// 2 ops -> 1 kernel; reads qkv, writes attention attention2; saves 6 passes over [B, 256, 768].
// grid = 48*B, block = 128, 46080 bytes of shared memory, online softmax on tensor cores, 64 queries by 64 keys
extern "C" __global__ void __launch_bounds__(128, 3)
split_attention__bf16_256_768_v2(const bf16 *__restrict__ qkv, bf16 *__restrict__ attention, float *__restrict__ attention2, i64 B) {
  const AttentionShape shape = {B, 12, 12, 256, 256,                            // batch, heads, key heads, queries, keys
    0.125f, true, -1, nullptr, nullptr};                                        // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const bf16> q_view = {qkv, 589824, 2304, 64};                  // strides of batch, token, head
  const HeadView<const bf16> k_view = {qkv + 768, 589824, 2304, 64};            // strides of batch, token, head
  const HeadView<const bf16> v_view = {qkv + 1536, 589824, 2304, 64};           // strides of batch, token, head
  const HeadView<bf16> y_view = {attention, 196608, 768, 64};                   // strides of batch, token, head
  attentionForwardMma<64>(q_view, k_view, v_view, y_view, attention2, shape);
}

// ---- layer_norm__bf16_256_768_v2 ----
// layer_norm__bf16_256_768_v2   (row kernel)
//   %ln2, %layer_norm, %layer_norm2 = layer_norm %mid, weight = %ln2_weight, bias = %ln2_bias : bf16[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 1 op -> 1 kernel; reads mid ln2_weight ln2_bias, writes ln2 layer_norm layer_norm2.
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__bf16_256_768_v2(const bf16 *mid, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, bf16 *ln2, float *__restrict__ layer_norm, float *__restrict__ layer_norm2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float mid8[3][8];                                                             // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    loadVector(mid + row * 768 + c, mid8[j]);
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast = mid8[j][e];                                            // f32[B, 256, 768]
      sum_acc += cast;
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast2 = mid8[j][e];                                           // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln2_weight8[8];
    loadVector(ln2_weight + c, ln2_weight8);
    float ln2_bias8[8];
    loadVector(ln2_bias + c, ln2_bias8);
    float cast8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast3 = mid8[j][e];                                           // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln2_weight8[e];                                 // f32[B, 256, 768]
      const float add2 = mul3 + ln2_bias8[e];                                   // f32[B, 256, 768]
      cast8[e] = roundTo<bf16>(add2);                                           // bf16[B, 256, 768]
    }
    storeVector(ln2 + row * 768 + c, cast8);
  }
  // store, one thread a row
  if (thread == 0) {
    store(layer_norm + row, div);
  }
  if (thread == 0) {
    store(layer_norm2 + row, rsqrt2);
  }
}

// ---- linear_gelu__bf16_256_3072_v2 ----
// linear_gelu__bf16_256_3072_v2   (contraction kernel)
//   %fc1 = linear %ln2, %fc1_weight, bias = %fc1_bias : bf16[B, 256, 3072]
//   %activation = gelu %fc1                           : bf16[B, 256, 3072]
// 2 ops -> 1 kernel; reads ln2 fc1_weight fc1_bias, writes fc1 activation; saves 1 pass over [B, 256, 3072].
// grid = ceil(256*B / 128) * 24, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_gelu__bf16_256_3072_v2(const bf16 *__restrict__ ln2, const bf16 *__restrict__ fc1_weight, const bf16 *__restrict__ fc1_bias2, bf16 *__restrict__ fc1, bf16 *__restrict__ activation2, i64 B) {
  const GemmOperands<bf16, bf16> operands = {ln2, fc1_weight, (256 * B), 3072, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1_bias = load(fc1_bias2 + c);
    const float cast = fc1_bias;                                                // f32[3072]
    const float add = acc + cast;                                               // f32[B, 256, 3072]
    const float cast2 = roundTo<bf16>(add);                                     // bf16[B, 256, 3072]
    const float activation = roundTo<bf16>(0.5f * cast2 * (1.0f + math::tanhBesideOne(0.7978846f * (cast2 + 0.044715f * cast2 * cast2 * cast2))));  // bf16[B, 256, 3072]
    store(fc1 + row * 3072 + c, cast2);
    store(activation2 + row * 3072 + c, activation);
    return acc;
  };
  gemmSimt<GemmTile128, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- layer_norm__f32_256_768_v2 ----
// layer_norm__f32_256_768_v2   (row kernel)
//   %ln_f, %layer_norm, %layer_norm2 = layer_norm %out, weight = %ln_f_weight, bias = %ln_f_bias {out = f32} : f32[B, 256, 768], f32[B, 256, 1], f32[B, 256, 1]
// 1 op -> 1 kernel; reads out ln_f_weight ln_f_bias, writes ln_f layer_norm layer_norm2.
// grid = ceil(256*B / 4), block = 128, a warp a row; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
layer_norm__f32_256_768_v2(const bf16 *__restrict__ out, const float *__restrict__ ln_f_weight, const float *__restrict__ ln_f_bias, float *__restrict__ ln_f, float *__restrict__ layer_norm, float *__restrict__ layer_norm2, i64 B) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32; // a warp a row
  const int thread = threadIdx.x % 32;
  if (row >= (256 * B)) return; // whole warps
  // load
  float out8[3][8];                                                             // this thread's columns, turn by turn
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    loadVector(out + row * 768 + c, out8[j]);
  }
  // compute: sum
  float sum_acc = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast = out8[j][e];                                            // f32[B, 256, 768]
      sum_acc += cast;
    }
  }
  sum_acc = warpReduce<Sum>(sum_acc);
  const float div = sum_acc / 768.0f;                                           // f32[B, 256, 1]
  // compute: sum
  float sum_acc2 = Sum::identity<float>();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast2 = out8[j][e];                                           // f32[B, 256, 768]
      const float sub = cast2 - div;                                            // f32[B, 256, 768]
      const float mul = sub * sub;                                              // f32[B, 256, 768]
      sum_acc2 += mul;
    }
  }
  sum_acc2 = warpReduce<Sum>(sum_acc2);
  const float div2 = sum_acc2 / 768.0f;                                         // f32[B, 256, 1]
  const float add = div2 + 1e-05f;                                              // f32[B, 256, 1]
  const float rsqrt2 = math::rsqrt(add);                                        // f32[B, 256, 1]
  // compute and store
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int c = (j * 32 + thread) * 8;
    float ln_f_weight8[8];
    loadVector(ln_f_weight + c, ln_f_weight8);
    float ln_f_bias8[8];
    loadVector(ln_f_bias + c, ln_f_bias8);
    float add8[8];
    #pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float cast3 = out8[j][e];                                           // f32[B, 256, 768]
      const float sub2 = cast3 - div;                                           // f32[B, 256, 768]
      const float mul2 = sub2 * rsqrt2;                                         // f32[B, 256, 768]
      const float mul3 = mul2 * ln_f_weight8[e];                                // f32[B, 256, 768]
      add8[e] = mul3 + ln_f_bias8[e];                                           // f32[B, 256, 768]
    }
    storeVector(ln_f + row * 768 + c, add8);
  }
  // store, one thread a row
  if (thread == 0) {
    store(layer_norm + row, div);
  }
  if (thread == 0) {
    store(layer_norm2 + row, rsqrt2);
  }
}

// ---- cross_entropy__f32_rows_v2 ----
// cross_entropy__f32_rows_v2   (row kernel)
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 256, 1], f32[]
// 1 op -> several kernels, this is step 'rows'; reads logits targets, writes loss cross_entropy cross_entropy2.
// grid = min(ceil(256*B / 4), 2048), block = 128, a warp a row, one after another; the row stays in registers
extern "C" __global__ void __launch_bounds__(128)
cross_entropy__f32_rows_v2(const float *__restrict__ logits, const i32 *__restrict__ targets, float *__restrict__ cross_entropy, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (256 * B) * chunk / gridDim.x, endRow = (256 * B) * (chunk + 1) / gridDim.x;
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
    const bool ne = reshape != (i32)-100;                                       // i1[B, 256, 1]
    const float cast = convert<float>(ne);                                      // f32[B, 256, 1]
    // compute: reduce_max, sum
    float reduce_max_acc = Max::identity<float>();
    float sum_acc = Sum::identity<float>();
    {
      const int c = thread * 4;
      if (c < 96) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const i32 iota = (i32)(c + e);                                        // i32[96]
          const bool eq = iota == reshape;                                      // i1[B, 256, 96]
          const float select = eq ? logits4[e] : 0.0f;                          // f32[B, 256, 96]
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
          const float sub = logits4[e] - reduce_max_acc;                        // f32[B, 256, 96]
          const float exp = math::exp(sub);                                     // f32[B, 256, 96]
          sum_acc2 += exp;
        }
      }
    }
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float log = math::log(sum_acc2);                                      // f32[B, 256, 1]
    const float add = log + reduce_max_acc;                                     // f32[B, 256, 1]
    const float sub2 = add - sum_acc;                                           // f32[B, 256, 1]
    const float select2 = ne ? sub2 : 0.0f;                                     // f32[B, 256, 1]
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
//   %loss, %cross_entropy, %cross_entropy2 = cross_entropy %logits, %targets : f32[], f32[B, 256, 1], f32[]
// 1 op -> several kernels, this is step 'finish'; reads logits targets, writes loss cross_entropy cross_entropy2.
// grid = 1, block = 512, adds min(ceil(256*B / 4), 2048) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
cross_entropy__f32_finish_v2(float *__restrict__ loss, float *__restrict__ cross_entropy2, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  // the sums: barriers inside, so for all threads
  const float sum = scalarTotal<Sum>(partials2, ((((256 * B) + 3) / 4) < 2048 ? (((256 * B) + 3) / 4) : 2048));  // f32[]
  const float sum2 = scalarTotal<Sum>(partials3, ((((256 * B) + 3) / 4) < 2048 ? (((256 * B) + 3) / 4) : 2048));  // f32[]
  const float max = math::maximum(sum2, 1.0f);                                  // f32[]
  const float div = sum / max;                                                  // f32[]
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(loss + 0, div);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    store(cross_entropy2 + 0, sum2);
  }
}

// ---- cross_entropy_grad__f32_256_96 ----
// cross_entropy_grad__f32_256_96   (pointwise kernel)
//   %d_loss = constant {value = 1.0}                                   : f32[]
//   %d_logits = cross_entropy_grad %d_loss, %logits, %targets, %x, %x2 : f32[B, 256, 96]
// 2 ops -> 1 kernel; reads logits targets x x2, writes d_logits.
// grid = min(ceil(24576*B / 1024), 1048576), block = 256, 4 elements a thread at once
extern "C" __global__ void __launch_bounds__(256)
cross_entropy_grad__f32_256_96(const float *logits, const i32 *__restrict__ targets, const float *__restrict__ x3, const float *__restrict__ x2_2, float *d_logits, i64 B) {
  const i64 count = (24576 * B), step = (i64)gridDim.x * 1024;
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
    const bool ne = reshape != (i32)-100;                                       // i1[B, 256, 1]
    const float max = math::maximum(x2, 1.0f);                                  // f32[]
    const float div = 1.0f / max;                                               // f32[]
    const float select = ne ? div : 0.0f;                                       // f32[B, 256, 1]
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const i32 iota = (i32)(c + e);                                            // i32[96]
      const bool eq = iota == reshape;                                          // i1[B, 256, 96]
      const float sub = logits4[e] - x;                                         // f32[B, 256, 96]
      const float exp = math::exp(sub);                                         // f32[B, 256, 96]
      const float cast = convert<float>(eq);                                    // f32[B, 256, 96]
      const float sub2 = exp - cast;                                            // f32[B, 256, 96]
      mul4[e] = sub2 * select;                                                  // f32[B, 256, 96]
    }
    // store
    storeVector(d_logits + i, mul4);
  }
}

// ---- linear_input_grad__f32_256_768 ----
// linear_input_grad__f32_256_768   (contraction kernel)
//   %d_ln_f = linear_input_grad %d_logits, %head_weight : f32[B, 256, 768]
// 1 op -> 1 kernel; reads d_logits head_weight, writes d_ln_f.
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__f32_256_768(const float *__restrict__ d_logits, const float *__restrict__ head_weight, float *__restrict__ d_ln_f, i64 B) {
  const GemmOperands<float, float> operands = {d_logits, head_weight, (256 * B), 768, 96,  // A, B, M, N, K
    96, 768, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_ln_f + row * 768 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_rows ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_rows   (row kernel)
//   %ln_f = normalize %out, %x, mean = %x2, weight = %ln_f_weight, bias = %ln_f_bias {out = f32} : f32[B, 256, 768]
//   %d_out = layer_norm_grad %d_ln_f, %out, %x2, %x, weight = %ln_f_weight                       : bf16[B, 256, 768]
//   %d_ln_f_weight, %d_ln_f_bias = layer_norm_param_grad %d_ln_f, %out, %x2, %x                  : f32[768], f32[768]
//   %cast = cast %d_out {to = f32}                                                               : f32[B, 256, 768]
//   %d_fc2_bias = sum %cast {dims = [0, 1]}                                                      : f32[768]
// 5 ops -> several kernels, this is step 'rows'; reads out x x2 ln_f_weight ln_f_bias d_ln_f, writes ln_f d_out d_ln_f_weight d_ln_f_bias d_fc2_bias; saves 6 passes over [B, 256, 768].
// grid = min(ceil(256*B / 8), 256), block = 256, 73728 bytes of shared memory, a warp a row, one after another; rows come through shared memory
extern "C" __global__ void __launch_bounds__(256, 2)
normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_rows(const bf16 *out, const float *__restrict__ x, const float *__restrict__ x2, const float *__restrict__ ln_f_weight, const float *__restrict__ ln_f_bias, const float *d_ln_f, float *ln_f, bf16 *d_out, float *__restrict__ partials2, float *__restrict__ partials3, float *__restrict__ d_fc2_bias_partials, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (256 * B) * chunk / gridDim.x, endRow = (256 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[3][8];                                                          // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum[j][e] = Sum::identity<float>();
  float sum_sum2[3][8];                                                         // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum2[j][e] = Sum::identity<float>();
  float d_fc2_bias_sum[3][8];                                                   // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      d_fc2_bias_sum[j][e] = Sum::identity<float>();
  extern __shared__ __align__(16) u8 rowMemory[];
  const RowRing<bf16, 8, 3, 256> out_rows(rowMemory);
  const RowRing<float, 8, 3, 256> d_ln_f_rows(rowMemory + 24576);
  float x2_next = 0.0f;
  float x_next = 0.0f;
  int stage = 0;
  const i64 first = firstRow + warp;
  if (first < endRow) {
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      out_rows.fetch(0, j, out + first * 768 + c);
      d_ln_f_rows.fetch(0, j, d_ln_f + first * 768 + c);
    }
    x2_next = load(x2 + first);
    x_next = load(x + first);
  }
  commitCopies();
  for (i64 row = firstRow + warp; row < endRow; row += 8) {
    // load: the next row sets out, this one arrives
    const float x2_2 = x2_next;
    const float x3 = x_next;
    const i64 next = row + 8;
    if (next < endRow) {
      #pragma unroll
      for (int j = 0; j < 3; ++j) {
        const int c = (j * 32 + thread) * 8;
        out_rows.fetch(stage ^ 1, j, out + next * 768 + c);
        d_ln_f_rows.fetch(stage ^ 1, j, d_ln_f + next * 768 + c);
      }
      x2_next = load(x2 + next);
      x_next = load(x + next);
    }
    commitCopies();
    waitForCopies<1>();
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float out8[8];
      out_rows.read(stage, j, out8);
      float ln_f_weight8[8];
      loadVector(ln_f_weight + c, ln_f_weight8);
      float ln_f_bias8[8];
      loadVector(ln_f_bias + c, ln_f_bias8);
      float d_ln_f8[8];
      d_ln_f_rows.read(stage, j, d_ln_f8);
      float add8[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast = out8[e];                                             // f32[B, 256, 768]
        const float sub = cast - x2_2;                                          // f32[B, 256, 768]
        const float mul = sub * x3;                                             // f32[B, 256, 768]
        const float mul2 = mul * ln_f_weight8[e];                               // f32[B, 256, 768]
        add8[e] = mul2 + ln_f_bias8[e];                                         // f32[B, 256, 768]
        const float mul3 = d_ln_f8[e] * ln_f_weight8[e];                        // f32[B, 256, 768]
        const float mul4 = mul3 * mul;                                          // f32[B, 256, 768]
        const float mul5 = d_ln_f8[e] * mul;                                    // f32[B, 256, 768]
        sum_acc += mul4;
        sum_acc2 += mul3;
        sum_sum[j][e] += mul5;
        sum_sum2[j][e] += d_ln_f8[e];
      }
      storeVector(ln_f + row * 768 + c, add8);
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 768.0f;                                         // f32[B, 256, 1]
    const float div2 = sum_acc2 / 768.0f;                                       // f32[B, 256, 1]
    // compute and store
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float out8_2[8];
      out_rows.read(stage, j, out8_2);
      float ln_f_weight8_2[8];
      loadVector(ln_f_weight + c, ln_f_weight8_2);
      float d_ln_f8_2[8];
      d_ln_f_rows.read(stage, j, d_ln_f8_2);
      float cast8[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast2 = out8_2[e];                                          // f32[B, 256, 768]
        const float sub2 = cast2 - x2_2;                                        // f32[B, 256, 768]
        const float mul6 = sub2 * x3;                                           // f32[B, 256, 768]
        const float mul7 = d_ln_f8_2[e] * ln_f_weight8_2[e];                    // f32[B, 256, 768]
        const float mul8 = mul6 * div;                                          // f32[B, 256, 768]
        const float sub3 = mul7 - div2;                                         // f32[B, 256, 768]
        const float sub4 = sub3 - mul8;                                         // f32[B, 256, 768]
        const float mul9 = x3 * sub4;                                           // f32[B, 256, 768]
        cast8[e] = roundTo<bf16>(mul9);                                         // bf16[B, 256, 768]
        const float cast3 = cast8[e];                                           // f32[B, 256, 768]
        d_fc2_bias_sum[j][e] += cast3;
      }
      storeVector(d_out + row * 768 + c, cast8);
    }
    stage ^= 1;
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials2 + chunk * 768, 768, sum_sum);
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials3 + chunk * 768, 768, sum_sum2);
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, d_fc2_bias_partials + chunk * 768, 768, d_fc2_bias_sum);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_finish ----
// normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_finish   (row kernel)
//   %ln_f = normalize %out, %x, mean = %x2, weight = %ln_f_weight, bias = %ln_f_bias {out = f32} : f32[B, 256, 768]
//   %d_out = layer_norm_grad %d_ln_f, %out, %x2, %x, weight = %ln_f_weight                       : bf16[B, 256, 768]
//   %d_ln_f_weight, %d_ln_f_bias = layer_norm_param_grad %d_ln_f, %out, %x2, %x                  : f32[768], f32[768]
//   %cast = cast %d_out {to = f32}                                                               : f32[B, 256, 768]
//   %d_fc2_bias = sum %cast {dims = [0, 1]}                                                      : f32[768]
// 5 ops -> several kernels, this is step 'finish'; reads out x x2 ln_f_weight ln_f_bias d_ln_f, writes ln_f d_out d_ln_f_weight d_ln_f_bias d_fc2_bias; saves 6 passes over [B, 256, 768].
// grid = 48, block = 512, adds min(ceil(256*B / 8), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__f32_256_768_finish(float *__restrict__ d_ln_f_weight, float *__restrict__ d_ln_f_bias, float *__restrict__ d_fc2_bias2, const float *__restrict__ partials2, const float *__restrict__ partials3, const float *__restrict__ d_fc2_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 768;
  // the sums: barriers inside, so for all threads
  const float *const parts[3] = {partials2, partials3, d_fc2_bias_partials};
  float totals[3];
  columnTotals<Sum, 16>(parts, ((((256 * B) + 7) / 8) < 256 ? (((256 * B) + 7) / 8) : 256), 768, c, exists, totals);
  const float sum = totals[0];                                                  // f32[768]
  const float sum2 = totals[1];                                                 // f32[768]
  const float d_fc2_bias = totals[2];                                           // f32[768]
  if (exists && threadIdx.x < 16) {
    store(d_ln_f_weight + c, sum);
    store(d_ln_f_bias + c, sum2);
    store(d_fc2_bias2 + c, d_fc2_bias);
  }
}

// ---- linear_weight_grad__f32_96_768 ----
// linear_weight_grad__f32_96_768   (contraction kernel)
//   %d_head_weight = linear_weight_grad %d_logits, %ln_f {out = f32} : f32[96, 768]
// 1 op -> 1 kernel; reads d_logits ln_f, writes d_head_weight.
// grid = 24, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_96_768(const float *__restrict__ d_logits, const float *__restrict__ ln_f, float *__restrict__ d_head_weight, i64 B) {
  const GemmOperands<float, float> operands = {d_logits, ln_f, 96, 768, (256 * B),  // A, B, M, N, K
    96, 768, 0, 0};                                                             // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_head_weight + row * 768 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_gemm ----
// linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_gemm   (contraction kernel)
//   %d_activation = linear_input_grad %d_out, %fc2_weight : bf16[B, 256, 3072]
//   %activation = gelu %fc1                               : bf16[B, 256, 3072]
//   %d_fc1 = gelu_grad %d_activation, %fc1                : bf16[B, 256, 3072]
//   %cast = cast %d_fc1 {to = f32}                        : f32[B, 256, 3072]
//   %d_fc1_bias = sum %cast {dims = [0, 1]}               : f32[3072]
// 5 ops -> several kernels, this is step 'gemm'; reads d_out fc2_weight fc1, writes activation d_fc1 d_fc1_bias; saves 6 passes over [B, 256, 3072].
// grid = ceil(256*B / 128) * 24, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_gemm(const bf16 *__restrict__ d_out, const bf16 *__restrict__ fc2_weight, const bf16 *fc1_2, bf16 *activation2, bf16 *d_fc1_2, float *__restrict__ d_fc1_bias_partials, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_out, fc2_weight, (256 * B), 3072, 768,  // A, B, M, N, K
    768, 3072, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float fc1 = load(fc1_2 + row * 3072 + c);
    const float cast = roundTo<bf16>(acc);                                      // bf16[B, 256, 3072]
    const float activation = roundTo<bf16>(0.5f * fc1 * (1.0f + math::tanhBesideOne(0.7978846f * (fc1 + 0.044715f * fc1 * fc1 * fc1))));  // bf16[B, 256, 3072]
    const float gelu_grad_part = math::tanhBesideOne(0.7978846f * (fc1 + 0.044715f * fc1 * fc1 * fc1));
    const float d_fc1 = roundTo<bf16>(cast * (0.5f * (1.0f + gelu_grad_part) + 0.5f * fc1 * (1.0f - gelu_grad_part * gelu_grad_part) * 0.7978846f * (1.0f + 0.134145f * fc1 * fc1)));  // bf16[B, 256, 3072]
    const float cast2 = d_fc1;                                                  // f32[B, 256, 3072]
    store(activation2 + row * 3072 + c, activation);
    store(d_fc1_2 + row * 3072 + c, d_fc1);
    return cast2;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<true>(epilogue), d_fc1_bias_partials);
}

// ---- linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_finish ----
// linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_finish   (contraction kernel)
//   %d_activation = linear_input_grad %d_out, %fc2_weight : bf16[B, 256, 3072]
//   %activation = gelu %fc1                               : bf16[B, 256, 3072]
//   %d_fc1 = gelu_grad %d_activation, %fc1                : bf16[B, 256, 3072]
//   %cast = cast %d_fc1 {to = f32}                        : f32[B, 256, 3072]
//   %d_fc1_bias = sum %cast {dims = [0, 1]}               : f32[3072]
// 5 ops -> several kernels, this is step 'finish'; reads d_out fc2_weight fc1, writes activation d_fc1 d_fc1_bias; saves 6 passes over [B, 256, 3072].
// grid = 192, block = 512, adds ceil(256*B / 128) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
linear_input_grad_gelu_gelu_grad_sum__bf16_256_3072_finish(float *__restrict__ d_fc1_bias2, const float *__restrict__ d_fc1_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 3072;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_fc1_bias_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, (((256 * B) + 127) / 128), 3072, c, exists, totals);
  const float d_fc1_bias = totals[0];                                           // f32[3072]
  if (exists && threadIdx.x < 16) {
    store(d_fc1_bias2 + c, d_fc1_bias);
  }
}

// ---- linear_weight_grad__f32_768_3072 ----
// linear_weight_grad__f32_768_3072   (contraction kernel)
//   %d_fc2_weight = linear_weight_grad %d_out, %activation {out = f32} : f32[768, 3072]
// 1 op -> 1 kernel; reads d_out activation, writes d_fc2_weight.
// grid = 144, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_768_3072(const bf16 *__restrict__ d_out, const bf16 *__restrict__ activation, float *__restrict__ d_fc2_weight, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_out, activation, 768, 3072, (256 * B),  // A, B, M, N, K
    768, 3072, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_fc2_weight + row * 3072 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile128, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__bf16_256_768 ----
// linear_input_grad__bf16_256_768   (contraction kernel)
//   %d_ln2 = linear_input_grad %d_fc1, %fc1_weight : bf16[B, 256, 768]
// 1 op -> 1 kernel; reads d_fc1 fc1_weight, writes d_ln2.
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__bf16_256_768(const bf16 *__restrict__ d_fc1, const bf16 *__restrict__ fc1_weight, bf16 *__restrict__ d_ln2, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_fc1, fc1_weight, (256 * B), 768, 3072,  // A, B, M, N, K
    3072, 768, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float cast = roundTo<bf16>(acc);                                      // bf16[B, 256, 768]
    store(d_ln2 + row * 768 + c, cast);
    return acc;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows ----
// normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows   (row kernel)
//   %ln2 = normalize %mid, %x, mean = %x2, weight = %ln2_weight, bias = %ln2_bias : bf16[B, 256, 768]
//   %d_mid_part = layer_norm_grad %d_ln2, %mid, %x2, %x, weight = %ln2_weight     : bf16[B, 256, 768]
//   %d_ln2_weight, %d_ln2_bias = layer_norm_param_grad %d_ln2, %mid, %x2, %x      : f32[768], f32[768]
//   %d_mid = add %d_out, %d_mid_part                                              : bf16[B, 256, 768]
//   %cast = cast %d_mid {to = f32}                                                : f32[B, 256, 768]
//   %d_proj_bias = sum %cast {dims = [0, 1]}                                      : f32[768]
// 6 ops -> several kernels, this is step 'rows'; reads mid x x2 ln2_weight ln2_bias d_ln2 d_out, writes ln2 d_ln2_weight d_ln2_bias d_mid d_proj_bias; saves 8 passes over [B, 256, 768].
// grid = min(ceil(256*B / 8), 256), block = 256, 73728 bytes of shared memory, a warp a row, one after another; rows come through shared memory
extern "C" __global__ void __launch_bounds__(256, 2)
normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows(const bf16 *mid, const float *__restrict__ x, const float *__restrict__ x2, const float *__restrict__ ln2_weight, const float *__restrict__ ln2_bias, const bf16 *d_ln2, const bf16 *d_out, bf16 *ln2, bf16 *d_mid, float *__restrict__ partials2, float *__restrict__ partials3, float *__restrict__ d_proj_bias_partials, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (256 * B) * chunk / gridDim.x, endRow = (256 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[3][8];                                                          // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum[j][e] = Sum::identity<float>();
  float sum_sum2[3][8];                                                         // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum2[j][e] = Sum::identity<float>();
  float d_proj_bias_sum[3][8];                                                  // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      d_proj_bias_sum[j][e] = Sum::identity<float>();
  extern __shared__ __align__(16) u8 rowMemory[];
  const RowRing<bf16, 8, 3, 256> mid_rows(rowMemory);
  const RowRing<bf16, 8, 3, 256> d_ln2_rows(rowMemory + 24576);
  const RowRing<bf16, 8, 3, 256> d_out_rows(rowMemory + 49152);
  float x2_next = 0.0f;
  float x_next = 0.0f;
  int stage = 0;
  const i64 first = firstRow + warp;
  if (first < endRow) {
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      mid_rows.fetch(0, j, mid + first * 768 + c);
      d_ln2_rows.fetch(0, j, d_ln2 + first * 768 + c);
      d_out_rows.fetch(0, j, d_out + first * 768 + c);
    }
    x2_next = load(x2 + first);
    x_next = load(x + first);
  }
  commitCopies();
  for (i64 row = firstRow + warp; row < endRow; row += 8) {
    // load: the next row sets out, this one arrives
    const float x2_2 = x2_next;
    const float x3 = x_next;
    const i64 next = row + 8;
    if (next < endRow) {
      #pragma unroll
      for (int j = 0; j < 3; ++j) {
        const int c = (j * 32 + thread) * 8;
        mid_rows.fetch(stage ^ 1, j, mid + next * 768 + c);
        d_ln2_rows.fetch(stage ^ 1, j, d_ln2 + next * 768 + c);
        d_out_rows.fetch(stage ^ 1, j, d_out + next * 768 + c);
      }
      x2_next = load(x2 + next);
      x_next = load(x + next);
    }
    commitCopies();
    waitForCopies<1>();
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float mid8[8];
      mid_rows.read(stage, j, mid8);
      float ln2_weight8[8];
      loadVector(ln2_weight + c, ln2_weight8);
      float ln2_bias8[8];
      loadVector(ln2_bias + c, ln2_bias8);
      float d_ln28[8];
      d_ln2_rows.read(stage, j, d_ln28);
      float cast8[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast = mid8[e];                                             // f32[B, 256, 768]
        const float sub = cast - x2_2;                                          // f32[B, 256, 768]
        const float mul = sub * x3;                                             // f32[B, 256, 768]
        const float mul2 = mul * ln2_weight8[e];                                // f32[B, 256, 768]
        const float add = mul2 + ln2_bias8[e];                                  // f32[B, 256, 768]
        cast8[e] = roundTo<bf16>(add);                                          // bf16[B, 256, 768]
        const float cast2 = d_ln28[e];                                          // f32[B, 256, 768]
        const float mul3 = cast2 * ln2_weight8[e];                              // f32[B, 256, 768]
        const float mul4 = mul3 * mul;                                          // f32[B, 256, 768]
        const float mul5 = cast2 * mul;                                         // f32[B, 256, 768]
        sum_acc += mul4;
        sum_acc2 += mul3;
        sum_sum[j][e] += mul5;
        sum_sum2[j][e] += cast2;
      }
      storeVector(ln2 + row * 768 + c, cast8);
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 768.0f;                                         // f32[B, 256, 1]
    const float div2 = sum_acc2 / 768.0f;                                       // f32[B, 256, 1]
    // compute and store
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float mid8_2[8];
      mid_rows.read(stage, j, mid8_2);
      float ln2_weight8_2[8];
      loadVector(ln2_weight + c, ln2_weight8_2);
      float d_ln28_2[8];
      d_ln2_rows.read(stage, j, d_ln28_2);
      float d_out8[8];
      d_out_rows.read(stage, j, d_out8);
      float d_mid8[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast3 = mid8_2[e];                                          // f32[B, 256, 768]
        const float sub2 = cast3 - x2_2;                                        // f32[B, 256, 768]
        const float mul6 = sub2 * x3;                                           // f32[B, 256, 768]
        const float cast4 = d_ln28_2[e];                                        // f32[B, 256, 768]
        const float mul7 = cast4 * ln2_weight8_2[e];                            // f32[B, 256, 768]
        const float mul8 = mul6 * div;                                          // f32[B, 256, 768]
        const float sub3 = mul7 - div2;                                         // f32[B, 256, 768]
        const float sub4 = sub3 - mul8;                                         // f32[B, 256, 768]
        const float mul9 = x3 * sub4;                                           // f32[B, 256, 768]
        const float cast5 = roundTo<bf16>(mul9);                                // bf16[B, 256, 768]
        d_mid8[e] = roundTo<bf16>(d_out8[e] + cast5);                           // bf16[B, 256, 768]
        const float cast6 = d_mid8[e];                                          // f32[B, 256, 768]
        d_proj_bias_sum[j][e] += cast6;
      }
      storeVector(d_mid + row * 768 + c, d_mid8);
    }
    stage ^= 1;
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials2 + chunk * 768, 768, sum_sum);
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials3 + chunk * 768, 768, sum_sum2);
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, d_proj_bias_partials + chunk * 768, 768, d_proj_bias_sum);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish ----
// normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish   (row kernel)
//   %ln2 = normalize %mid, %x, mean = %x2, weight = %ln2_weight, bias = %ln2_bias : bf16[B, 256, 768]
//   %d_mid_part = layer_norm_grad %d_ln2, %mid, %x2, %x, weight = %ln2_weight     : bf16[B, 256, 768]
//   %d_ln2_weight, %d_ln2_bias = layer_norm_param_grad %d_ln2, %mid, %x2, %x      : f32[768], f32[768]
//   %d_mid = add %d_out, %d_mid_part                                              : bf16[B, 256, 768]
//   %cast = cast %d_mid {to = f32}                                                : f32[B, 256, 768]
//   %d_proj_bias = sum %cast {dims = [0, 1]}                                      : f32[768]
// 6 ops -> several kernels, this is step 'finish'; reads mid x x2 ln2_weight ln2_bias d_ln2 d_out, writes ln2 d_ln2_weight d_ln2_bias d_mid d_proj_bias; saves 8 passes over [B, 256, 768].
// grid = 48, block = 512, adds min(ceil(256*B / 8), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish(float *__restrict__ d_ln2_weight, float *__restrict__ d_ln2_bias, float *__restrict__ d_proj_bias2, const float *__restrict__ partials2, const float *__restrict__ partials3, const float *__restrict__ d_proj_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 768;
  // the sums: barriers inside, so for all threads
  const float *const parts[3] = {partials2, partials3, d_proj_bias_partials};
  float totals[3];
  columnTotals<Sum, 16>(parts, ((((256 * B) + 7) / 8) < 256 ? (((256 * B) + 7) / 8) : 256), 768, c, exists, totals);
  const float sum = totals[0];                                                  // f32[768]
  const float sum2 = totals[1];                                                 // f32[768]
  const float d_proj_bias = totals[2];                                          // f32[768]
  if (exists && threadIdx.x < 16) {
    store(d_ln2_weight + c, sum);
    store(d_ln2_bias + c, sum2);
    store(d_proj_bias2 + c, d_proj_bias);
  }
}

// ---- linear_weight_grad__f32_3072_768 ----
// linear_weight_grad__f32_3072_768   (contraction kernel)
//   %d_fc1_weight = linear_weight_grad %d_fc1, %ln2 {out = f32} : f32[3072, 768]
// 1 op -> 1 kernel; reads d_fc1 ln2, writes d_fc1_weight.
// grid = 144, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_3072_768(const bf16 *__restrict__ d_fc1, const bf16 *__restrict__ ln2, float *__restrict__ d_fc1_weight, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_fc1, ln2, 3072, 768, (256 * B),  // A, B, M, N, K
    3072, 768, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_fc1_weight + row * 768 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile128, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__bf16_256_768_v2 ----
// linear_input_grad__bf16_256_768_v2   (contraction kernel)
//   %d_attention = linear_input_grad %d_mid, %proj_weight : bf16[B, 256, 768]
// 1 op -> 1 kernel; reads d_mid proj_weight, writes d_attention.
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__bf16_256_768_v2(const bf16 *__restrict__ d_mid, const bf16 *__restrict__ proj_weight, bf16 *__restrict__ d_attention, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_mid, proj_weight, (256 * B), 768, 768,  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float cast = roundTo<bf16>(acc);                                      // bf16[B, 256, 768]
    store(d_attention + row * 768 + c, cast);
    return acc;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- split_attention_grad_concat__bf16_256_2304_dq ----
// split_attention_grad_concat__bf16_256_2304_dq   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [768, 768, 768]} : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %d_q, %d_k, %d_v = attention_grad %d_attention, %q, %k, %v, %attention, %x {causal = true, heads = 12} : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %d_qkv = concat %d_q, %d_k, %d_v                  : bf16[B, 256, 2304]
// 3 ops -> several kernels, this is step 'dq'; reads qkv d_attention attention x, writes d_qkv.
// grid = 48*B, block = 128, 55552 bytes of shared memory, a block a tile of queries, on tensor cores
extern "C" __global__ void __launch_bounds__(128, 3)
split_attention_grad_concat__bf16_256_2304_dq(const bf16 *__restrict__ qkv, const bf16 *__restrict__ d_attention, const bf16 *__restrict__ attention, const float *__restrict__ x, bf16 *__restrict__ d_qkv, float *__restrict__ delta, i64 B) {
  const AttentionShape shape = {B, 12, 12, 256, 256,                            // batch, heads, key heads, queries, keys
    0.125f, true, -1, nullptr, nullptr};                                        // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const bf16> q_view = {qkv, 589824, 2304, 64};                  // strides of batch, token, head
  const HeadView<const bf16> k_view = {qkv + 768, 589824, 2304, 64};            // strides of batch, token, head
  const HeadView<const bf16> v_view = {qkv + 1536, 589824, 2304, 64};           // strides of batch, token, head
  const HeadView<const bf16> dy_view = {d_attention, 196608, 768, 64};          // strides of batch, token, head
  const HeadView<const bf16> y_view = {attention, 196608, 768, 64};             // strides of batch, token, head
  const HeadView<bf16> dq_view = {d_qkv, 589824, 2304, 64};                     // strides of batch, token, head
  attentionQueryGradMma<64>(q_view, k_view, v_view, y_view, dy_view, dq_view, x, delta, shape);
}

// ---- split_attention_grad_concat__bf16_256_2304_dkv ----
// split_attention_grad_concat__bf16_256_2304_dkv   (attention kernel)
//   %q, %k, %v = split %qkv {sizes = [768, 768, 768]} : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %d_q, %d_k, %d_v = attention_grad %d_attention, %q, %k, %v, %attention, %x {causal = true, heads = 12} : bf16[B, 256, 768], bf16[B, 256, 768], bf16[B, 256, 768]
//   %d_qkv = concat %d_q, %d_k, %d_v                  : bf16[B, 256, 2304]
// 3 ops -> several kernels, this is step 'dkv'; reads qkv d_attention attention x, writes d_qkv.
// grid = 48*B, block = 128, 56320 bytes of shared memory, a block a tile of keys, on tensor cores
extern "C" __global__ void __launch_bounds__(128, 3)
split_attention_grad_concat__bf16_256_2304_dkv(const bf16 *__restrict__ qkv, const bf16 *__restrict__ d_attention, const float *__restrict__ x, bf16 *__restrict__ d_qkv, const float *__restrict__ delta, i64 B) {
  const AttentionShape shape = {B, 12, 12, 256, 256,                            // batch, heads, key heads, queries, keys
    0.125f, true, -1, nullptr, nullptr};                                        // scale, causal, keys to the left (-1: all), mask, length
  const HeadView<const bf16> q_view = {qkv, 589824, 2304, 64};                  // strides of batch, token, head
  const HeadView<const bf16> k_view = {qkv + 768, 589824, 2304, 64};            // strides of batch, token, head
  const HeadView<const bf16> v_view = {qkv + 1536, 589824, 2304, 64};           // strides of batch, token, head
  const HeadView<const bf16> dy_view = {d_attention, 196608, 768, 64};          // strides of batch, token, head
  const HeadView<bf16> dk_view = {d_qkv + 768, 589824, 2304, 64};               // strides of batch, token, head
  const HeadView<bf16> dv_view = {d_qkv + 1536, 589824, 2304, 64};              // strides of batch, token, head
  attentionKeyGradMma<64>(q_view, k_view, v_view, dy_view, dk_view, dv_view, x, delta, shape);
}

// ---- linear_weight_grad__f32_768_768 ----
// linear_weight_grad__f32_768_768   (contraction kernel)
//   %d_proj_weight = linear_weight_grad %d_mid, %attention {out = f32} : f32[768, 768]
// 1 op -> 1 kernel; reads d_mid attention, writes d_proj_weight.
// grid = 144, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_768_768(const bf16 *__restrict__ d_mid, const bf16 *__restrict__ attention, float *__restrict__ d_proj_weight, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_mid, attention, 768, 768, (256 * B),  // A, B, M, N, K
    768, 768, 0, 0};                                                            // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_proj_weight + row * 768 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_input_grad__bf16_256_768_v3 ----
// linear_input_grad__bf16_256_768_v3   (contraction kernel)
//   %d_ln1 = linear_input_grad %d_qkv, %qkv_weight : bf16[B, 256, 768]
// 1 op -> 1 kernel; reads d_qkv qkv_weight, writes d_ln1.
// grid = ceil(256*B / 128) * 6, block = 256, tiles of 128 x 128
extern "C" __global__ void __launch_bounds__(256)
linear_input_grad__bf16_256_768_v3(const bf16 *__restrict__ d_qkv, const bf16 *__restrict__ qkv_weight, bf16 *__restrict__ d_ln1, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_qkv, qkv_weight, (256 * B), 768, 2304,  // A, B, M, N, K
    2304, 768, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    const float cast = roundTo<bf16>(acc);                                      // bf16[B, 256, 768]
    store(d_ln1 + row * 768 + c, cast);
    return acc;
  };
  gemmSimt<GemmTile128, false, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- linear_weight_grad__f32_2304_768 ----
// linear_weight_grad__f32_2304_768   (contraction kernel)
//   %d_qkv_weight = linear_weight_grad %d_qkv, %ln1 {out = f32} : f32[2304, 768]
// 1 op -> 1 kernel; reads d_qkv ln1, writes d_qkv_weight.
// grid = 432, block = 256, tiles of 64 x 64
extern "C" __global__ void __launch_bounds__(256)
linear_weight_grad__f32_2304_768(const bf16 *__restrict__ d_qkv, const bf16 *__restrict__ ln1, float *__restrict__ d_qkv_weight, i64 B) {
  const GemmOperands<bf16, bf16> operands = {d_qkv, ln1, 2304, 768, (256 * B),  // A, B, M, N, K
    2304, 768, 0, 0};                                                           // between rows of A and B, between batches
  const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) -> float {
    const i64 row = r;
    store(d_qkv_weight + row * 768 + c, acc);
    return acc;
  };
  gemmSimt<GemmTile64, true, false>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
}

// ---- sum__f32_2304_rows ----
// sum__f32_2304_rows   (column kernel)
//   %cast = cast %d_qkv {to = f32}          : f32[B, 256, 2304]
//   %d_qkv_bias = sum %cast {dims = [0, 1]} : f32[2304]
// 2 ops -> several kernels, this is step 'rows'; reads d_qkv, writes d_qkv_bias; saves 2 passes over [B, 256, 2304].
// grid = ceil(256*B / 64) * 9, block = 256, a warp has 256 columns of 8 rows
extern "C" __global__ void __launch_bounds__(256, 4)
sum__f32_2304_rows(const bf16 *__restrict__ d_qkv, float *__restrict__ d_qkv_bias_partials, i64 B) {
  const i64 tile = blockIdx.x % 9, chunk = blockIdx.x / 9;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 c = tile * 256 + lane * 8;
  const i64 firstRow = chunk * 64, endRow = firstRow + 64 < (256 * B) ? firstRow + 64 : (256 * B);
  float d_qkv_bias_sum[8];
  for (int e = 0; e < 8; ++e) d_qkv_bias_sum[e] = Sum::identity<float>();
  if (c < 2304) {
    #pragma unroll 4
    for (i64 row = firstRow + warp; row < endRow; row += 8) {
      // load
      float d_qkv8[8];
      loadVector(d_qkv + row * 2304 + c, d_qkv8);
      // compute
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast = d_qkv8[e];                                           // f32[B, 256, 2304]
        d_qkv_bias_sum[e] += cast;
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 8>(d_qkv_bias_partials + chunk * 2304 + tile * 256, 2304 - tile * 256, d_qkv_bias_sum);
}

// ---- sum__f32_2304_finish ----
// sum__f32_2304_finish   (column kernel)
//   %cast = cast %d_qkv {to = f32}          : f32[B, 256, 2304]
//   %d_qkv_bias = sum %cast {dims = [0, 1]} : f32[2304]
// 2 ops -> several kernels, this is step 'finish'; reads d_qkv, writes d_qkv_bias; saves 2 passes over [B, 256, 2304].
// grid = 144, block = 512, adds ceil(256*B / 64) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
sum__f32_2304_finish(float *__restrict__ d_qkv_bias2, const float *__restrict__ d_qkv_bias_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 2304;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_qkv_bias_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, (((256 * B) + 63) / 64), 2304, c, exists, totals);
  const float d_qkv_bias = totals[0];                                           // f32[2304]
  if (exists && threadIdx.x < 16) {
    store(d_qkv_bias2 + c, d_qkv_bias);
  }
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows_v2 ----
// normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows_v2   (row kernel)
//   %ln1 = normalize %embedded, %x, mean = %x2, weight = %ln1_weight, bias = %ln1_bias  : bf16[B, 256, 768]
//   %d_embedded_part = layer_norm_grad %d_ln1, %embedded, %x2, %x, weight = %ln1_weight : bf16[B, 256, 768]
//   %d_ln1_weight, %d_ln1_bias = layer_norm_param_grad %d_ln1, %embedded, %x2, %x       : f32[768], f32[768]
//   %d_embedded = add %d_mid, %d_embedded_part                                          : bf16[B, 256, 768]
//   %d_embedded2 = cast %d_embedded {to = f32}                                          : f32[B, 256, 768]
// 5 ops -> several kernels, this is step 'rows'; reads embedded x x2 ln1_weight ln1_bias d_ln1 d_mid, writes ln1 d_ln1_weight d_ln1_bias d_embedded2; saves 7 passes over [B, 256, 768].
// grid = min(ceil(256*B / 8), 256), block = 256, 73728 bytes of shared memory, a warp a row, one after another; rows come through shared memory
extern "C" __global__ void __launch_bounds__(256, 2)
normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_rows_v2(const bf16 *embedded, const float *__restrict__ x, const float *__restrict__ x2, const float *__restrict__ ln1_weight, const float *__restrict__ ln1_bias, const bf16 *d_ln1, const bf16 *d_mid, bf16 *ln1, float *__restrict__ d_embedded2, float *__restrict__ partials2, float *__restrict__ partials3, i64 B) {
  const i64 chunk = blockIdx.x;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row
  const i64 firstRow = (256 * B) * chunk / gridDim.x, endRow = (256 * B) * (chunk + 1) / gridDim.x;
  float sum_sum[3][8];                                                          // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum[j][e] = Sum::identity<float>();
  float sum_sum2[3][8];                                                         // this thread's columns, turn by turn
  for (int j = 0; j < 3; ++j)
    for (int e = 0; e < 8; ++e)
      sum_sum2[j][e] = Sum::identity<float>();
  extern __shared__ __align__(16) u8 rowMemory[];
  const RowRing<bf16, 8, 3, 256> embedded_rows(rowMemory);
  const RowRing<bf16, 8, 3, 256> d_ln1_rows(rowMemory + 24576);
  const RowRing<bf16, 8, 3, 256> d_mid_rows(rowMemory + 49152);
  float x2_next = 0.0f;
  float x_next = 0.0f;
  int stage = 0;
  const i64 first = firstRow + warp;
  if (first < endRow) {
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      embedded_rows.fetch(0, j, embedded + first * 768 + c);
      d_ln1_rows.fetch(0, j, d_ln1 + first * 768 + c);
      d_mid_rows.fetch(0, j, d_mid + first * 768 + c);
    }
    x2_next = load(x2 + first);
    x_next = load(x + first);
  }
  commitCopies();
  for (i64 row = firstRow + warp; row < endRow; row += 8) {
    // load: the next row sets out, this one arrives
    const float x2_2 = x2_next;
    const float x3 = x_next;
    const i64 next = row + 8;
    if (next < endRow) {
      #pragma unroll
      for (int j = 0; j < 3; ++j) {
        const int c = (j * 32 + thread) * 8;
        embedded_rows.fetch(stage ^ 1, j, embedded + next * 768 + c);
        d_ln1_rows.fetch(stage ^ 1, j, d_ln1 + next * 768 + c);
        d_mid_rows.fetch(stage ^ 1, j, d_mid + next * 768 + c);
      }
      x2_next = load(x2 + next);
      x_next = load(x + next);
    }
    commitCopies();
    waitForCopies<1>();
    // compute and store: sum
    float sum_acc = Sum::identity<float>();
    float sum_acc2 = Sum::identity<float>();
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float embedded8[8];
      embedded_rows.read(stage, j, embedded8);
      float ln1_weight8[8];
      loadVector(ln1_weight + c, ln1_weight8);
      float ln1_bias8[8];
      loadVector(ln1_bias + c, ln1_bias8);
      float d_ln18[8];
      d_ln1_rows.read(stage, j, d_ln18);
      float cast8[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast = embedded8[e];                                        // f32[B, 256, 768]
        const float sub = cast - x2_2;                                          // f32[B, 256, 768]
        const float mul = sub * x3;                                             // f32[B, 256, 768]
        const float mul2 = mul * ln1_weight8[e];                                // f32[B, 256, 768]
        const float add = mul2 + ln1_bias8[e];                                  // f32[B, 256, 768]
        cast8[e] = roundTo<bf16>(add);                                          // bf16[B, 256, 768]
        const float cast2 = d_ln18[e];                                          // f32[B, 256, 768]
        const float mul3 = cast2 * ln1_weight8[e];                              // f32[B, 256, 768]
        const float mul4 = mul3 * mul;                                          // f32[B, 256, 768]
        const float mul5 = cast2 * mul;                                         // f32[B, 256, 768]
        sum_acc += mul4;
        sum_acc2 += mul3;
        sum_sum[j][e] += mul5;
        sum_sum2[j][e] += cast2;
      }
      storeVector(ln1 + row * 768 + c, cast8);
    }
    sum_acc = warpReduce<Sum>(sum_acc);
    sum_acc2 = warpReduce<Sum>(sum_acc2);
    const float div = sum_acc / 768.0f;                                         // f32[B, 256, 1]
    const float div2 = sum_acc2 / 768.0f;                                       // f32[B, 256, 1]
    // compute and store
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int c = (j * 32 + thread) * 8;
      float embedded8_2[8];
      embedded_rows.read(stage, j, embedded8_2);
      float ln1_weight8_2[8];
      loadVector(ln1_weight + c, ln1_weight8_2);
      float d_ln18_2[8];
      d_ln1_rows.read(stage, j, d_ln18_2);
      float d_mid8[8];
      d_mid_rows.read(stage, j, d_mid8);
      float d_embedded28[8];
      #pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float cast3 = embedded8_2[e];                                     // f32[B, 256, 768]
        const float sub2 = cast3 - x2_2;                                        // f32[B, 256, 768]
        const float mul6 = sub2 * x3;                                           // f32[B, 256, 768]
        const float cast4 = d_ln18_2[e];                                        // f32[B, 256, 768]
        const float mul7 = cast4 * ln1_weight8_2[e];                            // f32[B, 256, 768]
        const float mul8 = mul6 * div;                                          // f32[B, 256, 768]
        const float sub3 = mul7 - div2;                                         // f32[B, 256, 768]
        const float sub4 = sub3 - mul8;                                         // f32[B, 256, 768]
        const float mul9 = x3 * sub4;                                           // f32[B, 256, 768]
        const float cast5 = roundTo<bf16>(mul9);                                // bf16[B, 256, 768]
        const float d_embedded = roundTo<bf16>(d_mid8[e] + cast5);              // bf16[B, 256, 768]
        d_embedded28[e] = d_embedded;                                           // f32[B, 256, 768]
      }
      storeVector(d_embedded2 + row * 768 + c, d_embedded28);
    }
    stage ^= 1;
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials2 + chunk * 768, 768, sum_sum);
  storeColumnSums<Sum, 8, 8>((float *)rowMemory, partials3 + chunk * 768, 768, sum_sum2);
}

// ---- normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish_v2 ----
// normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish_v2   (row kernel)
//   %ln1 = normalize %embedded, %x, mean = %x2, weight = %ln1_weight, bias = %ln1_bias  : bf16[B, 256, 768]
//   %d_embedded_part = layer_norm_grad %d_ln1, %embedded, %x2, %x, weight = %ln1_weight : bf16[B, 256, 768]
//   %d_ln1_weight, %d_ln1_bias = layer_norm_param_grad %d_ln1, %embedded, %x2, %x       : f32[768], f32[768]
//   %d_embedded = add %d_mid, %d_embedded_part                                          : bf16[B, 256, 768]
//   %d_embedded2 = cast %d_embedded {to = f32}                                          : f32[B, 256, 768]
// 5 ops -> several kernels, this is step 'finish'; reads embedded x x2 ln1_weight ln1_bias d_ln1 d_mid, writes ln1 d_ln1_weight d_ln1_bias d_embedded2; saves 7 passes over [B, 256, 768].
// grid = 48, block = 512, adds min(ceil(256*B / 8), 256) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
normalize_layer_norm_grad_layer_norm_param_grad__bf16_256_768_finish_v2(float *__restrict__ d_ln1_weight, float *__restrict__ d_ln1_bias, const float *__restrict__ partials2, const float *__restrict__ partials3, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 768;
  // the sums: barriers inside, so for all threads
  const float *const parts[2] = {partials2, partials3};
  float totals[2];
  columnTotals<Sum, 16>(parts, ((((256 * B) + 7) / 8) < 256 ? (((256 * B) + 7) / 8) : 256), 768, c, exists, totals);
  const float sum = totals[0];                                                  // f32[768]
  const float sum2 = totals[1];                                                 // f32[768]
  if (exists && threadIdx.x < 16) {
    store(d_ln1_weight + c, sum);
    store(d_ln1_bias + c, sum2);
  }
}

// ---- sum__f32_256_768_rows ----
// sum__f32_256_768_rows   (column kernel)
//   %d_pos_weight = sum %d_embedded {dims = [0]} : f32[256, 768]
// 1 op -> several kernels, this is step 'rows'; reads d_embedded, writes d_pos_weight.
// grid = ceil(B / 128) * 1536, block = 256, a warp has 128 columns of 16 rows
extern "C" __global__ void __launch_bounds__(256, 4)
sum__f32_256_768_rows(const float *__restrict__ d_embedded, float *__restrict__ d_pos_weight_partials, i64 B) {
  const i64 tile = blockIdx.x % 1536, chunk = blockIdx.x / 1536;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 c = tile * 128 + lane * 4;
  const i64 firstRow = chunk * 128, endRow = firstRow + 128 < B ? firstRow + 128 : B;
  float d_pos_weight_sum[4];
  for (int e = 0; e < 4; ++e) d_pos_weight_sum[e] = Sum::identity<float>();
  if (c < 196608) {
    #pragma unroll 4
    for (i64 row = firstRow + warp; row < endRow; row += 8) {
      // load
      float d_embedded4[4];
      loadVector(d_embedded + row * 196608 + c, d_embedded4);
      // compute
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        d_pos_weight_sum[e] += d_embedded4[e];
      }
    }
  }
  // store, partial sums of this chunk of rows
  storeColumnSums<Sum, 8, 4>(d_pos_weight_partials + chunk * 196608 + tile * 128, 196608 - tile * 128, d_pos_weight_sum);
}

// ---- sum__f32_256_768_finish ----
// sum__f32_256_768_finish   (column kernel)
//   %d_pos_weight = sum %d_embedded {dims = [0]} : f32[256, 768]
// 1 op -> several kernels, this is step 'finish'; reads d_embedded, writes d_pos_weight.
// grid = 12288, block = 512, adds ceil(B / 128) partial results
extern "C" __global__ void __launch_bounds__(512, 2)
sum__f32_256_768_finish(float *__restrict__ d_pos_weight2, const float *__restrict__ d_pos_weight_partials, i64 B) {
  const i64 c = (i64)blockIdx.x * 16 + threadIdx.x % 16; // the block shares 16 columns
  const bool exists = c < 196608;
  // the sums: barriers inside, so for all threads
  const float *const parts[1] = {d_pos_weight_partials};
  float totals[1];
  columnTotals<Sum, 16>(parts, ((B + 127) / 128), 196608, c, exists, totals);
  const float d_pos_weight = totals[0];                                         // f32[256, 768]
  if (exists && threadIdx.x < 16) {
    store(d_pos_weight2 + c, d_pos_weight);
  }
}

// ---- embedding_grad__f32_96_768_order ----
// embedding_grad__f32_96_768_order   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 768]
// 1 op -> several kernels, this is step 'order'; reads d_embedded tokens, writes d_emb_weight.
// grid = 12, block = 1024, a block for 8 rows of the table
extern "C" __global__ void __launch_bounds__(1024)
embedding_grad__f32_96_768_order(const i32 *__restrict__ tokens, u32 *__restrict__ offsets, u32 *__restrict__ positions, u32 *__restrict__ found, i64 B) {
  gatherOrder<8>(tokens, (256 * B), 96, offsets, positions, found);
}

// ---- embedding_grad__f32_96_768_parts ----
// embedding_grad__f32_96_768_parts   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 768]
// 1 op -> several kernels, this is step 'parts'; reads d_embedded tokens, writes d_emb_weight.
// grid = 1536, block = 768, up to 16 blocks a row of the table
extern "C" __global__ void __launch_bounds__(768)
embedding_grad__f32_96_768_parts(const float *__restrict__ d_embedded, const u32 *__restrict__ offsets, const u32 *__restrict__ positions, float *__restrict__ partials2) {
  gatherPartSums<16, 4, 192, 4>(d_embedded, 96, 768, offsets, positions, partials2);
}

// ---- embedding_grad__f32_96_768_add ----
// embedding_grad__f32_96_768_add   (scatter kernel)
//   %d_emb_weight = embedding_grad %d_embedded, %tokens {rows = [96]} : f32[96, 768]
// 1 op -> several kernels, this is step 'add'; reads d_embedded tokens, writes d_emb_weight.
// grid = 96, block = 192, a block a row of the table
extern "C" __global__ void __launch_bounds__(192)
embedding_grad__f32_96_768_add(float *__restrict__ d_emb_weight, const u32 *__restrict__ offsets, const float *__restrict__ partials2) {
  const auto put = [=](i64 row, i64 column, const float (&sums)[4]) {
    storeVector(d_emb_weight + row * 768 + column, sums);
  };
  gatherPartTotals<16, 192, 4>(partials2, 96, 768, offsets, put);
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

// ---- adamw__f32_96_768 ----
// adamw__f32_96_768   (multi_tensor kernel)
//   %new_emb_weight, %m_emb_weight2, %v_emb_weight2 = adamw %emb_weight, %d_emb_weight, %m_emb_weight, %v_emb_weight, %new_adamw_step, %optimizer_lr : f32[96, 768], f32[96, 768], f32[96, 768]
//   %new_pos_weight, %m_pos_weight2, %v_pos_weight2 = adamw %pos_weight, %d_pos_weight, %m_pos_weight, %v_pos_weight, %new_adamw_step, %optimizer_lr : f32[256, 768], f32[256, 768], f32[256, 768]
//   %new_ln1_weight, %m_ln1_weight5, %v_ln1_weight5 = adamw %ln1_weight, %d_ln1_weight, %m_ln1_weight, %v_ln1_weight, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_bias, %m_ln1_bias5, %v_ln1_bias5 = adamw %ln1_bias, %d_ln1_bias, %m_ln1_bias, %v_ln1_bias, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_weight, %m_ln2_weight5, %v_ln2_weight5 = adamw %ln2_weight, %d_ln2_weight, %m_ln2_weight, %v_ln2_weight, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_bias, %m_ln2_bias5, %v_ln2_bias5 = adamw %ln2_bias, %d_ln2_bias, %m_ln2_bias, %v_ln2_bias, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_weight2, %m_ln1_weight6, %v_ln1_weight6 = adamw %ln1_weight2, %d_ln1_weight2, %m_ln1_weight2, %v_ln1_weight2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_bias2, %m_ln1_bias6, %v_ln1_bias6 = adamw %ln1_bias2, %d_ln1_bias2, %m_ln1_bias2, %v_ln1_bias2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_weight2, %m_ln2_weight6, %v_ln2_weight6 = adamw %ln2_weight2, %d_ln2_weight2, %m_ln2_weight2, %v_ln2_weight2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_bias2, %m_ln2_bias6, %v_ln2_bias6 = adamw %ln2_bias2, %d_ln2_bias2, %m_ln2_bias2, %v_ln2_bias2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_weight3, %m_ln1_weight7, %v_ln1_weight7 = adamw %ln1_weight3, %d_ln1_weight3, %m_ln1_weight3, %v_ln1_weight3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_bias3, %m_ln1_bias7, %v_ln1_bias7 = adamw %ln1_bias3, %d_ln1_bias3, %m_ln1_bias3, %v_ln1_bias3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_weight3, %m_ln2_weight7, %v_ln2_weight7 = adamw %ln2_weight3, %d_ln2_weight3, %m_ln2_weight3, %v_ln2_weight3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_bias3, %m_ln2_bias7, %v_ln2_bias7 = adamw %ln2_bias3, %d_ln2_bias3, %m_ln2_bias3, %v_ln2_bias3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_weight4, %m_ln1_weight8, %v_ln1_weight8 = adamw %ln1_weight4, %d_ln1_weight4, %m_ln1_weight4, %v_ln1_weight4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln1_bias4, %m_ln1_bias8, %v_ln1_bias8 = adamw %ln1_bias4, %d_ln1_bias4, %m_ln1_bias4, %v_ln1_bias4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_weight4, %m_ln2_weight8, %v_ln2_weight8 = adamw %ln2_weight4, %d_ln2_weight4, %m_ln2_weight4, %v_ln2_weight4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln2_bias4, %m_ln2_bias8, %v_ln2_bias8 = adamw %ln2_bias4, %d_ln2_bias4, %m_ln2_bias4, %v_ln2_bias4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln_f_weight, %m_ln_f_weight2, %v_ln_f_weight2 = adamw %ln_f_weight, %d_ln_f_weight, %m_ln_f_weight, %v_ln_f_weight, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_ln_f_bias, %m_ln_f_bias2, %v_ln_f_bias2 = adamw %ln_f_bias, %d_ln_f_bias, %m_ln_f_bias, %v_ln_f_bias, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_head_weight, %m_head_weight2, %v_head_weight2 = adamw %head_weight, %d_head_weight, %m_head_weight, %v_head_weight, %new_adamw_step, %optimizer_lr : f32[96, 768], f32[96, 768], f32[96, 768]
// 21 ops -> 1 kernel; reads emb_weight d_emb_weight m_emb_weight v_emb_weight new_adamw_step optimizer_lr pos_weight d_pos_weight m_pos_weight v_pos_weight ln1_weight d_ln1_weight m_ln1_weight v_ln1_weight ln1_bias d_ln1_bias m_ln1_bias v_ln1_bias ln2_weight d_ln2_weight m_ln2_weight v_ln2_weight ln2_bias d_ln2_bias m_ln2_bias v_ln2_bias ln1_weight2 d_ln1_weight2 m_ln1_weight2 v_ln1_weight2 ln1_bias2 d_ln1_bias2 m_ln1_bias2 v_ln1_bias2 ln2_weight2 d_ln2_weight2 m_ln2_weight2 v_ln2_weight2 ln2_bias2 d_ln2_bias2 m_ln2_bias2 v_ln2_bias2 ln1_weight3 d_ln1_weight3 m_ln1_weight3 v_ln1_weight3 ln1_bias3 d_ln1_bias3 m_ln1_bias3 v_ln1_bias3 ln2_weight3 d_ln2_weight3 m_ln2_weight3 v_ln2_weight3 ln2_bias3 d_ln2_bias3 m_ln2_bias3 v_ln2_bias3 ln1_weight4 d_ln1_weight4 m_ln1_weight4 v_ln1_weight4 ln1_bias4 d_ln1_bias4 m_ln1_bias4 v_ln1_bias4 ln2_weight4 d_ln2_weight4 m_ln2_weight4 v_ln2_weight4 ln2_bias4 d_ln2_bias4 m_ln2_bias4 v_ln2_bias4 ln_f_weight d_ln_f_weight m_ln_f_weight v_ln_f_weight ln_f_bias d_ln_f_bias m_ln_f_bias v_ln_f_bias head_weight d_head_weight m_head_weight v_head_weight, writes new_emb_weight m_emb_weight2 v_emb_weight2 new_pos_weight m_pos_weight2 v_pos_weight2 new_ln1_weight m_ln1_weight5 v_ln1_weight5 new_ln1_bias m_ln1_bias5 v_ln1_bias5 new_ln2_weight m_ln2_weight5 v_ln2_weight5 new_ln2_bias m_ln2_bias5 v_ln2_bias5 new_ln1_weight2 m_ln1_weight6 v_ln1_weight6 new_ln1_bias2 m_ln1_bias6 v_ln1_bias6 new_ln2_weight2 m_ln2_weight6 v_ln2_weight6 new_ln2_bias2 m_ln2_bias6 v_ln2_bias6 new_ln1_weight3 m_ln1_weight7 v_ln1_weight7 new_ln1_bias3 m_ln1_bias7 v_ln1_bias7 new_ln2_weight3 m_ln2_weight7 v_ln2_weight7 new_ln2_bias3 m_ln2_bias7 v_ln2_bias7 new_ln1_weight4 m_ln1_weight8 v_ln1_weight8 new_ln1_bias4 m_ln1_bias8 v_ln1_bias8 new_ln2_weight4 m_ln2_weight8 v_ln2_weight8 new_ln2_bias4 m_ln2_bias8 v_ln2_bias8 new_ln_f_weight m_ln_f_weight2 v_ln_f_weight2 new_ln_f_bias m_ln_f_bias2 v_ln_f_bias2 new_head_weight m_head_weight2 v_head_weight2.
// grid = 102, block = 256, 21 tensors in chunks of 4096 elements
extern "C" __global__ void __launch_bounds__(256)
adamw__f32_96_768(const i32 *__restrict__ new_adamw_step2, const float *__restrict__ optimizer_lr2, const u64 *__restrict__ pointer_table, const i64 *__restrict__ size_table, const i64 *__restrict__ chunk_table, i64 tensor_count) {
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

// ---- adamw__f32_2304_768 ----
// adamw__f32_2304_768   (multi_tensor kernel)
//   %new_qkv_weight, %m_qkv_weight5, %v_qkv_weight5 = adamw %qkv_weight, %d_qkv_weight, %m_qkv_weight, %v_qkv_weight, %new_adamw_step, %optimizer_lr : f32[2304, 768], f32[2304, 768], f32[2304, 768]
//   %new_qkv_bias, %m_qkv_bias5, %v_qkv_bias5 = adamw %qkv_bias, %d_qkv_bias, %m_qkv_bias, %v_qkv_bias, %new_adamw_step, %optimizer_lr : f32[2304], f32[2304], f32[2304]
//   %new_proj_weight, %m_proj_weight5, %v_proj_weight5 = adamw %proj_weight, %d_proj_weight, %m_proj_weight, %v_proj_weight, %new_adamw_step, %optimizer_lr : f32[768, 768], f32[768, 768], f32[768, 768]
//   %new_proj_bias, %m_proj_bias5, %v_proj_bias5 = adamw %proj_bias, %d_proj_bias, %m_proj_bias, %v_proj_bias, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_fc1_weight, %m_fc1_weight5, %v_fc1_weight5 = adamw %fc1_weight, %d_fc1_weight, %m_fc1_weight, %v_fc1_weight, %new_adamw_step, %optimizer_lr : f32[3072, 768], f32[3072, 768], f32[3072, 768]
//   %new_fc1_bias, %m_fc1_bias5, %v_fc1_bias5 = adamw %fc1_bias, %d_fc1_bias, %m_fc1_bias, %v_fc1_bias, %new_adamw_step, %optimizer_lr : f32[3072], f32[3072], f32[3072]
//   %new_fc2_weight, %m_fc2_weight5, %v_fc2_weight5 = adamw %fc2_weight, %d_fc2_weight, %m_fc2_weight, %v_fc2_weight, %new_adamw_step, %optimizer_lr : f32[768, 3072], f32[768, 3072], f32[768, 3072]
//   %new_fc2_bias, %m_fc2_bias5, %v_fc2_bias5 = adamw %fc2_bias, %d_fc2_bias, %m_fc2_bias, %v_fc2_bias, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_qkv_weight2, %m_qkv_weight6, %v_qkv_weight6 = adamw %qkv_weight2, %d_qkv_weight2, %m_qkv_weight2, %v_qkv_weight2, %new_adamw_step, %optimizer_lr : f32[2304, 768], f32[2304, 768], f32[2304, 768]
//   %new_qkv_bias2, %m_qkv_bias6, %v_qkv_bias6 = adamw %qkv_bias2, %d_qkv_bias2, %m_qkv_bias2, %v_qkv_bias2, %new_adamw_step, %optimizer_lr : f32[2304], f32[2304], f32[2304]
//   %new_proj_weight2, %m_proj_weight6, %v_proj_weight6 = adamw %proj_weight2, %d_proj_weight2, %m_proj_weight2, %v_proj_weight2, %new_adamw_step, %optimizer_lr : f32[768, 768], f32[768, 768], f32[768, 768]
//   %new_proj_bias2, %m_proj_bias6, %v_proj_bias6 = adamw %proj_bias2, %d_proj_bias2, %m_proj_bias2, %v_proj_bias2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_fc1_weight2, %m_fc1_weight6, %v_fc1_weight6 = adamw %fc1_weight2, %d_fc1_weight2, %m_fc1_weight2, %v_fc1_weight2, %new_adamw_step, %optimizer_lr : f32[3072, 768], f32[3072, 768], f32[3072, 768]
//   %new_fc1_bias2, %m_fc1_bias6, %v_fc1_bias6 = adamw %fc1_bias2, %d_fc1_bias2, %m_fc1_bias2, %v_fc1_bias2, %new_adamw_step, %optimizer_lr : f32[3072], f32[3072], f32[3072]
//   %new_fc2_weight2, %m_fc2_weight6, %v_fc2_weight6 = adamw %fc2_weight2, %d_fc2_weight2, %m_fc2_weight2, %v_fc2_weight2, %new_adamw_step, %optimizer_lr : f32[768, 3072], f32[768, 3072], f32[768, 3072]
//   %new_fc2_bias2, %m_fc2_bias6, %v_fc2_bias6 = adamw %fc2_bias2, %d_fc2_bias2, %m_fc2_bias2, %v_fc2_bias2, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_qkv_weight3, %m_qkv_weight7, %v_qkv_weight7 = adamw %qkv_weight3, %d_qkv_weight3, %m_qkv_weight3, %v_qkv_weight3, %new_adamw_step, %optimizer_lr : f32[2304, 768], f32[2304, 768], f32[2304, 768]
//   %new_qkv_bias3, %m_qkv_bias7, %v_qkv_bias7 = adamw %qkv_bias3, %d_qkv_bias3, %m_qkv_bias3, %v_qkv_bias3, %new_adamw_step, %optimizer_lr : f32[2304], f32[2304], f32[2304]
//   %new_proj_weight3, %m_proj_weight7, %v_proj_weight7 = adamw %proj_weight3, %d_proj_weight3, %m_proj_weight3, %v_proj_weight3, %new_adamw_step, %optimizer_lr : f32[768, 768], f32[768, 768], f32[768, 768]
//   %new_proj_bias3, %m_proj_bias7, %v_proj_bias7 = adamw %proj_bias3, %d_proj_bias3, %m_proj_bias3, %v_proj_bias3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_fc1_weight3, %m_fc1_weight7, %v_fc1_weight7 = adamw %fc1_weight3, %d_fc1_weight3, %m_fc1_weight3, %v_fc1_weight3, %new_adamw_step, %optimizer_lr : f32[3072, 768], f32[3072, 768], f32[3072, 768]
//   %new_fc1_bias3, %m_fc1_bias7, %v_fc1_bias7 = adamw %fc1_bias3, %d_fc1_bias3, %m_fc1_bias3, %v_fc1_bias3, %new_adamw_step, %optimizer_lr : f32[3072], f32[3072], f32[3072]
//   %new_fc2_weight3, %m_fc2_weight7, %v_fc2_weight7 = adamw %fc2_weight3, %d_fc2_weight3, %m_fc2_weight3, %v_fc2_weight3, %new_adamw_step, %optimizer_lr : f32[768, 3072], f32[768, 3072], f32[768, 3072]
//   %new_fc2_bias3, %m_fc2_bias7, %v_fc2_bias7 = adamw %fc2_bias3, %d_fc2_bias3, %m_fc2_bias3, %v_fc2_bias3, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_qkv_weight4, %m_qkv_weight8, %v_qkv_weight8 = adamw %qkv_weight4, %d_qkv_weight4, %m_qkv_weight4, %v_qkv_weight4, %new_adamw_step, %optimizer_lr : f32[2304, 768], f32[2304, 768], f32[2304, 768]
//   %new_qkv_bias4, %m_qkv_bias8, %v_qkv_bias8 = adamw %qkv_bias4, %d_qkv_bias4, %m_qkv_bias4, %v_qkv_bias4, %new_adamw_step, %optimizer_lr : f32[2304], f32[2304], f32[2304]
//   %new_proj_weight4, %m_proj_weight8, %v_proj_weight8 = adamw %proj_weight4, %d_proj_weight4, %m_proj_weight4, %v_proj_weight4, %new_adamw_step, %optimizer_lr : f32[768, 768], f32[768, 768], f32[768, 768]
//   %new_proj_bias4, %m_proj_bias8, %v_proj_bias8 = adamw %proj_bias4, %d_proj_bias4, %m_proj_bias4, %v_proj_bias4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_fc1_weight4, %m_fc1_weight8, %v_fc1_weight8 = adamw %fc1_weight4, %d_fc1_weight4, %m_fc1_weight4, %v_fc1_weight4, %new_adamw_step, %optimizer_lr : f32[3072, 768], f32[3072, 768], f32[3072, 768]
//   %new_fc1_bias4, %m_fc1_bias8, %v_fc1_bias8 = adamw %fc1_bias4, %d_fc1_bias4, %m_fc1_bias4, %v_fc1_bias4, %new_adamw_step, %optimizer_lr : f32[3072], f32[3072], f32[3072]
//   %new_fc2_weight4, %m_fc2_weight8, %v_fc2_weight8 = adamw %fc2_weight4, %d_fc2_weight4, %m_fc2_weight4, %v_fc2_weight4, %new_adamw_step, %optimizer_lr : f32[768, 3072], f32[768, 3072], f32[768, 3072]
//   %new_fc2_bias4, %m_fc2_bias8, %v_fc2_bias8 = adamw %fc2_bias4, %d_fc2_bias4, %m_fc2_bias4, %v_fc2_bias4, %new_adamw_step, %optimizer_lr : f32[768], f32[768], f32[768]
//   %new_qkv_weight5 = cast %new_qkv_weight {to = bf16}    : bf16[2304, 768]
//   %new_qkv_bias5 = cast %new_qkv_bias {to = bf16}        : bf16[2304]
//   %new_proj_weight5 = cast %new_proj_weight {to = bf16}  : bf16[768, 768]
//   %new_proj_bias5 = cast %new_proj_bias {to = bf16}      : bf16[768]
//   %new_fc1_weight5 = cast %new_fc1_weight {to = bf16}    : bf16[3072, 768]
//   %new_fc1_bias5 = cast %new_fc1_bias {to = bf16}        : bf16[3072]
//   %new_fc2_weight5 = cast %new_fc2_weight {to = bf16}    : bf16[768, 3072]
//   %new_fc2_bias5 = cast %new_fc2_bias {to = bf16}        : bf16[768]
//   %new_qkv_weight6 = cast %new_qkv_weight2 {to = bf16}   : bf16[2304, 768]
//   %new_qkv_bias6 = cast %new_qkv_bias2 {to = bf16}       : bf16[2304]
//   %new_proj_weight6 = cast %new_proj_weight2 {to = bf16} : bf16[768, 768]
//   %new_proj_bias6 = cast %new_proj_bias2 {to = bf16}     : bf16[768]
//   %new_fc1_weight6 = cast %new_fc1_weight2 {to = bf16}   : bf16[3072, 768]
//   %new_fc1_bias6 = cast %new_fc1_bias2 {to = bf16}       : bf16[3072]
//   %new_fc2_weight6 = cast %new_fc2_weight2 {to = bf16}   : bf16[768, 3072]
//   %new_fc2_bias6 = cast %new_fc2_bias2 {to = bf16}       : bf16[768]
//   %new_qkv_weight7 = cast %new_qkv_weight3 {to = bf16}   : bf16[2304, 768]
//   %new_qkv_bias7 = cast %new_qkv_bias3 {to = bf16}       : bf16[2304]
//   %new_proj_weight7 = cast %new_proj_weight3 {to = bf16} : bf16[768, 768]
//   %new_proj_bias7 = cast %new_proj_bias3 {to = bf16}     : bf16[768]
//   %new_fc1_weight7 = cast %new_fc1_weight3 {to = bf16}   : bf16[3072, 768]
//   %new_fc1_bias7 = cast %new_fc1_bias3 {to = bf16}       : bf16[3072]
//   %new_fc2_weight7 = cast %new_fc2_weight3 {to = bf16}   : bf16[768, 3072]
//   %new_fc2_bias7 = cast %new_fc2_bias3 {to = bf16}       : bf16[768]
//   %new_qkv_weight8 = cast %new_qkv_weight4 {to = bf16}   : bf16[2304, 768]
//   %new_qkv_bias8 = cast %new_qkv_bias4 {to = bf16}       : bf16[2304]
//   %new_proj_weight8 = cast %new_proj_weight4 {to = bf16} : bf16[768, 768]
//   %new_proj_bias8 = cast %new_proj_bias4 {to = bf16}     : bf16[768]
//   %new_fc1_weight8 = cast %new_fc1_weight4 {to = bf16}   : bf16[3072, 768]
//   %new_fc1_bias8 = cast %new_fc1_bias4 {to = bf16}       : bf16[3072]
//   %new_fc2_weight8 = cast %new_fc2_weight4 {to = bf16}   : bf16[768, 3072]
//   %new_fc2_bias8 = cast %new_fc2_bias4 {to = bf16}       : bf16[768]
// 64 ops -> 1 kernel; reads qkv_weight d_qkv_weight m_qkv_weight v_qkv_weight new_adamw_step optimizer_lr qkv_bias d_qkv_bias m_qkv_bias v_qkv_bias proj_weight d_proj_weight m_proj_weight v_proj_weight proj_bias d_proj_bias m_proj_bias v_proj_bias fc1_weight d_fc1_weight m_fc1_weight v_fc1_weight fc1_bias d_fc1_bias m_fc1_bias v_fc1_bias fc2_weight d_fc2_weight m_fc2_weight v_fc2_weight fc2_bias d_fc2_bias m_fc2_bias v_fc2_bias qkv_weight2 d_qkv_weight2 m_qkv_weight2 v_qkv_weight2 qkv_bias2 d_qkv_bias2 m_qkv_bias2 v_qkv_bias2 proj_weight2 d_proj_weight2 m_proj_weight2 v_proj_weight2 proj_bias2 d_proj_bias2 m_proj_bias2 v_proj_bias2 fc1_weight2 d_fc1_weight2 m_fc1_weight2 v_fc1_weight2 fc1_bias2 d_fc1_bias2 m_fc1_bias2 v_fc1_bias2 fc2_weight2 d_fc2_weight2 m_fc2_weight2 v_fc2_weight2 fc2_bias2 d_fc2_bias2 m_fc2_bias2 v_fc2_bias2 qkv_weight3 d_qkv_weight3 m_qkv_weight3 v_qkv_weight3 qkv_bias3 d_qkv_bias3 m_qkv_bias3 v_qkv_bias3 proj_weight3 d_proj_weight3 m_proj_weight3 v_proj_weight3 proj_bias3 d_proj_bias3 m_proj_bias3 v_proj_bias3 fc1_weight3 d_fc1_weight3 m_fc1_weight3 v_fc1_weight3 fc1_bias3 d_fc1_bias3 m_fc1_bias3 v_fc1_bias3 fc2_weight3 d_fc2_weight3 m_fc2_weight3 v_fc2_weight3 fc2_bias3 d_fc2_bias3 m_fc2_bias3 v_fc2_bias3 qkv_weight4 d_qkv_weight4 m_qkv_weight4 v_qkv_weight4 qkv_bias4 d_qkv_bias4 m_qkv_bias4 v_qkv_bias4 proj_weight4 d_proj_weight4 m_proj_weight4 v_proj_weight4 proj_bias4 d_proj_bias4 m_proj_bias4 v_proj_bias4 fc1_weight4 d_fc1_weight4 m_fc1_weight4 v_fc1_weight4 fc1_bias4 d_fc1_bias4 m_fc1_bias4 v_fc1_bias4 fc2_weight4 d_fc2_weight4 m_fc2_weight4 v_fc2_weight4 fc2_bias4 d_fc2_bias4 m_fc2_bias4 v_fc2_bias4, writes new_qkv_weight m_qkv_weight5 v_qkv_weight5 new_qkv_bias m_qkv_bias5 v_qkv_bias5 new_proj_weight m_proj_weight5 v_proj_weight5 new_proj_bias m_proj_bias5 v_proj_bias5 new_fc1_weight m_fc1_weight5 v_fc1_weight5 new_fc1_bias m_fc1_bias5 v_fc1_bias5 new_fc2_weight m_fc2_weight5 v_fc2_weight5 new_fc2_bias m_fc2_bias5 v_fc2_bias5 new_qkv_weight2 m_qkv_weight6 v_qkv_weight6 new_qkv_bias2 m_qkv_bias6 v_qkv_bias6 new_proj_weight2 m_proj_weight6 v_proj_weight6 new_proj_bias2 m_proj_bias6 v_proj_bias6 new_fc1_weight2 m_fc1_weight6 v_fc1_weight6 new_fc1_bias2 m_fc1_bias6 v_fc1_bias6 new_fc2_weight2 m_fc2_weight6 v_fc2_weight6 new_fc2_bias2 m_fc2_bias6 v_fc2_bias6 new_qkv_weight3 m_qkv_weight7 v_qkv_weight7 new_qkv_bias3 m_qkv_bias7 v_qkv_bias7 new_proj_weight3 m_proj_weight7 v_proj_weight7 new_proj_bias3 m_proj_bias7 v_proj_bias7 new_fc1_weight3 m_fc1_weight7 v_fc1_weight7 new_fc1_bias3 m_fc1_bias7 v_fc1_bias7 new_fc2_weight3 m_fc2_weight7 v_fc2_weight7 new_fc2_bias3 m_fc2_bias7 v_fc2_bias7 new_qkv_weight4 m_qkv_weight8 v_qkv_weight8 new_qkv_bias4 m_qkv_bias8 v_qkv_bias8 new_proj_weight4 m_proj_weight8 v_proj_weight8 new_proj_bias4 m_proj_bias8 v_proj_bias8 new_fc1_weight4 m_fc1_weight8 v_fc1_weight8 new_fc1_bias4 m_fc1_bias8 v_fc1_bias8 new_fc2_weight4 m_fc2_weight8 v_fc2_weight8 new_fc2_bias4 m_fc2_bias8 v_fc2_bias8 new_qkv_weight5 new_qkv_bias5 new_proj_weight5 new_proj_bias5 new_fc1_weight5 new_fc1_bias5 new_fc2_weight5 new_fc2_bias5 new_qkv_weight6 new_qkv_bias6 new_proj_weight6 new_proj_bias6 new_fc1_weight6 new_fc1_bias6 new_fc2_weight6 new_fc2_bias6 new_qkv_weight7 new_qkv_bias7 new_proj_weight7 new_proj_bias7 new_fc1_weight7 new_fc1_bias7 new_fc2_weight7 new_fc2_bias7 new_qkv_weight8 new_qkv_bias8 new_proj_weight8 new_proj_bias8 new_fc1_weight8 new_fc1_bias8 new_fc2_weight8 new_fc2_bias8; saves 4 passes over [2304, 768].
// grid = 6928, block = 256, 32 tensors in chunks of 4096 elements
extern "C" __global__ void __launch_bounds__(256)
adamw__f32_2304_768(const i32 *__restrict__ new_adamw_step2, const float *__restrict__ optimizer_lr2, const u64 *__restrict__ pointer_table, const i64 *__restrict__ size_table, const i64 *__restrict__ chunk_table, i64 tensor_count) {
  const TensorTable table = {pointer_table, size_table, chunk_table, tensor_count};
  const TensorChunk chunk = findChunk(table, blockIdx.x, 4096);
  const float *qkv_weight = tensorPointer<const float>(table, 0, chunk.tensor);
  const float *d_qkv_weight = tensorPointer<const float>(table, 1, chunk.tensor);
  const float *m_qkv_weight = tensorPointer<const float>(table, 2, chunk.tensor);
  const float *v_qkv_weight = tensorPointer<const float>(table, 3, chunk.tensor);
  float *v = tensorPointer<float>(table, 4, chunk.tensor);
  float *v2 = tensorPointer<float>(table, 5, chunk.tensor);
  float *v3 = tensorPointer<float>(table, 6, chunk.tensor);
  bf16 *new_qkv_weight5 = tensorPointer<bf16>(table, 7, chunk.tensor);
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
    float d_qkv_weight4[4];
    loadUpTo(d_qkv_weight + i, left, d_qkv_weight4);
    float m_qkv_weight4[4];
    loadUpTo(m_qkv_weight + i, left, m_qkv_weight4);
    float v_qkv_weight4[4];
    loadUpTo(v_qkv_weight + i, left, v_qkv_weight4);
    float qkv_weight4[4];
    loadUpTo(qkv_weight + i, left, qkv_weight4);
    // compute
    float v4[4];
    float v4_2[4];
    float v4_3[4];
    float new_qkv_weight54[4];
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float mul4 = d_qkv_weight4[e] * 0.1f;                               // f32[n]
      const float mul5 = m_qkv_weight4[e] * 0.9f;                               // f32[n]
      v4_2[e] = mul5 + mul4;                                                    // f32[n]
      const float mul6 = d_qkv_weight4[e] * d_qkv_weight4[e];                   // f32[n]
      const float mul7 = mul6 * 0.001f;                                         // f32[n]
      const float mul8 = v_qkv_weight4[e] * 0.999f;                             // f32[n]
      v4_3[e] = mul8 + mul7;                                                    // f32[n]
      const float div = v4_3[e] / neg2;                                         // f32[n]
      const float sqrt = math::sqrt(div);                                       // f32[n]
      const float add = sqrt + 1e-08f;                                          // f32[n]
      const float div2 = v4_2[e] / neg;                                         // f32[n]
      const float div3 = div2 / add;                                            // f32[n]
      const float mul9 = optimizer_lr * div3;                                   // f32[n]
      const float mul10 = qkv_weight4[e] * sub;                                 // f32[n]
      v4[e] = mul10 - mul9;                                                     // f32[n]
      new_qkv_weight54[e] = roundTo<bf16>(v4[e]);                               // bf16[n]
    }
    // store
    storeUpTo(v + i, left, v4);
    storeUpTo(v2 + i, left, v4_2);
    storeUpTo(v3 + i, left, v4_3);
    storeUpTo(new_qkv_weight5 + i, left, new_qkv_weight54);
  }
}

