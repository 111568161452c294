// The verifier against one planted damage each. Every test starts from the same valid module.
#include "frontend/text/parser.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "ir/verify/verify.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::ir;

namespace {

constexpr const char *kValid = R"(module @m
dim B in 1..64
param @w : f32[8, 4]
param @b : f32[8]
state @s : f32[4]
const @c : f32[2] = [1.0, 2.0]
derived @w16 : bf16[8, 4] = cast @w {to = bf16}
derived @w32 : f32[8, 4] = cast @w16 {to = f32}

func @f(%x: f32[B, 4], %u: f32[4]) -> f32[B, 8] {
  %y = linear %x, @w, bias = @b
  %z = fusion @act(%y, @b) {
    %p = add %y, %b
    %g = gelu %p
    yield %g
  }
  %n = neg @s
  return %z, @s = %n
}
func @g() -> f32[4] {
  return @s
}
)";

class Verify : public testing::Test {
protected:
  Verify() {
    auto parsed = frontend::parseModule(kValid, "m.fir");
    if (!parsed) llvm::report_fatal_error(parsed.takeError());
    module = std::move(*parsed);
    f = module->function("f");
  }

  Op &op(llvm::StringRef name) {
    for (Op &op : f->block().ops())
      if (op.is(name)) return op;
    llvm::report_fatal_error("no such op");
  }
  Op &bodyOp(llvm::StringRef name) {
    for (Op &inner : op("fusion").body()->ops())
      if (inner.is(name)) return inner;
    llvm::report_fatal_error("no such op");
  }
  std::string problems() const {
    std::string text;
    for (const Problem &problem : findProblems(*module)) text += problem.str() + "\n";
    return text;
  }
  /// One of the problems is `expected`.
  void expect(llvm::StringRef expected) {
    EXPECT_NE(problems().find(expected.str()), std::string::npos) << "expected: " << expected.str() << "\nfound:\n"
                                                                  << problems();
  }

  std::unique_ptr<Module> module;
  Function *f;
};

} // namespace

TEST_F(Verify, ValidModule) {
  EXPECT_EQ(problems(), "");
  EXPECT_FALSE(bool(verify(*module)));
  auto copy = module->clone();
  EXPECT_TRUE(findProblems(*copy).empty());
}

TEST_F(Verify, SaysWhere) {
  op("neg").result().setType({DType::f32, {Dim(5)}});
  expect("m.fir:17:8: in func @f: 'neg' making %n: result 0 is f32[5], the op table gives f32[4]");
  EXPECT_NE(llvm::toString(verify(*module)).find("m.fir:17:8: in func @f"), std::string::npos);
}

// --- symbols and persistent values

TEST_F(Verify, UndeclaredSymbol) {
  op("linear").result().setType({DType::f32, {Dim::symbol("C"), Dim(8)}});
  expect("%y is f32[C, 8], and symbol 'C' is not declared");
}
TEST_F(Verify, UndeclaredSymbolOfPersistent) {
  module->persistent("s")->type = {DType::f32, {Dim::symbol("C")}};
  expect("@s is f32[C], and symbol 'C' is not declared");
}
TEST_F(Verify, SymbolName) {
  module->declareSymbol("a b", {1, 2});
  expect("symbol \"a b\" is not a name of letters, digits and _");
}
TEST_F(Verify, SymbolRange) {
  module->declareSymbol("C", {3, 2});
  expect("symbol 'C' has the empty or negative range 3..2");
}
TEST_F(Verify, PersistentName) {
  module->addPersistent({PersistentKind::param, "grad w", {}, {}, nullptr, "", {}, {}, {}});
  expect("a persistent value must not be called \"grad w\"");
}
TEST_F(Verify, PersistentRenamedInPlace) {
  module->persistent("s")->name = "w";
  expect("@w is not found under its name");
}
TEST_F(Verify, ConstSize) {
  module->persistent("c")->type.shape[0] = Dim(3);
  expect("const @c holds 8 bytes, f32[3] has 12");
}
TEST_F(Verify, ConstSymbolic) {
  module->persistent("c")->type.shape[0] = Dim::symbol("B");
  expect("const @c has dims that are no numbers: f32[B]");
}
TEST_F(Verify, DerivedOp) {
  module->persistent("w16")->deriveOp = "casts";
  expect("derived @w16: there is no op called 'casts'");
}
TEST_F(Verify, DerivedSource) {
  module->persistent("w16")->deriveFrom[0] = "v";
  expect("derived @w16: its source @v is not declared");
}
TEST_F(Verify, DerivedInvalid) {
  module->persistent("w16")->deriveFrom.clear();
  expect("derived @w16: 'cast' takes 1 operands, 0 are given");
}
TEST_F(Verify, DerivedType) {
  module->persistent("w16")->type.dtype = DType::f16;
  expect("derived @w16: 'cast' gives bf16[8, 4], declared is f16[8, 4]");
}
TEST_F(Verify, DerivedCycle) {
  module->persistent("w16")->deriveFrom[0] = "w32";
  expect("derived @w16 depends on itself through @w32");
}
TEST_F(Verify, DerivedWithoutValue) {
  module->persistent("w16")->deriveOp = "return";
  module->persistent("w16")->deriveAttrs = {};
  expect("derived @w16: 'return' gives no value");
}

// --- functions and blocks

TEST_F(Verify, FunctionNames) {
  module->function("g")->setName("f");
  expect("two functions are called @f");
  module->function("f")->setName("");
  expect("a function has no name");
}
TEST_F(Verify, NoReturn) {
  op("return").erase();
  expect("in func @f: the function must end with 'return'");
}
TEST_F(Verify, OpAfterReturn) {
  f->block().moveBefore(&op("neg"), nullptr);
  expect("'return' must be the last op of its block");
  expect("'return' uses %n, which is defined after it");
}
TEST_F(Verify, YieldInFunction) {
  f->block().insert(
      std::make_unique<Op>(opDef("yield"), llvm::ArrayRef<Value>(), llvm::ArrayRef<TensorType>(), Attrs(), Location()));
  expect("the function must end with 'return'");
}
TEST_F(Verify, UseBeforeDefinition) {
  f->block().moveBefore(&op("linear"), &op("neg"));
  expect("'fusion' making %z uses %y, which is defined after it");
}
TEST_F(Verify, ValueOfOtherFunction) {
  op("neg").setOperand(0, module->function("g")->read("w"));
  expect("'neg' making %n uses @w, which is read by another function");
  op("neg").setOperand(0, f->read("s")); // a module with such a use cannot be freed
}
TEST_F(Verify, ReadOfErasedPersistent) {
  module->erasePersistent("s");
  expect("@s is read and not declared");
  expect("'return' updates @s, which is not declared");
}
TEST_F(Verify, ReadTypeChanged) {
  module->persistent("s")->type.shape[0] = Dim(5);
  expect("@s is read as f32[4], declared is f32[5]");
}

// --- ops

TEST_F(Verify, MissingOperand) {
  op("linear").setOperand(1, Value());
  expect("'linear' making %y: 'linear' operand 1 is missing");
}
TEST_F(Verify, ResultCount) {
  op("neg").addResult({DType::f32, {}}, "extra");
  expect("'neg' making %n has 2 results, the op table gives 1");
}
TEST_F(Verify, AttributeInvalid) {
  const_cast<Attrs &>(bodyOp("gelu").attrs()).set("form", std::string("cosh"));
  expect("'gelu' making %g: 'gelu' attribute 'form' must be one of");
}
TEST_F(Verify, AttributeDefaultStored) {
  const_cast<Attrs &>(bodyOp("gelu").attrs()).set("form", *opDef("gelu").attr("form")->defaultValue);
  expect("'gelu' making %g stores attribute 'form', which equals its default");
}
TEST_F(Verify, BodyOfOtherOp) {
  op("neg").makeBody();
  expect("'neg' making %n has a body; only a fusion has one");
}
TEST_F(Verify, ResultDoesNotKnowItsOp) {
  op("neg").result().def()->index = 3;
  expect("'neg' making %n: its result 0 does not know its op");
}
TEST_F(Verify, ArgumentDoesNotKnowItsPlace) {
  f->block().argument(1).def()->index = 0;
  expect("argument %u does not know its place in its block");
}
TEST_F(Verify, UseListTooLong) {
  f->block().argument(1).def()->users.push_back(&op("neg"));
  expect("the use list of %u has 1 entries that are not the 0 uses of it");
  f->block().argument(1).def()->users.clear();
}
TEST_F(Verify, UseListTooShort) {
  auto users = std::exchange(op("linear").result().def()->users, {});
  expect("the use list of %y has 0 entries that are not the 1 uses of it");
  op("linear").result().def()->users = users;
}

// --- fusions

TEST_F(Verify, FusionOperandCount) {
  op("fusion").addOperand(f->block().argument(1));
  expect("'fusion' making %z has 3 operands, its body 2 arguments");
}
TEST_F(Verify, FusionOperandType) {
  op("fusion").setOperand(1, f->block().argument(1));
  expect("'fusion' making %z: argument 1 of its body is f32[8], the operand is f32[4]");
}
TEST_F(Verify, FusionResultCount) {
  op("fusion").addResult({DType::f32, {}}, "extra");
  expect("'fusion' making %z has 2 results, its body yields 1");
}
TEST_F(Verify, FusionResultType) {
  op("fusion").result().setType({DType::f32, {Dim(8)}});
  expect("'fusion' making %z: result 0 is f32[8], its body yields f32[B, 8]");
}
TEST_F(Verify, FusionWithoutBody) {
  auto bare =
      std::make_unique<Op>(opDef("fusion"), llvm::ArrayRef<Value>(), llvm::ArrayRef<TensorType>(), Attrs(), Location());
  f->block().insert(std::move(bare), &op("neg"));
  expect("'fusion' has no body");
}
TEST_F(Verify, BodySeesOutside) {
  bodyOp("add").setOperand(1, op("linear").result());
  expect("'add' making %p uses %y, which its body does not define: it sees only its arguments");
}
TEST_F(Verify, BodyReadsPersistent) {
  bodyOp("add").setOperand(1, f->read("b"));
  expect("'add' making %p uses @b, which the body of a fusion sees only as an argument");
}
TEST_F(Verify, BodyWithoutYield) {
  bodyOp("yield").erase();
  expect("the body of a fusion must end with 'yield'");
}

// --- return

TEST_F(Verify, UpdateType) {
  f->setReturns({{ReturnKind::update, "s", f->block().argument(0)}});
  expect("'return' updates @s, which is f32[4], with f32[B, 4]");
}
TEST_F(Verify, UpdateUndeclared) {
  f->setReturns({{ReturnKind::update, "t", f->block().argument(1)}});
  expect("'return' updates @t, which is not declared");
}
TEST_F(Verify, UpdateTwice) {
  f->setReturns({{ReturnKind::update, "s", f->block().argument(1)}, {ReturnKind::update, "s", f->block().argument(1)}});
  expect("'return' updates @s twice");
}
TEST_F(Verify, UpdateConst) {
  f->setReturns({{ReturnKind::update, "c", f->read("c")}});
  expect("'return' updates @c, which is a const");
}
TEST_F(Verify, GradientOfState) {
  f->setReturns({{ReturnKind::gradient, "s", f->read("s")}});
  expect("'return' gives the gradient of @s, which is a state; only a param has one");
}
TEST_F(Verify, GradientShape) {
  f->setReturns({{ReturnKind::gradient, "w", f->read("b")}});
  expect("'return' gives the gradient of @w, which is f32[8, 4], with f32[8]");
}
TEST_F(Verify, GradientUndeclared) {
  f->setReturns({{ReturnKind::gradient, "t", f->read("b")}});
  expect("'return' gives the gradient of @t, which is not declared");
}
TEST_F(Verify, GradientTwice) {
  f->setReturns({{ReturnKind::gradient, "b", f->read("b")}, {ReturnKind::gradient, "b", f->read("b")}});
  expect("'return' gives the gradient of @b twice");
}
TEST_F(Verify, ReturnTargets) {
  const_cast<Attrs &>(op("return").attrs()).set("targets", std::vector<std::string>{"s"});
  expect("'return' has 1 targets for 2 values");
}
