// What the importer makes of small graphs, and what it says of wrong ones.
#include "tests/onnx/model_builder.h"
#include "tests/runtime/temporary_folder.h"
#include "gtest/gtest.h"
#include <sys/stat.h>
#include <unistd.h>

namespace fusor::tests {
namespace {

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)
#define EXPECT_SILENT(text, part) EXPECT_EQ(std::string(text).find(part), std::string::npos) << (text)

TEST(Import, SymbolicSizesKeepTheirNames) {
  ModelBuilder m;
  m.input("x", {"batch", "8"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_SAYS(m.imported(), "%y = relu %x : f32[batch, 8]");
}

TEST(Import, UnknownSizesAreNotEqual) {
  ModelBuilder m;
  m.input("a", {"-1"}).input("b", {"-1"}).output("y");
  m.node("Add", {"a", "b"}, {"y"});
  EXPECT_SAYS(m.imported(), "operands must broadcast to one shape");
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape leaves nothing but the reshape.
TEST(Import, ShapeArithmeticIsDoneAtImport) {
  ModelBuilder m;
  m.input("x", {"B", "T", "12"}).output("y");
  m.ints("zero", {0}).ints("rest", {-1, 3, 4});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"b"});
  m.node("Concat", {"b", "rest"}, {"to"}).mutable_attribute();
  ModelBuilder::attribute(*m.model.mutable_graph()->mutable_node(2), "axis", 0);
  m.node("Reshape", {"x", "to"}, {"y"});
  std::string text = m.imported();
  EXPECT_SAYS(text, "reshape %x {shape = [B, T, 3, 4]}");
  EXPECT_SILENT(text, "concat");
  EXPECT_SILENT(text, "gather");
}

TEST(Import, AllUnknownOperatorsAreListedAtOnce) {
  ModelBuilder m;
  m.input("x", {"2"}).output("z");
  m.node("Foo", {"x"}, {"y"});
  m.node("Bar", {"y"}, {"z"}).set_domain("acme");
  m.import("acme", 3);
  std::string text = m.imported();
  EXPECT_SAYS(text, "m.onnx: error: node 'n_y' (Foo of ai.onnx 21): there is no such operator in Fusor");
  EXPECT_SAYS(text, "node 'n_z' (Bar of acme 3): there is no such operator");
}

TEST(Import, AttributesAndInputsThatNobodyReadsAreRefused) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  ModelBuilder::attribute(m.node("Relu", {"x"}, {"y"}), "alpha", 1);
  EXPECT_SAYS(m.imported(), "attribute 'alpha' is not supported at this version");
  ModelBuilder n;
  n.input("x", {"2"}).output("y");
  n.node("Add", {"x", "x", "x"}, {"y"});
  EXPECT_SAYS(n.imported(), "input 2 is not one of this operator");
}

TEST(Import, NodesMayStandInAnyOrderButNotInACycle) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.node("Relu", {"t"}, {"y"});
  m.node("Neg", {"x"}, {"t"});
  EXPECT_SAYS(m.imported(), "relu %t");
  ModelBuilder n;
  n.input("x", {"2"}).output("y");
  n.node("Add", {"x", "z"}, {"y"});
  n.node("Neg", {"y"}, {"z"});
  EXPECT_SAYS(n.imported(), "the graph has a cycle");
}

TEST(Import, ASoftmaxBelowOpset13IsOverTheWholeTail) {
  for (auto [opset, axisShape] : {std::pair{11, "f32[1, 4]"}, {13, "f32[1, 2, 2]"}}) {
    ModelBuilder m(opset);
    m.input("x", {"1", "2", "2"}).output("y");
    m.node("Softmax", {"x"}, {"y"});
    EXPECT_SAYS(m.imported(), axisShape);
  }
}

TEST(Import, AnInputThatDecidesShapesIsAskedFor) {
  ModelBuilder m;
  m.input("x", {"6"}).input("to", {"2"}, kInt64).output("y");
  m.node("Reshape", {"x", "to"}, {"y"});
  EXPECT_SAYS(m.imported(), "shape depends on what is in input 'to', which is not known at import");
  onnx::ImportOptions options;
  int64_t to[2] = {2, 3};
  auto *bytes = reinterpret_cast<char *>(to);
  options.content = [&](unsigned i) -> std::optional<onnx::Data> {
    if (i != 1) return std::nullopt;
    return onnx::Data{ir::DType::i64, {2}, std::make_shared<const std::vector<char>>(bytes, bytes + 16)};
  };
  auto imported = onnx::importBytes(m.bytes(), "m.onnx", "", options);
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  EXPECT_EQ(imported->fixedInputs, std::vector<std::string>{"to"});
}

TEST(Import, ASliceToASizeNarrowsItsRange) {
  ModelBuilder m;
  m.input("x", {"1", "512"}).input("ids", {"1", "S"}, kInt64).output("y");
  m.ints("zero", {0}).ints("one", {1});
  m.node("Shape", {"ids"}, {"shape"});
  m.node("Gather", {"shape", "one"}, {"s"});
  m.node("Slice", {"x", "zero", "s", "one"}, {"y"});
  EXPECT_SAYS(m.imported(), "dim S in 1..512");
}

TEST(Import, TheLaterOfTwoConstantsWinsAndAnyOtherSecondIsAnError) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  for (float value : {1.0f, 2.0f}) {
    auto *a = m.node("Constant", {}, {"c"}).add_attribute();
    a->set_name("value_float"), a->set_type(1), a->set_f(value);
  }
  m.node("Mul", {"x", "c"}, {"y"});
  auto imported = onnx::importBytes(m.bytes(), "m.onnx", "");
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  ASSERT_EQ(imported->warnings.size(), 1u);
  EXPECT_SAYS(imported->warnings[0], "'c' is defined twice");
  EXPECT_SAYS(imported->module->str(), "= [2.0]");
  m.node("Neg", {"x"}, {"y"});
  EXPECT_SAYS(m.imported(), "'y' is defined twice");
}

TEST(Import, AFunctionThatCallsItselfIsAnError) {
  ModelBuilder m;
  m.import("own", 1);
  m.input("x", {"2"}).output("y");
  m.node("F", {"x"}, {"y"}).set_domain("own");
  auto *f = m.model.add_functions();
  f->set_name("F"), f->set_domain("own"), f->add_input("a"), f->add_output("b");
  auto *set = f->add_opset_import();
  set->set_domain("own"), set->set_version(1);
  auto *call = f->add_node();
  call->set_op_type("F"), call->set_domain("own"), call->add_input("a"), call->add_output("b");
  EXPECT_SAYS(m.imported(), "the function calls itself");
}

// --- tensors

TEST(Tensors, APayloadMustHaveExactlyTheSizeOfItsDims) {
  for (int bytes : {4, 12}) {
    ModelBuilder m;
    m.output("w");
    m.initializer("w", {2}, kFloat).set_raw_data(std::string(bytes, '\0'));
    EXPECT_SAYS(m.imported(), "initializer 'w' has " + std::to_string(bytes) + " bytes of raw_data, f32[2] needs 8");
  }
  ModelBuilder m;
  m.output("w");
  m.initializer("w", {2}, kFloat).add_float_data(1);
  EXPECT_SAYS(m.imported(), "has 1 entries in float_data, its dims ask for 2");
}

TEST(Tensors, DimsAreCheckedBeforeTheyAreMultiplied) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{-1}, {int64_t(1) << 40, int64_t(1) << 40}}) {
    ModelBuilder m;
    m.output("w");
    m.initializer("w", dims, kFloat);
    EXPECT_SAYS(m.imported(), dims[0] < 0 ? "has a negative dim, -1" : "has more elements than can be counted");
  }
}

TEST(Tensors, EntriesOfNarrowTypesMustBeTheirs) {
  ModelBuilder m;
  m.output("w", kInt8);
  m.initializer("w", {1}, kInt8).add_int32_data(128);
  EXPECT_SAYS(m.imported(), "has the entry 128 in int32_data, which is no i8");
}

TEST(Tensors, FnuzIsRefusedByName) {
  ModelBuilder m;
  m.output("w");
  m.initializer("w", {1}, 18).add_int32_data(1);
  EXPECT_SAYS(m.imported(), "float8e4m3fnuz: FNUZ types belong to other hardware");
}

// --- side files

std::string withLocation(const std::string &location, llvm::StringRef folder) {
  ModelBuilder m;
  m.output("w");
  onnx::Tensor &w = m.initializer("w", {2}, kFloat);
  w.set_data_location(1);
  auto *pair = w.add_external_data();
  pair->set_key("location"), pair->set_value(location);
  return m.imported({}, folder);
}

TEST(SideFiles, AreReadFromTheModelsFolder) {
  TemporaryFolder folder;
  folder.write("w.bin", llvm::StringRef("\0\0\x80\x3f\0\0\0\x40", 8));
  EXPECT_SAYS(withLocation("./w.bin", folder.path()), "[1.0, 2.0]");
  EXPECT_SAYS(withLocation("w.bin", ""), "a model in memory has no folder");
  EXPECT_SAYS(withLocation("missing.bin", folder.path()), "side file 'missing.bin' cannot be read: No such file");
}

TEST(SideFiles, NothingElseIsRead) {
  TemporaryFolder folder, outside;
  outside.write("w.bin", "12345678");
  folder.write("own.bin", "12345678");
  std::string target = outside.path("w.bin");
  ASSERT_EQ(symlink(target.c_str(), folder.path("link").c_str()), 0);
  ASSERT_EQ(symlink(outside.path().c_str(), folder.path("folder").c_str()), 0);
  ASSERT_EQ(link(target.c_str(), folder.path("hard").c_str()), 0);
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (auto [location, says] :
       std::vector<std::pair<std::string, const char *>>{{"../w.bin", "leads out of its folder"},
                                                         {"a/../../w.bin", "leads out of its folder"},
                                                         {target, "is absolute"},
                                                         {"C:w.bin", "names a drive"},
                                                         {"..\\w.bin", "has a backslash"},
                                                         {std::string("w.bin\0x", 7), "has a NUL"},
                                                         {"", "is empty"},
                                                         {".", "names no file"},
                                                         {"link", "is a symbolic link"},
                                                         {"folder/w.bin", "its location"},
                                                         {"hard", "is a hard link"},
                                                         {"pipe", "is no regular file"}})
    EXPECT_SAYS(withLocation(location, folder.path()), says);
}

// --- bytes

TEST(Bytes, EveryPrefixAndEveryFlippedBitIsSurvived) {
  ModelBuilder m;
  m.input("x", {"B", "4"}).output("y");
  m.ints("to", {-1, 2, 2});
  m.node("Reshape", {"x", "to"}, {"t"});
  m.node("Softmax", {"t"}, {"y"});
  std::string bytes = m.bytes();
  auto survives = [](const std::string &b) { // either answer is fine
    auto imported = onnx::importBytes(b, "m.onnx", "");
    if (!imported) llvm::consumeError(imported.takeError());
  };
  for (size_t n = 0; n < bytes.size(); ++n) survives(bytes.substr(0, n));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    survives(flipped);
  }
}

TEST(Bytes, NamesOfAFileAreMadeFitToBeShown) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.node("Foo", {"x"}, {"y"}).set_name("evil\n*/ #include <x>\x1b[31m");
  std::string text = m.imported();
  EXPECT_SAYS(text, "node 'evil?*/ #include <x>?[31m' (Foo");
}

} // namespace
} // namespace fusor::tests
