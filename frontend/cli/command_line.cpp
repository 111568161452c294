// The grammar of the command line. The only file that includes CLI11, which costs six seconds to compile.
#include "frontend/cli/options.h"
#include "frontend/cli/verbs.h"
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>

namespace fusor::frontend::cli {

bool TrainOptions::isGiven(const std::string &flag) const {
  return std::find(given.begin(), given.end(), flag) != given.end();
}

namespace {

constexpr int kUsage = 64;

void addCommon(CLI::App &app, CommonOptions &o) {
  auto group = app.add_option_group("everywhere");
  group->add_option("--device", o.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  group->add_flag("--json", o.json, "one JSON object a line on stdout, nothing else there");
  group->add_flag("--quiet", o.quiet, "results and errors only");
  group->add_flag("--strict", o.strict, "a fallback is an error");
  auto *check = group->add_flag("--check", o.check,
                                "run each kernel beside its body in float64, the module beside what it was before "
                                "passes, and name what differs and what makes the first NaN or Inf");
  group->add_flag("--bisect", o.bisect, "with --check: find the rewrite that changed a value")->needs(check);
  group->add_option("--disable-rule", o.disabledRules, "rules that never fire, with commas")->delimiter(',');
  group->add_option("--fuel", o.fuel, "only the first N rewrites")->check(CLI::NonNegativeNumber);
  group->add_option("--dump", o.dump, "write modules, kernels, plans and traces into this folder");
  group->add_option("--dump-inputs", o.dumpInputs, "regular expression: also the inputs of kernels of such names");
  group->add_option("--cache", o.cache, "folder of compiled kernels");
  group->add_option("--threads", o.threads, "CPU threads, 0: all")->check(CLI::Range(0u, 1024u));
  group->add_option("--seed", o.seed, "of initial values and synthetic data")->capture_default_str();
  group->add_option("--blas", o.blas, "own: generated GEMM kernels in place of cuBLASLt's")
      ->check(CLI::IsMember({"auto", "own"}))
      ->capture_default_str();
  group->add_option("--arch-tier", o.archTier, "kernel tier")
      ->check(CLI::IsMember({"auto", "simt", "sm80", "sm90a"}))
      ->capture_default_str();
}

CLI::Option *addPrecision(CLI::App &app, std::string &precision) {
  return app.add_option("--precision", precision, "f32, bf16, f16 or fp8")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "fp8"}))
      ->capture_default_str();
}

constexpr const char *kSelectHelp = "all, a regular expression of linear layers, or auto: those that measure faster";

void addTrain(CLI::App &app, TrainOptions &o) {
  app.add_option("--config", o.config, "tiny, small, seed, scaled, gpt2 or FILE.json")->capture_default_str();
  addPrecision(app, o.precision);
  app.add_option("--steps", o.steps, "train up to this step, resumed steps included (60, or all of --tokens)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  app.add_option("--batch", o.batch, "sequences a step")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--lr", o.lr)->check(CLI::Range(0.0, 1e6))->capture_default_str();
  app.add_option("--schedule", o.schedule, "constant or cosine (to 0 at the last step)")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "steps of linear warm-up")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 40))
      ->capture_default_str();
  app.add_option("--weight-decay", o.weightDecay)->check(CLI::Range(0.0, 1e3))->capture_default_str();
  app.add_option("--no-decay", o.noDecay, "regular expression: parameters whose name matches do not decay");
  app.add_option("--clip-norm", o.clipNorm, "largest L2 norm of all gradients together")->check(CLI::Range(0.0, 1e30));
  app.add_option("--eval", o.evalPercent, "hold out the last N % of a text, print eval_loss")
      ->check(CLI::Range(0.0, 90.0));
  app.add_option("--accumulate", o.accumulate, "micro-batches a step; they share --batch")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--recompute", o.recompute)->check(CLI::IsMember({"none", "auto", "full"}))->capture_default_str();
  app.add_option("--data", o.data, "synthetic or text:FILE")->capture_default_str();
  app.add_option("--init", o.init, "initial weights, a safetensors file");
  app.add_option("--tokens", o.tokens, "int32 [steps, batch, context+1], an npy file");
  app.add_option("--save", o.save, "folder of the last checkpoint");
  app.add_option("--save-every", o.saveEvery, "steps between checkpoints, 0: at the end only")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 40));
  app.add_option("--resume", o.resume, "folder of the checkpoint to go on from");
  app.add_option("--fp8-trace", o.fp8Trace, "write the FP8 state after each step, a JSON line each");
  app.add_flag("--deterministic", o.deterministic, "the same bits from a cold cache too: nothing is timed");
  app.add_flag("--profile", o.profile, "at the end, a table of a step's kernels");
  app.add_option("--fp8-format", o.fp8Format)->check(CLI::IsMember({"hybrid", "e4m3"}))->capture_default_str();
  app.add_option("--amax-history", o.amaxHistory)->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--amax-algo", o.amaxAlgo)->check(CLI::IsMember({"max", "most_recent"}))->capture_default_str();
  app.add_option("--fp8-margin", o.fp8Margin)->check(CLI::Range(0, 30))->capture_default_str();
  app.add_option("--fp8-wgrad", o.fp8Wgrad)->check(CLI::IsMember({"on", "off"}))->capture_default_str();
  app.add_option("--fp8-select", o.fp8Select, kSelectHelp)->capture_default_str();
  app.add_flag("--fp8-skip-non-finite", o.fp8SkipNonFinite, "an amax of Inf does not enter the history");
  app.add_flag("--fp8-calibrate", o.fp8Calibrate, "measure scales before the first step instead of starting with 1");
  app.add_flag("--fp8-stats", o.fp8Stats, "at the end, which part of each tensor FP8 clipped and lost");
}

void addGenerate(CLI::App &app, GenerateOptions &o) {
  app.add_option("--checkpoint", o.checkpoint, "folder written by train --save")->required();
  auto *prompt = app.add_option("--prompt", o.prompt, "token ids: \"3 5 7\"");
  app.add_option("--text", o.text, "text, of a model trained on text")->excludes(prompt);
  app.add_option("--new-tokens", o.newTokens)->check(CLI::Range(0, 1 << 20))->capture_default_str();
  addPrecision(app, o.precision);
  app.add_option("--weights", o.weights, "fp8: linear layers keep theirs in FP8 alone")
      ->check(CLI::IsMember({"bf16", "fp8"}))
      ->capture_default_str();
  app.add_option("--save", o.save, "write a checkpoint with these weights into this folder");
  app.add_option("--temperature", o.temperature, "0: the most likely token")->check(CLI::Range(0.0, 1e3));
  app.add_flag("!--no-kv-cache", o.keepsCache, "read all tokens again for each new one: slower, the same tokens");
  app.add_option("--top-k", o.topK, "choose among the K most likely, 0: all")->check(CLI::Range(0, 1 << 20));
}

void addBench(CLI::App &app, BenchOptions &o) {
  app.add_option("what", o.what)
      ->required()
      ->check(CLI::IsMember({"train", "attention", "norm", "gemm", "quantize", "infer"}));
  app.add_option("--config", o.config, "of train and infer")->capture_default_str();
  app.add_option("--precision", o.precisions, "one or more, with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "bf16", "f16", "fp8"}));
  auto positive = CLI::Range(int64_t(1), int64_t(1) << 40);
  app.add_option("--batch", o.batch)->check(positive)->capture_default_str();
  app.add_option("--warmup", o.warmup)->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_option("--iters", o.iterations)->check(positive)->capture_default_str();
  app.add_option("--m", o.m, "gemm: rows")->check(positive);
  app.add_option("--n", o.n, "gemm: columns")->check(positive);
  app.add_option("--k", o.k, "gemm: depth")->check(positive);
  app.add_option("--rows", o.rows, "norm, quantize")->check(positive);
  app.add_option("--columns", o.columns, "norm, quantize")->check(positive);
  app.add_option("--heads", o.heads, "attention")->check(positive);
  app.add_option("--kv-heads", o.kvHeads, "attention, 0: as many as heads");
  app.add_option("--seq", o.sequence, "attention")->check(positive);
  app.add_option("--head-size", o.headSize, "attention")->check(positive);
  app.add_option("--window", o.window, "attention, 0: all keys");
  app.add_flag("--causal,!--full", o.causal, "attention");
  app.add_flag("--profile", o.profile, "train, infer: a table of a step's kernels");
}

struct ModuleFlags {
  CLI::Option *pipeline, *precision;
};
ModuleFlags addModule(CLI::App &app, ModuleOptions &o) {
  app.add_option("file", o.file, "M.fir, M.onnx, or config:NAME for that configuration's training step")->required();
  app.add_option("--func", o.function, "which function (the only one, else forward)");
  auto *pipeline = app.add_option("--pipeline", o.pipeline)->check(CLI::IsMember({"infer", "train"}));
  app.add_option("--dim", o.dims, "a symbol's value: B=8");
  app.add_option("--fp8-select", o.fp8Select, kSelectHelp)->capture_default_str();
  app.add_option("--weights", o.weights, "fp8: linear layers keep theirs in FP8 alone, for inference")
      ->check(CLI::IsMember({"fp8"}));
  return {pipeline, addPrecision(app, o.precision)};
}

} // namespace

CommandLine parseCommandLine(int argc, const char *const *argv) {
  CLI::App app("Fusor: a graph compiler and fusion engine for transformers", "fusor");
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusor 0.1.0");
  app.get_formatter()->column_width(34);

  // The structs outlive the parse: the verb captures them.
  auto common = std::make_shared<CommonOptions>();
  CommandLine command;
  auto verb = [&](const char *name, const char *about) {
    CLI::App *sub = app.add_subcommand(name, about);
    addCommon(*sub, *common);
    return sub;
  };
  auto verbWith = [&]<typename Options>(const char *name, const char *about, std::shared_ptr<Options> options,
                                        int (*function)(const CommonOptions &, const Options &)) {
    CLI::App *sub = verb(name, about);
    sub->final_callback([&command, common, options, function] {
      command.run = [common, options, function] { return function(*common, *options); };
    });
    return sub;
  };

  for (auto [name, about, function] : {std::tuple{"doctor", "devices, libraries, modes, and what to fix", &doctor},
                                       {"demo", "train a small MiniGPT here, generate, show the fused kernels", &demo}})
    verb(name, about)->final_callback([&command, common, function = function] {
      command.run = [common, function] { return function(*common); };
    });

  auto trainOptions = std::make_shared<TrainOptions>();
  CLI::App *trainApp = verbWith("train", "train a MiniGPT", trainOptions, train);
  addTrain(*trainApp, *trainOptions);
  auto generateOptions = std::make_shared<GenerateOptions>();
  addGenerate(*verbWith("generate", "tokens from a checkpoint", generateOptions, generate), *generateOptions);
  auto benchOptions = std::make_shared<BenchOptions>();
  addBench(*verbWith("bench", "time a part on this device", benchOptions, bench), *benchOptions);

  auto optOptions = std::make_shared<OptOptions>();
  CLI::App *optApp = verbWith("opt", "run passes over a module and print it", optOptions, opt);
  ModuleFlags optFlags = addModule(*optApp, *optOptions);
  optApp->add_option("--passes", optOptions->passes, "names, with commas")->delimiter(',')->excludes(optFlags.pipeline);
  optApp->add_option("--print-after", optOptions->printAfter, "all, or a pass's name");
  optApp->add_option("-o", optOptions->output, "write the module here instead of stdout");

  auto explainOptions = std::make_shared<ExplainOptions>();
  CLI::App *explainApp = verbWith("explain", "what was fused, what nearly, and why not", explainOptions, explain);
  ModuleFlags explainFlags = addModule(*explainApp, *explainOptions);
  explainApp->add_option("--rule", explainOptions->rule, "only this rule");

  auto emitOptions = std::make_shared<EmitOptions>();
  CLI::App *emitApp = verbWith("emit", "the CUDA sources of a module; needs no GPU", emitOptions, emit);
  ModuleFlags emitFlags = addModule(*emitApp, *emitOptions);
  emitApp->add_option("--arch", emitOptions->archs, "sm_75,sm_90a: also compile, where an NVRTC is found")
      ->delimiter(',');
  emitApp->add_option("--out", emitOptions->out, "folder; left out: sources on stdout");

  auto runOptions = std::make_shared<RunOptions>();
  CLI::App *runApp = verbWith("run", "run a module on .npy files", runOptions, run);
  ModuleFlags runFlags = addModule(*runApp, *runOptions);
  auto *inputs = runApp->add_option("--input", runOptions->inputs, "NAME=F.npy");
  runApp->add_option("--inputs", runOptions->inputsFolder, "folder of input_<i>_<name>.npy")->excludes(inputs);
  runApp->add_option("--outputs", runOptions->outputsFolder, "writes output_<i>_<name>.npy into this folder");
  runApp->add_option("--expect", runOptions->expectFolder, "folder of output_<i>_<name>.npy to compare with");
  runApp->add_option("--atol", runOptions->atol)->capture_default_str();
  runApp->add_option("--rtol", runOptions->rtol)->capture_default_str();
  runApp->add_option("--repeat", runOptions->repeat, "runs it so often again and says how long a run takes")
      ->check(CLI::Range(0, 1000000));

  auto importOptions = std::make_shared<ImportOptions>();
  CLI::App *importApp =
      verbWith("import", "read an ONNX model: what is in it, what cannot be read", importOptions, importModel);
  importApp->add_option("file", importOptions->file, "M.onnx")->required();
  importApp->add_option("-o", importOptions->output, "write the module here, as IR text");

  auto reportOptions = std::make_shared<ReportOptions>();
  CLI::App *reportApp = verbWith("report", "one HTML page from a dump", reportOptions, report);
  reportApp->add_option("folder", reportOptions->folder, "what --dump wrote")->required();
  reportApp->add_option("-o", reportOptions->output, "write the page here instead of FOLDER/report.html");

  auto opsOptions = std::make_shared<OpsOptions>();
  verbWith("ops", "the op table", opsOptions, ops)->add_flag("--markdown", opsOptions->markdown);
  auto fuzzOptions = std::make_shared<FuzzOptions>();
  verbWith("fuzz", "random graphs, fused against the reference", fuzzOptions, fuzz)
      ->add_option("--seconds", fuzzOptions->seconds)
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();

  auto cacheOptions = std::make_shared<CacheOptions>();
  CLI::App *cacheApp = verbWith("cache", "the kept kernels and GEMM plans", cacheOptions, cache);
  cacheApp->add_option("action", cacheOptions->action, "stats, verify, clear, export F or import F")
      ->required()
      ->check(CLI::IsMember({"stats", "verify", "clear", "export", "import"}));
  cacheApp->add_option("file", cacheOptions->file, "of export and import");

  auto replayOptions = std::make_shared<ReplayOptions>();
  CLI::App *replayApp =
      verbWith("replay", "compile, run, compare and time a dumped, perhaps edited, kernel", replayOptions, replay);
  replayApp->add_option("folder", replayOptions->folder, "DIR/kernels/NAME of a dump with --dump-inputs")->required();
  auto *installs = replayApp->add_flag("--install", replayOptions->installs, "later runs on a GPU use the edited text");
  replayApp->add_flag("--uninstall", replayOptions->uninstalls, "they use the generated one again")->excludes(installs);

  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](const CLI::App *sub) { return sub->get_name() == argv[1]; }).empty()) {
    std::fprintf(stderr, "error: there is no verb '%s'\nnote: `fusor --help` lists them\n", argv[1]);
    return {nullptr, kUsage};
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0) return {nullptr, app.exit(e)}; // --help, --version
    std::string about = "fusor";
    for (const CLI::App *sub : app.get_subcommands()) about += " " + sub->get_name();
    std::fprintf(stderr, "error: %s\nnote: `%s --help` lists what there is\n", e.what(), about.c_str());
    return {nullptr, kUsage};
  }
  for (const CLI::Option *option : trainApp->get_options())
    if (option->count() > 0) trainOptions->given.push_back(option->get_name());
  for (CLI::App *group : trainApp->get_subcommands({}))
    for (const CLI::Option *option : group->get_options())
      if (option->count() > 0) trainOptions->given.push_back(option->get_name());
  for (auto [flags, options] : {std::pair{&optFlags, static_cast<ModuleOptions *>(optOptions.get())},
                                {&explainFlags, explainOptions.get()},
                                {&emitFlags, emitOptions.get()},
                                {&runFlags, runOptions.get()}}) {
    options->pipelineGiven = flags->pipeline->count() > 0;
    options->precisionGiven = flags->precision->count() > 0;
  }
  return command;
}

} // namespace fusor::frontend::cli
