// Which layer of a model a value belongs to, by its name: for people who look at one.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace fusor::ir {

/// "blocks.0" of "d.blocks.0.qkv" and of "new.adamw.m.blocks.0.qkv.weight", "encoder.layer.3" of
/// "encoder.layer.3.attention": up to the first number that stands between two other parts, without what passes put in
/// front; empty for a name without one.
llvm::StringRef layerOfName(llvm::StringRef name);

} // namespace fusor::ir
