// Whether passes kept what a module computes, and which rewrite is to blame where they did not.
//
//   before  %h = gelu %x          named values are compared in the float64 reference: passes give what replaces a value
//   after   %h = fusion @silu     its name. The first that differs is where a rule went wrong; compiling with less and
//                                 less fuel finds the rewrite that did it.
#pragma once
#include "ir/reference/reference.h"
#include "passes/pipeline.h"
#include "runtime/execute/tensor_view.h"
#include <functional>

namespace fusor::frontend {

struct RewriteCheck {
  /// The module before any pass, anew each time it is called.
  std::function<llvm::Expected<std::unique_ptr<ir::Module>>()> load;
  passes::PipelineKind pipeline = passes::PipelineKind::infer;
  /// Compared in f32: what narrower types round is not what a rule does.
  passes::PassOptions options = {};
  std::string function = {}; // after the passes
  /// One for each argument of it.
  std::vector<ir::RefTensor> inputs = {};
  ir::SymbolValues symbols = {}; // those that inputs do not fix
  uint64_t seed = 0;             // of params and states
};

/// A tensor in memory as the reference takes it.
ir::RefTensor referenceTensor(const runtime::TensorView &view);

/// A value that is not what it was.
struct ChangedValue {
  std::string value, kernel; // "%h", "@silu"; a result without a name is "result 0"
  std::string before, after; // the ops that make it
  ir::Location location;
  int64_t element = 0;
  double want = 0, got = 0, allowed = 0;
  std::string text() const;
};
/// The first of them in the order of the compiled function. Reference is the module as it came, in training its step
/// without a rewrite.
llvm::Expected<std::optional<ChangedValue>> firstChanged(const RewriteCheck &check);

struct GuiltyRewrite {
  int64_t number = 0, total = 0; // it is rewrite `number` of as many; --fuel N - 1 is without it
  passes::Rewrite rewrite;
  ChangedValue change;
};
/// The first rewrite after which a value differs, found in log2(total) compilations; none where all agree.
llvm::Expected<std::optional<GuiltyRewrite>> bisectRewrites(const RewriteCheck &check);

/// What `--check` does with it, and `--bisect`: an error that names value, kernel and ops where one differs, and then
/// the rewrite.
llvm::Error checkRewrites(const RewriteCheck &check, bool bisects);

} // namespace fusor::frontend
