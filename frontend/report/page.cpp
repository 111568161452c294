#include "frontend/report/page.h"
#include "frontend/report/compact.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace fusor::frontend {
namespace {

using llvm::StringRef;

/// The value of attribute `name` in a tag: href="report.css".
StringRef attribute(StringRef tag, StringRef name) {
  StringRef rest = tag.split((name + "=\"").str()).second;
  return rest.split('"').first;
}

} // namespace

StringRef pageFile(StringRef name) {
  for (const page::EmbeddedFile &file : llvm::ArrayRef(page::kEmbeddedFiles, page::kEmbeddedFileCount))
    if (name == file.name) return file.text;
  llvm::report_fatal_error(llvm::Twine("no page file '") + name + "' in frontend/report/page");
}

std::string pageHtml(const llvm::json::Value &data) {
  std::string html;
  StringRef rest = pageFile("report.html");
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    rest = next;
    StringRef tag = line.trim();
    if (tag.startswith("<link rel=\"stylesheet\""))
      html += "<style>\n" + pageFile(attribute(tag, "href")).str() + "</style>\n";
    else if (tag.startswith("<script src="))
      html += "<script>\n" + pageFile(attribute(tag, "src")).str() + "</script>\n";
    else if (tag.startswith("<script type=\"application/json\""))
      html += "<script type=\"application/json\" id=\"data\">" + compactJson(data) + "</script>\n";
    else
      html += line.str() + "\n";
  }
  return html;
}

} // namespace fusor::frontend
