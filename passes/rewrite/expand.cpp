#include "passes/rewrite/expand.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"

namespace fusor::passes {

void expandOp(ir::Op &op) {
  if (!op.def().expansion) FUSOR_BUG("op '{0}' has no expansion", op.name());
  ir::Builder builder(op);
  builder.setLocation(op.location());
  auto results = op.def().expansion(builder, op.site());
  for (unsigned i = 0; i < op.resultCount(); ++i) {
    if (results[i].op() && results[i].name().empty()) results[i].setName(op.result(i).name());
    op.result(i).replaceAllUsesWith(results[i]);
  }
  op.erase();
}

} // namespace fusor::passes
