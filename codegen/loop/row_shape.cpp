#include "codegen/loop/row_shape.h"
#include "codegen/loop/row_schedule.h"
#include "codegen/loop/transposed_stores.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kMostPersistentColumns = 8192;
constexpr int64_t kMostWarpColumns = 1024;
// Elements of full inputs and running sums that a thread of a warp keeps: few, so that many warps hide each other's
// waits; more where sums would otherwise cost a barrier a row, and three blocks are enough as all loads go out at once.
constexpr int64_t kMostElements = 96, kMostElementsWithSums = 144;
constexpr unsigned kBlocksOfManyElements = 3;
// With the next row on its way in shared memory: two blocks of a multiprocessor share its registers and its memory, 256
// chunks fill it once. 8192 x 768 bf16, layer_norm_grad on an H200: 16.3 us with one row ahead, 17.9 with two, 18.6
// without; 16384 x 4096: 138 us with blocks of 256 threads, 155 of 512.
constexpr int64_t kMostRingBytes = 96 * 1024, kMostSumsBesideRing = 72;
constexpr int64_t kRingThreads = 256, kRingThreadsTogether = 512;
constexpr int64_t kMostChunks = 256, kMostScalarChunks = 2048;
// Rows of a tile whose columns are stored: 32 neighbours are a sector of memory, and half of one costs as much. Two
// blocks share 227 KB on sm_90, one has 99 KB on others. LayerNorm's gradient with two transposed results, 32768 x 768
// on an H200: 225 us with 16 rows, 104 with 32 for which late inputs come in their own row, 108 in blocks of 384
// threads with 64 rows; 73 without transposed results. A block's tiles one behind the other instead of in turn: 140.
constexpr int64_t kTileRows = 32, kFewestTileRows = 16, kTileWarps = 8;
constexpr int64_t kMostTileBytes = 68 * 1024, kMostBytes = 97 * 1024, kMostBytesOnSm90 = 112 * 1024;
constexpr int64_t kMostWarpColumnsWithTiles = 2048;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Chooser {
  const LoopPlan &plan;
  int width;
  ArchTier tier;
  llvm::function_ref<bool(const Access &)> isVector;
  RowShape shape = {};
  int64_t ringBytes = 0, lateBytes = 0; // of the last canUseRing; what a second row of late inputs needs of them

  RowShape choose() {
    shape.isPersistent = plan.columns.isConstant() && plan.columns.value() <= kMostPersistentColumns;
    int64_t columns = shape.isPersistent ? std::max<int64_t>(plan.columns.value(), 1) : kMostPersistentColumns;
    bool onlyTiles = plan.hasTransposedStore() && !columnSums(plan);
    int64_t mostWarpColumns = onlyTiles ? kMostWarpColumnsWithTiles : kMostWarpColumns;
    shape.isWarp = shape.isPersistent && columns <= mostWarpColumns && chooseWarps(columns / 32);
    if (!shape.isWarp) chooseThreads(columns);
    if (plan.hasTransposedStore()) chooseTile(columns);
    if (shape.usesRing) shape.blocksTogether = kRingThreadsTogether / shape.blockThreads();
    shape.turns = ceilDiv(columns, shape.threads * width);
    shape.isRagged = columns % (shape.threads * width) != 0;
    chooseChunks(columns);
    return shape;
  }

  // Whether a warp can have a row, `each` elements a thread; and how.
  bool chooseWarps(int64_t each) {
    if (canUseRing(kRingThreads, each * kRingThreads)) {
      shape.usesRing = true, shape.warps = kRingThreads / 32;
      return true;
    }
    if (plan.hasTransposedStore() && !columnSums(plan)) shape.warps = kTileWarps;
    int64_t elements = each * (static_cast<int64_t>(fullLoads(plan).size()) + columnSums(plan));
    if (elements > kMostElements && columnSums(plan)) shape.blocksTogether = kBlocksOfManyElements;
    return elements <= (columnSums(plan) ? kMostElementsWithSums : kMostElements);
  }

  void chooseThreads(int64_t columns) {
    shape.threads = std::min(ceilDiv(ceilDiv(columns, width), 32) * 32, kRingThreads);
    shape.usesRing = canUseRing(shape.threads, columns);
    if (shape.usesRing) return;
    shape.blocksTogether = 0, shape.threads = 256;
    if (!shape.isPersistent) return;
    int64_t each = columnSums(plan) + static_cast<int64_t>(fullLoads(plan).size()) <= 2 ? 16 : 8;
    each = std::max<int64_t>(each / width, 1) * width;
    shape.threads = std::clamp<int64_t>(ceilDiv(ceilDiv(columns, each), 32) * 32, 64, 512);
  }

  // Whether blocks of `threads` can hold `elements` of each full input, and a tile of transposed results beside them.
  bool canUseRing(int64_t threads, int64_t elements) {
    auto loads = fullLoads(plan);
    if (!shape.isPersistent || !columnSums(plan) || tier == ArchTier::simt || loads.empty()) return false;
    int64_t vectors = ceilDiv(elements, threads * width);
    ringBytes = lateBytes = 0;
    for (const LoopStep *step : loads) {
      int64_t vectorBytes = byteSize(step->result.dtype()) * width;
      if (step->access.gather || !isVector(step->access) || vectorBytes % 16 != 0) return false;
      ringBytes += 2 * vectors * threads * vectorBytes;
    }
    for (const LoopStep *step : lateLoads(plan))
      lateBytes += vectors * threads * byteSize(step->result.dtype()) * width;
    return ringBytes <= kMostRingBytes &&
           ringBytes + TransposedStores::bytesOf(plan, kFewestTileRows, plan.columns.value(), width) <= mostBytes() &&
           columnSums(plan) * vectors * width <= kMostSumsBesideRing;
  }
  int64_t mostBytes() const { return tier == ArchTier::sm90a ? kMostBytesOnSm90 : kMostBytes; }

  void chooseTile(int64_t columns) {
    int64_t most = shape.usesRing ? mostBytes() - ringBytes : kMostTileBytes;
    int64_t wanted = TransposedStores::bytesOf(plan, kTileRows, columns, width);
    shape.lateInTheirRow = shape.usesRing && wanted > most && wanted <= most + lateBytes;
    shape.tileRows = wanted <= most || shape.lateInTheirRow ? kTileRows : kFewestTileRows;
  }

  void chooseChunks(int64_t columns) {
    if (plan.sums.empty() && !shape.tileRows) return;
    // As many chunks as fill a large device, in which rows are shared out evenly: what a chunk costs, its partial sums
    // of columns, does not grow with the rows.
    if (columnSums(plan)) {
      int64_t fewestRows = shape.tileRows ? shape.tileRows : shape.isWarp ? shape.warps : 4;
      shape.chunks = Count::ceilDiv(plan.rows, fewestRows).atMost(kMostChunks);
      return;
    }
    // Partial sums of scalars are cheap: every warp of a large device has a row.
    if (shape.isWarp && !shape.tileRows) {
      shape.chunks = Count::ceilDiv(plan.rows, shape.warps).atMost(kMostScalarChunks);
      return;
    }
    int64_t rows = shape.tileRows ? shape.tileRows : std::clamp<int64_t>(kMostPersistentColumns / columns, 1, 4);
    shape.chunkRows = shape.isPersistent ? rows : 1;
    shape.chunks = Count::ceilDiv(plan.rows, *shape.chunkRows);
  }
};

} // namespace

llvm::SmallVector<const LoopStep *, 8> fullLoads(const LoopPlan &plan) {
  llvm::SmallVector<const LoopStep *, 8> loads;
  for (const LoopStep &step : plan.main)
    if (step.kind == LoopStep::Kind::load && step.span == Span::full) loads.push_back(&step);
  return loads;
}

llvm::SmallVector<const LoopStep *, 8> lateLoads(const LoopPlan &plan) {
  auto loads = fullLoads(plan);
  RowSchedule::Values first = RowSchedule(plan, true, true).neededBy(0);
  llvm::erase_if(loads, [&](const LoopStep *step) { return first.contains(step->result.def()); });
  return loads;
}

int64_t columnSums(const LoopPlan &plan) {
  return llvm::count_if(plan.sums, [](const RowsSum &sum) { return sum.span == Span::column; });
}

RowShape rowShape(const LoopPlan &plan, int width, ArchTier tier, llvm::function_ref<bool(const Access &)> isVector) {
  return Chooser{plan, width, tier, isVector}.choose();
}

} // namespace fusor::codegen
