// Random graphs: what simplify leaves computes what was there before, and simplify finds nothing more to do in it.
// A graph that fails is run again with less and less fuel, so that the message names the first rewrite that breaks it.
#include "ir/ops/counter_rng.h"
#include "models.h"
#include "passes/pipeline.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace fusor;
using namespace fusor::test;

namespace {

using ir::Shape, ir::Value;

// Makes a function of two arguments out of a stream of random numbers.
class RandomGraph {
public:
  explicit RandomGraph(uint64_t seed) : key_(ir::rngKey(seed, 0)) {}

  std::unique_ptr<ir::Module> make(unsigned ops) {
    auto module = std::make_unique<ir::Module>("random");
    ir::Function &f = module->addFunction("forward");
    for (const char *name : {"x", "y"})
      pool_.push_back(f.block().addArgument({ir::DType::f32, {ir::Dim(2), ir::Dim(3), ir::Dim(4)}}, name));
    ir::Builder b(f.block());
    for (double c : {0.0, 1.0, 2.0, -0.5}) constants_.push_back(b.constant(c));
    while (ops > 0) ops -= step(b);
    llvm::SmallVector<ir::ReturnEntry, 4> returns;
    for (unsigned i = 0; i < 3; ++i) returns.push_back({ir::ReturnKind::result, "", pool_[pool_.size() - 1 - i]});
    f.setReturns(returns);
    return module;
  }

private:
  uint64_t draw(uint64_t n) { return static_cast<uint64_t>(ir::rngUniform(key_, count_++) * static_cast<double>(n)); }
  Value any() { return pool_[pool_.size() > 6 && draw(3) ? pool_.size() - 1 - draw(6) : draw(pool_.size())]; }
  Value anyOrConstant() { return draw(3) ? any() : constants_[draw(constants_.size())]; }

  // Adds what fits; false where it does not.
  bool add(ir::Builder &b, llvm::StringRef op, llvm::ArrayRef<Value> operands, ir::Attrs attrs = {}) {
    auto made = b.create(op, operands, std::move(attrs));
    if (!made) {
      llvm::consumeError(made.takeError());
      return false;
    }
    for (Value result : (*made)->results()) {
      if (result.dtype() == ir::DType::bf16 || result.dtype() == ir::DType::f32) pool_.push_back(result);
    }
    return true;
  }

  bool step(ir::Builder &b) {
    static constexpr const char *unary[] = {"neg", "tanh", "abs", "relu", "sigmoid"};
    static constexpr const char *binary[] = {"add", "sub", "mul", "max", "min"};
    Value v = any();
    switch (draw(12)) {
    case 0:
    case 1: return add(b, unary[draw(5)], {v});
    case 2:
    case 3:
    case 4: {
      Value w = anyOrConstant();
      return draw(2) ? add(b, binary[draw(5)], {v, b.cast(w, v.dtype())})
                     : add(b, binary[draw(5)], {b.cast(w, v.dtype()), v});
    }
    case 5: return add(b, "cast", {v}, {{"to", draw(2) ? ir::DType::bf16 : ir::DType::f32}});
    case 6: {
      Shape flat{v.type().elements()}, halves{ir::Dim(2), ir::Dim(v.type().elements().value() / 2)};
      return add(b, "reshape", {v}, {{"shape", draw(2) ? flat : halves}});
    }
    case 7: {
      std::vector<int64_t> perm(v.rank());
      for (unsigned i = 0; i < perm.size(); ++i) perm[i] = i;
      for (unsigned i = 1; i < perm.size(); ++i) std::swap(perm[i], perm[draw(i + 1)]);
      return add(b, "transpose", {v}, {{"perm", perm}});
    }
    case 8: {
      Shape start, size, none;
      for (const ir::Dim &d : v.shape()) {
        int64_t from = draw(d.value() > 1 ? 2 : 1);
        start.push_back(ir::Dim(from));
        size.push_back(d - ir::Dim(from));
        none.push_back(ir::Dim(0));
      }
      return draw(2) ? add(b, "slice", {v}, {{"start", start}, {"size", size}})
                     : add(b, "pad", {v}, {{"before", draw(2) ? start : none}, {"after", none}});
    }
    case 9: {
      if (v.rank() == 0) return false;
      int64_t n = v.type().dim(-1).value();
      return n > 1 && add(b, "split", {v}, {{"sizes", Shape{ir::Dim(1), ir::Dim(n - 1)}}});
    }
    case 10: {
      Value w = any();
      if (!draw(3) && w.op() && w.op()->is("split")) return add(b, "concat", w.op()->results());
      return draw(4) ? add(b, "concat", {v, w}) : add(b, "concat", {v});
    }
    default: {
      if (!draw(2)) return add(b, "sum", {v}, {{"dims", std::vector<int64_t>{-1}}, {"keep", draw(2) == 0}});
      Shape shape(v.shape().begin(), v.shape().end());
      shape.insert(shape.begin(), ir::Dim(static_cast<int64_t>(1 + draw(2))));
      return shape.size() < 5 && add(b, "broadcast", {v}, {{"shape", shape}});
    }
    }
  }

  uint64_t key_, count_ = 0;
  std::vector<Value> pool_, constants_;
};

// "" where both functions compute the same.
std::string difference(const ir::Function &a, const ir::Function &b) {
  auto inputs = inputsFor(a, {}, 0);
  auto x = evaluateOrFail(a, inputs, {}), y = evaluateOrFail(b, inputs, {});
  for (size_t r = 0; r < x.results.size(); ++r) {
    if (x.results[r].shape != y.results[r].shape) return "a shape";
    for (int64_t i = 0; i < x.results[r].elements(); ++i) {
      double p = x.results[r].data[i], q = y.results[r].data[i];
      if (!(std::abs(p - q) <= 1e-5 * std::max(1.0, std::abs(p))) && !(p != p && q != q) && p != q)
        return llvm::formatv("result {0}, element {1}: {2} and {3}", r, i, p, q).str();
    }
  }
  return "";
}

std::unique_ptr<ir::Module> simplified(const ir::Module &module, std::optional<int64_t> fuel = std::nullopt) {
  auto copy = module.clone();
  passes::PassOptions options;
  options.fuel = fuel;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*copy, {std::string("simplify")}, context));
  return copy;
}

TEST(RandomGraphs, SimplifyKeepsTheirValues) {
  int64_t rewrites = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    auto module = RandomGraph(seed).make(5 + seed % 40);
    auto after = simplified(*module);
    rewrites += module->functions()[0]->block().ops().size() - after->functions()[0]->block().ops().size();
    EXPECT_EQ(simplified(*after)->str(), after->str()) << "seed " << seed << ": not at rest";
    if (difference(*module->functions()[0], *after->functions()[0]).empty()) continue;
    int64_t fuel = 0;
    std::string found;
    while ((found = difference(*module->functions()[0], *simplified(*module, fuel)->functions()[0])).empty()) ++fuel;
    FAIL() << "seed " << seed << ": rewrite " << fuel << " changes " << found << "\n"
           << simplified(*module, fuel - 1)->str() << "becomes\n"
           << simplified(*module, fuel)->str();
  }
  EXPECT_GT(rewrites, 300) << "the graphs give simplify nothing to do";
}

} // namespace
