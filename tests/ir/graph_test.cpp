// Use lists, replacing, erasing and destruction. Destruction order is what AddressSanitizer checks here.
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/ops/op_def.h"
#include "gtest/gtest.h"

using namespace fusor::ir;

namespace {

struct Graphs : testing::Test {
  Module module{"m"};
  Function &function = module.addFunction("f");
  Block &block = function.block();
  Value x = block.addArgument({DType::f32, {4}}, "x"), y = block.addArgument({DType::f32, {4}}, "y");
  Builder b{block};
};

TEST_F(Graphs, EachUseIsOneEntry) {
  Value square = b.op("mul", {x, x});
  Value sum = b.op("add", {square, y});
  EXPECT_EQ(x.users().size(), 2u);
  EXPECT_EQ(y.users().size(), 1u);
  EXPECT_TRUE(square.hasOneUse());
  EXPECT_TRUE(sum.unused());
  EXPECT_EQ(square.users()[0], sum.op());
  EXPECT_EQ(square.op()->block(), &block);
  EXPECT_EQ(square.op()->function(), &function);
}

TEST_F(Graphs, ReplaceAllUsesReachesEveryUseOfEveryUser) {
  Value square = b.op("mul", {x, x}), sum = b.op("add", {x, y});
  x.replaceAllUsesWith(y);
  EXPECT_TRUE(x.unused());
  EXPECT_EQ(y.users().size(), 4u);
  for (Value v : {square, sum})
    for (Value operand : v.op()->operands()) EXPECT_EQ(operand, y);
  y.replaceAllUsesWith(y);
  EXPECT_EQ(y.users().size(), 4u);
}

TEST_F(Graphs, SetAddAndEraseOperandsKeepTheUseLists) {
  Op *op = b.make("concat", {x, y, x});
  op->setOperand(0, y);
  EXPECT_EQ(x.users().size(), 1u);
  EXPECT_EQ(y.users().size(), 2u);
  op->addOperand(x);
  EXPECT_EQ(x.users().size(), 2u);
  op->eraseOperand(1);
  EXPECT_EQ(y.users().size(), 1u);
  EXPECT_EQ(op->operands().size(), 3u);
  op->dropOperands();
  EXPECT_TRUE(x.unused() && y.unused());
}

TEST_F(Graphs, ErasingAnOpFreesItsOperands) {
  Op *op = b.make("add", {x, y});
  op->erase();
  EXPECT_TRUE(x.unused() && y.unused());
  EXPECT_TRUE(block.ops().empty());
}

TEST_F(Graphs, ErasingAnOpThatIsUsedIsABug) {
  Value sum = b.op("add", {x, y});
  b.op("neg", {sum});
  EXPECT_EXIT(sum.op()->erase(), testing::ExitedWithCode(70), "erasing 'add' whose results are still used");
}

TEST_F(Graphs, OptionalOperandsHaveASlot) {
  Op *op = b.make("layer_norm", {x, Value(), y});
  EXPECT_EQ(op->operands().size(), 3u);
  EXPECT_FALSE(op->operand("weight"));
  EXPECT_EQ(op->operand("bias"), y);
  EXPECT_EQ(b.make("layer_norm", {x, Value(), Value()})->operands().size(), 1u) << "absent ones at the end are dropped";
}

TEST_F(Graphs, BuilderInsertsBeforeItsOpOrTheTerminator) {
  Value last = b.op("neg", {x});
  function.setReturns({{ReturnKind::result, "", last}});
  Builder end(block), before(*last.op());
  Value late = end.op("abs", {x});
  before.op("exp", {x});
  std::string order;
  for (const Op &op : block.ops()) order += op.name().str() + " ";
  EXPECT_EQ(order, "exp neg abs return ");
  EXPECT_EQ(block.terminator()->name(), "return");
  block.moveBefore(late.op(), last.op());
  order.clear();
  for (Op *op : block.opPointers()) order += op->name().str() + " ";
  EXPECT_EQ(order, "exp abs neg return ");
}

TEST_F(Graphs, AttributesEqualToTheDefaultAreNotStored) {
  Op *op = b.make("gelu", {x}, {{"form", std::string("tanh")}});
  EXPECT_TRUE(op->attrs().empty());
  EXPECT_EQ(op->attr<std::string>("form"), "tanh");
  op->setAttr("form", std::string("erf"));
  EXPECT_EQ(op->attrs().entries().size(), 1u);
  op->setAttr("form", std::string("tanh"));
  EXPECT_TRUE(op->attrs().empty());
  EXPECT_EXIT(op->setAttr("shape", Shape{}), testing::ExitedWithCode(70), "op 'gelu' has no attribute called 'shape'");
  EXPECT_EXIT(op->operand("dy"), testing::ExitedWithCode(70), "op 'gelu' has no operand called 'dy'");
}

TEST_F(Graphs, ReturnsRoundTrip) {
  module.addPersistent({.kind = PersistentKind::param, .name = "w", .type = {DType::f32, {4}}});
  Value w = function.read("w");
  EXPECT_EQ(function.read("w"), w) << "one value a function";
  EXPECT_TRUE(w.isPersistent());
  Value next = b.op("add", {w, x});
  function.setReturns({{ReturnKind::result, "", x}, {ReturnKind::update, "w", next}, {ReturnKind::gradient, "w", y}});
  auto returns = function.returns();
  ASSERT_EQ(returns.size(), 3u);
  EXPECT_EQ(returns[0].kind, ReturnKind::result);
  EXPECT_EQ(returns[1].kind, ReturnKind::update);
  EXPECT_EQ(returns[1].name, "w");
  EXPECT_EQ(returns[1].value, next);
  EXPECT_EQ(returns[2].kind, ReturnKind::gradient);
  EXPECT_EQ(returns[2].name, "w");
  function.setReturns({{ReturnKind::result, "", next}});
  EXPECT_EQ(function.returns().size(), 1u);
  EXPECT_TRUE(y.unused());
  EXPECT_TRUE(block.terminator()->attrs().empty());
}

TEST_F(Graphs, ReadingAnUndeclaredPersistentValueIsABug) {
  EXPECT_EXIT(function.read("nope"), testing::ExitedWithCode(70), "reads @nope, which the module does not declare");
}

TEST_F(Graphs, NamesAreUniqueInAModule) {
  module.addPersistent({.kind = PersistentKind::state, .name = "s", .type = {}});
  EXPECT_EXIT(module.addPersistent({.kind = PersistentKind::param, .name = "s", .type = {}}),
              testing::ExitedWithCode(70), "persistent value @s is declared twice");
  EXPECT_EXIT(module.addFunction("f"), testing::ExitedWithCode(70), "function @f is declared twice");
  module.erasePersistent("s");
  EXPECT_EQ(module.persistent("s"), nullptr);
  module.addPersistent({.kind = PersistentKind::param, .name = "s", .type = {}});
  EXPECT_EQ(module.persistent("s")->kind, PersistentKind::param);
}

TEST_F(Graphs, ResultsAndArgumentsRenumber) {
  Op *op = b.make("split", {x}, {{"sizes", Shape{1, 2, 1}}});
  op->eraseResult(0);
  EXPECT_EQ(op->resultCount(), 2u);
  EXPECT_EQ(op->result(1).index(), 1u);
  EXPECT_EQ(op->result(0).type(), (TensorType{DType::f32, {2}}));
  op->erase();
  block.eraseArgument(0);
  EXPECT_EQ(block.argumentCount(), 1u);
  EXPECT_EQ(block.argument(0), y);
  EXPECT_EQ(y.index(), 0u);
}

// A fusion with a body, values used across ops, a return, persistent reads: everything that points at something else.
std::unique_ptr<Module> fused() {
  auto module = std::make_unique<Module>("fused");
  module->addPersistent({.kind = PersistentKind::param, .name = "w", .type = {DType::f32, {4}}});
  Function &f = module->addFunction("f");
  Value x = f.block().addArgument({DType::f32, {4}}, "x"), w = f.read("w");
  Op *fusion = f.block().insert(std::make_unique<Op>(opDef("fusion"), llvm::ArrayRef<Value>{x, w},
                                                     llvm::ArrayRef<TensorType>{x.type()}, Attrs(), Location()));
  Block &body = fusion->makeBody();
  Value a = body.addArgument(x.type(), "x"), c = body.addArgument(w.type(), "w");
  Builder inner(body);
  Value sum = inner.op("add", {a, c});
  inner.make("yield", {inner.op("mul", {sum, sum})});
  f.setReturns({{ReturnKind::result, "", fusion->result()}, {ReturnKind::update, "w", w}});
  return module;
}

TEST(GraphDestruction, ModulesWithBodiesAndCyclesOfUsesAreFreed) {
  auto module = fused();
  module->eraseFunction("f");
  EXPECT_TRUE(module->functions().empty());
  fused().reset();
}

TEST(Clone, CopiesBodiesNamesAndReads) {
  auto module = fused();
  std::string text = module->str();
  auto copy = module->clone();
  EXPECT_EQ(copy->str(), text);
  Op *fusion = &copy->function("f")->block().ops().front();
  EXPECT_EQ(fusion->body()->parent(), fusion);
  EXPECT_EQ(fusion->body()->function(), copy->function("f"));
  EXPECT_EQ(fusion->body()->ops().front().function(), copy->function("f"));
  module.reset(); // nothing of the copy points into the original
  EXPECT_EQ(copy->str(), text);
}

} // namespace
