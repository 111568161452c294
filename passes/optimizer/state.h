// States that a pass adds to a module.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::passes {

/// State `name` as `function` reads it; declared where the module does not have it yet.
ir::Value stateOf(ir::Function &function, const std::string &name, ir::TensorType type, ir::Initializer init = {});

} // namespace fusor::passes
