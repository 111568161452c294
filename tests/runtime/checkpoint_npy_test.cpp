#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/npy.h"
#include "tests/runtime/temporary_folder.h"

#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace fusor;
using namespace fusor::runtime;

namespace {

/// A version 1.0 file with this header text and data.
std::string encodeNpy(llvm::StringRef header, llvm::StringRef data = "") {
  std::string file("\x93NUMPY\1\0", 8);
  file += char(header.size());
  file += char(header.size() >> 8);
  return file + header.str() + data.str();
}

std::string readMessage(const std::string &path) {
  llvm::Expected<NpyArray> array = readNpy(path);
  return array ? "read" : llvm::toString(array.takeError());
}

TEST(CheckpointNpy, RoundTripsAllTypesAndShapes) {
  TemporaryFolder folder;
  for (ir::DType dtype : ir::kAllDTypes) {
    if (!npyDescr(dtype)) continue;
    for (llvm::SmallVector<int64_t, 4> shape :
         {llvm::SmallVector<int64_t, 4>{}, {5}, {2, 3}, {4, 0, 2}, {1, 2, 3, 4, 5}}) {
      std::vector<uint8_t> bytes(*tensorBytes(dtype, shape));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 7);
      ASSERT_FALSE(writeNpy(folder.path("a.npy"), dtype, shape, bytes));
      auto array = readNpy(folder.path("a.npy"));
      ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
      EXPECT_EQ(array->dtype, dtype);
      EXPECT_EQ(array->shape, shape);
      EXPECT_TRUE(array->bytes.equals(bytes));
      EXPECT_EQ(folder.read("a.npy").size() % 64, bytes.size() % 64) << "data begin at a multiple of 64";
    }
  }
}

TEST(CheckpointNpy, WritesWhatNumPyWrites) {
  TemporaryFolder folder;
  int32_t values[] = {1, 2};
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<uint8_t *>(values), 8);
  ASSERT_FALSE(writeNpy(folder.path("a.npy"), ir::DType::i32, {2}, bytes));
  // numpy 1.26: np.save('a.npy', np.array([1, 2], 'i4'))
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  EXPECT_EQ(folder.read("a.npy"), encodeNpy(header + "\n", std::string("\1\0\0\0\2\0\0\0", 8)));
}

TEST(CheckpointNpy, ReadsOtherSpellings) {
  TemporaryFolder folder;
  for (const char *header : {"{'shape': (2L, 1), 'fortran_order': False, 'descr': '=i2'}\n",
                             "{\"descr\":\"<i2\",\"fortran_order\":False,\"shape\":(2,1,),}",
                             "  {'descr':'<i2',"
                             "'fortran_order' : False , 'shape' : ( 2 , 1 ) }  "}) {
    folder.write("a.npy", encodeNpy(header, "abcd"));
    auto array = readNpy(folder.path("a.npy"));
    ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
    EXPECT_EQ(array->dtype, ir::DType::i16);
    EXPECT_EQ(array->shape, (llvm::SmallVector<int64_t, 4>{2, 1}));
  }
  std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n";
  folder.write("a.npy", encodeNpy(header, "abc"));
  EXPECT_EQ(readMessage(folder.path("a.npy")), "read") << "one axis is the same in both orders";
  std::string second = std::string("\x93NUMPY\2\0", 8) + char(header.size()) + std::string(3, '\0') + header + "abc";
  folder.write("a.npy", second);
  EXPECT_EQ(readMessage(folder.path("a.npy")), "read") << "version 2.0";
}

TEST(CheckpointNpy, ReadsTheReferenceTokens) {
  for (const char *config : {"minigpt_small", "minigpt_recent"}) {
    std::string path = std::string(FUSOR_SOURCE_DIR) + "/../shared/reference/" + config + "/tokens.npy";
    if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "not on this machine: " << path;
    auto array = readNpy(path);
    ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
    EXPECT_EQ(array->dtype, ir::DType::i32);
    EXPECT_EQ(array->shape, (llvm::SmallVector<int64_t, 4>{24, 8, 65}));
    for (int64_t i = 0; i < 24 * 8 * 65; ++i) {
      int32_t token;
      std::memcpy(&token, array->bytes.data() + 4 * i, 4);
      ASSERT_TRUE(token >= 0 && token < 96) << "token " << i << " is " << token;
    }
  }
}

TEST(CheckpointNpy, HostileFilesAreRefusedWithTheReason) {
  TemporaryFolder folder;
  auto with = [](const char *descr, const char *order, const char *shape) {
    return std::string("{'descr': ") + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  struct {
    std::string contents;
    const char *message;
  } cases[] = {
      {"", "expected a .npy file, which begins with \\x93NUMPY, found ''"},
      {"PK\3\4 npz", "found 'PK\\03\\04 n'"},
      {"\x93NUMPY", "cut off within its version"},
      {std::string("\x93NUMPY\1\0\5", 9), "cut off within its header length"},
      {std::string("\x93NUMPY\3\0", 8), "expected .npy version 1.0 or 2.0, found 3.0"},
      {std::string("\x93NUMPY\1\0\5\0{", 11), "expected a header of 5 bytes, found 1; the file is cut off"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13), "expected a header of 4294967295 bytes, found 1"},
      {encodeNpy("garbage"), "expected '{' in the header, found 'garbage'"},
      {encodeNpy("{'descr': '<f4"), "expected the end of a string in the header"},
      {encodeNpy("{'descr': '<f4'}"), "expected the keys 'descr', 'fortran_order' and 'shape'"},
      {encodeNpy("{'descr': '<f4', 'descr': '<f4'}"), "once each, found 'descr'"},
      {encodeNpy("{'more': 1}"), "once each, found 'more'"},
      {encodeNpy(with("[('x', '<f4')]", "False", "(1,)")), "expected a plain element type, found a structured one"},
      {encodeNpy(with("'>f4'", "False", "(1,)"), "abcd"),
       "expected little-endian data, found '>f4'; save with array.astype('<f4')"},
      {encodeNpy(with("'<U5'", "False", "(1,)"), "abcd"), "expected an element type of f2, f4, f8"},
      {encodeNpy(with("'<c8'", "False", "(1,)"), "abcdefgh"), "found '<c8'"},
      {encodeNpy(with("''", "False", "(1,)"), "abcd"), "found ''"},
      {encodeNpy(with("'<f4'", "True", "(2, 1)"), "abcdefgh"),
       "expected C order, found Fortran order; save with numpy.ascontiguousarray(array)"},
      {encodeNpy(with("'<f4'", "1", "(1,)"), "abcd"), "expected True or False in the header, found '1,"},
      {encodeNpy(with("'<f4'", "False", "3"), "abcd"), "expected '(' of the shape in the header"},
      {encodeNpy(with("'<f4'", "False", "(-1,)"), "abcd"), "expected an extent from 0 to 2^63-1 in the header, found '-1"},
      {encodeNpy(with("'<f4'", "False", "(9223372036854775808,)"), "abcd"), "expected an extent from 0 to 2^63-1"},
      {encodeNpy(with("'<f4'", "False", "(4294967296, 4294967296)"), "abcd"),
       "the product of the shape [4294967296, 4294967296] is too large"},
      {encodeNpy(with("'<f4'", "False", "(2,)"), "abcd"), "expected 8 bytes of data for f32[2], found 4"},
      {encodeNpy(with("'<f4'", "False", "(1,)"), "abcde"), "expected 4 bytes of data for f32[1], found 5"},
      {encodeNpy(with("'<f4'", "False", "(1,)") + "x", "abcd"), "expected nothing after '}' in the header, found 'x'"},
  };
  for (const auto &hostile : cases) {
    folder.write("h.npy", hostile.contents);
    std::string message = readMessage(folder.path("h.npy"));
    EXPECT_NE(message.find(hostile.message), std::string::npos)
        << "found:    " << message << "\nexpected: " << hostile.message;
    EXPECT_EQ(message.find(folder.path("h.npy") + ": "), 0u) << message;
  }
  EXPECT_EQ(readMessage(folder.path("absent")),
            "cannot read '" + folder.path("absent") + "': No such file or directory");
}

TEST(CheckpointNpy, WriterRefusesWhatNumPyHasNot) {
  TemporaryFolder folder;
  EXPECT_EQ(llvm::toString(writeNpy(folder.path("a"), ir::DType::bf16, {1}, {1, 2})),
            folder.path("a") + ": NumPy has no type for bf16; convert to f32, or write a .safetensors file");
  EXPECT_EQ(llvm::toString(writeNpy(folder.path("a"), ir::DType::f32, {1}, {1, 2})),
            folder.path("a") + ": expected 4 bytes for f32[1], found 2");
  llvm::Error error = writeNpy(folder.path("no/a"), ir::DType::u8, {2}, {1, 2});
  EXPECT_TRUE(error.isA<FileError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "cannot write '" + folder.path("no/a") + "': No such file or directory");
}

} // namespace
