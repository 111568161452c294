#include "codegen/device/embedded.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include <vector>

using namespace fusor::codegen;
using llvm::StringRef;

static llvm::ArrayRef<device::EmbeddedFile> table() { return {device::kEmbeddedFiles, device::kEmbeddedFileCount}; }

StringRef fusor::codegen::deviceSource(StringRef name) {
  for (const device::EmbeddedFile &file : table())
    if (name == file.name) return file.text;
  llvm::report_fatal_error(llvm::Twine("no device file '") + name + "' in codegen/device");
}

llvm::ArrayRef<StringRef> fusor::codegen::deviceSourceNames() {
  static const std::vector<StringRef> names = [] {
    std::vector<StringRef> result;
    for (const device::EmbeddedFile &file : table()) result.push_back(file.name);
    return result;
  }();
  return names;
}

// Appends `name` behind everything it needs. Needs form no cycle (a test visits every file).
static void appendWithNeeds(StringRef name, llvm::SmallVectorImpl<StringRef> &done, std::string &text) {
  if (llvm::is_contained(done, name)) return;
  done.push_back(name);
  StringRef source = deviceSource(name);
  StringRef firstLine = source.take_until([](char c) { return c == '\n'; });
  if (!firstLine.consume_front("// needs:"))
    llvm::report_fatal_error(llvm::Twine("codegen/device/") + name + " does not begin with '// needs:'");
  llvm::SmallVector<StringRef, 4> needs;
  firstLine.split(needs, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef need : needs) appendWithNeeds(need, done, text);
  text += (llvm::Twine("// ---- ") + name + " ----\n").str();
  text += source.split('\n').second;
}

std::string fusor::codegen::deviceLibrary(llvm::ArrayRef<StringRef> names) {
  llvm::SmallVector<StringRef, 8> done;
  std::string text;
  for (StringRef name : names) appendWithNeeds(name, done, text);
  return text;
}
