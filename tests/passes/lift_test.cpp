// lift: a module computes the same in small ops and in big ones, and says which forms it refused.
#include "frontend/text/parser.h"
#include "models.h"
#include "passes/pipeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace fusor;
using namespace fusor::test;

namespace {

// A block as exporters write it: norms, heads, a causal mask, a key mask, both GELUs, a gate, an RMS norm.
const char *const kBlock = R"(
dim B in 1..8
const @two : f32[] = [2.0]
const @eps : f32[] = [1e-5]
const @scale : f32[] = [0.70710677]
const @ninf : f32[] = [-inf]
const @half : f32[] = [0.5]
const @one : f32[] = [1.0]
const @root2 : f32[] = [1.4142135]
const @cubic : f32[] = [0.044715]
const @tanh_scale : f32[] = [0.7978846]
const @triangle : f32[3, 3] = [0.0, -inf, -inf, 0.0, 0.0, -inf, 0.0, 0.0, 0.0]
const @g : f32[4] = [1.0, 0.5, 2.0, -1.0]
const @h : f32[1, 4] = [0.5, 0.25, 0.0, -1.0]
const @wq : f32[4, 4] = [0.5, -0.25, 1.0, 0.75, -1.0, 0.5, 0.25, 0.125, 0.3, 0.6, -0.9, 0.2, 0.1, -0.7, 0.4, 0.8]
const @bq : f32[4] = [0.1, 0.2, -0.3, 0.4]
param @wk : f32[4, 4] {init = normal(0.5)}
func @forward(%x: f32[B, 3, 4], %mask: i64[B, 3]) -> f32[B, 3, 4], f32[B, 3, 4], f32[B, 3, 4] {
  %m = mean %x {dims = [2], keep = true} : f32[B, 3, 1]
  %d = sub %x, %m : f32[B, 3, 4]
  %q = pow %d, @two : f32[B, 3, 4]
  %v = mean %q {dims = [2], keep = true} : f32[B, 3, 1]
  %e = add %v, @eps : f32[B, 3, 1]
  %r = sqrt %e : f32[B, 3, 1]
  %n = div %d, %r : f32[B, 3, 4]
  %a = mul %n, @g : f32[B, 3, 4]
  %ln = add @h, %a : f32[B, 3, 4]
  %qm = matmul %ln, @wq : f32[B, 3, 4]
  %qb = add %qm, @bq : f32[B, 3, 4]
  %kb = matmul %ln, @wk {trans_b = true} : f32[B, 3, 4]
  %q4 = reshape %qb {shape = [B, 3, 2, 2]} : f32[B, 3, 2, 2]
  %qt = transpose %q4 {perm = [0, 2, 1, 3]} : f32[B, 2, 3, 2]
  %k4 = reshape %kb {shape = [B, 3, 2, 2]} : f32[B, 3, 2, 2]
  %kt = transpose %k4 {perm = [0, 2, 3, 1]} : f32[B, 2, 2, 3]
  %v4 = reshape %ln {shape = [B, 3, 2, 2]} : f32[B, 3, 2, 2]
  %vt = transpose %v4 {perm = [0, 2, 1, 3]} : f32[B, 2, 3, 2]
  %s = matmul %qt, %kt : f32[B, 2, 3, 3]
  %c = mul %s, @scale : f32[B, 2, 3, 3]
  %cm = add %c, @triangle : f32[B, 2, 3, 3]
  %p = softmax %cm : f32[B, 2, 3, 3]
  %o = matmul %p, %vt : f32[B, 2, 3, 2]
  %ot = transpose %o {perm = [0, 2, 1, 3]} : f32[B, 3, 2, 2]
  %y0 = reshape %ot {shape = [B, 3, 4]} : f32[B, 3, 4]
  %zero = constant {dtype = i64, value = 0.0} : i64[]
  %hide = eq %mask, %zero : i1[B, 3]
  %hide4 = reshape %hide {shape = [B, 1, 1, 3]} : i1[B, 1, 1, 3]
  %sm = select %hide4, @ninf, %s : f32[B, 2, 3, 3]
  %rows = reshape %sm {shape = [6*B, 3]} : f32[6*B, 3]
  %pr = softmax %rows : f32[6*B, 3]
  %pm = reshape %pr {shape = [B, 2, 3, 3]} : f32[B, 2, 3, 3]
  %om = matmul %pm, %vt : f32[B, 2, 3, 2]
  %omt = transpose %om {perm = [0, 2, 1, 3]} : f32[B, 3, 2, 2]
  %y1 = reshape %omt {shape = [B, 3, 4]} : f32[B, 3, 4]
  %ga = div %y0, @root2 : f32[B, 3, 4]
  %gt = erf %ga : f32[B, 3, 4]
  %gu = add %gt, @one : f32[B, 3, 4]
  %gx = mul %y0, %gu : f32[B, 3, 4]
  %gelu = mul %gx, @half : f32[B, 3, 4]
  %x2 = mul %gelu, %gelu : f32[B, 3, 4]
  %x3 = mul %x2, %gelu : f32[B, 3, 4]
  %kx = mul %x3, @cubic : f32[B, 3, 4]
  %ti = add %gelu, %kx : f32[B, 3, 4]
  %ta = mul %ti, @tanh_scale : f32[B, 3, 4]
  %t = tanh %ta : f32[B, 3, 4]
  %tu = add %t, @one : f32[B, 3, 4]
  %th = mul %gelu, @half : f32[B, 3, 4]
  %y2 = mul %th, %tu : f32[B, 3, 4]
  %sg = sigmoid %y2 : f32[B, 3, 4]
  %silu = mul %y2, %sg : f32[B, 3, 4]
  %rq = mul %silu, %silu : f32[B, 3, 4]
  %rm = mean %rq {dims = [2], keep = true} : f32[B, 3, 1]
  %re = add %rm, @eps : f32[B, 3, 1]
  %rr = rsqrt %re : f32[B, 3, 1]
  %rn = mul %silu, %rr : f32[B, 3, 4]
  %rms = mul @g, %rn : f32[B, 3, 4]
  return %gelu, %y1, %rms
}
)";

std::unique_ptr<ir::Module> parsed(const char *text) {
  auto module = frontend::parseModule(text, "lift_test.fir");
  if (module) return std::move(*module);
  ADD_FAILURE() << llvm::toString(module.takeError());
  return std::make_unique<ir::Module>("empty");
}

TEST(Lift, ComputesTheSame) {
  auto small = parsed(kBlock), big = small->clone();
  passes::PassOptions options;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*big, {std::string("lift")}, context));
  llvm::StringMap<unsigned> count;
  for (const ir::Op &op : big->function("forward")->block().ops()) ++count[op.name()];
  for (auto [name, wanted] : {std::pair("layer_norm", 1u),
                              {"rms_norm", 1u},
                              {"linear", 2u},
                              {"attention", 2u},
                              {"gelu", 2u},
                              {"silu", 1u},
                              {"matmul", 0u},
                              {"softmax", 0u},
                              {"transpose", 0u}})
    EXPECT_EQ(count.lookup(name), wanted) << name << "\n" << big->str();

  const ir::SymbolValues symbols{{"B", 2}};
  const ir::RefState state = initialState(*small);
  auto inputs = inputsFor(*small->function("forward"), symbols, 2);
  inputs[1].data = {1, 1, 0, 0, 1, 1};
  auto expected = evaluateOrFail(*small->function("forward"), inputs, state),
       found = evaluateOrFail(*big->function("forward"), inputs, state);
  ASSERT_EQ(expected.results.size(), found.results.size());
  for (size_t i = 0; i < expected.results.size(); ++i)
    for (size_t k = 0; k < expected.results[i].data.size(); ++k)
      // The constants of small ops are rounded to f32, those of the table are not.
      EXPECT_NEAR(expected.results[i].data[k], found.results[i].data[k], 3e-7) << i << " " << k;
}

// Every case of a file, those that fire and those that must not.
void expectTheSameInEveryCase(const char *path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(file);
  auto small = parsed((*file)->getBuffer().str().c_str()), big = small->clone();
  passes::PassOptions options;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*big, {std::string("lift")}, context));
  const ir::RefState state = initialState(*small);
  for (const auto &function : small->functions()) {
    auto inputs = inputsFor(*function, {{"B", 2}, {"S", 3}, {"P", 2}}, 2);
    auto expected = evaluateOrFail(*function, inputs, state),
         found = evaluateOrFail(*big->function(function->name()), inputs, state);
    ASSERT_EQ(expected.results.size(), found.results.size());
    for (size_t i = 0; i < expected.results.size(); ++i)
      for (size_t k = 0; k < expected.results[i].data.size(); ++k) {
        const double wanted = expected.results[i].data[k];
        if (std::isnan(wanted)) continue; // a row that a mask leaves without keys
        EXPECT_NEAR(wanted, found.results[i].data[k], 3e-6 * (1 + std::abs(wanted)))
            << function->name().str() << " " << i << " " << k;
      }
  }
}

TEST(Lift, ComputesTheSameInEveryCase) { expectTheSameInEveryCase(FUSOR_SOURCE_DIR "/tests/passes/lift.fir"); }

TEST(Lift, ComputesTheSameInEveryAttention) {
  expectTheSameInEveryCase(FUSOR_SOURCE_DIR "/tests/passes/lift-attention.fir");
}

// Explained, or in silence.
TEST(Lift, RecordsNearMisses) {
  for (bool explain : {true, false}) {
    std::string text = kBlock;
    text.replace(text.find("[0.5]"), 5, "[0.51]");
    const std::string added = "%cm = add %c, @triangle";
    text.replace(text.find(added), added.size(), "%cm = mul %c, @triangle");
    auto module = parsed(text.c_str());
    passes::PassOptions options;
    options.explain = explain;
    passes::PassContext context(options);
    EXPECT_SUCCESS(passes::runPasses(*module, {std::string("lift")}, context));
    std::vector<std::string> refused;
    unsigned taken = 0;
    for (const passes::Decision &d : context.decisions()) {
      EXPECT_EQ(d.rule.rfind("lift", 0) == 0 || d.kind == passes::Decision::Kind::taken, true) << d.rule;
      llvm::StringRef family = d.rule;
      if (!family.consume_front("lift-")) continue;
      if (d.kind == passes::Decision::Kind::nearMiss) refused.push_back((family + ": " + d.reason).str());
      taken += d.kind == passes::Decision::Kind::taken;
      bool hasInside = family == "gelu" || family == "norm" || family == "attention";
      EXPECT_TRUE(!hasInside || (d.bytesSaved > 0) == explain) << d.rule << " of " << d.subject;
    }
    EXPECT_EQ(taken, 7u); // all but two gelus and one attention, and one softmax between reshapes
    const char *const wanted = "attention: scores %cm are no product of q and k\n"
                               "gelu: %gelu is 0.5100000 x + 0.5100000 x t with t = erf, 0.5 x + 0.5 x t is wanted\n"
                               "gelu: %y2 is 0.5100000 x + 0.5100000 x t with t = tanh, 0.5 x + 0.5 x t is wanted";
    EXPECT_EQ(llvm::join(refused, "\n"), explain ? wanted : "");
  }
}

// Each value of a chain is used twice by the next: a walk without an end to its depth would take 2^60 steps.
TEST(Lift, DeepScalarsTakeNoTime) {
  std::string text = "const @c : f32[] = [1.0001]\nfunc @forward(%x: f32[4]) -> f32[4] {\n  %a0 = mul @c, @c : f32[]\n";
  for (int i = 1; i <= 60; ++i) text += llvm::formatv("  %a{0} = mul %a{1}, %a{1} : f32[]\n", i, i - 1);
  text += "  %p = pow %x, %a60 : f32[4]\n  %y = mul %x, %p : f32[4]\n  return %y\n}\n";
  auto module = parsed(text.c_str());
  const passes::PassOptions options;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*module, {std::string("lift")}, context));
  EXPECT_NE(module->str().find("pow %x, %a60"), std::string::npos);
}

TEST(Lift, CanBeDisabledByFamily) {
  auto module = parsed(kBlock);
  passes::PassOptions options;
  options.disabledRules.insert("lift-norm");
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*module, {std::string("lift")}, context));
  std::string text = module->str();
  EXPECT_EQ(text.find("_norm "), std::string::npos);
  EXPECT_NE(text.find("gelu "), std::string::npos);
}

} // namespace
