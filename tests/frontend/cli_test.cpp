// The command, run as a user runs it: exit codes, messages, JSON.
#include "frontend/api/tensor_files.h"
#include "runtime/cache/cache.h"
#include "tests/frontend/command.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/wait.h>

using namespace fusor::tests;

namespace {

constexpr const char *kTrain = "train --config tiny --batch 4 --device cpu ";

TEST(Cli, UsageErrorsAre64) {
  for (auto [arguments, says] : std::vector<std::pair<const char *, const char *>>{
           {"", "error: "},
           {"nonsense", "error: there is no verb 'nonsense'"},
           {"train --steps many", "error: --steps"},
           {"train --unknown-flag", "error: "},
           {"train --precision f64", "error: --precision"},
           {"train --device gpu --config tiny", "error: --device must be auto, cpu, cuda or cuda:N, is 'gpu'"},
           {"generate --checkpoint c --prompt 3 --save d",
            "error: --save writes weights in FP8: it needs --weights fp8"},
           {"run config:tiny --weights fp8", "error: --weights fp8 is for inference: add --pipeline infer"},
           {"train --fp8-stats", "error: --fp8-stats needs --precision fp8"},
           {"explain config:tiny --fp8-select fc1", "error: --fp8-select needs --precision fp8"},
           {"train --recompute full", "error: --recompute full is not available yet"},
           {"train --amax-history 4", "error: --amax-history needs --precision fp8"},
           {"train --save-every 5", "error: --save-every needs --save DIR"},
           {"train --eval 10 --config tiny", "error: --eval holds out"},
           {"train --no-decay '('", "error: --no-decay: '(' is no regular expression"},
           {"replay somewhere --flag", "error: "},
           {"train --config tiny --dump-inputs gelu", "error: --dump-inputs needs --dump DIR"},
           {"train --config tiny --dump d --dump-inputs '('", "error: --dump-inputs: '(' is no regular expression"},
           {"bench norm --dump d", "error: --dump is of one program: bench train or infer, with one --precision"},
           {"replay somewhere --install --uninstall", "excludes"},
           {"replay somewhere --install --strict", "error: --strict runs no edited kernels"},
           {"cache look", "look not in"},
           {"cache export", "error: `fusor cache export` needs a file"},
           {"cache stats F", "error: `fusor cache stats` takes no file"},
           {"opt config:tiny --print-after nothing", "error: --print-after: there is no pass called 'nothing'"}}) {
    Ran ran = runFusor(arguments);
    EXPECT_EQ(ran.exit, 64) << arguments << "\n" << ran.err;
    EXPECT_SAYS(ran.err, says);
    EXPECT_EQ(ran.out, "") << arguments;
  }
}

TEST(Cli, HelpAndVersionAre0) {
  EXPECT_EQ(runFusor("--help").exit, 0);
  EXPECT_EQ(runFusor("train --help").exit, 0);
  EXPECT_SAYS(runFusor("train --help").out, "--accumulate");
  EXPECT_SAYS(runFusor("--version").out, "fusor 0.1");
}

TEST(Cli, WrongInputIs1) {
  TemporaryFolder folder;
  std::ofstream(folder.path("bad.fir"))
      << "func @f(%x: f32[4]) -> f32[4] {\n  %y = add %x, %z : f32[4]\n  return %y\n}\n";
  Ran ran = runFusor("opt " + folder.path("bad.fir"));
  EXPECT_EQ(ran.exit, 1);
  EXPECT_SAYS(ran.err, "bad.fir:2:");
  EXPECT_SAYS(ran.err, ": error: ");
  EXPECT_EQ(runFusor("opt " + folder.path("absent.fir")).exit, 1);
  EXPECT_SAYS(runFusor("train --config absent").err,
              "error: there is no configuration 'absent'; there are tiny, small");
  EXPECT_EQ(runFusor("generate --checkpoint " + folder.path("none") + " --prompt 3").exit, 1);
  EXPECT_SAYS(runFusor("opt config:tiny --func nothing").err, "has no function @nothing");
}

TEST(Cli, ADeviceThatIsNotHereIs69) {
  Ran ran = runFusor("train --config tiny --device cuda:77");
  EXPECT_EQ(ran.exit, 69);
  EXPECT_SAYS(ran.err, "error: device 'cuda:77' is not here");
}

TEST(Cli, WhatCannotBeWrittenIs74) {
  Ran ran = runFusor(std::string(kTrain) + "--steps 1 --save /dev/null/folder");
  EXPECT_EQ(ran.exit, 74) << ran.err;
  EXPECT_SAYS(ran.err, "error: ");
  EXPECT_EQ(runFusor("opt config:tiny -o /dev/full").exit, 74);
  int status = std::system(FUSOR_BINARY_DIR "/fusor ops >/dev/full 2>/dev/null");
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 74);
}

TEST(Cli, AModelThatCannotFitIs75) {
  TemporaryFolder folder;
  std::ofstream(folder.path("huge.json"))
      << R"({"vocab":1000000000,"width":16384,"heads":16,"layers":1,"ffn":64,"context":32})";
  Ran ran = runFusor("train --device cpu --steps 1 --config " + folder.path("huge.json"));
  EXPECT_EQ(ran.exit, 75) << ran.err;
  EXPECT_SAYS(ran.err, "error: ");
}

TEST(Cli, BenchJsonHasTheFieldsOfTheContract) {
  for (auto [what, rows] : {std::pair{"gemm --m 32 --n 32 --k 32", 1u},
                            {"norm --rows 64 --columns 64", 8u},
                            {"train --config tiny --batch 2", 1u},
                            {"attention --batch 1 --seq 16 --heads 2 --head-size 8", 2u},
                            {"infer --config tiny --batch 2", 1u}}) {
    Ran ran = runFusor(std::string("bench ") + what + " --device cpu --iters 2 --warmup 1 --precision f32,bf16 --json");
    ASSERT_EQ(ran.exit, 0) << what << "\n" << ran.err;
    auto lines = objects(ran.out);
    ASSERT_EQ(lines.size(), 2 * rows) << what;
    for (const auto &line : lines) {
      for (const char *key : {"ms", "ms_min", "ms_max", "peak_bytes", "tflops", "roofline"})
        EXPECT_TRUE(line.getNumber(key)) << what << " " << key;
      EXPECT_GT(*line.getNumber("ms"), 0);
      bool isStep = line.getString("config").hasValue();
      for (const char *key : {"launches_per_step", "host_us_per_step", "compiled", "compile_ms"})
        EXPECT_EQ(line.getNumber(key).hasValue(), isStep) << key;
      for (const char *key : {"us", "copy_ratio", "gb_per_s"})
        EXPECT_EQ(line.getNumber(key).hasValue(), !isStep) << key;
    }
    EXPECT_TRUE(lines.back().getString("config") || lines.back().getString("shape"));
    EXPECT_EQ(lines.back().getString("precision").getValueOr(""), "bf16");
  }
}

TEST(Cli, ProfileListsAStepsKernels) {
  for (const char *verb : {"train --steps 2", "bench train --iters 2 --warmup 1"}) {
    Ran ran = runFusor(std::string(verb) + " --config tiny --batch 2 --device cpu --precision f32 --json --profile");
    ASSERT_EQ(ran.exit, 0) << ran.err;
    double percent = 0, count = 0, launches = 0, flops = 0, roofline = 0, accounted = 0;
    for (const auto &line : objects(ran.out)) {
      if (line.getString("kernel")) {
        percent += line.getNumber("percent").getValueOr(0), count += line.getNumber("count").getValueOr(0);
        flops += line.getNumber("tflops").getValueOr(0);
        roofline = std::max(roofline, line.getNumber("roofline_percent").getValueOr(0));
      }
      if (auto launchesMs = line.getNumber("profile_ms")) {
        launches = line.getNumber("launches").getValueOr(0);
        accounted = *launchesMs + line.getNumber("idle_ms").getValueOr(-1);
      }
    }
    EXPECT_NEAR(percent, 100, 1e-6) << verb;
    EXPECT_GT(count, 10);
    EXPECT_EQ(count, launches);
    EXPECT_GT(flops, 0);
    EXPECT_GT(roofline, 1) << "no kernel comes near what the machine does best";
    EXPECT_GT(accounted, 0);
  }
}

TEST(Cli, CacheVerb) {
  TemporaryFolder folder;
  std::string at = " --cache " + folder.path("cache"), file = folder.path("all");
  auto cache = llvm::cantFail(::fusor::runtime::Cache::open(folder.path("cache")));
  for (const char *name : {"a", "b", "c"})
    llvm::cantFail(cache->put(*name == 'c' ? "gemm-plan" : "cubin",
                              ::fusor::runtime::CacheKeyBuilder().add("n", name).key(), name));
  Ran stats = runFusor("cache stats --json" + at);
  ASSERT_EQ(stats.exit, 0) << stats.err;
  auto line = objects(stats.out).at(0);
  EXPECT_EQ(line.getInteger("entries").getValueOr(0), 3);
  EXPECT_EQ(line.getObject("kinds")->getInteger("cubin").getValueOr(0), 2);
  EXPECT_EQ(runFusor("cache export " + file + at).exit, 0);
  EXPECT_SAYS(runFusor("cache clear" + at).out, "3 entries removed from ");
  EXPECT_SAYS(runFusor("cache stats" + at).out, ": 0 entries");
  EXPECT_SAYS(runFusor("cache import " + file + at).out, "3 entries read into ");
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(folder.path("cache") + "/v1/gemm-plan", code), end;
       it != end && !code; it.increment(code))
    if (!llvm::sys::fs::is_directory(it->path())) std::ofstream(it->path()) << "damaged";
  Ran verify = runFusor("cache verify" + at);
  EXPECT_EQ(verify.exit, 0);
  EXPECT_SAYS(verify.err, "note: cache: removed ");
  EXPECT_SAYS(verify.out, "2 entries are sound, 1 damaged ones removed");
  EXPECT_EQ(runFusor("cache export /dev/full" + at).exit, 74);
}

TEST(Cli, EmitWritesKernelsThatIncludeNothing) {
  TemporaryFolder folder;
  Ran ran = runFusor("emit config:tiny --precision bf16 --out " + folder.path("k"));
  ASSERT_EQ(ran.exit, 0) << ran.err;
  std::error_code code;
  int kernels = 0;
  for (llvm::sys::fs::directory_iterator it(folder.path("k"), code), end; it != end && !code; it.increment(code)) {
    std::string source = contents(it->path() + "/kernel.cu");
    EXPECT_SAYS(source, "extern \"C\" __global__");
    EXPECT_EQ(source.find("#include"), std::string::npos) << it->path();
    EXPECT_TRUE(bool(llvm::json::parse(contents(it->path() + "/kernel.json")))) << it->path();
    ++kernels;
  }
  EXPECT_GT(kernels, 20);
  EXPECT_EQ(runFusor("emit config:tiny --arch hopper --out " + folder.path("k")).exit, 64);
}

TEST(Cli, FuzzAgrees) {
  Ran ran = runFusor("fuzz --seconds 1 --seed 1000 --json");
  EXPECT_EQ(ran.exit, 0) << ran.err << ran.out;
  EXPECT_GT(*objects(ran.out).at(0).getInteger("graphs"), 3);
}

TEST(Cli, TrainJsonHasTheFieldsOfTheContract) {
  Ran ran = runFusor(std::string(kTrain) + "--steps 3 --json");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  auto lines = objects(ran.out);
  ASSERT_EQ(lines.size(), 4u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i].getInteger("step").getValueOr(0), i + 1);
    EXPECT_TRUE(lines[i].getNumber("loss") && lines[i].getNumber("ms"));
  }
  for (const char *key : {"final_loss", "ms_per_step", "peak_bytes", "launches_per_step", "kernels", "compiled",
                          "compile_ms", "host_us_per_step"})
    EXPECT_TRUE(lines[3].getNumber(key)) << key;
  EXPECT_EQ(lines[3].getString("device").getValueOr(""), "cpu");
  EXPECT_EQ(lines[3].getString("precision").getValueOr(""), "bf16");
  EXPECT_TRUE(lines[3].getObject("gemms") && lines[3].getObject("gemms")->getInteger("fp8"));
  ASSERT_TRUE(lines[3].getArray("fallbacks"));
  EXPECT_EQ(*lines[3].getNumber("final_loss"), *lines[2].getNumber("loss"));
}

TEST(Cli, TrainSaysTheFinalLoss) {
  Ran ran = runFusor(std::string(kTrain) + "--steps 2");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_SAYS(ran.out, "\nfinal loss 4.");
  EXPECT_SAYS(ran.out, "step    1/2  loss 4.");
  Ran quiet = runFusor(std::string(kTrain) + "--steps 2 --quiet");
  EXPECT_EQ(quiet.out.find("step "), std::string::npos) << quiet.out;
  EXPECT_SAYS(quiet.out, "final loss 4.");
}

TEST(Cli, TrainResumeGenerate) {
  TemporaryFolder folder;
  std::string save = " --save " + folder.path("c");
  ASSERT_EQ(runFusor(std::string(kTrain) + "--steps 2 --seed 9 --lr 0.002" + save).exit, 0);
  Ran resumed = runFusor("train --device cpu --resume " + folder.path("c") + save + " --steps 4 --json");
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  Ran whole = runFusor(std::string(kTrain) + "--steps 4 --seed 9 --lr 0.002 --json");
  auto a = objects(resumed.out), b = objects(whole.out);
  ASSERT_EQ(a.size(), 3u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*a[i].getNumber("loss"), *b[i + 2].getNumber("loss"));
  EXPECT_EQ(runFusor("train --resume " + folder.path("c") + " --config small --steps 9").exit, 1);

  Ran generated = runFusor("generate --checkpoint " + folder.path("c") + " --prompt '3 5 7' --new-tokens 6 --json");
  ASSERT_EQ(generated.exit, 0) << generated.err;
  auto tokens = objects(generated.out);
  ASSERT_EQ(tokens.size(), 1u);
  EXPECT_EQ(tokens[0].getArray("tokens")->size(), 6u);
  Ran longer = runFusor("generate --checkpoint " + folder.path("c") + " --prompt '3 5 7' --new-tokens 20 --json");
  auto more = objects(longer.out);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(*tokens[0].getInteger("plans"), *more[0].getInteger("plans")) << "more tokens plan nothing new";
  Ran uncached = runFusor("generate --checkpoint " + folder.path("c") +
                          " --prompt '3 5 7' --new-tokens 40 --json --precision f32 --no-kv-cache");
  Ran cached = runFusor("generate --checkpoint " + folder.path("c") +
                        " --prompt '3 5 7' --new-tokens 40 --json --precision f32");
  ASSERT_EQ(uncached.exit, 0) << uncached.err;
  auto without = objects(uncached.out), with = objects(cached.out);
  EXPECT_EQ(*without[0].getArray("tokens"), *with[0].getArray("tokens"));
  EXPECT_EQ(with[0].getArray("tokens")->size(), 30u); // context 32: the last one comes from a full context
  EXPECT_GT(*without[0].getNumber("tokens_per_s"), 0);
  EXPECT_EQ(*without[0].getInteger("plans"), 1);
  Ran plain = runFusor("generate --quiet --checkpoint " + folder.path("c") + " --prompt '3 5 7' --new-tokens 6");
  EXPECT_EQ(llvm::StringRef(plain.out).rtrim().count(' '), 5u) << plain.out;
  EXPECT_EQ(runFusor("generate --checkpoint " + folder.path("c") + " --prompt '3 x'").exit, 64);
  EXPECT_EQ(runFusor("generate --checkpoint " + folder.path("c") + " --prompt '3 96'").exit, 1);
  EXPECT_EQ(runFusor("generate --checkpoint " + folder.path("c") + " --text hello").exit, 1);
}

TEST(Cli, WeightsInFp8AreSmallerAndMakeACheckpoint) {
  TemporaryFolder folder;
  std::string wide = folder.path("c"), narrow = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kTrain) + "--steps 2 --save " + wide).exit, 0);
  Ran ran = runFusor("generate --device cpu --checkpoint " + wide + " --weights fp8 --save " + narrow);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_SAYS(ran.out, "weights of linear layers: 96.0 KiB in FP8, 0.50 of the 192 KiB in bf16");
  EXPECT_SAYS(ran.out, "checkpoint with these weights in " + narrow);
  std::string asked = " --device cpu --prompt '3 5 7' --new-tokens 6 --weights fp8 --json --checkpoint ";
  Ran first = runFusor("generate" + asked + wide), second = runFusor("generate" + asked + narrow);
  ASSERT_EQ(second.exit, 0) << second.err;
  auto one = objects(first.out), two = objects(second.out);
  EXPECT_EQ(*one[0].getArray("tokens"), *two[0].getArray("tokens"));
  EXPECT_LE(*two[0].getNumber("weight_bytes"), 0.55 * *two[0].getNumber("weight_bytes_bf16"));
  EXPECT_EQ(runFusor(std::string(kTrain) + "--steps 1 --init " + narrow + "/model.safetensors").exit, 0);
  EXPECT_SAYS(runFusor("explain config:tiny --pipeline infer --precision bf16 --weights fp8 --rule fp8-weights").out,
              "'head.weight': a head keeps its weight");
}

TEST(Cli, Fp8RunsSayScalesProductsAndLosses) {
  Ran ran = runFusor(std::string(kTrain) + "--precision fp8 --steps 2 --fp8-stats");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  for (const char *part : {"blocks.0.qkv.input           scale ", ", newest amaxes 0 ", "GEMMs of a step: 0 in bf16, ",
                           "24 in fp8", "blocks.1.fc2.grad_output     clipped 0.000 %, underflow "})
    EXPECT_SAYS(ran.out, part);
  ran = runFusor(std::string(kTrain) +
                 "--precision fp8 --steps 1 --fp8-stats --fp8-calibrate --fp8-skip-non-finite --json");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_SAYS(ran.err, "note: FP8 scales measured on the data of step 1, in bf16");
  llvm::json::Object last = objects(ran.out).back();
  EXPECT_EQ(*last.getObject("gemms")->getInteger("fp8"), 24);
  EXPECT_EQ(last.getObject("fp8_stats")->size(), 24u);
  EXPECT_TRUE(last.getObject("fp8_stats")->getObject("blocks.0.qkv.input")->getNumber("underflow"));
  EXPECT_EQ(last.getObject("fp8")->size(), 3u);
  EXPECT_EQ(last.getObject("fp8")->getObject("blocks.0.qkv.weight")->getArray("amax_history")->size(), 16u);
  ran = runFusor("explain config:tiny --precision fp8 --fp8-select auto --device cpu --rule fp8");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_SAYS(ran.err, "note: --fp8-select auto: cpu only emulates FP8");
  EXPECT_SAYS(ran.out, "fp8: 'blocks.0.qkv': cpu only emulates FP8, which is never faster");
}

TEST(Cli, DemoTrainsInBf16AndFp8) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "400 steps of `small` take minutes here, and other tests train both";
#endif
#endif
  Ran ran = runFusor("demo --device cpu");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  for (const char *part :
       {"final loss ", " (bf16 ", "after 200 steps: loss ", "generated in bf16  ", "generated in FP8 "})
    EXPECT_SAYS(ran.out, part);
}

TEST(Cli, CheckRunsEachKernelBesideItsBody) {
  for (const char *precision : {"f32", "bf16"}) {
    Ran ran = runFusor(std::string(kTrain) + "--steps 2 --check --precision " + precision);
    EXPECT_EQ(ran.exit, 0) << precision << ": " << ran.err;
    EXPECT_SAYS(ran.out, "final loss ");
  }
}

TEST(Cli, InterruptedIs130AfterSaving) {
  TemporaryFolder folder;
  Ran ran = runFusor(std::string(kTrain) + "--steps 1000000 --json --save " + folder.path("c"),
                     "timeout --foreground --preserve-status -s INT 1");
  EXPECT_EQ(ran.exit, 130) << ran.err;
  EXPECT_SAYS(ran.err, "warning: interrupted after step ");
  auto lines = objects(ran.out);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.back().getBoolean("interrupted").getValueOr(false), true);
  auto info = llvm::json::parse(contents(folder.path("c/checkpoint.json")));
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(*info->getAsObject()->getInteger("step"), *lines[lines.size() - 2].getInteger("step"));
}

TEST(Cli, OptPrintsModulesThatReadBack) {
  TemporaryFolder folder;
  ASSERT_EQ(runFusor("opt config:tiny --passes gradient,optimizer -o " + folder.path("a.fir")).exit, 0);
  EXPECT_SAYS(contents(folder.path("a.fir")), "func @train_step(");
  Ran again = runFusor("opt " + folder.path("a.fir"));
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, contents(folder.path("a.fir")));
  Ran fused = runFusor("opt config:tiny --precision bf16");
  EXPECT_EQ(fused.exit, 0) << fused.err;
  EXPECT_SAYS(fused.out, "fusion @");
  EXPECT_SAYS(fused.out, "bf16[");
  Ran printed = runFusor("opt config:tiny --passes gradient --print-after gradient --quiet");
  EXPECT_SAYS(printed.out, "// after gradient");
  EXPECT_EQ(runFusor("opt config:tiny --passes absent").exit, 1);
}

TEST(Cli, ExplainGivesReasons) {
  Ran ran = runFusor("explain config:tiny --precision bf16 --json");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  bool head = false;
  for (const auto &line : objects(ran.out)) {
    EXPECT_TRUE(line.getString("rule") && line.getString("reason"));
    head |= line.getString("reason")->contains("a head with 96 outputs");
  }
  EXPECT_TRUE(head);
}

TEST(Cli, RunReadsAndWritesNpyFiles) {
  TemporaryFolder folder;
  std::ofstream(folder.path("m.fir")) << "dim N in 1..64\nfunc @forward(%x: f32[N]) -> f32[N] {\n"
                                         "  %y = mul %x, %x : f32[N]\n  return %y\n}\n";
  std::string npy("\x93NUMPY\x01\x00", 8);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  header.resize(128 - 10 - 1, ' '), header += '\n';
  npy += static_cast<char>(header.size()), npy += '\0', npy += header;
  float x[] = {1, 2, 3};
  npy.append(reinterpret_cast<char *>(x), sizeof(x));
  std::ofstream(folder.path("input_0_x.npy")) << npy;
  std::string run = "run " + folder.path("m.fir") + " --device cpu ";
  Ran ran = runFusor(run + "--inputs " + folder.path("") + " --outputs " + folder.path("out"));
  ASSERT_EQ(ran.exit, 0) << ran.err;
  std::string written = contents(folder.path("out/output_0_y.npy"));
  ASSERT_GT(written.size(), 12u);
  float last = 0;
  std::memcpy(&last, written.data() + written.size() - 4, 4);
  EXPECT_EQ(last, 9);
  EXPECT_EQ(runFusor(run + "--input x=" + folder.path("input_0_x.npy") + " --expect " + folder.path("out")).exit, 0);
  std::ofstream(folder.path("out/output_0_y.npy")) << npy; // 1, 2, 3 instead of 1, 4, 9
  Ran differs = runFusor(run + "--inputs " + folder.path("") + " --expect " + folder.path("out"));
  EXPECT_EQ(differs.exit, 1);
  EXPECT_SAYS(differs.err, "2 of 3 elements differ");
  Ran missing = runFusor(run);
  EXPECT_EQ(missing.exit, 1);
  EXPECT_SAYS(missing.err, "input 'x' (f32[N]) is missing");
}

// A weight of 1e-5 and an input of 1e-4 are 0 in E4M3 where their scales are 1.
TEST(Cli, RunInFp8MeasuresItsScales) {
  TemporaryFolder folder;
  constexpr int64_t kSize = 16;
  std::string small, one; // 1e-5 and 1 on the diagonal
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    bool isDiagonal = i % (kSize + 1) == 0;
    small += (i ? ", " : "") + std::string(isDiagonal ? "1e-5" : "0.0");
    one += (i ? ", " : "") + std::string(isDiagonal ? "1.0" : "0.0");
  }
  std::ofstream(folder.path("m.fir")) << "const @w : f32[16, 16] = [" << small << "]\nconst @head : f32[16, 16] = ["
                                      << one
                                      << "]\nfunc @forward(%x: f32[2, 16]) -> f32[2, 16] {\n  %h = linear %x, @w : "
                                         "f32[2, 16]\n  %y = linear %h, @head : f32[2, 16]\n  return %y\n}\n";
  fusor::frontend::HostTensor x{fusor::ir::DType::f32, {2, kSize}, std::vector<char>(2 * kSize * sizeof(float))}, y = x;
  for (int64_t i = 0; i < 2 * kSize; ++i) {
    double value = 1e-4 * static_cast<double>(i % kSize + 1);
    fusor::ir::storeElement(x.dtype, x.bytes.data(), i, value), fusor::ir::storeElement(y.dtype, y.bytes.data(), i, 1e-5 * value);
  }
  ASSERT_FALSE(fusor::frontend::writeTensorFile(folder.path(""), "input_0_x", x));
  ASSERT_FALSE(fusor::frontend::writeTensorFile(folder.path("want"), "output_0_y", y));
  Ran ran =
      runFusor("run " + folder.path("m.fir") + " --device cpu --precision fp8 --json --atol 0 --rtol 0.07 --inputs " +
               folder.path("") + " --expect " + folder.path("want"));
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.err, "FP8 scales are those of these inputs");
  bool isRounded = false; // to 3 bits, so it is FP8 that was run
  for (const auto &line : objects(ran.out)) isRounded |= line.getNumber("max_abs_diff").getValueOr(0) > 2e-10;
  EXPECT_TRUE(isRounded) << ran.out;
}

} // namespace
