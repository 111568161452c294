#include "tests/support/filecheck.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/FileCheck/FileCheck.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::tests {

bool fileCheck(llvm::StringRef output, llvm::StringRef checkFileText, std::string &message, llvm::StringRef prefix) {
  message.clear();
  llvm::raw_string_ostream out(message);
  llvm::FileCheckRequest request;
  request.CheckPrefixes = {prefix};
  llvm::FileCheck checker(request);
  llvm::SourceMgr sources;
  sources.setDiagHandler([](const llvm::SMDiagnostic &diagnostic,
                            void *to) { diagnostic.print("", *static_cast<llvm::raw_ostream *>(to), false); },
                         &out);

  // Canonicalize: runs of blanks count as one on both sides.
  auto add = [&](llvm::StringRef text, llvm::StringRef name, llvm::SmallVectorImpl<char> &storage) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
    llvm::StringRef canonical = checker.CanonicalizeFile(*buffer, storage);
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(canonical, name), llvm::SMLoc());
    return canonical;
  };
  llvm::SmallString<4096> checkStorage, outputStorage;
  llvm::StringRef checks = add(checkFileText, "checks", checkStorage);
  llvm::Regex prefixes = checker.buildCheckPrefixRegex();
  if (checker.readCheckFile(sources, checks, prefixes)) {
    out << "the " << prefix << " lines cannot be read, or there are none\n";
    return false;
  }
  return checker.checkInput(sources, add(output, "output", outputStorage));
}

} // namespace fusor::tests
