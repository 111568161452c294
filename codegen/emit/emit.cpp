#include "codegen/emit/emit.h"
#include "codegen/attention/emit_attention.h"
#include "codegen/contraction/emit_contraction.h"
#include "codegen/emit/header.h"
#include "codegen/loop/emit_loop.h"
#include "codegen/movement/emit_movement.h"
#include "codegen/multi_tensor/emit_multi_tensor.h"
#include "codegen/scatter/emit_scatter.h"
#include "ir/graph/bug.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::codegen {

using namespace ir;

namespace {

llvm::Expected<KernelSet> emitAs(const Op &fusion, const Target &target, Naming naming) {
  auto body = fusionBody(fusion, naming);
  if (!body) return body.takeError();
  KernelSet set;
  describe(*body, set);
  auto done = [&](llvm::Error error) -> llvm::Expected<KernelSet> {
    if (error) return error;
    return std::move(set);
  };
  switch (body->kind) {
  case ClusterKind::pointwise:
    if (isTiledTranspose(*body)) return done(emitMovement(*body, set));
    [[fallthrough]];
  case ClusterKind::row:
  case ClusterKind::column: {
    auto plan = planLoop(body->flat);
    if (!plan) return plan.takeError();
    return done(emitLoop(*body, *plan, target, set));
  }
  case ClusterKind::contraction: return done(emitContraction(*body, target, set));
  case ClusterKind::attention: return done(emitAttention(*body, target, set));
  case ClusterKind::scatter: return done(emitScatter(*body, set));
  case ClusterKind::multiTensor: return done(emitMultiTensor(*body, set));
  case ClusterKind::movement: return done(emitMovement(*body, set));
  }
  FUSOR_BUG("a fusion of no kind");
}

class Collector {
public:
  explicit Collector(const Target &target) : target_(target) {}

  void add(const Op &fusion) {
    auto canonical = emitAs(fusion, target_, Naming::canonical);
    if (!canonical) {
      result_.refused.push_back({&fusion, llvm::toString(canonical.takeError())});
      return;
    }
    KernelSet set = llvm::cantFail(emitAs(fusion, target_, Naming::pretty));
    llvm::SmallVector<unsigned, 4> numbers;
    for (unsigned i = 0; i < set.kernels.size(); ++i) {
      auto [it, isNew] = numberOf_.try_emplace(canonical->kernels[i].source, result_.kernels.size());
      if (isNew) {
        makeUnique(set.kernels[i]);
        result_.kernels.push_back({set.kernels[i], 0, set.ir});
      }
      DistinctKernel &shared = result_.kernels[it->second];
      ++shared.uses;
      numbers.push_back(it->second);
      set.kernels[i].name = shared.kernel.name;
      set.kernels[i].source = shared.kernel.source;
    }
    result_.fusions.push_back({&fusion, std::move(set), std::move(numbers)});
  }

  FunctionKernels take() { return std::move(result_); }

private:
  // Different kernels of one chain and shape: add_gelu__bf16_768, add_gelu__bf16_768_v2.
  void makeUnique(Kernel &kernel) {
    std::string name = kernel.name;
    for (unsigned n = 2; !names_.insert(name).second; ++n) name = kernel.name + "_v" + std::to_string(n);
    if (name == kernel.name) return;
    std::string text;
    llvm::StringRef rest = kernel.source;
    while (!rest.empty()) { // whole words only: names may begin with one another
      size_t at = rest.find(kernel.name);
      text += rest.take_front(at);
      if (at == llvm::StringRef::npos) break;
      llvm::StringRef after = rest.drop_front(at + kernel.name.size());
      bool isWord = after.empty() || !(llvm::isAlnum(after[0]) || after[0] == '_');
      text += isWord ? name : kernel.name;
      rest = after;
    }
    kernel.source = text;
    kernel.name = name;
  }

  const Target &target_;
  FunctionKernels result_;
  llvm::StringMap<unsigned> numberOf_;
  llvm::StringSet<> names_;
};

void addAll(Collector &collector, const Function &function) {
  for (const Op &op : function.block().ops())
    if (op.is("fusion")) collector.add(op);
}

} // namespace

llvm::Expected<KernelSet> emit(const Op &fusion, const Target &target) {
  return emitAs(fusion, target, Naming::pretty);
}

FunctionKernels kernelsOf(const Function &function, const Target &target) {
  Collector collector(target);
  addAll(collector, function);
  return collector.take();
}

FunctionKernels kernelsOf(const Module &module, const Target &target) {
  Collector collector(target);
  for (const auto &function : module.functions()) addAll(collector, *function);
  return collector.take();
}

} // namespace fusor::codegen
