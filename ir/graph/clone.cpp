#include "ir/graph/clone.h"
#include "ir/ops/op_def.h"

namespace fusor::ir {
namespace {

Value mapped(Value value, const ValueMap &map, Function *function) {
  if (!value) return value;
  auto it = map.find(value.def());
  if (it != map.end()) return it->second;
  return value.isPersistent() && function ? function->read(value.name()) : value;
}

} // namespace

Op *cloneInto(Block &block, const Op &op, ValueMap &map, Op *before) {
  llvm::SmallVector<Value, 4> operands;
  for (Value operand : op.operands()) operands.push_back(mapped(operand, map, block.function()));
  llvm::SmallVector<TensorType, 2> types;
  for (Value result : op.results()) types.push_back(result.type());
  // The body needs to know its function, so the op is placed before it gets one.
  Op *copy = block.insert(std::make_unique<Op>(op.def(), operands, types, op.attrs(), op.location()), before);
  for (unsigned i = 0; i < op.resultCount(); ++i) {
    copy->result(i).setName(op.result(i).name());
    map[op.result(i).def()] = copy->result(i);
  }
  if (op.body()) {
    Block &body = copy->makeBody();
    for (Value argument : op.body()->arguments())
      map[argument.def()] = body.addArgument(argument.type(), argument.name());
    cloneInto(body, *op.body(), map, CloneTerminator::yes);
  }
  return copy;
}

void cloneInto(Block &block, const Block &source, ValueMap &map, CloneTerminator terminator, Op *before) {
  for (const Op *op : source.opPointers()) // pointers: `source` may be `block` itself
    if (terminator == CloneTerminator::yes || !op->def().isTerminator) cloneInto(block, *op, map, before);
}

void cloneInto(Function &target, const Function &source, ValueMap &map) {
  for (Value argument : source.block().arguments())
    map[argument.def()] = target.block().addArgument(argument.type(), argument.name());
  for (Value read : source.reads()) map[read.def()] = target.read(read.name()); // the order of first read
  cloneInto(target.block(), source.block(), map, CloneTerminator::yes);
}

std::unique_ptr<Module> Module::clone() const {
  auto copy = std::make_unique<Module>(name_);
  copy->symbols_ = symbols_;
  for (const auto &persistent : persistents_)
    copy->addPersistent(*persistent); // the data of a const is shared, it never changes
  for (const auto &function : functions_) {
    ValueMap map;
    cloneInto(copy->addFunction(function->name()), *function, map);
  }
  return copy;
}

} // namespace fusor::ir
