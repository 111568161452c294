#include "ir/ops/op_builder.h"

namespace fusor::ir {

OpEntry &&OpEntry::operands(std::initializer_list<const char *> specs) {
  for (llvm::StringRef spec : specs) {
    OperandSpec operand;
    operand.variadic = spec.consume_back("...");
    operand.optional = spec.consume_back("?");
    operand.name = spec.str();
    def_.operands.push_back(std::move(operand));
  }
  return std::move(*this);
}

OpEntry &&OpEntry::word(const char *name, std::initializer_list<const char *> choices) {
  AttrSpec spec{name, AttrKind::word, AttrValue(std::string(*choices.begin())), false, {}, {}};
  spec.choices.assign(choices.begin(), choices.end());
  return attr(std::move(spec));
}

OpEntry &&OpEntry::zeroGradient() {
  def_.gradientIsZeroAlmostEverywhere = true;
  def_.gradient = [](const GradientSite &site) { return llvm::SmallVector<Value, 4>(site.op.operands().size()); };
  return std::move(*this);
}

llvm::Expected<unsigned> checkedAxis(const OpSite &site, const TensorType &x, llvm::StringRef attr) {
  int64_t axis = site.integer(attr), rank = x.rank();
  if (rank == 0) return opError("needs at least one dim, is given {0}", x.str());
  if (axis < -rank || axis >= rank) return opError("{0} must be in {1}..{2}, is {3}", attr, -rank, rank - 1, axis);
  return site.axis(attr, rank);
}

} // namespace fusor::ir
