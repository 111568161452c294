#include "frontend/dump/dump.h"
#include "frontend/report/report.h"

namespace fusor::frontend {

llvm::Error finishDump(DumpFolder &folder) {
  auto page = writeReport(folder.path());
  llvm::Error noPage = page ? llvm::Error::success() : page.takeError();
  return llvm::joinErrors(folder.commit(), std::move(noPage));
}

} // namespace fusor::frontend
