// One kernel while it is being written: parameters appear as the text asks for them.
//
//   KernelBuilder k(body, set, "main");
//   std::string x = k.input(0);                       // a parameter `const float *__restrict__ x`
//   k.code().line("store({0} + i, {1});", ...);
//   k.use("vector.cuh");
//   k.finish({.grid = Count::ceilDiv(n, 256), .block = 256, .note = "8 elements a thread"});   // appends to `set`
#pragma once
#include "codegen/emit/body.h"
#include "codegen/emit/code_writer.h"
#include "codegen/emit/kernel.h"
#include <map>
#include <set>

namespace fusor::codegen {

struct LaunchOf {
  Count grid = 1;
  unsigned block = 32;
  std::string note = {};       // behind the launch in the header
  unsigned sharedBytes = 0;    // dynamic shared memory
  unsigned blocksTogether = 0; // on one multiprocessor at least: a bound on registers; 0: the compiler chooses
  std::optional<std::pair<unsigned, unsigned>> skipWhereAliased = std::nullopt;
};

class KernelBuilder {
public:
  /// `step` says what this kernel does where the set has several: "main", "finish". `names` starts with the names of
  /// the body taken.
  KernelBuilder(const FusionBody &body, KernelSet &set, llvm::StringRef step = "");

  CodeWriter &code() { return code_; }
  NamePool &names() { return names_; }
  const FusionBody &body() const { return body_; }
  KernelSet &set() { return set_; }
  void use(llvm::StringRef deviceFile) { files_.insert(deviceFile.str()); }
  /// Text between the library and the kernel: a functor.
  CodeWriter &prelude() { return prelude_; }

  /// Parameters; the same one has the same name each time.
  std::string input(unsigned index);
  std::string output(unsigned index);
  std::string workspace(unsigned index, llvm::StringRef type, llvm::StringRef name, bool isConst);
  std::string special(KernelArg::Kind kind, llvm::StringRef type, llvm::StringRef name);
  /// `dim` as a C expression that binds tighter than `*`; its symbols become i64 parameters.
  std::string dim(const ir::Dim &dim);
  std::string count(const Count &count) {
    return count.text([this](const ir::Dim &d) { return dim(d); });
  }
  /// Storage types of the fusion's inputs and outputs.
  ir::DType inputType(unsigned index) const { return body_.block().argument(index).dtype(); }
  ir::DType outputType(unsigned index) const { return body_.block().terminator()->operand(index).dtype(); }

  void finish(const LaunchOf &launch);

private:
  struct Parameter {
    std::string type, name;
    KernelArg arg;
  };
  std::string parameter(KernelArg arg, llvm::StringRef type, llvm::StringRef wanted);
  bool mayAlias(unsigned input) const;

  const FusionBody &body_;
  KernelSet &set_;
  std::string step_;
  NamePool names_;
  CodeWriter prelude_, code_{2};
  std::set<std::string> files_{"types.cuh"};
  std::map<std::tuple<KernelArg::Kind, unsigned, std::string>, Parameter> parameters_; // in order of the list
};

} // namespace fusor::codegen
