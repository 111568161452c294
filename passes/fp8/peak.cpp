#include "passes/fp8/peak.h"
#include "codegen/plan/accept.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace fusor::passes {

OverwritePairs overwritableBy(const ir::Op &fusion) {
  OverwritePairs pairs;
  auto flat = codegen::flatten(fusion);
  if (!flat) return llvm::consumeError(flat.takeError()), pairs;
  for (const codegen::Overwrite &pair : codegen::overwritable(*flat)) pairs.push_back({pair.output, pair.input});
  return pairs;
}

llvm::Expected<MemoryPlan> planInPlace(const ir::Function &function, const ir::SymbolValues &symbols) {
  llvm::DenseMap<const ir::Op *, OverwritePairs> known;
  auto mayOverwrite = [&](const ir::Op &op, unsigned result, unsigned operand) {
    if (!op.is("fusion")) return false;
    auto [it, isNew] = known.try_emplace(&op);
    if (isNew) it->second = overwritableBy(op);
    return llvm::is_contained(it->second, std::pair(result, operand));
  };
  MemoryOptions options;
  options.mayOverwrite = mayOverwrite;
  return planMemory(function, symbols, options);
}

unsigned peakOf(const MemoryPlan &plan, size_t ops) {
  std::vector<int64_t> alive(ops);
  for (const PlannedBuffer &buffer : plan.buffers)
    for (int i = std::max(buffer.first, 0);
         buffer.place.kind == PlaceKind::arena && i <= std::min(buffer.last, static_cast<int>(ops) - 1); ++i)
      alive[i] += buffer.bytes;
  return std::max_element(alive.begin(), alive.end()) - alive.begin();
}

} // namespace fusor::passes
