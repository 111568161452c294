// One entry, and nothing else anywhere: what the tests of this folder hand to each stage of the compiler.
#include "ir/ops/families.h"
#include "ir/ops/op_builder.h"

namespace fusor::ir {

llvm::ArrayRef<OpDef> extraOps() {
  static const std::vector<OpDef> ops = {
      op("made_up")
          .summary("a * sin(b) where b > 0, else a, times strength")
          .operands({"a", "b"})
          .types(TypeClass::floats)
          .real("strength", 2.0)
          .range(0, 100)
          .formula(
              [](auto a, auto b, const OpSite &site) { return select(b > 0.0, a * sin(b), a) * site.real("strength"); })
          .gradient([](auto a, auto b, auto dy, const OpSite &site) {
            auto scaled = dy * site.real("strength");
            return std::array<Graph, 2>{select(b > 0.0, scaled * sin(b), scaled),
                                        select(b > 0.0, scaled * a * cos(b), 0.0)};
          }),
  };
  return ops;
}

} // namespace fusor::ir
