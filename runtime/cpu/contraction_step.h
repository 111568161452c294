// GEMM and its epilogue: each tile of the product goes through the epilogue's loop while it is in the cache.
#pragma once
#include "codegen/plan/anchors.h"
#include "runtime/cpu/gemm/gemm.h"
#include "runtime/cpu/loop/loop_kernel.h"
#include "runtime/cpu/packed_weight.h"

namespace fusor::runtime {

class ContractionStep : public Step {
public:
  ContractionStep(const codegen::ContractionPlan &plan, const ir::SymbolValues &symbols,
                  const LoopKernel::Options &options, std::shared_ptr<PackedWeight> packed);
  void run(const StepMemory &memory, Workers &workers) const override;
  int64_t sharedBytes() const override { return sharedBytes_; }

private:
  struct Operand {
    unsigned input;
    ir::DType dtype;
    bool transposed;
    int64_t leading, batchStride, elements;
    int64_t wideOffset = -1; // bytes into the shared memory, where it must be widened to f32
  };
  Operand operand(const codegen::ContractionPlan::Operand &plan, int64_t rows, int64_t columns,
                  const ir::SymbolValues &symbols);
  const char *widened(const Operand &operand, const StepMemory &memory, Workers &workers) const;
  struct Sources { // of the product; packed may be null
    const char *a, *b;
    const float *packed;
  };
  void runTile(const StepMemory &memory, Sources from, int64_t batch, const GemmTile &tile) const;
  void product(const Sources &from, const GemmTile &tile, char *c, int64_t ldc) const;

  int64_t m_, n_, k_, batch_;
  Operand a_{}, b_{};
  bool isF64_ = false, isDirect_ = false;
  GemmTiling tiling_;
  int64_t tileRows_ = 1, rowTiles_ = 1;
  std::unique_ptr<LoopKernel> epilogue_;
  Isa isa_;
  std::shared_ptr<PackedWeight> packed_; // null: B is packed in each run
  int64_t sharedBytes_ = 0;
};

} // namespace fusor::runtime
