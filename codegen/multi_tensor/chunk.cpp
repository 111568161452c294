#include "codegen/multi_tensor/chunk.h"

namespace fusor::codegen {

void openTable(KernelBuilder &k) {
  k.use("multi_tensor.cuh");
  std::string pointers = k.special(KernelArg::Kind::tablePointers, "const u64 *__restrict__ ", "pointer_table");
  std::string sizes = k.special(KernelArg::Kind::tableSizes, "const i64 *__restrict__ ", "size_table");
  std::string chunks = k.special(KernelArg::Kind::tableChunks, "const i64 *__restrict__ ", "chunk_table");
  std::string count = k.special(KernelArg::Kind::tableCount, "i64 ", "tensor_count");
  k.code().line("const TensorTable table = {{{0}, {1}, {2}, {3}};", pointers, sizes, chunks, count);
}

void openChunk(KernelBuilder &k, int64_t elements) {
  k.use("tail.cuh");
  openTable(k);
  k.code().line("const TensorChunk chunk = findChunk(table, blockIdx.x, {0});", elements);
}

void openTile(KernelBuilder &k) {
  k.use("tail.cuh");
  openTable(k);
  k.code().line("const TensorTile chunk = findTile<{0}>(table, blockIdx.x);", kSide);
}

CodeWriter::Block overChunk(KernelBuilder &k) {
  auto loop = k.code().block("for (i64 i = chunk.begin + threadIdx.x * {0}; i < chunk.end; i += {1})", kWidth,
                             kThreads * kWidth);
  k.code().line("const i64 left = chunk.end - i;");
  return loop;
}

} // namespace fusor::codegen
