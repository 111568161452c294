#include "frontend/check/check_files.h"
#include "frontend/api/tensor_files.h"
#include "frontend/dump/dump_folder.h"

namespace fusor::frontend {

std::string checkFolder(llvm::StringRef dumpFolder) {
  return dumpFolder.empty() ? "fusor-check" : (dumpFolder.rtrim('/') + ".check").str();
}

llvm::Expected<std::string> writeNonFinite(const runtime::NonFiniteOp &found, llvm::StringRef folder) {
  if (auto error = writeInto(folder, "non_finite.fir", found.module)) return error;
  for (unsigned i = 0; i < found.inputs.size(); ++i) {
    const runtime::NonFiniteOp::Input &input = found.inputs[i];
    HostTensor tensor{input.dtype, input.shape, input.bytes};
    if (auto error = writeTensorFile(folder, tensorFileStem("input", i, input.name), tensor)) return error;
  }
  return "the first NaN or Inf: " + found.text + "\n  by itself: fusor run " + (folder + "/non_finite.fir").str() +
         " --inputs " + folder.str();
}

} // namespace fusor::frontend
