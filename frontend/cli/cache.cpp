// fusor cache: what compiled kernels and GEMM plans this user keeps.
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"
#include "runtime/cache/archive.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend::cli {
namespace {

void showStats(Console &console, const runtime::Cache &cache) {
  runtime::Cache::Stats stats = cache.stats();
  std::map<std::string, int64_t> byKind;
  for (const runtime::Cache::Entry &entry : cache.entries()) ++byKind[entry.kind];
  llvm::json::Object kinds;
  console.result(llvm::formatv("{0}: {1} entries, {2}", cache.root(), stats.entries, bytesText(stats.bytes)).str());
  for (const auto &[kind, count] : byKind) {
    kinds[kind] = count;
    console.result(llvm::formatv("  {0}: {1}", kind, count).str());
  }
  console.object(
      {{"root", cache.root()}, {"entries", stats.entries}, {"bytes", stats.bytes}, {"kinds", std::move(kinds)}});
}

void verifyEntries(Console &console, runtime::Cache &cache) {
  auto notes = cache.verify();
  for (const std::string &note : notes) console.note(note);
  int64_t entries = cache.stats().entries;
  console.result(llvm::formatv("{0} entries are sound, {1} damaged ones removed", entries, notes.size()).str());
  console.object({{"root", cache.root()}, {"entries", entries}, {"damaged", notes.size()}});
}

llvm::Error useCache(Console &console, const CommonOptions &common, const CacheOptions &o) {
  std::string root = common.cache.empty() ? runtime::Cache::defaultRoot() : common.cache;
  if (root.empty()) return inputError("there is no cache folder: set FUSOR_CACHE_DIR, XDG_CACHE_HOME or HOME");
  bool needsFile = o.action == "export" || o.action == "import";
  if (needsFile == o.file.empty())
    return failure(ErrorKind::usage, "`fusor cache {0}` {1}", o.action, needsFile ? "needs a file" : "takes no file");
  auto opened = runtime::Cache::open(root);
  if (!opened) return opened.takeError();
  runtime::Cache &cache = **opened;
  if (o.action == "stats") return showStats(console, cache), llvm::Error::success();
  if (o.action == "verify") return verifyEntries(console, cache), llvm::Error::success();
  auto count = o.action == "clear"    ? cache.clear()
               : o.action == "export" ? runtime::exportCache(cache, o.file)
                                      : runtime::importCache(cache, o.file);
  if (!count) return count.takeError();
  for (const std::string &note : cache.takeNotes()) console.note(note);
  console.result(llvm::formatv("{0} entries {1}", *count,
                               o.action == "clear"    ? "removed from " + root
                               : o.action == "export" ? "written to " + o.file
                                                      : "read into " + root)
                     .str());
  console.object({{"root", root}, {"action", o.action}, {"entries", *count}});
  return llvm::Error::success();
}

} // namespace

int cache(const CommonOptions &common, const CacheOptions &options) {
  Console console(common);
  return console.fail(useCache(console, common, options));
}

} // namespace fusor::frontend::cli
