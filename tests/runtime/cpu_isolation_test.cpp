// The per-instruction-set files must not define symbols that other files share: the linker keeps one copy of a weak
// symbol, and an AVX-512 copy of, say, std::max would crash a processor without it.
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <gtest/gtest.h>

namespace {

TEST(CpuIsolation, KernelObjectsDefineOnlyTheirOwnNames) {
  auto nm = llvm::sys::findProgramByName("nm");
  if (!nm) GTEST_SKIP() << "no nm on this machine";
  for (std::string file : {"gemm/kernel_avx2", "gemm/kernel_avx512", "lanes/kernels_avx2", "lanes/kernels_avx512"}) {
    llvm::StringRef isa = llvm::StringRef(file).rsplit('_').second;
    std::string object = std::string(FUSOR_BINARY_DIR) + "/runtime/CMakeFiles/fusor_runtime.dir/cpu/" + file + ".cpp.o";
    if (!llvm::sys::fs::exists(object)) GTEST_SKIP() << "not built for this processor: " << object;
    llvm::SmallString<128> listing;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("symbols", "txt", listing));
    llvm::Optional<llvm::StringRef> redirects[] = {llvm::None, llvm::StringRef(listing), llvm::None};
    ASSERT_EQ(
        llvm::sys::ExecuteAndWait(*nm, {*nm, "--defined-only", "--extern-only", "-C", object}, llvm::None, redirects),
        0);
    auto text = llvm::MemoryBuffer::getFile(listing);
    ASSERT_TRUE(bool(text));
    llvm::SmallVector<llvm::StringRef> lines;
    (*text)->getBuffer().split(lines, '\n', -1, false);
    EXPECT_GE(lines.size(), 1u) << "the table, or accumulate and widenBf16";
    for (llvm::StringRef line : lines) {
      bool ours = line.contains(("gemm_kernel::" + isa + "::").str()) ||
                  line.contains(("lanes::" + isa + "::").str()) || line.contains(("Eigen_" + isa + "::").str());
      bool instrumentation = line.contains("asan") || line.contains("ubsan") || line.contains(" DW.ref.");
      EXPECT_TRUE(ours || instrumentation) << "shared symbol in " << object << ": " << line.str();
    }
    llvm::sys::fs::remove(listing);
  }
}

} // namespace
