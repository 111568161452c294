#include "ir/ops/families.h"

namespace fusor::ir {

llvm::SmallVector<Family, 12> allFamilies() {
  return {{"structure", structureOps()},     {"elementwise", elementwiseOps()},
          {"reduction", reductionOps()},     {"movement", movementOps()},
          {"contraction", contractionOps()}, {"normalization", normalizationOps()},
          {"attention", attentionOps()},     {"loss", lossOps()},
          {"quantize", quantizeOps()},       {"random", randomOps()},
          {"optimizer", optimizerOps()},     {"extra", extraOps()}};
}

} // namespace fusor::ir
