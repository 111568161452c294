// The transposed results of a loop kernel as text: a tile of rows and columns in shared memory each, which the block
// fills as it goes through its rows, and stores when they are done (device/transposed_store.cuh).
#pragma once
#include "codegen/loop/loop_text.h"

namespace fusor::codegen {

class TransposedStores {
public:
  /// Tiles of `rows` x `columns` elements, `width` neighbours a thread.
  TransposedStores(KernelBuilder &k, const LoopPlan &plan, int64_t rows, int64_t columns, int width);

  bool empty() const { return tiles_.empty(); }
  int64_t bytes() const { return bytesOf(plan_, rows_, columns_, width_); }
  /// Bytes of such tiles of `plan`.
  static int64_t bytesOf(const LoopPlan &plan, int64_t rows, int64_t columns, int width);
  /// Declares the tiles in `memory`, an expression.
  void declare(CodeWriter &w, llvm::StringRef memory);
  /// `value`: an array of the width, or one element.
  void put(CodeWriter &w, const LoopStore &store, llvm::StringRef row, llvm::StringRef column, llvm::StringRef value);
  /// All tiles, whose first row is `first` and whose first column is `column` ("" for 0). The block comes together
  /// first.
  void store(CodeWriter &w, llvm::StringRef first, llvm::StringRef end, llvm::StringRef column);

private:
  KernelBuilder &k_;
  const LoopPlan &plan_;
  int64_t rows_, columns_;
  int width_;
  struct Tile {
    const LoopStore *store;
    std::string name;
  };
  std::vector<Tile> tiles_;
};

} // namespace fusor::codegen
