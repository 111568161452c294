// An op or a kernel that a check found, as files that `fusor run` repeats.
//
//   DIR/non_finite.fir                     fusor run DIR/non_finite.fir --inputs DIR
//   DIR/input_0_x.npy
#pragma once
#include "runtime/execute/non_finite.h"
#include "llvm/Support/Error.h"

namespace fusor::frontend {

/// Where a check writes: beside the dump, "fusor-check" without one.
std::string checkFolder(llvm::StringRef dumpFolder);

/// Writes them, and returns what to tell the user. Errors: FileError (write).
llvm::Expected<std::string> writeNonFinite(const runtime::NonFiniteOp &found, llvm::StringRef folder);

} // namespace fusor::frontend
