#include "ir/ops/families.h"

namespace fusor::ir {

llvm::SmallVector<llvm::ArrayRef<OpDef>, 12> allFamilies() {
  return {structureOps(), elementwiseOps(), reductionOps(), movementOps(), contractionOps(), normalizationOps(),
          attentionOps(), lossOps(),        quantizeOps(),  randomOps(),   optimizerOps()};
}

} // namespace fusor::ir
