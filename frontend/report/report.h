// fusor report: one self-contained HTML page from a dump folder.
#pragma once
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::frontend {

struct WrittenReport {
  std::string path;
  size_t bytes = 0;
};

/// Reads dump folder `folder` and writes its page to `target`, or to FOLDER/report.html where that is empty; the file
/// is there whole or not at all. The error is the folder's (dump_files.h, a module's diagnostics) or a FileError
/// (write).
llvm::Expected<WrittenReport> writeReport(llvm::StringRef folder, llvm::StringRef target = "");

} // namespace fusor::frontend
