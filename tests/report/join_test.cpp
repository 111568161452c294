// What is joined from a folder, and what is said of folders that are none.
#include "frontend/report/graph.h"
#include "frontend/report/join.h"
#include "frontend/text/parser.h"
#include "ir/graph/layer_name.h"
#include "tests/report/small_dump.h"
#include "gtest/gtest.h"

namespace fusor::frontend {
namespace {

using llvm::json::Array;
using llvm::json::Object;

llvm::Expected<Object> dataOf(const std::string &folder) {
  auto dump = readDump(folder);
  if (!dump) return dump.takeError();
  return pageData(*dump);
}
Object mustHave(const std::string &folder) {
  auto data = dataOf(folder);
  if (data) return std::move(*data);
  ADD_FAILURE() << llvm::toString(data.takeError());
  return {};
}
std::string errorOf(const std::string &folder) {
  auto data = dataOf(folder);
  return data ? "no error" : llvm::toString(data.takeError());
}
const Object &at(const Object &data, llvm::StringRef list, size_t index) {
  static const Object none;
  const Array *array = data.getArray(list);
  if (array && index < array->size() && (*array)[index].getAsObject()) return *(*array)[index].getAsObject();
  ADD_FAILURE() << "no " << list.str() << "[" << index << "]";
  return none;
}
std::string text(const Object &object, llvm::StringRef key) { return object.getString(key).getValueOr("<none>").str(); }
int64_t integer(const Object &object, llvm::StringRef key) { return object.getInteger(key).getValueOr(-1); }

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ReportJoin, ALaunchKnowsItsNodeItsKernelAndItsGemm) {
  tests::SmallDump dump;
  Object data = mustHave(dump.path());
  const Object &step = at(data, "steps", 0);
  EXPECT_EQ(integer(step, "kernel"), 0);
  EXPECT_EQ(integer(step, "gemm"), 0);
  EXPECT_EQ(step.getNumber("start_ms").getValueOr(-1), 0) << "compiling is no part of the step";
  const Object &after = *data.getObject("graphs")->getObject("after");
  const Object &node = at(after, "nodes", integer(step, "node"));
  EXPECT_EQ(text(node, "name"), "linear_gelu");
  EXPECT_EQ(text(node, "kind"), "contraction");
  EXPECT_EQ(text(node, "result"), "%y");
  EXPECT_EQ(integer(node, "ops"), 2);
  EXPECT_SAYS(text(node, "text"), "%y = gelu %blocks.0.fc");
  EXPECT_EQ(text(at(data, "gemms", 0), "operands"), "f32[B, 4] x f32[8, 4]");
  const Object &kernel = at(data, "kernels", 0);
  EXPECT_EQ(integer(kernel, "registers"), 40);
  EXPECT_EQ(kernel.getArray("source")->size(), 2u) << "paragraphs";
}

TEST(ReportJoin, StartsAndNodesOfLaunches) {
  tests::SmallDump dump;
  dump.folder.write("steps.json", R"([
    {"name": "a", "op": 0, "fusion": "linear_gelu", "writes": [], "ms": 1, "kernel_set": ["linear_gelu__f32", "x"]},
    {"name": "b", "fusion": "linear_gelu", "writes": ["%nothing"], "ms": 2},
    {"name": "c", "op": 0, "fusion": "another", "ms": 4}])");
  Object cumulative = mustHave(dump.path());
  EXPECT_EQ(integer(at(cumulative, "steps", 0), "node"), 1) << "by the number of its op";
  EXPECT_EQ(at(cumulative, "steps", 0).getArray("kernel_set")->size(), 1u);
  EXPECT_EQ(integer(at(cumulative, "steps", 1), "node"), 1) << "by its fusion's name";
  EXPECT_FALSE(at(cumulative, "steps", 2).get("node"));
  EXPECT_EQ(at(cumulative, "steps", 2).getNumber("start_ms").getValueOr(-1), 3) << "one behind the other";
  dump.folder.write("trace.json", R"({"traceEvents": [{"ph": "X", "pid": 1, "ts": 0, "dur": 9},
    {"ph": "X", "pid": 2, "ts": 5000, "dur": 1000}, {"ph": "X", "pid": 2, "ts": 6500, "dur": 2000},
    {"ph": "X", "pid": 2, "ts": 9000, "dur": 4000}]})");
  Object traced = mustHave(dump.path());
  EXPECT_EQ(at(traced, "steps", 1).getNumber("start_ms").getValueOr(-1), 1.5) << "from trace.json, process 2";
  EXPECT_EQ(at(traced, "steps", 2).getNumber("start_ms").getValueOr(-1), 4);
}

TEST(ReportJoin, OpsBeforeFusionKnowWhatTheyBecame) {
  tests::SmallDump dump;
  Object data = mustHave(dump.path());
  const Object &before = *data.getObject("graphs")->getObject("before");
  EXPECT_EQ(text(before, "file"), "00_input.fir");
  ASSERT_EQ(before.getArray("nodes")->size(), 3u) << "%x, linear, gelu";
  EXPECT_EQ(text(at(before, "nodes", 0), "kind"), "input");
  const Object &linear = at(before, "nodes", 1);
  EXPECT_EQ(text(linear, "layer"), "blocks.0");
  EXPECT_EQ(integer(linear, "after"), 1) << "inside the fusion";
  EXPECT_EQ(integer(at(before, "nodes", 2), "after"), 1) << "its result";
  EXPECT_EQ((*linear.getArray("inputs"))[0].getAsInteger().getValueOr(-1), 0);
  EXPECT_EQ((*linear.getArray("reads"))[0].getAsString().getValueOr(""), "@blocks.0.fc.weight");
}

TEST(ReportJoin, DecisionsKnowTheirNodesInTheShownFunctionOnly) {
  tests::SmallDump dump;
  Object data = mustHave(dump.path());
  const Object &taken = at(data, "decisions", 0);
  ASSERT_TRUE(taken.getArray("before"));
  EXPECT_EQ(taken.getArray("before")->size(), 2u);
  EXPECT_EQ(taken.getArray("after")->size(), 1u);
  EXPECT_FALSE(at(data, "decisions", 1).get("after")) << "of @evaluate";
  EXPECT_FALSE(at(data, "decisions", 1).get("bytes_saved")) << "not said is not 0";
}

/// ONNX models have values called "61", wide ranges, and layers in the names of weights only.
TEST(ReportJoin, ModulesFromOnnx) {
  tests::SmallDump dump;
  const std::string head =
      "dim B in 1..65536\ndim T in 1..65536\ndim S in 1..65536\n"
      "param @encoder.layer.3.w : f32[4]\nfunc @forward(%x: f32[B, T, S, 4]) -> f32[B, T, S, 4] {\n";
  dump.folder.write("dump.json", R"({"format": 1, "symbols": {"B": 8, "T": 2, "S": 2}})");
  dump.folder.write("modules/00_input.fir", head + R"(  %"61" = mul %x, @encoder.layer.3.w : f32[B, T, S, 4]
  %"62" = gelu %"61" : f32[B, T, S, 4]
  return %"62"
}
)");
  dump.folder.write(
      "modules/02_fusion.fir",
      head + R"(  %"62" = fusion @mul_gelu(%x, %w = @encoder.layer.3.w) {kind = pointwise} : f32[B, T, S, 4] {
    %"61" = mul %x, %w : f32[B, T, S, 4]
    %"62" = gelu %"61" : f32[B, T, S, 4]
    yield %"62"
  }
  return %"62"
}
)");
  dump.folder.write("steps.json", R"([{"name": "mul_gelu", "writes": ["%\"62\""], "layer": "encoder.layer.3"}])");
  dump.folder.write("fusions.json", R"([{"kind": "taken", "values": ["61", "62"]}])");
  Object data = mustHave(dump.path());
  EXPECT_EQ(integer(at(data, "steps", 0), "node"), 1);
  EXPECT_EQ(text(at(*data.getObject("graphs")->getObject("after"), "nodes", 1), "layer"), "encoder.layer.3");
  const Object &before = *data.getObject("graphs")->getObject("before");
  EXPECT_EQ(integer(at(before, "nodes", 1), "after"), 1);
  EXPECT_EQ(text(at(before, "nodes", 1), "layer"), "encoder.layer.3") << "by what it reads";
  EXPECT_EQ(text(at(before, "nodes", 2), "layer"), "encoder.layer.3") << "by what it reads from";
  EXPECT_EQ(at(data, "decisions", 0).getArray("before")->size(), 2u);
}

TEST(ReportJoin, WhatAFolderLacksIsAbsentAndNotZero) {
  tests::SmallDump dump;
  for (const char *file : {"steps.json", "gemms.json", "plan.json", "fusions.json", "trace.json"})
    llvm::sys::fs::remove(dump.folder.path(file));
  llvm::sys::fs::remove_directories(dump.folder.path("kernels"));
  dump.folder.write("dump.json", R"({"format": 1})");
  Object data = mustHave(dump.path());
  for (const char *list : {"steps", "gemms", "kernels", "decisions", "has"})
    EXPECT_TRUE(data.getArray(list)->empty()) << list;
  EXPECT_TRUE(data.getObject("memory")->empty());
  EXPECT_FALSE(data.getObject("run")->get("step_ms"));
  EXPECT_EQ(data.getObject("graphs")->getObject("after")->getArray("nodes")->size(), 2u);
}

TEST(ReportJoin, Fp8HistoriesAreOnePointAStep) {
  tests::SmallDump dump;
  std::string lines;
  for (int step = 1; step <= 1000; ++step)
    lines += R"({"step": )" + std::to_string(step) + R"(, "loss": 2, "state": {"fc.input": {"amax": )" +
             (step == 1 ? "null" : "3") + R"(, "scale": 0.5, "amax_history": [0, 3]}}})" + "\n";
  dump.folder.write("fp8_trace.jsonl", lines);
  dump.folder.write("fp8_stats.json", R"({"fc.input": {"clipped": 0.25, "underflow": 0}})");
  Object data = mustHave(dump.path());
  const Object &fp8 = *data.getObject("fp8");
  EXPECT_EQ(fp8.getArray("steps")->size(), 120u);
  EXPECT_EQ(fp8.getArray("steps")->back().getAsInteger().getValueOr(0), 1000) << "the last step is always there";
  EXPECT_EQ(integer(fp8, "left_out"), 880);
  const Object &tensor = at(fp8, "tensors", 0);
  EXPECT_EQ(tensor.getArray("amax")->size(), 120u);
  EXPECT_EQ((*tensor.getArray("amax"))[0].getAsString().getValueOr(""), "not finite");
  EXPECT_EQ(tensor.getNumber("clipped").getValueOr(-1), 0.25);
}

TEST(ReportGraph, PhasesOfATrainingStep) {
  auto module = llvm::cantFail(parseModule(R"(param @h.1.w : f32[4]
state @adamw.step : i32[]
state @m : f32[4]
state @v : f32[4]
state @lr : f32[]
func @train_step(%x: f32[4]) -> f32[], f32[4] {
  %h.1.y = mul %x, @h.1.w : f32[4]
  %loss = sum %h.1.y {dims = [0]} : f32[]
  %0 = cast %x {to = f32} : f32[4]
  %d.h.1.w = mul %0, %x : f32[4]
  %1 = constant {dtype = i32, value = 1.0} : i32[]
  %new.step = add @adamw.step, %1 : i32[]
  %new.w, %new.m, %new.v = adamw @h.1.w, %d.h.1.w, @m, @v, %new.step, @lr : f32[4], f32[4], f32[4]
  %h.1.w.ready = mul %new.w, %new.w : f32[4]
  return %loss, @adamw.step = %new.step, @h.1.w = %new.w, @m = %new.m, @v = %new.v, %h.1.w.ready
}
)",
                                           "t.fir"));
  std::string phases;
  for (const GraphNode &node : graphOf(*module->functions()[0])) phases += name(node.phase).take_front(3).str() + " ";
  EXPECT_EQ(phases, "for for for bac bac opt opt opt opt ");
}

// The dump's launches and the report's nodes are of one layer: both ask ir::layerOfName.
TEST(ReportGraph, LayersOfNames) {
  for (auto [name, layer] :
       std::vector<std::pair<const char *, const char *>>{{"blocks.0.fc1.weight", "blocks.0"},
                                                          {"d.blocks.11.fc1", "blocks.11"},
                                                          {"new.adamw.m.blocks.3.qkv.bias", "blocks.3"},
                                                          {"amax.h.2.proj.input", "h.2"},
                                                          {"encoder.layer.3.attention", "encoder.layer.3"},
                                                          {"decoder.layer.3.attention", "decoder.layer.3"},
                                                          {"/encoder/layer.3/attention/MatMul", "encoder/layer.3"},
                                                          {"ln_f.weight", ""},
                                                          {"blocks.0", ""},
                                                          {"x.1", ""},
                                                          {"61.2.x", ""},
                                                          {"", ""}})
    EXPECT_EQ(ir::layerOfName(name), layer) << name;
}

TEST(ReportGraph, LayersOfOneModelsTwoStacksAreTwo) {
  auto module = llvm::cantFail(parseModule(R"(
func @forward(%x: f32[4]) -> f32[4] {
  %encoder.layer.0.out = neg %x : f32[4]
  %decoder.layer.0.out = neg %encoder.layer.0.out : f32[4]
  return %decoder.layer.0.out
}
)",
                                           "t.fir"));
  std::vector<std::string> layers;
  for (const GraphNode &node : graphOf(*module->functions()[0])) layers.push_back(node.layer);
  EXPECT_EQ(layers, (std::vector<std::string>{"", "encoder.layer.0", "decoder.layer.0"}));
}

TEST(ReportFolder, WhatIsWrongIsSaidWithTheFileAndWhatToDo) {
  struct Case {
    const char *file, *contents, *says;
  };
  for (const Case &c : {
           Case{"dump.json", "{\"format\": 2}", "dump.json: format 2 is newer than this fusor reads (1)"},
           Case{"dump.json", "{}", "dump.json: expected \"format\""},
           Case{"dump.json", "[1]", "dump.json: expected an object, found an array"},
           Case{"steps.json", "[{\"index\": 0, \"na", "steps.json: damaged or cut short, it is no JSON from [1:"},
           Case{"steps.json", "{}", "steps.json: expected an array of objects, found an object"},
           Case{"gemms.json", "[{}, 7]", "gemms.json: entry 1: expected an object, found a number"},
           Case{"fp8_trace.jsonl", "{\"step\": 1}\n{\"st", "fp8_trace.jsonl:2: damaged or cut short"},
           Case{"kernels/linear_gelu__f32/kernel.json", "", "kernel.json: damaged or cut short"},
           Case{"modules/02_fusion.fir", "func @f(", "02_fusion.fir:1:"},
           Case{"modules/02_fusion.fir", "module @m\n", "02_fusion.fir: no function in it"},
       }) {
    tests::SmallDump dump;
    dump.folder.write(c.file, c.contents);
    EXPECT_SAYS(errorOf(dump.path()), c.says);
  }
  tests::SmallDump dump;
  dump.folder.write("plan.json", std::string(100000, '['));
  EXPECT_SAYS(errorOf(dump.path()), "plan.json: more than 64 brackets inside each other");
  llvm::sys::fs::remove(dump.folder.path("modules/02_fusion.fir"));
  llvm::sys::fs::remove(dump.folder.path("plan.json"));
  EXPECT_SAYS(errorOf(dump.path()), "02_fusion.fir: named in modules/index.json, and not there");
  TemporaryFolder empty;
  EXPECT_SAYS(errorOf(empty.path()), "no dump: it has no dump.json");
  EXPECT_SAYS(errorOf(empty.path("absent")), "expected a dump folder, found nothing there");
  empty.write("file", "x");
  EXPECT_SAYS(errorOf(empty.path("file")), "expected a dump folder, found a file");
}

TEST(ReportFolder, FieldsOfAnotherTypeAreLeftOut) {
  tests::SmallDump dump;
  dump.folder.write("steps.json", R"([{"index": 0, "name": ["a"], "kind": 7, "ms": "fast", "kernel": {}, "gemm": 99,
    "reads": "x", "writes": [1, "%y"], "locations": {"a": 1}}])");
  Object data = mustHave(dump.path());
  const Object &step = at(data, "steps", 0);
  EXPECT_FALSE(step.get("name"));
  EXPECT_EQ(text(step, "kind"), "7");
  EXPECT_FALSE(step.get("ms"));
  EXPECT_FALSE(step.get("gemm"));
  EXPECT_EQ(integer(step, "node"), 1) << "by %y";
}

} // namespace
} // namespace fusor::frontend
