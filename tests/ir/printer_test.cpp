// How graphs are printed, and copied.
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "gtest/gtest.h"

using namespace fusor::ir;

namespace {

/// func @f(%x: f32[4], %y: f32[4]) with no ops yet.
struct OneFunction {
  Module module{"m"};
  Function &f = module.addFunction("f");
  Value x = f.block().addArgument({DType::f32, {Dim(4)}}, "x"), y = f.block().addArgument({DType::f32, {Dim(4)}}, "y");
  Builder b{f.block()};

  Value named(llvm::StringRef name, Value value) { return value.setName(name), value; }
  /// %z = fusion(%x, %h = %y) { %s = add %x, %h; yield %s }
  Op &addFusion() {
    Op &fusion = *f.block().insert(
        std::make_unique<Op>(opDef("fusion"), llvm::ArrayRef<Value>{x, y}, x.type(), Attrs(), Location{"t.cpp", 7, 0}));
    Block &body = fusion.makeBody();
    Value a = body.addArgument(x.type(), "x"), h = body.addArgument(y.type(), "h");
    Builder inner(body);
    inner.make("yield", {named("s", inner.op("add", {a, h}))});
    fusion.result().setName("z");
    return fusion;
  }
};

} // namespace

TEST(Printer, NamesAreMadeUnique) {
  Module module;
  Function &f = module.addFunction("f");
  Value x = f.block().addArgument({DType::f32, {Dim(4)}}, "x");
  Builder b(f.block());
  Value h = b.op("neg", {x}), h2 = b.op("neg", {h}), h3 = b.op("neg", {h2}), unnamed = b.op("neg", {h3});
  h.setName("x");
  h2.setName("x");
  h3.setName("x.1");
  f.setReturns({{ReturnKind::result, "", unnamed}});
  EXPECT_EQ(printFunction(f), "func @f(%x: f32[4]) -> f32[4] {\n"
                              "  %x.1 = neg %x     : f32[4]\n"
                              "  %x.2 = neg %x.1   : f32[4]\n"
                              "  %x.1.1 = neg %x.2 : f32[4]\n"
                              "  %0 = neg %x.1.1   : f32[4]\n"
                              "  return %0\n"
                              "}\n");
}

TEST(Printer, OneOp) {
  OneFunction m;
  Value s = m.named("s", m.b.op("add", {m.x, m.y}));
  EXPECT_EQ(printOp(*s.op()), "%s = add %x, %y : f32[4]");
  Op &fusion = m.addFusion();
  EXPECT_EQ(printOp(fusion), "%z = fusion(%x, %h = %y) : f32[4] {\n  %s = add %x, %h : f32[4]\n  yield %s\n}");
  EXPECT_EQ(printOp(fusion, ValueNames(m.f.block()), 2),
            "%z = fusion(%x, %h = %y) : f32[4] {\n    %s = add %x, %h : f32[4]\n    yield %s\n  }");
  Op detached(opDef("neg"), {m.x}, m.x.type(), {}, {});
  EXPECT_EQ(printOp(detached), "%? = neg %x? : f32[4]"); // no block, so no names: a ? says so
}

TEST(Printer, DamagedIrIsPrinted) { // what a bug report shows
  OneFunction m;
  Value s = m.b.op("add", {m.x, m.y});
  s.op()->setOperand(1, Value());
  EXPECT_EQ(printFunction(m.f), "func @f(%x: f32[4], %y: f32[4]) {\n  %0 = add %x, <missing> : f32[4]\n}\n");
}

TEST(Printer, LongOpsDoNotPushTheTypes) {
  OneFunction m;
  m.named(std::string(120, 'l'), m.b.op("neg", {m.x}));
  m.named("s", m.b.op("neg", {m.x}));
  m.named("ss", m.b.op("neg", {m.x}));
  EXPECT_NE(printBlock(m.f.block()).find("  %s = neg %x  : f32[4]\n  %ss = neg %x : f32[4]\n"), std::string::npos)
      << printBlock(m.f.block());
}

TEST(Printer, PersistentValues) {
  EXPECT_EQ(printPersistent({PersistentKind::param,
                             "w.x",
                             {DType::bf16, {Dim(2)}},
                             {Initializer::Kind::normal, 0.02},
                             nullptr,
                             "",
                             {},
                             {},
                             {}}),
            "param @w.x : bf16[2] {init = normal(0.02)}\n");
  EXPECT_EQ(printPersistent({PersistentKind::derived,
                             "0",
                             {DType::bf16, {}},
                             {},
                             nullptr,
                             "cast",
                             {"w", "a b"},
                             {{"to", DType::bf16}},
                             {}}),
            "derived @\"0\" : bf16[] = cast @w, @\"a b\" {to = bf16}\n");
  EXPECT_EQ(printPersistent({PersistentKind::constant, "c", {DType::bf16, {}}, {}, nullptr, "", {}, {}, {}}),
            "const @c : bf16[] = hex \"\"\n");
}

TEST(Clone, OpsWithBodies) {
  OneFunction m;
  Op &fusion = m.addFusion();
  Function &g = m.module.addFunction("g");
  ValueMap map;
  map[m.x.def()] = g.block().addArgument(m.x.type(), "p");
  map[m.y.def()] = map[m.x.def()];
  Op *copy = cloneInto(g.block(), fusion, map);
  EXPECT_EQ(printBlock(g.block()),
            "  %z = fusion(%x = %p, %h = %p) : f32[4] {\n    %s = add %x, %h : f32[4]\n    yield %s\n  }\n");
  EXPECT_EQ(map[fusion.result().def()], copy->result());
  EXPECT_EQ(copy->location().str(), "t.cpp:7");
  EXPECT_EQ(copy->body()->function(), &g);
  EXPECT_EQ(g.block().argument(0).users().size(), 2u);
  EXPECT_EQ(m.x.users().size(), 1u); // the original is as it was
}

TEST(Clone, BlockIntoItself) {
  OneFunction m;
  Value s = m.named("s", m.b.op("add", {m.x, m.y}));
  m.f.setReturns({{ReturnKind::result, "", m.named("t", m.b.op("neg", {s}))}});
  ValueMap map;
  map[m.y.def()] = m.x;
  cloneInto(m.f.block(), m.f.block(), map, CloneTerminator::no, m.f.block().terminator());
  EXPECT_EQ(printBlock(m.f.block()), "  %s = add %x, %y   : f32[4]\n  %t = neg %s       : f32[4]\n"
                                     "  %s.1 = add %x, %x : f32[4]\n  %t.1 = neg %s.1   : f32[4]\n  return %t\n");
}

TEST(Clone, ReadsByNameInAnotherModule) {
  Module from, to;
  for (Module *module : {&from, &to})
    module->addPersistent({PersistentKind::param, "w", {DType::f32, {Dim(4)}}, {}, nullptr, "", {}, {}, {}});
  Function &f = from.addFunction("f"), &g = to.addFunction("g");
  Op *op = Builder(f.block()).make("neg", {f.read("w")});
  ValueMap map;
  Op *copy = cloneInto(g.block(), *op, map);
  EXPECT_EQ(copy->operand(0u), g.read("w"));
  EXPECT_NE(copy->operand(0u), f.read("w"));
}

TEST(Clone, ModulesAreIndependent) {
  OneFunction m;
  m.module.declareSymbol("B", {1, 4});
  m.module.addPersistent({PersistentKind::param, "w", {DType::f32, {Dim(4)}}, {}, nullptr, "", {}, {}, {}});
  m.f.setReturns({{ReturnKind::gradient, "w", m.addFusion().result()}, {ReturnKind::update, "w", m.f.read("w")}});
  std::string text = m.module.str();
  auto copy = m.module.clone();
  EXPECT_EQ(copy->str(), text);
  copy->function("f")->block().terminator()->erase();
  copy->declareSymbol("C", {1, 2});
  copy->persistent("w")->type.shape[0] = Dim(5);
  EXPECT_EQ(m.module.str(), text);
}
