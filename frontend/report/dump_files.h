// A dump folder, read: its JSON files as values, its kernels, its modules. What a folder lacks (a CPU has no kernels, a
// run in bf16 no FP8 trace) is absent here; what is there and damaged is an error.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace fusor::frontend {

struct DumpedKernel {
  std::string name;
  llvm::json::Object about; // kernel.json
  std::string source;       // kernel.cu; empty where there is none
};

struct DumpFiles {
  std::string path;
  llvm::json::Object run;                                           // dump.json
  std::optional<llvm::json::Array> passes, steps, gemms, decisions; // arrays of objects
  std::optional<llvm::json::Object> plan, trace, fp8Stats;          // fp8_stats.json: by tensor
  std::optional<std::vector<llvm::json::Object>> fp8Trace;          // a line a step
  std::vector<DumpedKernel> kernels;                                // by name
  std::vector<std::string> moduleFiles;                             // "13_fusion.fir", sorted
};

/// The newest format of dump.json that this build reads.
constexpr int64_t kDumpFormat = 1;

/// Reads all but the modules. The error names the file, and what to do: no dump (no dump.json), a format that is newer,
/// JSON that is damaged or of another shape.
llvm::Expected<DumpFiles> readDump(llvm::StringRef path);

/// modules/`file`, parsed and verified, with symbols that reach to the sizes of the run.
llvm::Expected<std::unique_ptr<ir::Module>> readModule(const DumpFiles &folder, llvm::StringRef file);

/// JSON of a file, at most 64 levels deep. The error says where it stops being JSON.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef fileName);

} // namespace fusor::frontend
