// The page: report.html with its style, its scripts and the data put into it, so that one file is all.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace fusor::frontend {

/// A complete HTML document. `data` is join.h's; it is in the page as JSON, which only page/data.js reads.
std::string pageHtml(const llvm::json::Value &data);

/// A file of frontend/report/page/, embedded at build time. An unknown name is our bug and ends the process.
llvm::StringRef pageFile(llvm::StringRef name);

namespace page {
struct EmbeddedFile {
  const char *name;
  const char *text;
};
extern const EmbeddedFile kEmbeddedFiles[]; // generated
extern const unsigned kEmbeddedFileCount;
} // namespace page

} // namespace fusor::frontend
