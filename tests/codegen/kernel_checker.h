// Runs the generated kernels of whole functions in the emulator and holds every fusion against the float64 reference.
//
//   KernelChecker checker;
//   checker.add(R"(func @f(%x: f32[B, 33]) -> ... )", {{{"B", 1}}, {{"B", 130}}});   // text, run once per symbol
//   values checker.run();                                                               // one compile for everything
//   added
//
// Each fusion gets inputs as the reference computes them, so an error does not travel; all buffers are guarded, and
// start as NaN.
#pragma once
#include "codegen/emit/emit.h"
#include "ir/graph/graph.h"
#include "ir/reference/reference.h"
#include "ir/types/target.h"
#include <memory>

namespace fusor::codegen::tests {

std::unique_ptr<ir::Module> parseOrFail(llvm::StringRef text);
/// Runs passes layout and fusion.
void fuse(ir::Module &module);

class KernelChecker {
public:
  using Symbols = std::vector<std::pair<std::string, int64_t>>;
  struct Options {
    int64_t classes = 7; // integers are drawn from [low, classes)
    int64_t lowest = 0;
    double deviation = 1;   // of the persistent values; arguments have 1
    double tolerance = 1;   // factor on the bounds of the dtype
    bool inPlaceToo = true; // a second run with outputs over the inputs they may replace
    bool mayRefuse = false; // fusions without a kernel are passed over
    ir::ArchTier tier = ir::ArchTier::simt;
  };

  KernelChecker();
  ~KernelChecker();
  /// Fuses the module of `text` and adds all its functions.
  void add(llvm::StringRef text, std::vector<Symbols> runs, Options options);
  void add(llvm::StringRef text, std::vector<Symbols> runs = {{}}) { add(text, std::move(runs), Options()); }
  /// A module that is fused already.
  void add(std::unique_ptr<ir::Module> fused, std::vector<Symbols> runs, Options options);

  void run();
  /// All kernels in one text, each in its own namespace under its own name: what run() compiles.
  std::string text();
  /// Replaces text in all kernels: what the checker must notice.
  void edit(llvm::StringRef from, llvm::StringRef to);
  /// The kernels of everything added, for further checks.
  std::vector<const FunctionKernels *> kernels() const;

private:
  struct Job;
  std::vector<std::unique_ptr<Job>> jobs_;
};

} // namespace fusor::codegen::tests
