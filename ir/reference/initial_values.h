// What params and states start with under a seed: a function of (seed, name, element) alone, so the same on every
// device and for any number of threads.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::ir {

/// Elements [first, first + count) of the initial content of `persistent`, stored in its dtype from `to` on. Ranges may
/// be filled in any order and at once.
void storeInitialValues(const Persistent &persistent, uint64_t seed, int64_t first, int64_t count, void *to);

/// The same as numbers: all `elements` of it, rounded to its dtype.
std::vector<double> initialValues(const Persistent &persistent, uint64_t seed, int64_t elements);

} // namespace fusor::ir
