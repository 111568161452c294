// NVRTC without its headers, for one purpose: does this text compile for that architecture. Opened with dlopen from
// where a toolkit puts it; tests skip where there is none.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"
#include <dlfcn.h>
#include <string>

namespace fusor::codegen::tests {

class Nvrtc {
public:
  Nvrtc() {
    for (const char *name : {"/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  bool found() const { return library != nullptr; }

  // The compiler's log; `compiled` says whether there is a cubin.
  std::string compile(llvm::StringRef source, llvm::StringRef architecture, bool &compiled) const {
    void *program = nullptr;
    auto create = function<int(void **, const char *, const char *, int, const char *const *, const char *const *)>(
        "nvrtcCreateProgram");
    create(&program, source.str().c_str(), "kernel.cu", 0, nullptr, nullptr);
    std::string target = "--gpu-architecture=" + architecture.str();
    const char *options[] = {target.c_str(), "--std=c++17"};
    compiled = function<int(void *, int, const char *const *)>("nvrtcCompileProgram")(program, 2, options) == 0;
    size_t bytes = 0;
    function<int(void *, size_t *)>("nvrtcGetProgramLogSize")(program, &bytes);
    std::string log(bytes, '\0');
    function<int(void *, char *)>("nvrtcGetProgramLog")(program, log.data());
    function<int(void **)>("nvrtcDestroyProgram")(&program);
    return log;
  }

private:
  template <class Signature> Signature *function(const char *name) const {
    return reinterpret_cast<Signature *>(dlsym(library, name));
  }
  void *library = nullptr;
};

// By default the oldest that CUDA 13 compiles for and Hopper. Warnings count as failures.
inline void expectCompilesUnderNvrtc(llvm::StringRef source,
                                     llvm::ArrayRef<llvm::StringRef> architectures = {"sm_75", "sm_90a"}) {
  static const Nvrtc nvrtc;
  if (!nvrtc.found()) GTEST_SKIP() << "no libnvrtc here; the text is compiled for no GPU";
  for (llvm::StringRef architecture : architectures) {
    bool compiled = false;
    std::string log = nvrtc.compile(source, architecture, compiled);
    EXPECT_TRUE(compiled) << architecture.str() << ":\n" << log;
    EXPECT_EQ(log.find("warning"), std::string::npos) << architecture.str() << ":\n" << log;
  }
}

} // namespace fusor::codegen::tests
