// Which keys a query sees, read from what is done to the scores.
#pragma once
#include "passes/lift/family.h"

namespace fusor::passes {

/// The masks of one attention, as they are met between the softmax and the product of q and k.
struct Masks {
  bool causal = false;
  ir::Value hidden; // i1, true where a key is not seen, one for each batch and key; or null
};

/// Adds to `masks` what `scores` + `mask` hides. "" or why attention cannot do that. tq and tk: queries and keys.
std::string addMask(Masks &masks, ir::Value mask, const ir::Dim &tq, const ir::Dim &tk);
/// The same for select(condition, fill, scores), or with `seen` select(condition, scores, fill).
std::string selectMask(Masks &masks, ir::Value condition, ir::Value fill, bool seen, const ir::Dim &tq,
                       const ir::Dim &tk);
/// The key mask [B, Tk] of `hidden`, true where a key is seen.
ir::Value keyMask(ir::Builder &b, ir::Value hidden, const ir::Dim &batch, const ir::Dim &tk);

} // namespace fusor::passes
