// The test support itself: a check that cannot fail would hide everything else.
#include "frontend/text/parser.h"
#include "tests/support/expected_error.h"
#include "tests/support/filecheck.h"
#include "tests/support/fir_cases.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::tests;

namespace {

// `fusor opt` with the one pass "rename", which renames the module.
llvm::Expected<std::string> runRename(const FirRun &run) {
  auto module = frontend::parseModule(run.text, run.path);
  if (!module) return module.takeError();
  if (run.value("--passes") == "refuse")
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "case.fir:4:8: error: refused\nhint: do not");
  if (run.value("--passes") == "rename") (*module)->setName("renamed");
  return (*module)->str();
}

std::string check(llvm::StringRef text) { return checkFirCase("case.fir", text, runRename); }

} // namespace

TEST(FileCheck, PassesAndFails) {
  std::string message;
  EXPECT_TRUE(fileCheck("a\nb   c\n", "// CHECK: a\n// CHECK-NEXT: b c\n", message)) << message;
  EXPECT_FALSE(fileCheck("a\nx\nb\n", "// CHECK: a\n// CHECK-NEXT: b\n", message));
  EXPECT_NE(message.find("CHECK-NEXT"), std::string::npos) << message;
  EXPECT_TRUE(fileCheck("%1 = f %0\n%2 = g %1\n", "// CHECK: %[[V:.*]] = f\n// CHECK: g %[[V]]\n", message)) << message;
  EXPECT_FALSE(fileCheck("%1 = f %0\n%2 = g %0\n", "// CHECK: %[[V:.*]] = f\n// CHECK: g %[[V]]\n", message));
  EXPECT_TRUE(fileCheck("a\n", "// CHECK: b\n// OTHER: a\n", message, "OTHER")) << message;
  EXPECT_FALSE(fileCheck("a\n", "no checks\n", message));
}

TEST(FirCases, ChecksTheOutput) {
  EXPECT_EQ(check("// RUN: fusor opt --passes=rename\n// CHECK: module @renamed\nmodule @m\n"), "");
  EXPECT_NE(check("// RUN: fusor opt --passes=none\n// CHECK: module @renamed\nmodule @m\n"), "");
  EXPECT_EQ(check("// RUN: fusor opt | FileCheck --check-prefix=X\n// X: module @m\n// CHECK: z\nmodule @m\n"), "");
  EXPECT_NE(check("// RUN: fusor opt | FileCheck --check-prefix=X\n// X: module @n\nmodule @m\n"), "");
}

TEST(FirCases, WhatChecksNothingFails) {
  EXPECT_EQ(check("module @m\n"), "it has no RUN line");
  EXPECT_NE(check("// RUN: fusor opt\nmodule @m\n"), "");
  EXPECT_NE(check("// RUN: opt\n// CHECK: m\nmodule @m\n").find("expected 'RUN: fusor VERB FLAGS"), std::string::npos);
}

TEST(FirCases, ExpectedErrors) {
  EXPECT_EQ(
      check(
          "// expected-error@+2:1 {{expected one of module}}\n// expected-hint {{did you mean 'module'?}}\nmodul @m\n"),
      "");
  EXPECT_EQ(check("// expected-error@+1 {{expected one of module}}\nxyzzy @m\n"), "");
  EXPECT_NE(check("// expected-error@+1 {{something else}}\nxyzzy @m\n"), "");
  EXPECT_NE(check("// expected-error@+1:2 {{expected one of module}}\nxyzzy @m\n"), "");
  EXPECT_NE(check("// expected-error@+2 {{expected one of module}}\nxyzzy @m\n"), "");
  EXPECT_EQ(check("// expected-error@+1 {{expected}}\nmodule @m\n"), "it was to fail and parses");
  EXPECT_NE(check("// expected-error {{expected}} {{\nxyzzy @m\n"), "");
  EXPECT_NE(check("// RUN: fusor opt\n// expected-error {{expected}}\nmodule @m\n").find("it was to fail and printed"),
            std::string::npos);
}

TEST(FirCases, ErrorsOfPasses) {
  const std::string run = "// RUN: fusor opt --passes=refuse\n";
  EXPECT_EQ(check(run + "// expected-hint {{do not}}\n// expected-error@+1:8 {{refused}}\nmodule @m\n"), "");
  EXPECT_NE(check(run + "// expected-hint {{do not}}\n\n// expected-error@+1:8 {{refused}}\nmodule @m\n"), "");
  EXPECT_NE(check(run + "// expected-error@+2:8 {{refused}}\nmodule @m\n"), "");
}
