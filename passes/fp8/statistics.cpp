#include "passes/fp8/statistics.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/peak.h"
#include "passes/fusion/fusion.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

constexpr int64_t kShareOfTraffic = 500; // one part in so many may be read again

/// A norm in a kernel before the peak whose statistics wait over it.
struct WaitingNorm {
  Op *fusion = nullptr;
  const Op *norm = nullptr;                                       // in its body
  Value x;                                                        // outside
  llvm::SmallVector<std::pair<unsigned, unsigned>, 2> statistics; // result of the norm, result of the fusion
  Op *reader = nullptr;                                           // the first behind the peak
  unsigned position = 0;                                          // of the reader
};

class Payer {
public:
  Payer(ir::Function &function, PassContext &context)
      : function_(function), context_(context), symbols_(middleOfRanges(function.module())),
        ops_(function.block().opPointers()) {
    for (unsigned i = 0; i < ops_.size(); ++i) positions_[ops_[i]] = i;
  }

  llvm::Expected<bool> run() {
    auto plan = planInPlace(function_, symbols_);
    if (!plan) return plan.takeError();
    auto norms = waitingNorms(*plan, peakOf(*plan, ops_.size()));
    llvm::stable_sort(norms, [](const WaitingNorm &a, const WaitingNorm &b) { return a.position < b.position; });
    int64_t left = traffic() / kShareOfTraffic;
    bool changed = false;
    for (const WaitingNorm &norm : norms) {
      left -= bytesOf(norm.x);
      if (left < 0 || !context_.spend("fp8-statistics", norm.fusion)) break;
      auto paid = computeAgain(norm);
      if (!paid) continue;
      context_.record(Decision::Kind::taken, "fp8-statistics", *norm.fusion,
                      llvm::formatv("its statistics are computed again from %{0}, behind the peak of memory: {1} bytes "
                                    "less there, another {2} read",
                                    norm.x.name(), *paid, bytesOf(norm.x)));
      changed = true;
    }
    return changed;
  }

private:
  int64_t bytesOf(Value v) const { return storageBytes(v.type(), symbols_).value_or(0); }

  // What kernels read and write, each tensor once a kernel.
  int64_t traffic() const {
    int64_t bytes = 0;
    for (Op *op : ops_) {
      if (!op->is("fusion")) continue;
      for (Value v : op->operands()) bytes += v ? bytesOf(v) : 0;
      for (Value v : op->results()) bytes += bytesOf(v);
    }
    return bytes;
  }

  std::vector<WaitingNorm> waitingNorms(const MemoryPlan &plan, unsigned peak) const {
    std::vector<WaitingNorm> norms;
    for (unsigned i = 0; i < peak && i < ops_.size(); ++i) {
      if (!ops_[i]->is("fusion")) continue;
      for (const Op &op : ops_[i]->body()->ops())
        if (op.is("layer_norm") || op.is("rms_norm"))
          if (auto norm = waiting(*ops_[i], op, plan, peak)) norms.push_back(*norm);
    }
    return norms;
  }

  std::optional<WaitingNorm> waiting(Op &fusion, const Op &op, const MemoryPlan &plan, unsigned peak) const {
    WaitingNorm norm{&fusion, &op, outside(fusion, op.operand(0u)), {}, nullptr, 0};
    const Op &yield = *fusion.body()->terminator();
    for (unsigned i = 1; i < op.resultCount(); ++i)
      for (unsigned k = 0; k < yield.operands().size(); ++k)
        if (yield.operand(k) == op.result(i)) norm.statistics.push_back({i, k});
    for (auto [result, yielded] : norm.statistics)
      for (Op *user : fusion.result(yielded).users()) {
        unsigned at = positions_.lookup(user);
        if (user->def().isTerminator) return std::nullopt;
        if (at > peak && (!norm.reader || at < norm.position)) norm.reader = user, norm.position = at;
      }
    if (!norm.x || !norm.reader) return std::nullopt;
    const PlannedBuffer &waits = plan.buffer(norm.x);
    bool isThere = waits.place.kind != PlaceKind::arena || waits.last >= static_cast<int>(norm.position);
    return isThere ? std::optional(norm) : std::nullopt;
  }

  // `v` of a body where it lies in memory: an operand of the fusion, or a result.
  static Value outside(Op &fusion, Value v) {
    if (v.isArgument()) return fusion.operand(v.index());
    const Op &yield = *fusion.body()->terminator();
    for (unsigned k = 0; k < yield.operands().size(); ++k)
      if (yield.operand(k) == v) return fusion.result(k);
    return {};
  }

  // How many bytes less wait; none where no kernel takes the norm by itself.
  std::optional<int64_t> computeAgain(const WaitingNorm &waiting) {
    const Op &norm = *waiting.norm;
    Op *made =
        function_.block().insert(std::make_unique<Op>(ir::opDef("fusion"), llvm::ArrayRef<Value>(waiting.x),
                                                      llvm::ArrayRef<ir::TensorType>(), ir::Attrs(), norm.location()),
                                 waiting.reader);
    ir::Block &body = made->makeBody();
    llvm::SmallVector<Value, 2> operands = {body.addArgument(waiting.x.type(), waiting.x.name())};
    llvm::SmallVector<ir::TensorType, 3> types;
    for (Value v : norm.results()) types.push_back(v.type());
    Op *copy = body.insert(std::make_unique<Op>(norm.def(), operands, types, norm.attrs(), norm.location()));
    llvm::SmallVector<Value, 2> yielded;
    for (auto [result, unused] : waiting.statistics) yielded.push_back(copy->result(result));
    body.insert(std::make_unique<Op>(ir::opDef("yield"), yielded, llvm::ArrayRef<ir::TensorType>(), ir::Attrs(),
                                     ir::Location()));
    if (!nameFusion(*made, context_.options().target)) return made->erase(), std::nullopt;
    int64_t bytes = 0;
    for (auto [result, number] : waiting.statistics) {
      Value old = waiting.fusion->result(number), again = made->addResult(old.type(), "");
      bytes += bytesOf(old);
      for (Op *user : llvm::to_vector<4>(old.users()))
        if (positions_.lookup(user) >= waiting.position)
          for (unsigned i = 0; i < user->operands().size(); ++i)
            if (user->operand(i) == old) user->setOperand(i, again);
    }
    return bytes;
  }

  ir::Function &function_;
  PassContext &context_;
  const ir::SymbolValues symbols_;
  const llvm::SmallVector<Op *, 0> ops_;
  llvm::DenseMap<const Op *, unsigned> positions_;
};

bool hasFp8State(const ir::Function &function) {
  return llvm::any_of(function.block().ops(), [](const Op &op) {
    return op.is("fusion") && llvm::any_of(op.body()->ops(), [](const Op &o) { return o.is("amax_update"); });
  });
}

} // namespace

llvm::Expected<bool> fp8Statistics(ir::Module &module, PassContext &context) {
  if (!context.options().target.hasFp8Library() || !context.enabled("fp8-statistics")) return false;
  bool changed = false;
  for (const auto &function : module.functions()) {
    if (!hasFp8State(*function)) continue;
    auto paid = Payer(*function, context).run();
    if (!paid) return paid;
    changed |= *paid;
  }
  return changed;
}

} // namespace fusor::passes
