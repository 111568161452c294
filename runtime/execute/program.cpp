#include "runtime/execute/program.h"
#include "runtime/cpu/cpu_program.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/execute/run_error.h"
#include "runtime/execute/user_error.h"
#include <chrono>
#include <cstring>

namespace fusor::runtime {

using namespace ir;

namespace {

llvm::Expected<TensorView> viewOf(const TensorType &type, const SymbolValues &symbols, const std::string &what) {
  TensorView view;
  view.dtype = type.dtype;
  for (const Dim &dim : type.shape) {
    auto size = dim.evaluate(symbols);
    if (!size) return userError("{0} is {1}: give {2} a value", what, type.str(), dim.str());
    view.shape.push_back(*size);
  }
  return view;
}

} // namespace

Program::Program(std::unique_ptr<Module> module, Target target, CompileOptions options)
    : module_(std::move(module)), target_(std::move(target)), options_(std::move(options)),
      sliceBounds_(sliceBounds(*module_)) {}
Program::~Program() = default;

llvm::Expected<const Function *> Program::function(llvm::StringRef name) const {
  if (const Function *function = module_->function(name)) return function;
  std::string known;
  for (const auto &function : module_->functions()) known += (known.empty() ? "@" : ", @") + function->name().str();
  return userError("there is no function @{0}; the module has {1}", name, known.empty() ? "none" : known);
}

llvm::Expected<const Persistent *> Program::persistent(llvm::StringRef name) const {
  if (const Persistent *persistent = static_cast<const Module &>(*module_).persistent(name)) return persistent;
  return userError("there is no persistent value @{0}", name);
}

SymbolValues Program::withGiven(const SymbolValues &symbols) const {
  SymbolValues all = symbols;
  for (const auto &entry : options_.symbols) all.try_emplace(entry.first(), entry.second);
  return all;
}

llvm::Expected<SymbolValues> Program::bindSymbols(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs,
                                                  const SymbolValues &symbols) const {
  auto function = this->function(name);
  if (!function) return function.takeError();
  const Block &block = (*function)->block();
  if (inputs.size() != block.argumentCount())
    return userError("@{0} takes {1} inputs, {2} are given", name, block.argumentCount(), inputs.size());
  SymbolValues bound = withGiven(symbols);
  auto wrong = [&](unsigned i, llvm::StringRef what) {
    return userError("input {0}, %{1}, must be {2}, is {3}{4}", i, block.argument(i).name(),
                     block.argument(i).type().str(), inputs[i].typeText(), what);
  };
  for (unsigned i = 0; i < inputs.size(); ++i) {
    const TensorType &type = block.argument(i).type();
    if (inputs[i].dtype != type.dtype || inputs[i].shape.size() != type.rank()) return wrong(i, "");
    for (unsigned d = 0; d < type.rank(); ++d)
      if (auto symbol = type.shape[d].asSymbol()) bound.try_emplace(*symbol, inputs[i].shape[d]);
  }
  for (unsigned i = 0; i < inputs.size(); ++i) {
    const TensorType &type = block.argument(i).type();
    for (unsigned d = 0; d < type.rank(); ++d) {
      auto expected = type.shape[d].evaluate(bound);
      if (!expected) return wrong(i, llvm::formatv("; nothing fixes {0}", type.shape[d].str()).str());
      if (*expected != inputs[i].shape[d]) return wrong(i, llvm::formatv("; dim {0} must be {1}", d, *expected).str());
    }
  }
  for (const auto &entry : bound) {
    auto range = module_->symbols().find(entry.first().str());
    if (range == module_->symbols().end()) continue;
    if (entry.second < range->second.low || entry.second > range->second.high)
      return userError("{0} must be in {1}..{2}, is {3}", entry.first(), range->second.low, range->second.high,
                       entry.second);
  }
  if (auto error = checkSliceBounds(sliceBounds_, name, bound)) return error;
  return bound;
}

llvm::Expected<std::vector<TensorView>> Program::resultTypes(llvm::StringRef name, const SymbolValues &symbols) const {
  auto function = this->function(name);
  if (!function) return function.takeError();
  SymbolValues bound = withGiven(symbols);
  std::vector<TensorView> views;
  for (const ReturnEntry &entry : (*function)->returns()) {
    if (entry.kind != ReturnKind::result) continue;
    auto view = viewOf(entry.value.type(), bound, "a result of @" + name.str());
    if (!view) return view.takeError();
    views.push_back(std::move(*view));
  }
  return views;
}

llvm::Error Program::checkSize(llvm::StringRef name, size_t given) const {
  auto bytes = persistentBytes(name);
  if (!bytes) return bytes.takeError();
  if (static_cast<int64_t>(given) == *bytes) return llvm::Error::success();
  return userError("@{0} has {1} bytes, {2} are given", name, *bytes, given);
}

llvm::Error Program::checkOutputs(const Function &function, llvm::ArrayRef<TensorView> outputs,
                                  const SymbolValues &symbols) const {
  auto expected = resultTypes(function.name(), symbols);
  if (!expected) return expected.takeError();
  if (outputs.size() != expected->size())
    return userError("@{0} has {1} results, {2} outputs are given", function.name(), expected->size(), outputs.size());
  for (unsigned i = 0; i < outputs.size(); ++i)
    if (outputs[i].dtype != (*expected)[i].dtype || outputs[i].shape != (*expected)[i].shape)
      return userError("output {0} of @{1} must be {2}, is {3}", i, function.name(), (*expected)[i].typeText(),
                       outputs[i].typeText());
  return llvm::Error::success();
}

llvm::Expected<unsigned> Program::start(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs,
                                        const SymbolValues &symbols) {
  auto bound = bindSymbols(name, inputs, symbols);
  if (!bound) return bound.takeError();
  auto outputs = resultTypes(name, *bound);
  if (!outputs) return outputs.takeError();
  std::vector<std::vector<char>> results;
  for (TensorView &output : *outputs) {
    results.emplace_back(output.bytes());
    output.data = results.back().data();
  }
  if (auto error = run(name, inputs, *outputs, symbols)) return error;
  unread_[++lastStarted_] = std::move(results);
  return lastStarted_;
}

llvm::Error Program::stage(llvm::StringRef, llvm::MutableArrayRef<TensorView>) { return llvm::Error::success(); }

llvm::Error Program::finish(unsigned number, llvm::ArrayRef<TensorView> outputs) {
  auto found = unread_.find(number);
  if (found == unread_.end()) return userError("run {0} was not started, or has been finished", number);
  auto results = std::move(found->second);
  unread_.erase(found);
  if (outputs.size() != results.size())
    return userError("the run has {0} results, {1} outputs are given", results.size(), outputs.size());
  for (unsigned i = 0; i < outputs.size(); ++i)
    if (outputs[i].bytes() != static_cast<int64_t>(results[i].size()))
      return userError("result {0} has {1} bytes, the output is {2}", i, results[i].size(), outputs[i].typeText());
  for (unsigned i = 0; i < outputs.size(); ++i) std::memcpy(outputs[i].data, results[i].data(), results[i].size());
  return llvm::Error::success();
}

llvm::Expected<double> Program::timeRuns(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs, unsigned runs,
                                         const SymbolValues &symbols) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned kBefore = 2;
  Clock::time_point begin;
  for (unsigned i = 0; i < kBefore + runs; ++i) {
    if (i == kBefore) begin = Clock::now();
    auto number = start(name, inputs, symbols);
    if (!number) return number.takeError();
    unread_.erase(*number);
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / std::max(1u, runs);
}

llvm::Expected<TensorView> Program::persistentType(llvm::StringRef name) const {
  auto persistent = this->persistent(name);
  if (!persistent) return persistent.takeError();
  return viewOf((*persistent)->type, options_.symbols, "@" + name.str());
}

llvm::Expected<int64_t> Program::persistentBytes(llvm::StringRef name) const {
  auto view = persistentType(name);
  if (!view) return view.takeError();
  return view->bytes();
}

llvm::Error Program::addFallback(Fallback fallback) {
  if (options_.strict) return userError("{0} fell back: {1} (--strict)", fallback.where, fallback.reason);
  for (const Fallback &known : fallbacks_)
    if (known.where == fallback.where && known.reason == fallback.reason) return llvm::Error::success();
  fallbacks_.push_back(std::move(fallback));
  return llvm::Error::success();
}

double spanClockMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

llvm::Expected<std::unique_ptr<Program>> compile(std::unique_ptr<Module> fused, const Target &target,
                                                 CompileOptions options) {
  if (target.kind == DeviceKind::cpu) return compileForCpu(std::move(fused), target, std::move(options));
  auto platform = openCudaPlatform(target, options);
  if (!platform) return platform.takeError();
  return compileForCuda(std::move(fused), target, std::move(options), std::move(*platform));
}

} // namespace fusor::runtime
