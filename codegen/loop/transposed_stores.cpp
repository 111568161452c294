#include "codegen/loop/transposed_stores.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

int64_t bytesOfTile(int64_t rows, int64_t columns, int width) { return columns * rows + columns / width * 4; }

} // namespace

TransposedStores::TransposedStores(KernelBuilder &k, const LoopPlan &plan, int64_t rows, int64_t columns, int width)
    : k_(k), plan_(plan), rows_(rows), columns_(columns), width_(width) {
  for (const LoopStore &store : plan.stores)
    if (store.isTransposed) tiles_.push_back({&store, k.names().make(k.output(store.output) + "_tile")});
  if (!tiles_.empty()) k.use("transposed_store.cuh");
}

int64_t TransposedStores::bytesOf(const LoopPlan &plan, int64_t rows, int64_t columns, int width) {
  return llvm::count_if(plan.stores, [](const LoopStore &store) { return store.isTransposed; }) *
         bytesOfTile(rows, columns, width);
}

void TransposedStores::declare(CodeWriter &w, llvm::StringRef memory) {
  for (size_t i = 0; i < tiles_.size(); ++i)
    w.line("const TransposedTile<{0}, {1}, {2}, {3}> {4}({5}{6});", storageType(tiles_[i].store->value.dtype()), rows_,
           columns_, width_, tiles_[i].name, memory,
           i ? " + " + std::to_string(i * bytesOfTile(rows_, columns_, width_)) : "");
}

void TransposedStores::put(CodeWriter &w, const LoopStore &store, llvm::StringRef row, llvm::StringRef column,
                           llvm::StringRef value) {
  auto tile = llvm::find_if(tiles_, [&](const Tile &t) { return t.store == &store; });
  w.line("{0}.put({1}, {2}, {3});", tile->name, row, column, value);
}

void TransposedStores::store(CodeWriter &w, llvm::StringRef first, llvm::StringRef end, llvm::StringRef column) {
  w.raw("// store, transposed");
  w.raw("__syncthreads();");
  std::string rows = k_.dim(plan_.rows), columns = k_.dim(plan_.columns);
  for (const Tile &tile : tiles_) {
    std::string out = k_.output(tile.store->output);
    if (column.empty())
      w.line("{0}.store({1}, {2}, {3}, {4}, {5});", tile.name, out, rows, first, end, columns);
    else
      w.line("{0}.store({1} + {2} * {3}, {3}, {4}, {5}, {6} - {2});", tile.name, out, column, rows, first, end,
             columns);
  }
}

} // namespace fusor::codegen
