#include "codegen/emit/kernel_builder.h"
#include "codegen/device/embedded.h"
#include "codegen/emit/header.h"
#include "codegen/emit/scalar_text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::codegen {

using namespace ir;

KernelBuilder::KernelBuilder(const FusionBody &body, KernelSet &set, llvm::StringRef step)
    : body_(body), set_(set), step_(step.str()) {}

std::string KernelBuilder::parameter(KernelArg arg, llvm::StringRef type, llvm::StringRef wanted) {
  auto key = std::tuple(arg.kind, arg.index, arg.symbol);
  if (auto it = parameters_.find(key); it != parameters_.end()) return it->second.name;
  arg.name = names_.make(wanted);
  return parameters_[key] = {type.str(), arg.name, arg}, arg.name;
}

bool KernelBuilder::mayAlias(unsigned input) const {
  return llvm::any_of(set_.inPlace, [&](const InPlace &pair) { return pair.input == input; });
}

std::string KernelBuilder::input(unsigned index) {
  Value v = body_.block().argument(index);
  return parameter({KernelArg::Kind::input, index, "", ""},
                   ("const " + storageType(v.dtype()) + " *" + (mayAlias(index) ? "" : "__restrict__ ")).str(),
                   v.name());
}

std::string KernelBuilder::output(unsigned index) {
  Value v = body_.block().terminator()->operand(index);
  bool aliases = llvm::any_of(set_.inPlace, [&](const InPlace &pair) { return pair.output == index; });
  return parameter({KernelArg::Kind::output, index, "", ""},
                   (storageType(v.dtype()) + " *" + (aliases ? "" : "__restrict__ ")).str(), v.name());
}

std::string KernelBuilder::workspace(unsigned index, llvm::StringRef type, llvm::StringRef name, bool isConst) {
  return parameter({KernelArg::Kind::workspace, index, "", ""},
                   ((isConst ? "const " : "") + type + " *__restrict__ ").str(), name);
}

std::string KernelBuilder::special(KernelArg::Kind kind, llvm::StringRef type, llvm::StringRef name) {
  return parameter({kind, 0, "", ""}, type, name);
}

// "256*B+1" -> "(256 * B + 1)", with each symbol under its parameter's name.
std::string KernelBuilder::dim(const Dim &dim) {
  if (dim.isConstant()) return std::to_string(dim.value());
  std::string spelled = dim.str(), text;
  for (size_t i = 0; i < spelled.size();) {
    if (llvm::isAlpha(spelled[i]) || spelled[i] == '_') {
      size_t end = i;
      while (end < spelled.size() && (llvm::isAlnum(spelled[end]) || spelled[end] == '_')) ++end;
      std::string symbol = spelled.substr(i, end - i);
      text += parameter({KernelArg::Kind::symbol, 0, symbol, ""}, "i64 ", symbol);
      i = end;
      continue;
    }
    bool isInfix = i > 0 && !llvm::isDigit(spelled[i]);
    text += isInfix ? " " + spelled.substr(i, 1) + " " : spelled.substr(i, 1);
    ++i;
  }
  return dim.asSymbol() ? text : "(" + text + ")";
}

void KernelBuilder::finish(const LaunchOf &launch) {
  Kernel kernel;
  kernel.name = set_.name + (step_.empty() ? "" : "_" + step_);
  std::string list;
  for (const auto &[key, p] : parameters_) {
    list += (list.empty() ? "" : ", ") + p.type + p.name;
    kernel.args.push_back(p.arg);
  }
  llvm::SmallVector<llvm::StringRef, 8> files;
  for (const std::string &file : files_) files.push_back(file);
  kernel.source = "// " + kernel.name +
                  ": the kernel stands at the end, behind the parts of the device library it uses.\n" +
                  deviceLibrary(files) + "// ---- " + kernel.name + " ----\n" +
                  kernelHeader(body_, set_, kernel.name, step_, launch);
  kernel.source += prelude_.text();
  std::string bounds = std::to_string(launch.block);
  if (launch.blocksTogether) bounds += ", " + std::to_string(launch.blocksTogether);
  kernel.source +=
      llvm::formatv("extern \"C\" __global__ void __launch_bounds__({0})\n{1}({2}) {{\n", bounds, kernel.name, list);
  kernel.source += code_.text();
  kernel.source += "}\n";
  kernel.grid = launch.grid;
  kernel.block = launch.block;
  kernel.sharedBytes = launch.sharedBytes;
  kernel.skipWhereAliased = launch.skipWhereAliased;
  set_.kernels.push_back(std::move(kernel));
}

} // namespace fusor::codegen
