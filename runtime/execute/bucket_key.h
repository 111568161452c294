// The name of a bucket: which sizes a function was planned for.
#pragma once
#include "ir/types/dim.h"

namespace fusor::runtime {

/// "B=8 T=256 ": every symbol with its value, by name, so that equal values give equal keys.
std::string bucketKey(const ir::SymbolValues &symbols);

} // namespace fusor::runtime
