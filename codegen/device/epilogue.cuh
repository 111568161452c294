// needs: types.cuh
// A lambda as the epilogue of a GEMM:
//
//   const auto epilogue = [=](i64 batch, i64 r, i64 c, float acc) { ...; return value; };
//   gemmSimt<GemmTile64, false, true>(operands, epilogueOf<false>(epilogue), (float *)nullptr);
template <bool kSumsColumns, class Function> struct EpilogueOf : Function {
  static constexpr bool kColumnSum = kSumsColumns;
  __device__ EpilogueOf(const Function &function) : Function(function) {}
};
template <bool kSumsColumns, class Function>
__device__ inline EpilogueOf<kSumsColumns, Function> epilogueOf(const Function &function) {
  return EpilogueOf<kSumsColumns, Function>(function);
}
