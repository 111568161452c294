// Every .fir file of a folder as a GoogleTest case.
//
//   // RUN: fusor opt --passes=fuse-epilogue                     runs it in this process and FileChecks what it prints
//   // RUN: fusor opt --passes=dce | FileCheck --check-prefix=DCE  the same against the DCE: lines
//   // CHECK-LABEL: func @fold_bias_row_vector
//
// A file with `// expected-error@+1 {{...}}` comments (see expected_error.h) must fail with just these instead; without
// a RUN line it is only parsed. What `fusor opt` prints must parse and print to the same text again.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace fusor::tests {

/// One RUN line.
struct FirRun {
  std::string verb;                   // "opt"
  std::vector<std::string> arguments; // "--passes=a,b"
  std::string prefix = "CHECK";       // of the check lines
  std::string path, text;             // of the .fir file
  /// The value of `--flag=value`, or "".
  llvm::StringRef value(llvm::StringRef flag) const;
};

/// Does what the RUN line says and returns what `fusor` would print. Given by the test binary, which knows the rooms it
/// tests.
using FirRunner = llvm::Expected<std::string> (*)(const FirRun &);

/// The RUN lines of a text; an Error for one of no known form.
llvm::Expected<std::vector<FirRun>> parseRunLines(llvm::StringRef path, llvm::StringRef text);
/// Runs one file's text; "" where it passes, else what went wrong.
std::string checkFirCase(llvm::StringRef path, llvm::StringRef text, FirRunner runner);

/// Registers each FOLDER/*.fir (a folder of this source tree: "tests/passes") as test SUITE.name. Call it while static
/// values are initialised: `static const unsigned kCases = registerFirCases("tests/passes", "PassCases", runPasses);`.
/// Gives their number.
unsigned registerFirCases(llvm::StringRef folder, llvm::StringRef suite, FirRunner runner);

} // namespace fusor::tests
