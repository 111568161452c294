#include "codegen/loop/index_text.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::codegen {

using namespace ir;

llvm::SmallVector<StrideGroup, 4> strideGroups(llvm::ArrayRef<Dim> extents, llvm::ArrayRef<Dim> strides) {
  llvm::SmallVector<StrideGroup, 4> groups;
  Dim inner = 1;
  for (unsigned i = extents.size(); i-- > 0;) {
    if (extents[i].is(1)) continue;
    if (!groups.empty() && strides[i] == groups.back().stride * groups.back().extent)
      groups.back().extent = groups.back().extent * extents[i];
    else
      groups.push_back({extents[i], inner, strides[i], false});
    inner = inner * extents[i];
  }
  if (!groups.empty()) groups.back().outermost = true;
  llvm::erase_if(groups, [](const StrideGroup &g) { return g.stride.is(0); });
  return groups;
}

void appendTerms(llvm::SmallVectorImpl<std::string> &terms, llvm::ArrayRef<Dim> extents, llvm::ArrayRef<Dim> strides,
                 llvm::StringRef index, KernelBuilder &k) {
  auto groups = strideGroups(extents, strides);
  for (const StrideGroup &group : llvm::reverse(groups)) {
    std::string term = index.str();
    if (!group.inner.is(1)) term += " / " + k.dim(group.inner);
    if (!group.outermost) term += " % " + k.dim(group.extent);
    if (!group.stride.is(1)) term += " * " + k.dim(group.stride);
    terms.push_back(std::move(term));
  }
}

std::string sumOf(llvm::ArrayRef<std::string> terms) { return terms.empty() ? "0" : llvm::join(terms, " + "); }

} // namespace fusor::codegen
