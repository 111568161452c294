// IR text to a Module: the reverse of Module::str().
#pragma once
#include "frontend/text/diagnostic.h"
#include "ir/graph/graph.h"

namespace fusor::frontend {

/// Reads and verifies a module. The Error is a DiagnosticError with everything found (up to 20), for any bytes
/// whatever. Ops and persistent values get the location `fileName`:line:column.
llvm::Expected<std::unique_ptr<ir::Module>> parseModule(llvm::StringRef text, llvm::StringRef fileName);

} // namespace fusor::frontend
