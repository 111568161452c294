// Who may include whom: reads every #include of the tree and holds it against the table of rooms in DESIGN.
// Linking alone does not find these: a header with inline code crosses a room without a symbol.
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <string>
#include <vector>

namespace {
using llvm::StringRef;

/// A folder and the folders its files may include from, besides itself. The longest `from` that is a prefix counts.
struct Room {
  StringRef from;
  std::vector<StringRef> mayInclude;
  StringRef belongs; ///< Where code goes that needs more than that.
};

const std::vector<Room> kRooms = {
    {"ir/", {}, "a value both sides need is defined in ir/; code that works on a Module for a purpose goes to passes/"},
    {"codegen/", {"ir/"}, "what needs a pass or a device takes their result as a value from ir/, or goes to runtime/"},
    {"passes/",
     {"ir/", "codegen/plan/"},
     "an accept() that passes ask goes to codegen/plan/; what emits text or runs it to codegen/ or runtime/"},
    {"runtime/",
     {"ir/", "passes/", "codegen/"},
     "what needs a parser or the builder goes to frontend/api/ or frontend/cli/"},
    {"frontend/text/", {"ir/"}, "what needs another room goes to frontend/api/ or frontend/cli/"},
    {"frontend/onnx/",
     {"ir/", "frontend/text/"}, // its diagnostics
     "what needs another room goes to frontend/api/ or frontend/cli/; lifting goes to passes/"},
    {"frontend/builder/", {"ir/"}, "what needs another room goes to frontend/api/"},
    {"frontend/nn/", {"ir/", "frontend/builder/"}, "what needs another room goes to frontend/api/"},
    {"frontend/api/", {"ir/", "passes/", "codegen/", "runtime/", "frontend/"}, "tests and examples are seen by nobody"},
    {"frontend/dump/",
     {"ir/", "passes/", "codegen/", "runtime/", "frontend/"},
     "tests and examples are seen by nobody"},
    {"frontend/check/",
     {"ir/", "passes/", "codegen/", "runtime/", "frontend/"},
     "tests and examples are seen by nobody"},
    {"frontend/replay/",
     {"ir/", "passes/", "codegen/", "runtime/", "frontend/"},
     "tests and examples are seen by nobody"},
    {"frontend/bench/",
     {"ir/", "passes/", "codegen/", "runtime/", "frontend/"},
     "tests and examples are seen by nobody"},
    {"frontend/report/",
     {"ir/", "runtime/checkpoint/", "frontend/text/", "frontend/api/errors.h"},
     "a page is made from files alone: what runs something goes to frontend/api/"},
    {"frontend/cli/", {"ir/", "passes/", "codegen/", "runtime/", "frontend/"}, "tests and examples are seen by nobody"},
    {"tests/", {"ir/", "passes/", "codegen/", "runtime/", "frontend/", "examples/"}, ""},
    {"examples/", {"ir/", "passes/", "codegen/", "runtime/", "frontend/"}, "what a test needs goes to tests/support/"},
    {"benchmarks/",
     {"ir/", "passes/", "codegen/", "runtime/", "frontend/"},
     "what a test needs goes to tests/support/"},
};

/// Third parties that are seen in one place only.
struct Home {
  StringRef header; ///< A prefix of the included name.
  std::vector<StringRef> homes;
};

const std::vector<Home> kHomes = {
    {"google/protobuf/", {"frontend/onnx/", "tests/onnx/"}},
    {"cuda", {"runtime/"}},
    {"nvrtc", {"runtime/"}},
    {"cublas", {"runtime/"}},
    {"nvJitLink", {"runtime/"}},
    {"Eigen/", {"runtime/"}},
    {"CLI/", {"frontend/cli/"}},
    {"gtest/", {"tests/"}},
    {"gmock/", {"tests/"}},
    {"boost/", {"runtime/emulator/"}},
    {"llvm/FileCheck/", {"tests/"}},
};

const Room *roomOf(StringRef path) {
  const Room *best = nullptr;
  for (const Room &room : kRooms)
    if (path.startswith(room.from) && (!best || room.from.size() > best->from.size())) best = &room;
  return best;
}

bool underAny(StringRef path, const std::vector<StringRef> &folders) {
  return llvm::any_of(folders, [&](StringRef folder) { return path.startswith(folder); });
}

/// Empty when `file` may include `header`, else what is wrong and where the code belongs. Both are root-relative.
std::string brokenArrow(StringRef file, StringRef header) {
  const Room *room = roomOf(file);
  if (!room)
    return "the file is in no room; sources live in ir, passes, codegen, runtime, frontend/<part>, tests, examples, "
           "benchmarks";
  for (const Home &home : kHomes)
    if (header.startswith(home.header) && !underAny(file, home.homes))
      return llvm::formatv("{0}* is included only in {1}; put the code that needs it there", home.header,
                           llvm::join(home.homes, " and "));
  if (header.endswith(".pb.h") && !file.startswith("frontend/onnx/") && !file.startswith("tests/onnx/"))
    return "protobuf is seen only in frontend/onnx/; put the code that needs it there";
  if (!roomOf(header) || header.startswith(room->from) || underAny(header, room->mayInclude)) return "";
  return llvm::formatv("{0} must not include {1} (it may include {2}); {3}", room->from, roomOf(header)->from,
                       room->mayInclude.empty() ? "nothing of ours" : llvm::join(room->mayInclude, ", "),
                       room->belongs);
}

/// The name in `#include "name"` or `#include <name>`, else empty.
StringRef includedName(StringRef line) {
  line = line.ltrim();
  if (!line.consume_front("#")) return {};
  line = line.ltrim();
  if (!line.consume_front("include")) return {};
  line = line.ltrim();
  if (line.consume_front("\"")) return line.take_until([](char c) { return c == '"'; });
  if (line.consume_front("<")) return line.take_until([](char c) { return c == '>'; });
  return {};
}

/// `path:line: complaint` for each broken include of one file's text; counts the includes that it read.
std::vector<std::string> check(StringRef path, StringRef text, int &includes) {
  std::vector<std::string> complaints;
  for (int number = 1; !text.empty(); ++number) {
    auto [line, rest] = text.split('\n');
    text = rest;
    StringRef name = includedName(line);
    if (name.empty()) continue;
    ++includes;
    if (std::string broken = brokenArrow(path, name); !broken.empty())
      complaints.push_back(llvm::formatv("{0}:{1}: includes \"{2}\": {3}", path, number, name, broken));
    // A name without a folder is a sibling: includes are written from the root, so that a reader sees the room.
    bool quotedSibling = line.contains('"') && !name.contains('/') && !name.endswith(".pb.h");
    if (quotedSibling &&
        std::filesystem::exists(std::filesystem::path(FUSOR_SOURCE_DIR) / path.str() / ".." / name.str()))
      complaints.push_back(llvm::formatv("{0}:{1}: includes \"{2}\": write it from the root, \"{3}/{2}\"", path, number,
                                         name, llvm::sys::path::parent_path(path)));
  }
  return complaints;
}

bool isSource(StringRef name) {
  return llvm::StringSwitch<bool>(llvm::sys::path::extension(name))
      .Cases(".h", ".cpp", ".cuh", ".cu", ".inc", true)
      .Default(false);
}

TEST(Rooms, EveryIncludeFollowsTheTable) {
  const std::filesystem::path root = FUSOR_SOURCE_DIR;
  int files = 0, includes = 0;
  for (const char *top : {"ir", "passes", "codegen", "runtime", "frontend", "tests", "examples", "benchmarks"}) {
    if (!std::filesystem::exists(root / top)) continue;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !isSource(entry.path().filename().string())) continue;
      auto text = llvm::MemoryBuffer::getFile(entry.path().string());
      ASSERT_TRUE(bool(text)) << entry.path();
      ++files;
      for (const std::string &complaint :
           check(std::filesystem::relative(entry.path(), root).string(), (*text)->getBuffer(), includes))
        ADD_FAILURE() << complaint;
    }
  }
  EXPECT_GE(files, 1) << "no source found under " << root;
  EXPECT_GE(includes, 10) << "the includes of this very file were not seen";
}

TEST(Rooms, ForbiddenArrowsAreReported) {
  struct Case {
    StringRef file, header, says;
  };
  for (const Case &c : {
           Case{"ir/graph/module.cpp", "passes/pipeline.h",
                "ir/ must not include passes/ (it may include nothing of ours)"},
           Case{"codegen/row/row.cpp", "runtime/cuda/driver.h", "codegen/ must not include runtime/"},
           Case{"codegen/row/row.cpp", "passes/rewrite/rule.h", "codegen/ must not include passes/"},
           Case{"passes/fusion/grow.cpp", "codegen/emit/writer.h",
                "passes/ must not include codegen/ (it may include ir/, codegen/plan/)"},
           Case{"passes/fusion/grow.cpp", "runtime/execute/program.h", "passes/ must not include runtime/"},
           Case{"runtime/cpu/run.cpp", "frontend/text/parser.h", "runtime/ must not include frontend/text/"},
           Case{"frontend/text/parser.cpp", "passes/pipeline.h", "frontend/text/ must not include passes/"},
           Case{"frontend/builder/builder.cpp", "frontend/nn/gpt.h", "frontend/builder/ must not include frontend/nn/"},
           Case{"frontend/cli/main.cpp", "tests/support/random_graph.h", "must not include tests/"},
           Case{"frontend/loose.cpp", "ir/graph/module.h", "in no room"},
           Case{"codegen/row/row.cpp", "cuda_runtime.h", "only in runtime/"},
           Case{"codegen/row/row.cpp", "nvrtc.h", "only in runtime/"},
           Case{"ir/graph/module.cpp", "gtest/gtest.h", "only in tests/"},
           Case{"ir/graph/module.cpp", "google/protobuf/message_lite.h", "only in frontend/onnx/"},
           Case{"passes/simplify/cse.cpp", "onnx.pb.h", "only in frontend/onnx/"},
       })
    EXPECT_NE(brokenArrow(c.file, c.header).find(c.says.str()), std::string::npos)
        << c.file.str() << " -> " << c.header.str() << ": \"" << brokenArrow(c.file, c.header) << "\" does not say \""
        << c.says.str() << "\"";
}

TEST(Rooms, AllowedArrowsAreNot) {
  for (auto [file, header] : std::vector<std::pair<StringRef, StringRef>>{
           {"ir/graph/module.cpp", "ir/types/dtype.h"},
           {"ir/graph/module.cpp", "llvm/ADT/StringRef.h"},
           {"passes/fusion/grow.cpp", "codegen/plan/accept.h"},
           {"runtime/cuda/driver.cpp", "cuda.h"},
           {"runtime/execute/program.cpp", "passes/pipeline.h"},
           {"frontend/nn/gpt.cpp", "frontend/builder/builder.h"},
           {"frontend/onnx/import.cpp", "onnx.pb.h"},
           {"frontend/cli/train.cpp", "frontend/onnx/import.h"},
           {"tests/passes/fusion_test.cpp", "runtime/cpu/run.h"},
       })
    EXPECT_EQ(brokenArrow(file, header), "") << file.str() << " -> " << header.str();
}

TEST(Rooms, APlantedIncludeIsFoundWithItsLine) {
  int includes = 0;
  auto complaints = check("ir/graph/planted.cpp",
                          "// a file\n#include <vector>\n  # include \"runtime/cpu/run.h\"\nint x;\n", includes);
  EXPECT_EQ(includes, 2);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(StringRef(complaints[0])
                  .startswith("ir/graph/planted.cpp:3: includes \"runtime/cpu/run.h\": ir/ must not include runtime/"))
      << complaints[0];
}
} // namespace
