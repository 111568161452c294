#include "passes/fp8/split.h"
#include "ir/graph/clone.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/peak.h"
#include "passes/fusion/fusion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

constexpr unsigned kMostCuts = 4;
constexpr int64_t kLeastGain = 500; // one part in so many

/// A result of a fusion that another kernel can make.
struct Cut {
  unsigned result = 0;
  std::optional<unsigned> from; // another result, of which it is a transpose: it goes behind the kernel
  bool early = false; // else in front of it: right there, or as soon as all is there that it and its readers need
};

bool onlyMoves(const Op &op) {
  return op.def().lowering == ir::Lowering::indexMap || op.def().lowering == ir::Lowering::view;
}

// The ops that make `value` from `stop` or from arguments of the body, in order; none where a heavy one is among them.
std::optional<llvm::SmallVector<Op *, 8>> sliceOf(Value value, Value stop) {
  llvm::SmallPtrSet<Op *, 8> found;
  llvm::SmallVector<Value, 8> open = {value};
  while (!open.empty()) {
    Value v = open.pop_back_val();
    if (v == stop || !v.op() || !found.insert(v.op()).second) continue;
    Op &op = *v.op();
    if (op.resultCount() != 1 ||
        !(op.def().isElementwise() || op.is("fp8_cast") || op.is("normalize") || op.is("constant") || onlyMoves(op)))
      return std::nullopt;
    for (Value operand : op.operands())
      if (operand) open.push_back(operand);
  }
  llvm::SmallVector<Op *, 8> slice;
  for (Op *op : value.op()->block()->opPointers())
    if (found.contains(op)) slice.push_back(op);
  return slice;
}

// Of which yielded value `value` is a transpose, if of any.
std::optional<unsigned> transposedResult(const Op &yield, Value value) {
  if (!value.op() || !onlyMoves(*value.op())) return std::nullopt;
  Value from = value;
  while (from.op() && onlyMoves(*from.op())) from = from.op()->operand(0u);
  for (unsigned j = 0; j < yield.operands().size(); ++j)
    if (yield.operand(j) == from) return j;
  return std::nullopt;
}

llvm::SmallVector<Cut, 4> cutsOf(const Op &fusion) {
  llvm::SmallVector<Cut, 4> cuts;
  const Op &yield = *fusion.body()->terminator();
  for (unsigned i = 0; i < yield.operands().size(); ++i) {
    Value value = yield.operand(i);
    if (!value.op()) continue;
    if (auto from = transposedResult(yield, value)) {
      cuts.push_back({i, from, false});
      continue;
    }
    auto slice = sliceOf(value, {});
    if (slice && slice->size() < fusion.body()->ops().size() - 1)
      for (bool early : {false, true}) cuts.push_back({i, std::nullopt, early});
  }
  return cuts;
}

// A copy for planning: bodies stay behind, but for that of `whole`.
void outline(ir::Function &copy, const ir::Function &source, const Op &whole) {
  ir::ValueMap map;
  for (Value argument : source.block().arguments())
    map[argument.def()] = copy.block().addArgument(argument.type(), argument.name());
  for (Value read : source.reads()) map[read.def()] = copy.read(read.name());
  for (const Op &op : source.block().ops()) {
    if (!op.is("fusion") || &op == &whole || op.operands().empty()) {
      cloneInto(copy.block(), op, map);
      continue;
    }
    llvm::SmallVector<Value, 8> operands;
    for (Value v : op.operands()) operands.push_back(map.lookup(v.def()));
    llvm::SmallVector<ir::TensorType, 4> types;
    for (Value v : op.results()) types.push_back(v.type());
    Op *made = copy.block().insert(std::make_unique<Op>(op.def(), operands, types, op.attrs(), op.location()));
    for (unsigned i = 0; i < types.size(); ++i) map[op.result(i).def()] = made->result(i);
  }
}

using Originals = llvm::DenseMap<const Op *, const Op *>;

class Splitter {
public:
  Splitter(ir::Function &function, PassContext &context)
      : function_(function), context_(context), symbols_(middleOfRanges(function.module())) {}

  llvm::Expected<bool> run() {
    bool changed = false;
    for (unsigned i = 0; i < kMostCuts; ++i) {
      auto better = cutAtPeak();
      if (!better) return better.takeError();
      if (!*better) break;
      changed = true;
    }
    return changed;
  }

private:
  // The best cut of a result that is alive at the peak, if one helps.
  llvm::Expected<bool> cutAtPeak() {
    auto plan = planOf(function_, Originals());
    if (!plan) return plan.takeError();
    auto ops = function_.block().opPointers();
    unsigned peak = peakOf(*plan, ops.size());
    unsigned where = 0;
    std::optional<Cut> best;
    int64_t before = plan->arenaBytes, least = before - before / kLeastGain;
    for (unsigned position = 0; position <= peak; ++position) {
      if (!ops[position]->is("fusion")) continue;
      for (const Cut &cut : cutsOf(*ops[position])) {
        const PlannedBuffer &buffer = plan->buffer(ops[position]->result(cut.result));
        if (buffer.place.kind != PlaceKind::arena || buffer.last < static_cast<int>(peak)) continue;
        if (!isPossible(*ops[position], cut)) continue;
        auto bytes = arenaWith(position, cut);
        if (!bytes) return bytes.takeError();
        if (*bytes && **bytes < least) least = **bytes, best = cut, where = position;
      }
    }
    if (!best || !context_.spend("fp8-split", ops[where])) return false;
    context_.record(Decision::Kind::taken, "fp8-split", *ops[where],
                    llvm::formatv("%{0} has a kernel of its own: {1} MB less at the peak",
                                  ops[where]->result(best->result).name(), (before - least) / 1000000),
                    before - least);
    inPlace_.erase(ops[where]); // its results are about to be numbered anew
    return apply(*ops[where], *best);
  }

  // `originals`: the ops of function_ that those of its copy come from, but for what was cut.
  llvm::Expected<MemoryPlan> planOf(const ir::Function &function, const Originals &originals) {
    MemoryOptions options;
    llvm::DenseMap<const Op *, OverwritePairs> ofCut;
    auto mayOverwrite = [&](const Op &op, unsigned result, unsigned operand) {
      if (!op.is("fusion")) return false;
      const Op *original = originals.empty() ? &op : originals.lookup(&op);
      llvm::DenseMap<const Op *, OverwritePairs> &known = original ? inPlace_ : ofCut;
      auto [it, isNew] = known.try_emplace(original ? original : &op);
      if (isNew) it->second = overwritableBy(*it->first);
      return llvm::is_contained(it->second, std::pair(result, operand));
    };
    options.mayOverwrite = mayOverwrite;
    return planMemory(function, symbols_, options);
  }

  // What the arena would be, found out on a copy.
  llvm::Expected<std::optional<int64_t>> arenaWith(unsigned position, const Cut &cut) {
    ir::Module &module = function_.module();
    ir::Function &copy = module.addFunction("fp8-split");
    outline(copy, function_, *function_.block().opPointers()[position]);
    Originals originals;
    auto copies = copy.block().opPointers();
    for (auto [made, original] : llvm::zip(copies, function_.block().opPointers())) originals[made] = original;
    originals.erase(copies[position]);
    std::optional<int64_t> bytes;
    if (apply(*copies[position], cut)) {
      auto plan = planOf(copy, originals);
      if (!plan) return module.eraseFunction("fp8-split"), plan.takeError();
      bytes = plan->arenaBytes;
    }
    module.eraseFunction("fp8-split");
    return bytes;
  }

  static llvm::SmallVector<Op *, 4> readersOf(const Op &fusion, const Cut &cut) { // in order
    llvm::SmallVector<Op *, 4> readers;
    for (Op *op : fusion.block()->opPointers())
      if (llvm::is_contained(fusion.result(cut.result).users(), op)) readers.push_back(op);
    return readers;
  }

  // In front of the kernel a part needs its readers there too.
  static bool isPossible(Op &fusion, const Cut &cut) {
    auto readers = readersOf(fusion, cut);
    if (readers.empty() || readers.back()->def().isTerminator) return false;
    return cut.from || earliest(fusion, cut, readers);
  }

  // The op before which a part and its readers have all they read; null where that is not in front of the kernel.
  static Op *earliest(Op &fusion, const Cut &cut, llvm::ArrayRef<Op *> readers) {
    llvm::SmallPtrSet<const Op *, 16> awaited;
    auto await = [&](Value v) {
      if (v && v.op()) awaited.insert(v.op());
    };
    for (Op *reader : readers) {
      if (!reader->is("fusion")) return nullptr;
      for (Value operand : reader->operands())
        if (operand != fusion.result(cut.result)) await(operand);
    }
    for (unsigned i : argumentsOf(fusion, *sliceOf(fusion.body()->terminator()->operand(cut.result), {})))
      await(fusion.operand(i));
    for (Op *op : fusion.block()->opPointers()) {
      if (awaited.empty()) return op;
      if (op == &fusion) break;
      awaited.erase(op);
    }
    return nullptr;
  }

  // Which arguments of the body the slice reads.
  static llvm::SmallVector<unsigned, 4> argumentsOf(const Op &fusion, llvm::ArrayRef<Op *> slice) {
    llvm::SmallVector<unsigned, 4> numbers;
    for (unsigned i = 0; i < fusion.body()->argumentCount(); ++i)
      if (llvm::any_of(slice, [&](Op *op) { return llvm::is_contained(op->operands(), fusion.body()->argument(i)); }))
        numbers.push_back(i);
    return numbers;
  }

  // False where no kernel takes the parts.
  bool apply(Op &fusion, const Cut &cut) {
    auto readers = readersOf(fusion, cut);
    Op *place = cut.from ? readers.front() : cut.early ? earliest(fusion, cut, readers) : &fusion;
    Op *made = makePart(fusion, cut, place);
    fusion.result(cut.result).replaceAllUsesWith(made->result());
    if (!cut.from)
      for (Op *reader : readers) fusion.block()->moveBefore(reader, place);
    shrink(fusion, cut.result);
    const ir::Target &target = context_.options().target;
    return nameFusion(*made, target) && nameFusion(fusion, target);
  }

  static Op *makePart(Op &fusion, const Cut &cut, Op *before) {
    const ir::Block &body = *fusion.body();
    const Op &yield = *body.terminator();
    Value value = yield.operand(cut.result), from = cut.from ? yield.operand(*cut.from) : Value();
    auto slice = *sliceOf(value, from);
    ir::ValueMap map;
    llvm::SmallVector<Value, 4> inputs, inside;
    auto addInput = [&](Value outer, Value inner) { inputs.push_back(outer), inside.push_back(inner); };
    if (from) addInput(fusion.result(*cut.from), from);
    for (unsigned i : argumentsOf(fusion, slice)) addInput(fusion.operand(i), body.argument(i));
    Op *made =
        fusion.block()->insert(std::make_unique<Op>(ir::opDef("fusion"), inputs, llvm::ArrayRef<ir::TensorType>(),
                                                    ir::Attrs(), value.op()->location()),
                               before);
    ir::Block &part = made->makeBody();
    for (Value v : inside) map[v.def()] = part.addArgument(v.type(), v.name());
    for (Op *op : slice) cloneInto(part, *op, map);
    part.insert(std::make_unique<Op>(ir::opDef("yield"), llvm::ArrayRef<Value>(map.lookup(value.def())),
                                     llvm::ArrayRef<ir::TensorType>(), ir::Attrs(), ir::Location()));
    Value result = fusion.result(cut.result);
    made->addResult(result.type(), result.name());
    return made;
  }

  static void shrink(Op &fusion, unsigned result) {
    fusion.body()->terminator()->eraseOperand(result);
    fusion.eraseResult(result);
    auto ops = fusion.body()->opPointers();
    for (Op *op : llvm::reverse(ops))
      if (!op->def().isTerminator && op->unused()) op->erase();
    for (unsigned i = fusion.body()->argumentCount(); i-- > 0;)
      if (fusion.body()->argument(i).unused()) fusion.body()->eraseArgument(i), fusion.eraseOperand(i);
  }

  ir::Function &function_;
  PassContext &context_;
  const ir::SymbolValues symbols_;
  llvm::DenseMap<const Op *, OverwritePairs> inPlace_;
};

} // namespace

llvm::Expected<bool> fp8Split(ir::Module &module, PassContext &context) {
  if (!context.options().target.hasFp8Library() || !context.enabled("fp8-split")) return false;
  llvm::SmallVector<ir::Function *, 4> functions;
  for (const auto &function : module.functions()) functions.push_back(function.get());
  bool changed = false;
  for (ir::Function *function : functions) {
    auto split = Splitter(*function, context).run();
    if (!split) return split;
    changed |= *split;
  }
  return changed;
}

} // namespace fusor::passes
