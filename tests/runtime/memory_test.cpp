// The memory plan: nothing alive is overwritten, views and in-place results share, updates land where they should.
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/memory/memory_plan.h"
#include "program_harness.h"
#include <map>
#include <random>

namespace {
using namespace fusor;
using namespace fusor::ir;
using namespace fusor::passes;

// Independently of the planner: walks the function and keeps, for each byte range, which value it holds.
void expectSound(const Function &function, const MemoryPlan &plan, const SymbolValues &symbols,
                 const MemoryOptions &options) {
  std::map<std::string, const ValueDef *> holder; // place -> the root value whose content is there
  llvm::DenseMap<const ValueDef *, const ValueDef *> root;
  auto rootOf = [&](Value v) { return root.count(v.def()) ? root[v.def()] : v.def(); };
  struct Held {
    int64_t begin, end;
    const ValueDef *value;
  };
  std::vector<Held> arena;
  std::map<std::string, const ValueDef *> elsewhere;
  auto write = [&](Value v) {
    const PlannedBuffer &b = plan.buffer(v);
    if (b.place.kind == PlaceKind::arena) {
      int64_t bytes = *storageBytes(v.type(), symbols), begin = b.place.offset, end = begin + bytes;
      ASSERT_LE(end, plan.arenaBytes);
      ASSERT_EQ(begin % options.alignment, 0);
      llvm::erase_if(arena, [&](const Held &h) { return h.begin < end && begin < h.end; });
      arena.push_back({begin, end, v.def()});
    } else {
      elsewhere[name(b.place.kind).str() + std::to_string(b.place.index) + b.place.name +
                std::to_string(b.place.offset)] = v.def();
    }
  };
  auto expectHeld = [&](Value v, const std::string &by) {
    const ValueDef *r = rootOf(v);
    const PlannedBuffer &b = plan.buffer(v);
    if (b.place.kind == PlaceKind::arena) {
      bool held = llvm::any_of(arena, [&](const Held &h) { return h.begin == b.place.offset && h.value == r; });
      EXPECT_TRUE(held || *storageBytes(v.type(), symbols) == 0)
          << "%" << v.name().str() << " is overwritten before " << by << " reads it";
    } else {
      EXPECT_EQ((elsewhere[name(b.place.kind).str() + std::to_string(b.place.index) + b.place.name +
                           std::to_string(b.place.offset)]),
                r)
          << "%" << v.name().str() << " is overwritten before " << by << " reads it";
    }
  };
  for (Value v : function.block().arguments()) write(v);
  for (Value v : function.reads()) write(v);
  for (const Op &op : function.block().ops()) {
    if (op.def().isTerminator) continue;
    for (Value operand : op.operands())
      if (operand) expectHeld(operand, op.name().str());
    if (op.def().lowering == Lowering::view) {
      root[op.result().def()] = rootOf(op.operand(0u));
      continue;
    }
    for (unsigned i = 0; i < op.resultCount(); ++i) {
      // Where it lies over an operand, the op must allow that.
      for (unsigned o = 0; o < op.operands().size(); ++o)
        if (op.operand(o) && plan.buffer(op.operand(o)).place == plan.buffer(op.result(i)).place &&
            plan.buffer(op.result(i)).bytes) {
          EXPECT_TRUE(options.mayOverwrite && options.mayOverwrite(op, i, o)) << op.name().str();
        }
      write(op.result(i));
    }
    for (Value result : op.results()) expectHeld(result, op.name().str()); // results do not overwrite each other
  }
  for (const ReturnEntry &entry : function.returns()) expectHeld(entry.value, "return");
  EXPECT_GE(plan.arenaBytes, plan.lowerBoundBytes);
}

MemoryPlan planOrFail(const Function &function, const SymbolValues &symbols, const MemoryOptions &options) {
  auto plan = planMemory(function, symbols, options);
  if (plan) return std::move(*plan);
  ADD_FAILURE() << llvm::toString(plan.takeError());
  return MemoryPlan();
}

bool elementwiseInPlace(const Op &op, unsigned, unsigned operand) {
  return op.def().isElementwise() && op.operand(operand).shape() == op.result().shape();
}

TEST(MemoryPlan, SharesViewsAndDyingOperands) {
  auto module = test::parseOrFail(R"(
func @main(%x: f32[64, 4]) -> f32[] {
  %a = neg %x
  %b = reshape %a {shape = [256]}
  %c = exp %b
  %d = exp %c
  %s = sum %d
  return %s
})");
  MemoryOptions options;
  options.mayOverwrite = elementwiseInPlace;
  MemoryPlan plan = planOrFail(*module->function("main"), {}, options);
  EXPECT_EQ(plan.arenaBytes, 1024) << plan.text(); // a, c and d in one place; the sum is the caller's output
  expectSound(*module->function("main"), plan, {}, options);
  MemoryPlan apart = planOrFail(*module->function("main"), {}, {});
  EXPECT_EQ(apart.arenaBytes, 2048) << apart.text();
}

TEST(MemoryPlan, UpdatesInPlaceUnlessReadLater) {
  auto module = test::parseOrFail(R"(
param @w : f32[64]
param @v : f32[64]
param @a : f32[64]
param @b : f32[64]
func @main(%g: f32[64]) -> f32[64] {
  %w2 = add @w, %g
  %v2 = add @v, %g
  %late = neg @v
  return %late, @w = %w2, @v = %v2, @a = @b, @b = @a
})");
  MemoryOptions options;
  options.mayOverwrite = elementwiseInPlace;
  const Function &function = *module->function("main");
  MemoryPlan plan = planOrFail(function, {}, options);
  expectSound(function, plan, {}, options);
  EXPECT_EQ(plan.buffer(function.returns()[1].value).place.kind, PlaceKind::persistent);
  EXPECT_EQ(plan.buffer(function.returns()[1].value).place.name, "w");
  ASSERT_EQ(plan.updateCopies.size(), 3u) << plan.text();
  EXPECT_EQ(plan.updateCopies[0].persistent, "v");
  EXPECT_EQ(plan.updateCopies[0].reason, "its old value is read later, by neg");
  EXPECT_GE(plan.updateCopies[1].stagingOffset, 0) << "a and b are exchanged";
  EXPECT_GE(plan.updateCopies[2].stagingOffset, 0);
  EXPECT_NE(plan.updateCopies[1].stagingOffset, plan.updateCopies[2].stagingOffset);
}

TEST(MemoryPlan, NamesTheSymbolWithoutAValue) {
  auto module = test::parseOrFail("dim B in 1..8\nfunc @main(%x: f32[B]) -> f32[B] {\n  %y = neg %x\n  return %y\n}\n");
  auto plan = planMemory(*module->function("main"), {});
  ASSERT_FALSE(bool(plan));
  EXPECT_EQ(llvm::toString(plan.takeError()), "@main: the size of %x, f32[B], is not known: give its symbols a value");
}

// Functions of unary and binary ops, views and updates, wired at random.
TEST(MemoryPlan, RandomFunctionsAreSound) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Module module("random");
    Function &function = module.addFunction("main");
    Builder builder(function.block());
    std::vector<Value> values;
    Shape shapes[] = {{Dim(4), Dim(6)}, {Dim(24)}, {Dim(2), Dim(3), Dim(4)}, {Dim(100)}};
    for (unsigned i = 0; i < 4; ++i) {
      std::string name = "p" + std::to_string(i);
      module.addPersistent(
          {PersistentKind::param, name, {DType::f32, shapes[random() % 4]}, {}, nullptr, {}, {}, {}, {}});
      values.push_back(function.read(name));
      values.push_back(function.block().addArgument({DType::f32, shapes[random() % 4]}, "x" + std::to_string(i)));
    }
    for (unsigned i = 0, n = 5 + random() % 40; i < n; ++i) {
      Value a = values[random() % values.size()], b = values[random() % values.size()];
      switch (random() % 5) {
      case 0: values.push_back(builder.op("reshape", {a}, {{"shape", Shape{a.type().elements()}}})); break;
      case 1: values.push_back(builder.op("exp", {a})); break;
      case 2: values.push_back(builder.op("sum", {a})); break;
      default: values.push_back(a.shape() == b.shape() ? builder.op("add", {a, b}) : builder.op("neg", {a}));
      }
    }
    std::vector<ReturnEntry> returns;
    for (unsigned i = 0; i < 3; ++i) returns.push_back({ReturnKind::result, "", values[random() % values.size()]});
    for (unsigned i = 0; i < 4; ++i) {
      std::string name = "p" + std::to_string(i);
      for (Value v : values)
        if (random() % 4 == 0 && v.type() == module.persistent(name)->type) {
          returns.push_back({ReturnKind::update, name, v});
          break;
        }
    }
    function.setReturns(returns);
    MemoryOptions options;
    options.mayOverwrite = elementwiseInPlace;
    MemoryPlan plan = planOrFail(function, {}, options);
    expectSound(function, plan, {}, options);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << "\n" << module.str() << plan.text(100);
      return;
    }
  }
}

TEST(MemoryPlan, TextAndJsonSayWhoNeedsWhat) {
  auto module = test::parseOrFail(R"(
param @w : f32[64]
func @main(%x: f32[64]) -> f32[64] {
  %big = add %x, @w
  %y = exp %big
  return %y
})");
  MemoryPlan plan = planOrFail(*module->function("main"), {}, {});
  EXPECT_NE(plan.text().find("@main: peak 512 bytes = arena 256 + persistent 256"), std::string::npos) << plan.text();
  EXPECT_NE(plan.text().find("%big"), std::string::npos);
  std::string json = plan.json(ir::ValueNames(module->function("main")->block()));
  EXPECT_NE(json.find("\"name\":\"%big\""), std::string::npos) << json;
}

// Each buffer says why it is where it is, and why it took over no other's place.
TEST(MemoryPlan, JsonSaysWhy) {
  auto module = test::parseOrFail(R"(
param @w : f32[64]
func @main(%x: f32[64]) -> f32[64], f32[64] {
  %a = add %x, @w
  %b = exp %a
  %c = mul %a, %b
  %d = exp %c
  %e = neg %d
  return %d, %e
})");
  MemoryPlan plan = planOrFail(*module->function("main"), {}, {});
  std::string json = plan.json(ir::ValueNames(module->function("main")->block()));
  for (const char *why : {"the caller's input", "a persistent value has a buffer of its own",
                          "computed where the caller wants it", "not in place: no operand in the arena is as large",
                          "not in place: %a is read later, by op 2",
                          "not in place: %a is read at other places than the result is written"})
    EXPECT_NE(json.find(why), std::string::npos) << why << "\n" << json;
  // a and b are alive together, then a, b and c; nothing of the arena is at the end.
  EXPECT_EQ(plan.liveBytes, (std::vector<int64_t>{256, 512, 768, 256, 0, 0}));
}

} // namespace
