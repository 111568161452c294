// Which keys a query sees, read from what is done to the scores.
#pragma once
#include "passes/lift/family.h"

namespace fusor::passes {

/// The masks of one attention, as they are met between the softmax and the product of q and k.
struct Masks {
  bool causal = false;
  ir::Value keys;    // i1, one for each batch and key; or null
  bool seen = false; // what true says of a key: it is seen, or it is hidden
};

/// Adds to `masks` what `scores` + `mask` hides. "" or why attention cannot do that. tq and tk: queries and keys.
std::string addMask(Masks &masks, ir::Value mask, const ir::Dim &tq, const ir::Dim &tk);
/// The same for select(condition, fill, scores), or with `seen` select(condition, scores, fill).
std::string selectMask(Masks &masks, ir::Value condition, ir::Value fill, bool seen, const ir::Dim &tq,
                       const ir::Dim &tk);
/// As attention takes it: [B, Tk], true where a key is seen; null where there is no key mask.
ir::Value keyMask(ir::Builder &b, const Masks &masks, const ir::Dim &batch, const ir::Dim &tk);

} // namespace fusor::passes
