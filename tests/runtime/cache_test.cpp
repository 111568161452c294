#include "runtime/cache/archive.h"
#include "runtime/cache/cache.h"
#include "runtime/checkpoint/file_error.h"
#include "tests/runtime/temporary_folder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fusor::runtime;

namespace {

std::unique_ptr<Cache> openCache(const std::string &root) {
  auto cache = Cache::open(root);
  if (!cache) {
    ADD_FAILURE() << llvm::toString(cache.takeError());
    std::abort();
  }
  return std::move(*cache);
}

CacheKey keyOf(int i) { return CacheKeyBuilder().add("number", std::to_string(i)).key(); }

std::string fileOf(const Cache &cache, llvm::StringRef kind, const CacheKey &key) {
  return llvm::formatv("{0}/v1/{1}/{2}/{3}", cache.root(), kind, key.str().substr(0, 2), key.str()).str();
}

std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  return buffer ? (*buffer)->getBuffer().str() : "absent";
}

void writeFile(const std::string &path, llvm::StringRef contents) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  os << contents;
}

TEST(Cache, KeysDependOnEveryPartAndItsPlace) {
  auto key = [](std::vector<std::pair<const char *, const char *>> parts) {
    CacheKeyBuilder builder;
    for (auto [name, value] : parts) builder.add(name, value);
    return builder.key().str();
  };
  std::set<std::string> keys = {key({}),
                                key({{"a", "b"}}),
                                key({{"a", "c"}}),
                                key({{"b", "b"}}),
                                key({{"ab", ""}}),
                                key({{"", "ab"}}),
                                key({{"a", "b"}, {"c", "d"}}),
                                key({{"c", "d"}, {"a", "b"}}),
                                key({{"a", "b1:c1:d"}})};
  EXPECT_EQ(keys.size(), 9u);
  // Fixed for all time and machines: keys are written into files.
  EXPECT_EQ(hashBytes("").str(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(CacheKey::parse(keyOf(1).str()), keyOf(1));
  EXPECT_FALSE(CacheKey::parse("99aa"));
  EXPECT_FALSE(CacheKey::parse(std::string(32, 'g')));
  EXPECT_FALSE(CacheKey::parse("0x" + std::string(30, '1')));
}

TEST(Cache, GivesBackWhatWasPut) {
  TemporaryFolder folder;
  std::unique_ptr<Cache> cache = openCache(folder.path("deep/er"));
  std::string binary("\0\1\xff\n", 4);
  EXPECT_EQ(cache->get("cubin", keyOf(1)), std::nullopt);
  ASSERT_FALSE(cache->put("cubin", keyOf(1), binary));
  ASSERT_FALSE(cache->put("cubin", keyOf(2), ""));
  EXPECT_EQ(cache->get("cubin", keyOf(1)), binary);
  EXPECT_EQ(cache->get("cubin", keyOf(2)), "");
  EXPECT_EQ(cache->get("plan", keyOf(1)), std::nullopt) << "kinds are apart";
  std::unique_ptr<Cache> later = openCache(folder.path("deep/er"));
  EXPECT_EQ(later->get("cubin", keyOf(1)), binary);

  Cache::Stats stats = cache->stats();
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.puts, 2);
  EXPECT_EQ(stats.corrupt, 0);
  EXPECT_EQ(stats.entries, 2);
  EXPECT_EQ(stats.bytes, 2 * 48 + 4);
  EXPECT_TRUE(cache->takeNotes().empty());
}

TEST(Cache, DamagedEntriesAreIgnoredWithANote) {
  TemporaryFolder folder;
  std::unique_ptr<Cache> cache = openCache(folder.path("c"));
  CacheKey key = keyOf(1);
  std::string contents = "the bytes of a cubin";
  ASSERT_FALSE(cache->put("cubin", key, contents));
  ASSERT_FALSE(cache->put("cubin", keyOf(2), contents));
  std::string file = fileOf(*cache, "cubin", key), whole = readFile(file);
  ASSERT_EQ(whole.size(), 48 + contents.size());

  std::vector<std::pair<std::string, std::string>> damages = {
      {"", "does not begin with the header"},
      {whole.substr(0, 47), "does not begin with the header"},
      {whole.substr(0, 60), "expected 20 bytes, found 12"},
      {whole + "x", "expected 20 bytes, found 21"},
      {readFile(fileOf(*cache, "cubin", keyOf(2))), "it holds the entry of another key, " + keyOf(2).str()},
      {std::string(whole.size(), '\0'), "does not begin with the header"},
  };
  for (size_t byte = 0; byte < whole.size(); ++byte) { // any flipped bit
    std::string flipped = whole;
    flipped[byte] ^= char(1 << byte % 8);
    damages.push_back({flipped, ""});
  }
  int64_t corrupt = 0;
  for (const auto &[damaged, problem] : damages) {
    writeFile(file, damaged);
    EXPECT_EQ(cache->get("cubin", key), std::nullopt);
    EXPECT_EQ(cache->stats().corrupt, ++corrupt);
    std::vector<std::string> notes = cache->takeNotes();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].find("cache: ignored a damaged entry, " + file + ": "), 0u) << notes[0];
    EXPECT_NE(notes[0].find(problem), std::string::npos) << notes[0];
  }
  ASSERT_FALSE(cache->put("cubin", key, contents)) << "a damaged entry is replaced";
  EXPECT_EQ(cache->get("cubin", key), contents);
}

TEST(Cache, VerifyRemovesWhatIsDamagedOrLeftBehind) {
  TemporaryFolder folder;
  std::unique_ptr<Cache> cache = openCache(folder.path());
  for (int i = 0; i < 5; ++i) ASSERT_FALSE(cache->put("cubin", keyOf(i), "contents"));
  EXPECT_TRUE(cache->verify().empty());
  writeFile(fileOf(*cache, "cubin", keyOf(3)), "damaged");
  std::string running = fileOf(*cache, "cubin", keyOf(4)) + ".tmp-1-0",
              dead = fileOf(*cache, "cubin", keyOf(4)) + ".tmp-2-0";
  writeFile(running, "of a writer at work");
  writeFile(dead, "of a writer that died");
  struct timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, dead.c_str(), old, 0), 0);

  std::vector<std::string> notes = cache->verify();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(readFile(dead), "absent");
  EXPECT_NE(readFile(running), "absent");
  EXPECT_EQ(readFile(fileOf(*cache, "cubin", keyOf(3))), "absent");
  EXPECT_EQ(cache->stats().entries, 4);
  EXPECT_EQ(cache->get("cubin", keyOf(3)), std::nullopt);
}

TEST(Cache, ClearRemovesEntriesOnly) {
  TemporaryFolder folder;
  folder.write("notes.txt", "the user's");
  std::unique_ptr<Cache> cache = openCache(folder.path());
  ASSERT_FALSE(cache->put("cubin", keyOf(1), "a"));
  ASSERT_FALSE(cache->put("plan", keyOf(2), "b"));
  auto removed = cache->clear();
  ASSERT_TRUE(bool(removed)) << llvm::toString(removed.takeError());
  EXPECT_EQ(*removed, 2);
  EXPECT_EQ(cache->stats().entries, 0);
  EXPECT_EQ(folder.read("notes.txt"), "the user's");
  ASSERT_FALSE(cache->put("cubin", keyOf(1), "a"));
  EXPECT_EQ(cache->get("cubin", keyOf(1)), "a");
}

/// Contents that any process can check: a number and as many letters as it says.
std::string contentsOf(int i) { return std::to_string(i) + std::string(1000 * (i + 1), char('a' + i)); }

TEST(Cache, EightProcessesAtOnce) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process) {
    pid_t child = ::fork();
    if (child == 0) {
      auto cache = Cache::open(folder.path("shared"));
      if (!cache) ::_exit(2);
      int hits = 0;
      for (int round = 0; round < 40; ++round)
        for (int i = 0; i < 6; ++i) {
          int which = (i * 5 + process + round) % 6;
          if (llvm::Error error = (*cache)->put("cubin", keyOf(which), contentsOf(which))) {
            llvm::consumeError(std::move(error));
            ::_exit(3);
          }
          if (auto found = (*cache)->get("cubin", keyOf(i))) {
            ++hits;
            if (*found != contentsOf(i)) ::_exit(4);
          }
        }
      // A half-written entry would be counted as corrupt.
      ::_exit((*cache)->stats().corrupt != 0 ? 5 : hits < 100 ? 6 : 0);
    }
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "2 open, 3 put, 4 wrong contents, 5 corrupt, 6 too few hits";
  }
  std::unique_ptr<Cache> cache = openCache(folder.path("shared"));
  EXPECT_EQ(cache->stats().entries, 6);
  EXPECT_TRUE(cache->verify().empty());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(cache->get("cubin", keyOf(i)), contentsOf(i));
}

TEST(Cache, TheFirstOfSeveralCounts) {
  TemporaryFolder folder;
  auto cache = llvm::cantFail(Cache::open(folder.path("cache")));
  CacheKey key = CacheKeyBuilder().add("shape", "1x2x3").key();
  EXPECT_EQ(llvm::cantFail(cache->putFirst("gemm-plan", key, "first")), "first");
  EXPECT_EQ(llvm::cantFail(cache->putFirst("gemm-plan", key, "second")), "first");
  EXPECT_EQ(cache->get("gemm-plan", key).value_or(""), "first");
  int files = 0;
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(folder.path("cache"), code), end; it != end && !code;
       it.increment(code)) {
    if (llvm::sys::fs::is_directory(it->path())) continue;
    ++files;
    std::ofstream(it->path()) << "damaged";
  }
  EXPECT_EQ(files, 1) << "no temporary file is left";
  EXPECT_EQ(llvm::cantFail(cache->putFirst("gemm-plan", key, "third")), "third");
  EXPECT_EQ(cache->get("gemm-plan", key).value_or(""), "third");
}

TEST(Cache, SeveralThreads) {
  TemporaryFolder folder;
  std::unique_ptr<Cache> cache = openCache(folder.path());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        if (llvm::Error error = cache->put("cubin", keyOf(i % 5), contentsOf(i % 5))) {
          llvm::consumeError(std::move(error));
          ++wrong;
        }
        if (cache->get("cubin", keyOf(i % 5)) != contentsOf(i % 5)) ++wrong;
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(cache->stats().hits, 400);
}

TEST(Cache, ExportAndImport) {
  TemporaryFolder folder;
  std::unique_ptr<Cache> cache = openCache(folder.path("from")), other = openCache(folder.path("to"));
  for (int i = 0; i < 4; ++i) ASSERT_FALSE(cache->put(i % 2 ? "cubin" : "gemm-plan", keyOf(i), contentsOf(i)));
  writeFile(fileOf(*cache, "cubin", keyOf(3)), "damaged");
  auto exported = exportCache(*cache, folder.path("archive"));
  ASSERT_TRUE(bool(exported)) << llvm::toString(exported.takeError());
  EXPECT_EQ(*exported, 3) << "without the damaged one";
  auto imported = importCache(*other, folder.path("archive"));
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  EXPECT_EQ(*imported, 3);
  EXPECT_EQ(other->get("gemm-plan", keyOf(0)), contentsOf(0));
  EXPECT_EQ(other->get("cubin", keyOf(1)), contentsOf(1));

  // Nothing of a damaged archive is taken.
  std::string archive = folder.read("archive");
  std::unique_ptr<Cache> empty = openCache(folder.path("empty"));
  for (size_t length = 0; length < archive.size(); length += length < 200 ? 1 : 97) {
    folder.write("cut", llvm::StringRef(archive).take_front(length));
    auto result = importCache(*empty, folder.path("cut"));
    ASSERT_FALSE(bool(result)) << length;
    llvm::Error error = result.takeError();
    EXPECT_TRUE(error.isA<FileContentError>()) << length;
    llvm::consumeError(std::move(error));
  }
  archive[archive.size() / 2] ^= 1;
  folder.write("flipped", archive);
  auto flipped = importCache(*empty, folder.path("flipped"));
  ASSERT_FALSE(bool(flipped));
  EXPECT_NE(llvm::toString(flipped.takeError()).find("checksum is wrong"), std::string::npos);
  for (std::string kind : {"", "../..", "a/b", "."}) {
    std::string start = "FUSORCA1" + std::string(1, char(kind.size())) + kind + keyOf(0).str();
    folder.write("hostile", start + std::string(100, '\0'));
    auto hostile = importCache(*empty, folder.path("hostile"));
    ASSERT_FALSE(bool(hostile)) << kind;
    EXPECT_NE(llvm::toString(hostile.takeError()).find("entry 0: expected the kind and key"), std::string::npos);
  }
  EXPECT_EQ(empty->stats().entries, 0);
}

TEST(Cache, FailuresAreErrorsAboutThePath) {
  TemporaryFolder folder;
  folder.write("file", "");
  auto cache = Cache::open(folder.path("file"));
  ASSERT_FALSE(bool(cache));
  llvm::Error error = cache.takeError();
  EXPECT_TRUE(error.isA<FileError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "cannot write '" + folder.path("file") + "': Not a directory");
}

TEST(Cache, DefaultRoot) {
  std::map<std::string, std::string> saved;
  for (const char *name : {"FUSOR_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
    if (const char *value = ::getenv(name)) saved[name] = value;
  ::setenv("FUSOR_CACHE_DIR", "/a", 1);
  ::setenv("XDG_CACHE_HOME", "/b", 1);
  ::setenv("HOME", "/c", 1);
  EXPECT_EQ(Cache::defaultRoot(), "/a");
  ::unsetenv("FUSOR_CACHE_DIR");
  EXPECT_EQ(Cache::defaultRoot(), "/b/fusor");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(Cache::defaultRoot(), "/c/.cache/fusor");
  ::unsetenv("HOME");
  EXPECT_EQ(Cache::defaultRoot(), "");
  for (const auto &[name, value] : saved) ::setenv(name.c_str(), value.c_str(), 1);
}

} // namespace
