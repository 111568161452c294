#include "frontend/report/report.h"
#include "frontend/report/join.h"
#include "frontend/report/page.h"
#include "runtime/checkpoint/atomic_file.h"
#include "llvm/Support/Path.h"

namespace fusor::frontend {

llvm::Expected<WrittenReport> writeReport(llvm::StringRef folder, llvm::StringRef target) {
  auto dump = readDump(folder);
  if (!dump) return dump.takeError();
  auto data = pageData(*dump);
  if (!data) return data.takeError();
  std::string html = pageHtml(llvm::json::Value(std::move(*data)));

  llvm::SmallString<128> path(target);
  if (path.empty()) {
    path = folder;
    llvm::sys::path::append(path, "report.html");
  }
  auto file = runtime::AtomicFile::create(path);
  if (!file) return file.takeError();
  if (auto error = file->write(llvm::StringRef(html))) return error;
  if (auto error = file->commit()) return error;
  return WrittenReport{path.str().str(), html.size()};
}

} // namespace fusor::frontend
