// What --check allows: it grows with what is summed, and storage that is narrow counts once.
#include "frontend/text/parser.h"
#include "runtime/cpu/cluster_check.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

namespace fusor::tests {
namespace {

/// A kernel that sums rows of x [4, terms], and the check of what it says they are.
class RowSums {
public:
  explicit RowSums(int64_t terms) : terms_(terms), x_(4 * terms) {
    std::string text = llvm::formatv(R"(
func @f(%x: f32[4, {0}]) -> f32[4] {{
  %y = fusion @sum(%x) {{kind = row} : f32[4] {{
    %y = sum %x {{dims = [1]} : f32[4]
    yield %y
  }
  return %y
}
)",
                                     terms)
                           .str();
    module_ = llvm::cantFail(frontend::parseModule(text, "sums.fir"));
    std::mt19937 random(1);
    std::uniform_real_distribution<float> either(-1, 1);
    for (float &x : x_) x = either(random);
  }

  /// One f32 after the other, from the end: an order that no kernel has.
  std::vector<float> backwards() const {
    std::vector<float> sums(4);
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t i = terms_; i-- > 0;) sums[row] += x_[row * terms_ + i];
    return sums;
  }
  /// "" where `sums` pass.
  std::string check(std::vector<float> sums) const {
    const ir::Op &op = *module_->function("f")->block().ops().begin();
    runtime::ClusterCode code = runtime::lowerForCpu(op, ir::Target());
    const char *input = reinterpret_cast<const char *>(x_.data());
    char *output = reinterpret_cast<char *>(sums.data());
    runtime::StepMemory memory{input, output, nullptr};
    llvm::Error error = runtime::ClusterCheck(code, memory, {}).compare("f", memory);
    return error ? llvm::toString(std::move(error)) : "";
  }
  float largest(const std::vector<float> &sums) const {
    float largest = 0;
    for (float y : sums) largest = std::max(largest, std::abs(y));
    return largest;
  }

private:
  int64_t terms_;
  std::vector<float> x_;
  std::unique_ptr<ir::Module> module_;
};

TEST(Tolerance, AnotherOrderOfALongSumPasses) {
  for (int64_t terms : {64, 4096, 1 << 20}) {
    RowSums sums(terms);
    EXPECT_EQ(sums.check(sums.backwards()), "") << terms;
  }
}

// What a sum of 2^20 may be off, a sum of 64 may not.
TEST(Tolerance, ASmallErrorInAShortSumIsFound) {
  constexpr float kPlanted = 9e-5F;
  for (auto [terms, found] : {std::pair<int64_t, bool>{64, true}, {4096, true}, {1 << 20, false}}) {
    RowSums sums(terms);
    std::vector<float> wrong = sums.backwards();
    wrong[2] += kPlanted * sums.largest(wrong);
    EXPECT_EQ(sums.check(wrong).find("for element 2 of %y") != std::string::npos, found) << terms << sums.check(wrong);
  }
}

double boundOf(const std::string &body, ir::DType result) {
  auto module = llvm::cantFail(frontend::parseModule(body, "body.fir"));
  return runtime::bodyTolerance(module->functions()[0]->block(), result, {{"B", 4}});
}

TEST(Tolerance, RoundingToNarrowStorageDoesNotGrow) {
  const char *const text = "dim B in 1..64\nfunc @f(%x: bf16[B, {0}], %w: bf16[8, {0}]) -> bf16[B, 8] {{\n"
                           "  %y = linear %x, %w : bf16[B, 8]\n  return %y\n}\n";
  double shortOne = boundOf(llvm::formatv(text, 64).str(), ir::DType::bf16),
         longOne = boundOf(llvm::formatv(text, 65536).str(), ir::DType::bf16);
  EXPECT_NEAR(shortOne, 1.0 / 64, 1e-5);
  EXPECT_NEAR(longOne, 1.0 / 64, 1e-4) << "a step of bf16 is 65536 steps of f32";
}

TEST(Tolerance, TermsOfEachClassOfOps) {
  struct Case {
    const char *op;
    double terms;
  };
  for (const Case &c : {Case{"%y = add %x, %x : f32[B, 16, 32]", 0},
                        {"%y = sum %x {dims = [2]} : f32[B, 16]", 32},
                        {"%y = sum %x : f32[]", 4 * 16 * 32},
                        {"%y = linear %x, %w : f32[B, 16, 8]", 32},
                        {"%y = linear_weight_grad %x, %x : f32[32, 32]", 4 * 16},
                        {"%y = matmul %x, %x {trans_b = true} : f32[B, 16, 16]", 32},
                        {"%y = softmax %x : f32[B, 16, 32]", 32},
                        {"%y, %l = attention %x, %x, %x {heads = 4} : f32[B, 16, 32], f32[B, 4, 16]", 32}}) {
    auto module = llvm::cantFail(frontend::parseModule(
        std::string("dim B in 1..64\nfunc @f(%x: f32[B, 16, 32], %w: f32[8, 32]) -> f32[] {\n  ") + c.op +
            "\n  %s = sum %w : f32[]\n  return %s\n}\n",
        "op.fir"));
    const ir::Op &op = *module->functions()[0]->block().ops().begin();
    EXPECT_EQ(runtime::summedTerms(op, {{"B", 4}}), c.terms) << c.op;
  }
}

} // namespace
} // namespace fusor::tests
