#include "codegen/contraction/emit_contraction.h"
#include "codegen/loop/emit_loop.h"
#include "codegen/plan/anchors.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kBlocksThatFillAGpu = 128;

class ContractionWriter {
public:
  ContractionWriter(const FusionBody &body, const Target &target, KernelSet &set, const ContractionPlan &plan)
      : body_(body), target_(target), set_(set), plan_(plan),
        isDouble_(body.flat.anchor->result().dtype() == DType::f64) {
    chooseTile();
  }

  llvm::Error write() {
    const LoopPlan &epilogue = plan_.epilogue;
    if ((!epilogue.sums.empty() && !isOneSum()) || epilogue.hasTransposedStore()) return writeThroughMemory();
    findInPlace(body_, epilogue, set_);
    keepOperands();
    LoopJob job{body_, epilogue, set_};
    if (!epilogue.sums.empty()) job.addPartials(rowTiles());
    writeKernel(epilogue.sums.empty() ? "" : "gemm", [&](KernelBuilder &k) { return writeEpilogue(k, job); });
    if (!epilogue.sums.empty()) emitFinish(job, rowTiles(), 1);
    return llvm::Error::success();
  }

private:
  // The kernel adds up one column of what its epilogue returns, in float (or double, of a double product).
  bool isOneSum() const {
    const LoopPlan &epilogue = plan_.epilogue;
    if (epilogue.sums.size() != 1) return false;
    const RowsSum &sum = epilogue.sums.front();
    return sum.op->is("sum") && sum.span == Span::column && (isDouble_ || accumulatorType(sum.of.dtype()) == "float");
  }

  void chooseTile() {
    tile_ = 64;
    if (isDouble_) {
      tile_ = 16;
      return;
    }
    auto atLeast = [](const Dim &d, int64_t n) { return !d.isConstant() || d.value() >= n; };
    if (!atLeast(plan_.m, 128) || !atLeast(plan_.n, 128)) return;
    auto blocks = (Count::ceilDiv(plan_.m, 128) * Count::ceilDiv(plan_.n, 128) * Count(plan_.batch)).evaluate({});
    if (!blocks || *blocks >= kBlocksThatFillAGpu) tile_ = 128;
  }
  Count rowTiles() const { return Count(plan_.batch) * Count::ceilDiv(plan_.m, tile_); }
  Count grid() const { return rowTiles() * Count::ceilDiv(plan_.n, tile_); }

  // A block reads rows of A and B that others' outputs would overwrite.
  void keepOperands() {
    llvm::erase_if(set_.inPlace,
                   [&](const InPlace &p) { return p.input == plan_.a.input || p.input == plan_.b.input; });
  }

  // The product goes to a workspace, and a loop reads it from there.
  llvm::Error writeThroughMemory() {
    unsigned product = set_.workspaces.size();
    set_.workspaces.push_back(Count(plan_.batch * plan_.m * plan_.n) * Count(isDouble_ ? 8 : 4));
    writeKernel("gemm", [&](KernelBuilder &k) {
      std::string p = k.workspace(product, isDouble_ ? "double" : "float", "product", false);
      auto lambda = openEpilogue(k);
      k.code().line("{0}[(batch * {1} + r) * {2} + c] = acc;", p, k.dim(plan_.m), k.dim(plan_.n));
      k.code().line("return acc;");
      return std::string();
    });
    return emitLoop(body_, plan_.epilogue, target_, set_, ProductPlace{product, isDouble_ ? DType::f64 : DType::f32});
  }

  CodeWriter::Block openEpilogue(KernelBuilder &k) {
    return k.code().open(llvm::formatv("const auto epilogue = [=](i64 batch, i64 r, i64 c, {0} acc) -> {0}",
                                       isDouble_ ? "double" : "float")
                             .str(),
                         "};");
  }

  // Returns the pointer of the partial column sums; empty for none.
  std::string writeEpilogue(KernelBuilder &k, LoopJob &job) {
    const LoopPlan &epilogue = plan_.epilogue;
    LoopText text(k, epilogue, 1);
    text.setAccumulator("acc", "");
    text.setPlace({"row", "c", ""});
    text.setWriter(k.code());
    for (const LoopStep &step : epilogue.main) text.prepare(step);
    std::string partials = epilogue.sums.empty() ? "" : job.partials(k, 0, false);
    auto lambda = openEpilogue(k);
    CodeWriter inside(k.code().indent());
    text.setWriter(inside);
    for (const LoopStep &step : epilogue.main)
      if (step.kind == LoopStep::Kind::load) text.load(step);
    for (const LoopStep &step : epilogue.main)
      if (step.kind != LoopStep::Kind::load) text.compute(step);
    for (const LoopStore &store : epilogue.stores) {
      std::optional<CodeWriter::Block> once;
      if (store.span == Span::row) once.emplace(inside.block("if (c == 0)"));
      if (store.span == Span::column) once.emplace(inside.block("if (batch == 0 && r == 0)"));
      if (store.span == Span::scalar) once.emplace(inside.block("if (batch == 0 && r == 0 && c == 0)"));
      text.storeScalar(store);
    }
    inside.line("return {0};", epilogue.sums.empty() ? "acc" : text.spell(epilogue.sums[0].of));
    if (text.usedRow)
      k.code().line(plan_.batch.is(1) ? "const i64 row = r;" : "const i64 row = batch * {0} + r;", k.dim(plan_.m));
    k.code().append(inside.text());
    return partials;
  }

  template <typename Epilogue> void writeKernel(llvm::StringRef step, Epilogue epilogue) {
    KernelBuilder k(body_, set_, step);
    k.use(isDouble_ ? "gemm_f64.cuh" : "gemm_simt.cuh");
    k.use("epilogue.cuh");
    CodeWriter &w = k.code();
    std::string a = k.input(plan_.a.input), b = k.input(plan_.b.input);
    w.noted(llvm::formatv("const GemmOperands<{0}, {1}> operands = {{{2}, {3}, {4}, {5}, {6},",
                          storageType(plan_.a.dtype), storageType(plan_.b.dtype), a, b, k.dim(plan_.m), k.dim(plan_.n),
                          k.dim(plan_.k))
                .str(),
            "A, B, M, N, K");
    w.noted(llvm::formatv("  {0}, {1}, {2}, {3}};", k.dim(plan_.a.leadingStride), k.dim(plan_.b.leadingStride),
                          k.dim(plan_.a.batchStride), k.dim(plan_.b.batchStride))
                .str(),
            "between rows of A and B, between batches");
    std::string partials = epilogue(k);
    std::string none = isDouble_ ? "(double *)nullptr" : "(float *)nullptr";
    std::string tile = isDouble_ ? "gemmF64<" : llvm::formatv("gemmSimt<GemmTile{0}, ", tile_).str();
    w.line("{0}{1}, {2}>(operands, epilogueOf<{3}>(epilogue), {4});", tile, plan_.a.transposed ? "true" : "false",
           plan_.b.transposed ? "true" : "false", partials.empty() ? "false" : "true",
           partials.empty() ? none : partials);
    k.finish({grid(), 256, llvm::formatv("tiles of {0} x {0}", tile_).str()});
  }

  const FusionBody &body_;
  const Target &target_;
  KernelSet &set_;
  const ContractionPlan &plan_;
  bool isDouble_;
  int64_t tile_ = 64;
};

} // namespace

llvm::Error emitContraction(const FusionBody &body, const Target &target, KernelSet &set) {
  for (Value argument : body.block().arguments())
    if (argument.type().granularity != Granularity::none || argument.dtype() == DType::f8e8m0)
      return opError("no GEMM kernel reads {0} yet", argument.type().str());
  auto plan = planContraction(body.flat);
  if (!plan) return plan.takeError();
  return ContractionWriter(body, target, set, *plan).write();
}

} // namespace fusor::codegen
