// The op table as a page: what `fusor ops` prints. Everything comes from the entries.
#pragma once
#include <string>

namespace fusor::ir {

/// "# The op table", a section a family, a table row an op: operands, results, attributes, meaning, how it is defined.
std::string opsMarkdown();
/// The same for a terminal: "gelu  x {form = tanh}  Gaussian error linear unit", a block a family.
std::string opsText();

} // namespace fusor::ir
