// Every entry of the op table, printed and read back. Nothing op-specific is written here: operands and attributes are
// drawn until the entry's own type rule accepts them.
#include "frontend/text/parser.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "ir/verify/verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace fusor;
using namespace fusor::ir;

namespace {

using Random = std::mt19937;

template <typename T> const T &oneOf(Random &random, llvm::ArrayRef<T> choices) {
  return choices[random() % choices.size()];
}

std::vector<TensorType> operandTypes() {
  Dim b = Dim::symbol("B");
  std::vector<TensorType> types;
  for (DType dtype : {DType::f32, DType::bf16, DType::i32, DType::i1})
    for (Shape shape : {Shape{}, Shape{Dim(4)}, Shape{Dim(4), Dim(4)}, Shape{b, Dim(4), Dim(4)},
                        Shape{b, Dim(2), Dim(4), Dim(4)}, Shape{b, Dim(4)}})
      types.push_back({dtype, shape});
  types.push_back({DType::f8e4m3, {Dim(4), Dim(4)}, Granularity::tensor});
  types.push_back({DType::u64, {}});
  return types;
}

AttrValue drawAttr(Random &random, const AttrSpec &spec) {
  Dim b = Dim::symbol("B");
  double low = spec.range ? spec.range->first : -2, high = spec.range ? std::min(spec.range->second, low + 4) : 2;
  switch (spec.kind) {
  case AttrKind::boolean: return random() % 2 == 0;
  case AttrKind::integer: return static_cast<int64_t>(low + random() % static_cast<unsigned>(high - low + 1));
  case AttrKind::real: return low + (high - low) * (random() % 1000) / 1000.0;
  case AttrKind::word: return spec.choices.empty() ? std::string("a \"b\"") : oneOf<std::string>(random, spec.choices);
  case AttrKind::integers:
    return oneOf<std::vector<int64_t>>(random, {{0}, {1}, {0, 1}, {1, 0}, {0, 2, 1}, {0, 2, 1, 3}, {-1}, {1, 1}});
  case AttrKind::words: return std::vector<std::string>{"a", "b c"};
  case AttrKind::dtype: return oneOf<DType>(random, {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::i32});
  case AttrKind::shape:
    return oneOf<Shape>(random, {Shape{Dim(4)}, Shape{Dim(16)}, Shape{Dim(4), Dim(4)}, Shape{Dim(1), Dim(3)},
                                 Shape{b, Dim(16)}, Shape{b, Dim(4), Dim(4)}, Shape{Dim(2), Dim(2)},
                                 Shape{b + Dim(1), Dim(4)}, Shape{Dim(16) * b}, Shape{Dim(0), Dim(0)}, Shape{}});
  }
  return false;
}

/// Adds an op of `def` whose operands are arguments of `function`, or gives up after many draws.
Op *draw(Random &random, const OpDef &def, Function &function) {
  static const std::vector<TensorType> types = operandTypes();
  Builder builder(function.block());
  for (int attempt = 0; attempt < 20000; ++attempt) {
    std::vector<TensorType> chosen;
    const TensorType &common = oneOf<TensorType>(random, types); // most ops want operands that are alike
    size_t count = def.isVariadic() ? def.operands.size() + random() % 3 : def.operands.size();
    for (size_t i = 0; i < count; ++i) chosen.push_back(random() % 2 ? common : oneOf<TensorType>(random, types));
    llvm::SmallVector<Value, 4> operands;
    for (size_t i = 0; i < count; ++i) {
      bool absent = i < def.operands.size() && def.operands[i].optional && random() % 2;
      operands.push_back(absent ? Value() : function.block().addArgument(chosen[i], "x"));
    }
    Attrs attrs;
    for (const AttrSpec &spec : def.attrs)
      if (spec.required || random() % 3 == 0) attrs.set(spec.name, drawAttr(random, spec));
    auto op = builder.create(def.name, operands, attrs);
    if (op) return *op;
    llvm::consumeError(op.takeError());
    while (function.block().argumentCount()) function.block().eraseArgument(function.block().argumentCount() - 1);
  }
  return nullptr;
}

} // namespace

TEST(TextOps, EveryOpRoundTrips) {
  Random random(1);
  std::vector<std::string> skipped;
  unsigned built = 0;
  for (const OpDef *def : allOps()) {
    if (def->isTerminator || def->name == "fusion") continue; // these have their own spelling, see text_test.cpp
    for (int variant = 0; variant < 8; ++variant) {
      Module module;
      module.declareSymbol("B", {1, 8});
      Function &function = module.addFunction("f");
      Op *op = draw(random, *def, function);
      if (!op) {
        skipped.push_back(def->name);
        break;
      }
      ++built;
      for (Value result : op->results()) result.setName(variant % 2 ? "y" : "");
      std::vector<ReturnEntry> returns;
      for (Value result : op->results()) returns.push_back({ReturnKind::result, "", result});
      function.setReturns(returns);
      ASSERT_EQ(llvm::toString(verify(module)), "") << module.str();
      std::string text = module.str();
      auto parsed = frontend::parseModule(text, "op.fir");
      ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError()) << text;
      EXPECT_EQ((*parsed)->str(), text);
      EXPECT_EQ((*parsed)->function("f")->block().ops().front().attrs(), op->attrs()) << text;
      EXPECT_EQ((*parsed)->clone()->str(), text);
    }
  }
  std::cout << built << " ops round-tripped; no operands were found for " << skipped.size() << ": "
            << llvm::join(skipped, ", ") << "\n";
  EXPECT_GT(built, 500u);
  EXPECT_LE(skipped.size(), 8u);
}
