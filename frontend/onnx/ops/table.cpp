#include "frontend/onnx/ops/table.h"
#include <map>

namespace fusor::onnx {

llvm::ArrayRef<llvm::ArrayRef<OpEntry>> operatorFamilies() {
  static const std::vector<llvm::ArrayRef<OpEntry>> families = {
      elementwiseOperators(),
      activationOperators(),
      castOperators(),
      reductionOperators(),
      shapeOperators(),
      partsOperators(),
      padOperators(),
      resizeOperators(),
      movementOperators(),
      gatherOperators(),
      scatterOperators(),
      rankingOperators(),
      constantOperators(),
      linearOperators(),
      einsumOperators(),
      packedWeightsOperators(),
      normalizationOperators(),
      attentionOperators(),
      fusedAttentionOperators(),
      groupQueryAttentionOperators(),
      convolutionOperators(),
      quantizeOperators(),
  };
  return families;
}

Found findOperator(llvm::StringRef domain, llvm::StringRef name, int64_t version) {
  using Key = std::pair<llvm::StringRef, llvm::StringRef>;
  static const std::map<Key, llvm::SmallVector<const OpEntry *, 1>> table = [] {
    std::map<Key, llvm::SmallVector<const OpEntry *, 1>> t;
    for (llvm::ArrayRef<OpEntry> family : operatorFamilies())
      for (const OpEntry &entry : family) t[{entry.domain, entry.name}].push_back(&entry);
    return t;
  }();
  auto entries = table.find({domain, name});
  Found found;
  if (entries == table.end()) return found;
  found.oldest = entries->second.front()->since;
  for (const OpEntry *entry : entries->second) {
    found.oldest = std::min(found.oldest, entry->since);
    if (entry->since <= version && (!found.entry || entry->since > found.entry->since)) found.entry = entry;
  }
  return found;
}

} // namespace fusor::onnx
