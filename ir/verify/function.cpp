// Functions: blocks, ops, fusions, use lists.
#include "ir/graph/builder.h"
#include "ir/graph/names.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "ir/verify/checks.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

class FunctionVerifier {
public:
  FunctionVerifier(const Function &function, Problems &problems) : function_(function), problems_(problems) {}

  void run() {
    llvm::DenseSet<const ValueDef *> visible;
    for (Value read : function_.reads()) visible.insert(read.def());
    verifyBlock(function_.block(), visible, nullptr);
    for (Value read : function_.reads()) verifyRead(read);
  }

private:
  /// `visible`: what ops of the block may use besides its own values.
  void verifyBlock(const Block &block, llvm::DenseSet<const ValueDef *> &visible, const Op *fusion) {
    llvm::StringRef terminator = fusion ? "yield" : "return";
    for (unsigned i = 0; i < block.argumentCount(); ++i) {
      Value argument = block.argument(i);
      visible.insert(argument.def());
      verifyValue(argument, fusion ? fusion->location() : Location());
      if (argument.index() != i || argument.def()->block != &block || !argument.isArgument())
        problems_.add({}, "argument {0} does not know its place in its block", spell(argument));
    }
    if (block.ops().empty() || block.ops().back().name() != terminator)
      problems_.add(block.ops().empty() ? Location() : block.ops().back().location(), "{0} must end with '{1}'",
                    fusion ? "the body of a fusion" : "the function", terminator);
    for (const Op &op : block.ops()) {
      verifyOp(op, block, visible);
      for (Value result : op.results()) visible.insert(result.def());
    }
    for (Value argument : block.arguments()) verifyUses(argument, {});
    for (const Op &op : block.ops())
      for (Value result : op.results()) verifyUses(result, op.location());
  }

  void verifyOp(const Op &op, const Block &block, const llvm::DenseSet<const ValueDef *> &visible) {
    if (op.block() != &block) problems_.add(op.location(), "{0} does not know its block", describe(op));
    if (op.def().isTerminator && &op != &block.ops().back())
      problems_.add(op.location(), "{0} must be the last op of its block", describe(op));
    bool operandsKnown = true;
    for (Value operand : op.operands()) {
      if (!operand) continue; // inferTypes() says which may be absent
      uses_[operand.def()].push_back(&op);
      if (visible.count(operand.def())) continue;
      operandsKnown = false;
      problems_.add(op.location(), "{0} uses {1}, which {2}", describe(op), spell(operand),
                    whyInvisible(operand, block));
    }
    for (unsigned i = 0; i < op.resultCount(); ++i) {
      Value result = op.result(i);
      verifyValue(result, op.location());
      if (result.op() != &op || result.index() != i)
        problems_.add(op.location(), "{0}: its result {1} does not know its op", describe(op), i);
    }
    if (operandsKnown) verifyTypes(op);
    if (op.is("fusion"))
      verifyFusion(op);
    else if (op.body())
      problems_.add(op.location(), "{0} has a body; only a fusion has one", describe(op));
    if (op.is("return")) verifyReturn(function_, op, problems_);
  }

  void verifyTypes(const Op &op) {
    auto inferred = inferTypes(op.site());
    if (!inferred) return problems_.add(op.location(), "{0}: {1}", describe(op), llvm::toString(inferred.takeError()));
    if (op.is("fusion")) return; // its results are those its body yields
    if (inferred->size() != op.resultCount())
      return problems_.add(op.location(), "{0} has {1} results, the op table gives {2}", describe(op), op.resultCount(),
                           inferred->size());
    for (unsigned i = 0; i < inferred->size(); ++i)
      if ((*inferred)[i] != op.result(i).type())
        problems_.add(op.location(), "{0}: result {1} is {2}, the op table gives {3}", describe(op), i,
                      op.result(i).type().str(), (*inferred)[i].str());
    for (const Attrs::Entry &entry : op.attrs().entries()) {
      const AttrSpec *spec = op.def().attr(entry.name);
      if (spec && spec->defaultValue && *spec->defaultValue == entry.value)
        problems_.add(op.location(), "{0} stores attribute '{1}', which equals its default", describe(op), entry.name);
    }
  }

  void verifyFusion(const Op &op) {
    const Block *body = op.body();
    if (!body) return problems_.add(op.location(), "{0} has no body", describe(op));
    if (body->parent() != &op || body->function() != &function_)
      problems_.add(op.location(), "{0}: its body does not know its op", describe(op));
    if (body->argumentCount() != op.operands().size())
      problems_.add(op.location(), "{0} has {1} operands, its body {2} arguments", describe(op), op.operands().size(),
                    body->argumentCount());
    for (unsigned i = 0; i < std::min<size_t>(body->argumentCount(), op.operands().size()); ++i)
      if (op.operand(i) && body->argument(i).type() != op.operand(i).type())
        problems_.add(op.location(), "{0}: argument {1} of its body is {2}, the operand is {3}", describe(op), i,
                      body->argument(i).type().str(), op.operand(i).type().str());
    llvm::DenseSet<const ValueDef *> visible;
    verifyBlock(*body, visible, &op);
    const Op *yield = body->terminator();
    if (!yield) return;
    if (yield->operands().size() != op.resultCount())
      return problems_.add(op.location(), "{0} has {1} results, its body yields {2}", describe(op), op.resultCount(),
                           yield->operands().size());
    for (unsigned i = 0; i < op.resultCount(); ++i)
      if (yield->operand(i) && yield->operand(i).type() != op.result(i).type())
        problems_.add(op.location(), "{0}: result {1} is {2}, its body yields {3}", describe(op), i,
                      op.result(i).type().str(), yield->operand(i).type().str());
  }

  void verifyRead(Value read) {
    if (read.unused() && uses_[read.def()].empty()) return; // may be left over from what a pass removed
    const Persistent *persistent = function_.module().persistent(read.name());
    if (!persistent)
      problems_.add({}, "{0} is read and not declared", spell(read));
    else if (persistent->type != read.type())
      problems_.add({}, "{0} is read as {1}, declared is {2}", spell(read), read.type().str(), persistent->type.str());
    verifyUses(read, {});
  }

  void verifyValue(Value value, const Location &location) {
    verifySymbols(
        function_.module(), value.type(), [&] { return spell(value); }, location, problems_);
  }

  void verifyUses(Value value, const Location &location) {
    // Compared as pointers: what a broken list names may not exist any more.
    llvm::SmallVector<const Op *, 4> listed(value.users().begin(), value.users().end()), found(uses_[value.def()]);
    llvm::sort(listed);
    llvm::sort(found);
    if (listed != found)
      problems_.add(location, "the use list of {0} has {1} entries that are not the {2} uses of it", spell(value),
                    listed.size(), found.size());
  }

  // "'add' making %s"
  std::string describe(const Op &op) {
    std::string text = "'" + op.name().str() + "'";
    return op.resultCount() ? text + " making " + spell(op.result(0)) : text;
  }

  std::string spell(Value value) {
    if (value.isPersistent()) return spelled('@', value.name());
    const Block *block = value.op() ? value.op()->block() : value.def()->block;
    return block ? ValueNames(*block)(value) : spelled('%', value.name()); // only for messages: naming a block is work
  }

  std::string whyInvisible(Value value, const Block &block) {
    if (value.isPersistent())
      return block.parent() ? "the body of a fusion sees only as an argument" : "is read by another function";
    if (value.op() && value.op()->block() == &block) return "is defined after it";
    return block.parent() ? "its body does not define: it sees only its arguments" : "is of another block";
  }

  const Function &function_;
  Problems &problems_;
  llvm::DenseMap<const ValueDef *, llvm::SmallVector<const Op *, 4>> uses_; // as the ops' operands have them
};

} // namespace

void verifyFunction(const Function &function, Problems &problems) {
  problems.function = function.name().str();
  FunctionVerifier(function, problems).run();
  problems.function.clear();
}

} // namespace fusor::ir
