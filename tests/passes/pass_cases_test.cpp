// Runs tests/passes/*.fir: "// RUN: fusor opt --passes=a,b [--precision=bf16] [--disable-rule=R] [--fuel=N]
// [--fp8=all|REGEX]
// [--fp8-format=e4m3] [--fp8-tn=on] [--weights=fp8] ...".
#include "frontend/text/parser.h"
#include "ir/ops/op_def.h"
#include "passes/pipeline.h"
#include "tests/support/fir_cases.h"
#include "gtest/gtest.h"

using namespace fusor;

namespace {

llvm::Expected<std::string> runPassCase(const tests::FirRun &run) {
  auto module = frontend::parseModule(run.text, run.path);
  if (!module) return module.takeError();
  passes::PassOptions options;
  options.function = run.value("--func").str();
  if (auto dtype = ir::parseDType(run.value("--precision"))) options.precision = *dtype;
  if (!run.value("--disable-rule").empty()) options.disabledRules.insert(run.value("--disable-rule"));
  if (int64_t fuel; !run.value("--fuel").getAsInteger(10, fuel)) options.fuel = fuel;
  if (llvm::StringRef select = run.value("--fp8"); !select.empty()) {
    options.fp8.emplace().select = select.str();
    if (run.value("--fp8-format") == "e4m3") options.fp8->format = passes::Fp8Format::e4m3;
  }
  options.fp8Weights = run.value("--weights") == "fp8";
  options.target.hasFp8 = options.target.hasCublasLt = run.value("--fp8-tn") == "on";
  passes::PassContext context(options);
  llvm::SmallVector<llvm::StringRef, 4> names;
  run.value("--passes").split(names, ',');
  std::vector<std::string> passNames;
  for (llvm::StringRef name : names) passNames.push_back(name.str());
  if (auto error = passes::runPasses(**module, passNames, context)) return error;
  std::string once = (*module)->str();
  if (passNames.back() == "gradient" || passNames.back() == "optimizer") return once;
  passes::PassContext again(options); // a pass that ran finds nothing left to do
  if (auto error = passes::runPasses(**module, {passNames.back()}, again)) return error;
  if (!options.fuel && (*module)->str() != once)
    return ir::opError("{0} changed its own result to\n{1}", passNames.back(), (*module)->str());
  return once;
}

const unsigned kCases = tests::registerFirCases("tests/passes", "PassCases", runPassCase);

TEST(PassCases, AreFound) { EXPECT_GE(kCases, 2u); }

} // namespace
