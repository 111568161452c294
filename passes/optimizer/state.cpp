#include "passes/optimizer/state.h"

namespace fusor::passes {

ir::Value stateOf(ir::Function &function, const std::string &name, ir::TensorType type, ir::Initializer init) {
  ir::Module &module = function.module();
  if (!module.persistent(name))
    module.addPersistent({ir::PersistentKind::state, name, std::move(type), init, nullptr, {}, {}, {}, {}});
  return function.read(name);
}

} // namespace fusor::passes
