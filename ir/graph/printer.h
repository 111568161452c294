// IR to text. Module::str() prints everything; passes, kernel headers and diagnostics print parts.
//
// Rules of the text: one op a line, result types in a column, attributes equal to defaults left out, unnamed values
// numbered, equal names told apart by .1, .2. frontend/text reads all of it back.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseMap.h"

namespace fusor::ir {

/// How the values visible in one block are spelt. Naming a block walks it once: keep this while printing several of its
/// ops.
class ValueNames {
public:
  explicit ValueNames(const Block &block);
  /// "%h", "%0", "@fc1.bias"; "<missing>" for a null value, "%name?" for one of another block.
  std::string operator()(Value value) const;

private:
  llvm::DenseMap<const ValueDef *, std::string> names_;
};

/// "%s = add %h, %b : bf16[B, 4096]" with no line end; a fusion has its body on further lines, indented by `indent`
/// more than given.
std::string printOp(const Op &op, const ValueNames &names, unsigned indent = 0);
/// The same for a single op.
std::string printOp(const Op &op);
/// The ops of a block, one a line, result types aligned, each line behind `indent` spaces.
std::string printBlock(const Block &block, unsigned indent = 2);
/// "func @forward(%x: bf16[B, 256]) -> bf16[B, 256] {...}" and a line end.
std::string printFunction(const Function &function);
/// "param @w : f32[3072, 768] {init = normal(0.02)}" and a line end.
std::string printPersistent(const Persistent &persistent);

} // namespace fusor::ir
