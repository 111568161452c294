#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/temporary_folder.h"

#include "llvm/Support/Endian.h"
#include <csignal>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fusor;
using namespace fusor::runtime;

namespace {

llvm::ArrayRef<uint8_t> bytesOf(llvm::StringRef text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// A file with this header and data.
std::string encodeSafetensors(llvm::StringRef header, llvm::StringRef data = "") {
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  return std::string(length, 8) + header.str() + data.str();
}

std::string openMessage(const std::string &path) {
  llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  return file ? "opened" : llvm::toString(file.takeError());
}

TEST(CheckpointSafetensors, RoundTripsAllDTypesEmptyAndScalarTensors) {
  TemporaryFolder folder;
  std::string path = folder.path("all.safetensors");
  std::vector<TensorInfo> infos;
  for (ir::DType dtype : ir::kAllDTypes) infos.push_back({"t." + ir::name(dtype).str(), dtype, {3, 5}});
  infos.push_back({"scalar", ir::DType::f32, {}});
  infos.push_back({"empty", ir::DType::bf16, {4, 0, 7}});
  infos.push_back({"quo\"te\n\xc3\xa9", ir::DType::u8, {1}});
  Metadata metadata = {{"step", "200"}, {"gemm plans", "{\"a\": 1}\n"}};

  auto writer = SafetensorsWriter::create(path, infos, metadata);
  ASSERT_TRUE(bool(writer)) << llvm::toString(writer.takeError());
  std::map<std::string, std::string> contents;
  for (size_t i = infos.size(); i-- > 0;) { // any order
    std::string &data = contents[infos[i].name];
    data.resize(*tensorBytes(infos[i].dtype, infos[i].shape));
    for (size_t j = 0; j < data.size(); ++j) data[j] = char(i * 31 + j);
    ASSERT_FALSE(writer->write(infos[i].name, bytesOf(data)));
  }
  ASSERT_FALSE(writer->commit());

  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->tensors().size(), infos.size());
  EXPECT_EQ(file->metadata(), metadata);
  for (const TensorInfo &info : infos) {
    const SafetensorsFile::Tensor *tensor = file->find(info.name);
    ASSERT_TRUE(tensor) << info.name;
    EXPECT_EQ(tensor->info.dtype, info.dtype);
    EXPECT_EQ(tensor->info.shape, info.shape);
    EXPECT_TRUE(tensor->bytes.equals(bytesOf(contents[info.name]))) << info.name;
    if (!tensor->bytes.empty()) {
      EXPECT_EQ(uintptr_t(tensor->bytes.data()) % ir::byteSize(info.dtype), 0u) << info.name;
    }
  }
  EXPECT_EQ(file->find("none"), nullptr);
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"all.safetensors"}) << "no temporary file is left";
}

TEST(CheckpointSafetensors, EqualContentsMakeEqualFiles) {
  TemporaryFolder folder;
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    auto writer = SafetensorsWriter::create(folder.path("a"), {{"b", ir::DType::i1, {1}}, {"a", ir::DType::f32, {1}}},
                                            {{"y", "1"}, {"x", "2"}});
    ASSERT_TRUE(bool(writer));
    ASSERT_FALSE(writer->write(i ? "a" : "b", bytesOf(i ? "abcd" : "\1")));
    ASSERT_FALSE(writer->write(i ? "b" : "a", bytesOf(i ? "\1" : "abcd")));
    ASSERT_FALSE(writer->commit());
    texts[i] = folder.read("a");
  }
  EXPECT_EQ(texts[0], texts[1]);
  std::string expected = R"({"__metadata__":{"x":"2","y":"1"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}})";
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(texts[0], encodeSafetensors(expected, "abcd\1"));
}

TEST(CheckpointSafetensors, NoTensorsAtAll) {
  TemporaryFolder folder;
  auto writer = SafetensorsWriter::create(folder.path("none"), {});
  ASSERT_TRUE(bool(writer));
  ASSERT_FALSE(writer->commit());
  auto file = SafetensorsFile::open(folder.path("none"));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->tensors().empty());
}

TEST(CheckpointSafetensors, ReadsTheReferenceOfPyTorch) {
  std::string path = std::string(FUSOR_SOURCE_DIR) + "/../shared/reference/minigpt_small/init.safetensors";
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "not on this machine: " << path;
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  const SafetensorsFile::Tensor *weight = file->find("blocks.0.fc1.weight");
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->info.shape, (llvm::SmallVector<int64_t, 4>{512, 128}));
  EXPECT_EQ(weight->bytes.size(), 512u * 128 * 4);
}

TEST(CheckpointSafetensors, HostileFilesAreRefusedWithTheReason) {
  TemporaryFolder folder;
  std::string eight(8, 'x');
  auto tensor = [](llvm::StringRef fields) { return ("{\"w\":{" + fields + "}}").str(); };
  struct {
    std::string contents;
    const char *message;
  } cases[] = {
      {"", "expected a safetensors file, which begins with 8 bytes of header length, found 0 bytes"},
      {"\1\2\3", "found 3 bytes"},
      {std::string(8, '\xff') + "{}", "found a length of 18446744073709551615"},
      {std::string("\0\0\0\0\1\0\0\0", 8) + "{}", "found a length of 4294967296"},
      {std::string("\x64\0\0\0\0\0\0\0", 8) + "{}", "expected a header of 100 bytes, found 2 bytes after its length"},
      {encodeSafetensors(""), "expected the header to begin with '{', found ''"},
      {encodeSafetensors("[]"), "expected the header to begin with '{', found '['"},
      {encodeSafetensors("{"), "not valid JSON at byte"},
      {encodeSafetensors("{}}"), "not valid JSON at byte"},
      {encodeSafetensors(llvm::StringRef("{}\0\0", 4)), "not valid JSON at byte"},
      {encodeSafetensors("{\"a\xff\":1}"), "not valid JSON at byte"},
      {encodeSafetensors("{\"w\":3}"), "tensor 'w': expected an object, found 3"},
      {encodeSafetensors("{\"w\":[]}"), "tensor 'w': expected an object, found an array"},
      {encodeSafetensors("{\"w\":null}"), "tensor 'w': expected an object, found null"},
      {encodeSafetensors("{\"w\":" + std::string(100000, '[')), "tensor 'w': expected an object, found an array"},
      {encodeSafetensors("{\"w\":" + std::string(5, '{') + "\"a\":"), "not valid JSON"},
      {encodeSafetensors("{\"__metadata__\":{\"step\":200}}"), "metadata: expected a string under 'step', found 200"},
      {encodeSafetensors("{\"__metadata__\":{\"step\":{}}}"), "metadata: expected a string under 'step', found an object"},
      {encodeSafetensors("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), "metadata: the key 'a' occurs twice"},
      {encodeSafetensors("{\"__metadata__\":{},\"__metadata__\":{}}"), "metadata: the name occurs twice"},
      {encodeSafetensors(tensor(R"("shape":[2],"data_offsets":[0,8])"), eight), "tensor 'w': the key 'dtype' is missing"},
      {encodeSafetensors(tensor(R"("dtype":"F32","data_offsets":[0,8])"), eight), "tensor 'w': the key 'shape' is missing"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2])"), eight), "tensor 'w': the key 'data_offsets' is missing"},
      {encodeSafetensors(tensor(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"), eight),
       "tensor 'w': the key 'dtype' occurs twice"},
      {encodeSafetensors(tensor(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), eight),
       "tensor 'w': expected a known dtype (F32, BF16, F8_E4M3, I64, BOOL, ...), found 'F33'"},
      {encodeSafetensors(tensor(R"("dtype":32,"shape":[2],"data_offsets":[0,8])"), eight),
       "tensor 'w': expected a string under 'dtype', found 32"},
      {encodeSafetensors(tensor(R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])"), eight),
       "tensor 'w': expected a string under 'dtype', found an array"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), eight),
       "tensor 'w': expected an array under 'shape', found 2"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":"2","data_offsets":[0,8])"), eight),
       "tensor 'w': expected an array under 'shape', found the string '2'"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), eight),
       "tensor 'w': expected extents from 0 to 2^63-1 in the shape, found -2"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])"), eight), "in the shape, found 2.5"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[1e400],"data_offsets":[0,8])"), eight), "not valid JSON"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), eight), "in the shape, found an array"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"), eight),
       "in the shape, found 18446744073709551615"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"), eight),
       "tensor 'w': the product of the shape [4294967296, 4294967296] is too large"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), eight), "expected two data_offsets, found 1"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4,8])"), eight),
       "expected two data_offsets, found more"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[-1,8])"), eight),
       "expected offsets from 0 to 2^63-1 in data_offsets, found -1"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), eight),
       "tensor 'w': expected data_offsets in order, found [8, 0]"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "1234567"),
       "tensor 'w': expected data_offsets within the 7 bytes of data, found [0, 8]; the file is cut off"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,9223372036854775807])"), eight),
       "expected data_offsets within the 8 bytes of data"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), eight + "x"),
       "expected 8 bytes of data, found 9; nothing in the header describes the rest"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), eight),
       "tensor 'w': expected 12 bytes for F32[3], found data_offsets [0, 8] (8 bytes)"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), eight),
       "tensor 'w': expected data from byte 0, found data_offsets [4, 8], which leave a hole"},
      {encodeSafetensors(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1)"), eight),
       "tensor 'w': expected the keys dtype, shape and data_offsets, found 'more'"},
      {encodeSafetensors(
           R"({"v":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
           eight),
       "tensor 'w': expected data from byte 5, found data_offsets [4, 8], which overlap tensor 'v'"},
      {encodeSafetensors(
           R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"w":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
           eight),
       "tensor 'w': the name occurs twice"},
      {encodeSafetensors("{\"a\\u0000\\n" + std::string(500, 'b') + "\":1}"), "tensor 'a\\00\\0Abbb"},
  };
  for (const auto &hostile : cases) {
    folder.write("h", hostile.contents);
    std::string message = openMessage(folder.path("h"));
    EXPECT_NE(message.find(hostile.message), std::string::npos)
        << "found:    " << message << "\nexpected: " << hostile.message;
    EXPECT_EQ(message.find(folder.path("h") + ": "), 0u) << "the message names the file: " << message;
    EXPECT_LT(message.size(), 500u + folder.path("h").size());
  }
}

TEST(CheckpointSafetensors, EveryTruncationIsRefused) {
  TemporaryFolder folder;
  std::string whole = encodeSafetensors(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  folder.write("w", whole);
  ASSERT_EQ(openMessage(folder.path("w")), "opened");
  for (size_t length = 0; length < whole.size(); ++length) {
    folder.write("w", whole.substr(0, length));
    EXPECT_NE(openMessage(folder.path("w")), "opened") << length << " bytes";
  }
}

TEST(CheckpointSafetensors, TensorsInAnyOrderOfTheHeader) {
  TemporaryFolder folder;
  folder.write(
      "w",
      encodeSafetensors(
          R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]},"e":{"dtype":"U8","shape":[0],"data_offsets":[5,5]},)"
          R"("a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})",
          "aaaaabbb"));
  auto file = SafetensorsFile::open(folder.path("w"));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->find("b")->bytes.equals(bytesOf("bbb")));
  EXPECT_EQ(file->tensors()[0].info.name, "a");
}

TEST(CheckpointSafetensors, WriterRefusesWhatIsNoFile) {
  TemporaryFolder folder;
  std::string path = folder.path("w");
  auto createMessage = [&](llvm::ArrayRef<TensorInfo> infos, const Metadata &metadata = {}) {
    auto writer = SafetensorsWriter::create(path, infos, metadata);
    return writer ? std::string("created") : llvm::toString(writer.takeError());
  };
  EXPECT_EQ(createMessage({{"a", ir::DType::f32, {1}}, {"a", ir::DType::f32, {1}}}),
            path + ": two tensors are called 'a'");
  EXPECT_EQ(createMessage({{"a\xff", ir::DType::f32, {1}}}), path + ": tensor name 'a\\FF' is not UTF-8 text");
  EXPECT_EQ(createMessage({}, {{"k", "\xff"}}), path + ": metadata 'k' is not UTF-8 text");
  EXPECT_EQ(createMessage({{"a", ir::DType::f32, {int64_t(1) << 62}}}),
            path + ": tensor 'a': shape [4611686018427387904] is too large");

  auto writer = SafetensorsWriter::create(path, {{"a", ir::DType::f32, {1}}, {"b", ir::DType::f32, {1}}});
  ASSERT_TRUE(bool(writer));
  EXPECT_EQ(llvm::toString(writer->write("c", {})), path + ": tensor 'c': was not announced when the file was created");
  EXPECT_EQ(llvm::toString(writer->write("a", bytesOf("123"))), path + ": tensor 'a': expected 4 bytes, found 3");
  EXPECT_FALSE(writer->write("a", bytesOf("1234")));
  EXPECT_EQ(llvm::toString(writer->write("a", bytesOf("1234"))), path + ": tensor 'a': is written twice");
  EXPECT_EQ(llvm::toString(writer->commit()), path + ": tensor 'b': was never written");
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "nothing was committed";
}

/// Writes 1 MiB of 'n' over `path`; whether it failed, as the CLI would ask: a FileError about writing, with this
/// errno.
int writeBig(const std::string &path) {
  std::string big(1 << 20, 'n');
  auto write = [&]() -> llvm::Error {
    auto writer = SafetensorsWriter::create(path, {{"w", ir::DType::u8, {1 << 20}}});
    if (!writer) return writer.takeError();
    if (llvm::Error error = writer->write("w", bytesOf(big))) return error;
    return writer->commit();
  };
  int errorNumber = 0;
  llvm::handleAllErrors(write(), [&](const FileError &error) {
    if (error.isWrite() && error.path() == path) errorNumber = error.code().value();
  });
  return errorNumber;
}

TEST(CheckpointSafetensors, AFullDiskLeavesTheOldFile) {
  TemporaryFolder folder;
  folder.write("w", "the old file");
  pid_t child = ::fork();
  if (child == 0) {
    // A file-size limit fails like a full disk: in the middle of the data.
    struct rlimit limit = {100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    ::_exit(writeBig(folder.path("w")) == EFBIG ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child saw another error than EFBIG";
  EXPECT_EQ(folder.read("w"), "the old file");
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"w"}) << "the temporary file is removed";
}

TEST(CheckpointSafetensors, ErrorsOfTheSystemCarryPathAndReason) {
  TemporaryFolder folder;
  EXPECT_EQ(writeBig(folder.path("none/w")), ENOENT);
  EXPECT_EQ(writeBig(folder.path("")), EISDIR);
  if (::access("/dev/full", W_OK) == 0) {
    EXPECT_EQ(writeBig("/dev/full"), ENOSPC);
    struct stat status;
    ASSERT_EQ(::stat("/dev/full", &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode)) << "a device is never replaced by a file";
  }
  folder.write("readonly", "old");
  ::chmod(folder.path("readonly").c_str(), 0444);
  if (::geteuid() != 0) {
    EXPECT_EQ(writeBig(folder.path("readonly")), EACCES);
  }
  EXPECT_EQ(openMessage(folder.path("absent")),
            "cannot read '" + folder.path("absent") + "': No such file or directory");
  EXPECT_EQ(openMessage(folder.path("")), "cannot read '" + folder.path("") + "': Is a directory");
}

TEST(CheckpointSafetensors, ASymbolicLinkKeepsPointing) {
  TemporaryFolder folder;
  folder.write("real", "old");
  ASSERT_EQ(::symlink("real", folder.path("latest").c_str()), 0);
  EXPECT_EQ(writeBig(folder.path("latest")), 0);
  EXPECT_EQ(folder.read("real").size(), folder.read("latest").size());
  EXPECT_EQ(openMessage(folder.path("real")), "opened");
}

} // namespace
