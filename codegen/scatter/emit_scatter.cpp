#include "codegen/scatter/emit_scatter.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/plan/anchors.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

/// Each block of the first kernel reads all tokens: not too many of them, and all multiprocessors at work.
int64_t rowsOfABlock(const Dim &rows) {
  if (!rows.isConstant()) return 256;
  return std::clamp<int64_t>(llvm::PowerOf2Ceil((rows.value() + 255) / 256), 8, 1024);
}

struct SumShape {
  int64_t parts = 1; // of a row's positions
  unsigned slices = 1, lanes = 256, width = 1;
};
/// Rows of a small table occur often, and one of them perhaps most of the time: parts of their positions to blocks.
/// Most rows of a large one are written as zeros.
SumShape sumShape(const ScatterPlan &plan) {
  SumShape shape;
  if (plan.columns.divide(Dim(4))) shape.width = 4;
  if (plan.columns.isConstant()) {
    int64_t threads = (plan.columns.value() / shape.width + 31) / 32 * 32;
    shape.lanes = static_cast<unsigned>(std::clamp<int64_t>(threads, 32, 256));
  }
  if (!plan.rows.isConstant() || plan.rows.value() > 1024) return shape;
  shape.parts = std::clamp<int64_t>(llvm::PowerOf2Floor(2048 / std::max<int64_t>(plan.rows.value(), 1)), 2, 32);
  shape.slices = std::min(1024 / shape.lanes, 4u);
  return shape;
}

} // namespace

llvm::Error emitScatter(const FusionBody &body, KernelSet &set) {
  auto planned = planScatter(body.flat);
  if (!planned) return planned.takeError();
  const ScatterPlan &plan = *planned;
  if (!isFloat(plan.updatesType) || plan.updatesType == DType::f64 || plan.outputType == DType::f64)
    return opError("the scatter kernels add floats of at most 32 bits, found {0}", name(plan.updatesType));

  unsigned first = set.workspaces.size();
  for (Dim elements : {plan.rows + Dim(1), plan.count, plan.count}) set.workspaces.push_back(Count(elements * Dim(4)));
  auto work = [&](KernelBuilder &k, unsigned i, bool isConst) {
    static constexpr const char *names[] = {"offsets", "positions", "found"};
    return k.workspace(first + i, "u32", names[i], isConst);
  };
  {
    KernelBuilder k(body, set, "order");
    k.use("gather.cuh");
    int64_t rows = rowsOfABlock(plan.rows);
    k.code().line("gatherOrder<{0}>({1}, {2}, {3}, {4}, {5}, {6});", rows, k.input(plan.indices), k.dim(plan.count),
                  k.dim(plan.rows), work(k, 0, false), work(k, 1, false), work(k, 2, false));
    k.finish({Count::ceilDiv(plan.rows, rows), 1024, llvm::formatv("a block for {0} rows of the table", rows).str()});
  }
  SumShape shape = sumShape(plan);
  unsigned partials = set.workspaces.size();
  if (shape.parts > 1) {
    set.workspaces.push_back(Count(plan.rows * plan.columns * Dim(4 * shape.parts)));
    KernelBuilder k(body, set, "parts");
    k.use("gather.cuh");
    k.code().line("gatherPartSums<{0}, {1}, {2}, {3}>({4}, {5}, {6}, {7}, {8}, {9});", shape.parts, shape.slices,
                  shape.lanes, shape.width, k.input(plan.updates), k.dim(plan.rows), k.dim(plan.columns),
                  work(k, 0, true), work(k, 1, true), k.workspace(partials, "float", "partials", false));
    k.finish({Count(plan.rows * Dim(shape.parts)), shape.slices * shape.lanes,
              llvm::formatv("up to {0} blocks a row of the table", shape.parts).str()});
  }
  KernelBuilder k(body, set, "add");
  k.use("gather.cuh");
  std::string out = k.output(0), columns = k.dim(plan.columns);
  {
    auto put = k.code().open(
        llvm::formatv("const auto put = [=](i64 row, i64 column, const float (&sums)[{0}])", shape.width).str(), "};");
    k.code().line("storeVector({0} + row * {1} + column, sums);", out, columns);
  }
  if (shape.parts > 1)
    k.code().line("gatherPartTotals<{0}, {1}, {2}>({3}, {4}, {5}, {6}, put);", shape.parts, shape.lanes, shape.width,
                  k.workspace(partials, "float", "partials", true), k.dim(plan.rows), columns, work(k, 0, true));
  else
    k.code().line("gatherRowSums<{0}, {1}>({2}, {3}, {4}, {5}, put);", shape.lanes, shape.width, k.input(plan.updates),
                  columns, work(k, 0, true), work(k, 1, true));
  k.finish({Count(plan.rows), shape.lanes, "a block a row of the table"});
  return llvm::Error::success();
}

} // namespace fusor::codegen
