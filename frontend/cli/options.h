// What the command line says: plain structs, one a verb, filled by command_line.cpp (the one file that sees CLI11).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fusor::frontend::cli {

struct CommonOptions {
  std::string device = "auto"; // auto, cpu, cuda, cuda:N
  bool json = false, quiet = false, strict = false, check = false, bisect = false;
  std::vector<std::string> disabledRules;
  std::optional<int64_t> fuel;
  std::string dump, dumpInputs, cache; // dumpInputs: a regular expression
  unsigned threads = 0;                // 0: all of the machine's
  uint64_t seed = 0;
  std::string archTier = "auto"; // auto, simt, sm80, sm90a
  std::string blas = "auto";     // auto, own
};

struct TrainOptions {
  std::string config = "small", precision = "bf16";
  std::optional<int64_t> steps;
  int64_t batch = 16, accumulate = 1, warmup = 0, saveEvery = 0;
  double lr = 3e-4, weightDecay = 0.01, evalPercent = 0;
  std::optional<double> clipNorm;
  std::string schedule = "constant", recompute = "auto", noDecay;
  std::string data = "synthetic", init, tokens, save, resume, fp8Trace;
  bool deterministic = false, profile = false;
  std::string fp8Format = "hybrid", amaxAlgo = "max", fp8Wgrad = "on", fp8Select = "all";
  int64_t amaxHistory = 16, fp8Margin = 0;
  bool fp8Stats = false, fp8SkipNonFinite = false, fp8Calibrate = false;
  /// Flags that were written, by name ("--lr"): on a resume they win over what the checkpoint recorded.
  std::vector<std::string> given;
  bool isGiven(const std::string &flag) const;
};

struct GenerateOptions {
  std::string checkpoint, prompt, text, save, precision = "bf16", weights = "bf16";
  int64_t newTokens = 24, topK = 0;
  double temperature = 0; // 0: greedy
  bool keepsCache = true;
};

struct BenchOptions {
  std::string what, config = "small";
  std::vector<std::string> precisions;
  int64_t batch = 32, warmup = 10, iterations = 30;
  std::optional<int64_t> m, n, k;                   // gemm
  std::optional<int64_t> rows, columns;             // norm, quantize
  std::optional<int64_t> heads, sequence, headSize; // attention
  int64_t kvHeads = 0, window = 0;
  bool profile = false; // train, infer
  bool causal = true;
};

/// What opt, explain, emit and run share.
struct ModuleOptions {
  std::string file;                                                     // M.fir or config:NAME
  std::string function, pipeline = "infer", precision = "f32", weights; // fp8, or empty
  std::string fp8Select = "all";
  std::vector<std::string> dims; // "B=8"
  bool pipelineGiven = false, precisionGiven = false;
};
struct OptOptions : ModuleOptions {
  std::vector<std::string> passes;
  std::string printAfter, output;
};
struct ExplainOptions : ModuleOptions {
  std::string rule;
};
struct EmitOptions : ModuleOptions {
  std::vector<std::string> archs;
  std::string out;
};
struct RunOptions : ModuleOptions {
  std::vector<std::string> inputs; // NAME=F.npy
  std::string inputsFolder, outputsFolder, expectFolder;
  double atol = 1e-5, rtol = 1e-5;
  unsigned repeat = 0; // timed runs after the first
};
struct ReplayOptions {
  std::string folder; // DIR/kernels/NAME
  bool installs = false, uninstalls = false;
};
struct ImportOptions {
  std::string file, output;
};
struct ReportOptions {
  std::string folder, output; // output empty: report.html in the folder
};
struct OpsOptions {
  bool markdown = false;
};
struct FuzzOptions {
  double seconds = 60;
};

struct CacheOptions {
  std::string action, file; // stats, verify, clear, export, import
};

/// What main() is to do: `run` where it is set, else end with `exit`; messages have been printed.
struct CommandLine {
  std::function<int()> run;
  int exit = 0;
};
CommandLine parseCommandLine(int argc, const char *const *argv);

} // namespace fusor::frontend::cli
