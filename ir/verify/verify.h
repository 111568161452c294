// Whether a module is what the rest of the compiler may take for granted. The pass runner calls it before and after
// each pass, the parser after reading.
//
//   module      names unique and not empty; symbols declared with a range; types use declared symbols only
//   persistent  const: as many bytes as its type; derived: an op over persistent values that gives its type, no cycles
//   function    one terminator, last: `return`; updates of param, state or derived, of the same type, once each;
//   gradients of params op          operands defined before it in its block or read from the module; types and
//   attributes as the op table infers them fusion      a body that sees only its arguments, one for each operand and of
//   its type; results are what the body yields use lists   name exactly the ops that use the value
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/Error.h"

namespace fusor::ir {

struct Problem {
  Location location;    // of the op or persistent value; unknown where it has none
  std::string function; // name, or empty for what is wrong outside functions
  std::string message;  // "'add' making %s: ..."
  /// "model.fir:4:8: in func @forward: 'add' making %s: ..."
  std::string str() const;
};

/// Everything that is wrong, in the order of the text.
std::vector<Problem> findProblems(const Module &module);

/// The same as an Error, one line a problem.
llvm::Error verify(const Module &module);

} // namespace fusor::ir
