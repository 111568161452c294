#include "codegen/plan/loop.h"
#include "codegen/plan/access.h"
#include "codegen/plan/dims.h"
#include "ir/ops/reduction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fusor::codegen {

using namespace ir;

namespace {

bool isReduction(const Op &op) { return op.is("sum") || op.is("reduce_max") || op.is("reduce_min"); }

// Large enough that the shape with most elements wins, whatever its symbols will be.
int64_t sizeHint(llvm::ArrayRef<Dim> shape) {
  SymbolValues symbols;
  for (const Dim &dim : shape) dim.forEachSymbol([&](llvm::StringRef symbol) { symbols[symbol] = 61; });
  return *product(shape).evaluate(symbols);
}

enum class Over : uint8_t { columns, rows, everything }; // what a reduction sums over

class LoopPlanner {
public:
  LoopPlanner(const FlatCluster &cluster, Value accumulator) : cluster_(cluster), accumulator_(accumulator) {}

  llvm::Expected<LoopPlan> plan() {
    collect();
    for (auto step :
         {&LoopPlanner::chooseDomain, &LoopPlanner::chooseRows, &LoopPlanner::makeSteps, &LoopPlanner::makeStores})
      if (auto error = (this->*step)()) return error;
    return std::move(plan_);
  }

private:
  bool isSource(Value v) const { return v == accumulator_ || isLeaf(v); }

  // `x` where `v` is transpose(reshape(x)) of an FP8 value that is computed here: the loop stores x where it belongs.
  Value beforeTranspose(Value v) const {
    bool isFp8Value = v.dtype() == DType::f8e4m3 || v.dtype() == DType::f8e5m2;
    if (!isFp8Value || isSource(v) || !v.op()->is("transpose") || v.rank() != 2) return {};
    if (v.op()->attr<std::vector<int64_t>>("perm").front() != 1) return {};
    Value x = v.op()->operand(0u);
    while (!isSource(x) && x.op()->is("reshape")) x = x.op()->operand(0u);
    return x;
  }

  // The ops that the outputs need, not looking behind sources.
  void collect() {
    llvm::SmallPtrSet<Op *, 32> needed;
    llvm::SmallVector<Value, 16> work;
    for (const ReturnEntry &entry : cluster_.function->returns()) {
      Value before = beforeTranspose(entry.value);
      outputs_.push_back({before ? before : entry.value, before ? entry.value : Value()});
      work.push_back(outputs_.back().value);
    }
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (!v || isSource(v)) {
        if (v) values_.push_back(v);
        continue;
      }
      values_.push_back(v);
      if (needed.insert(v.op()).second)
        for (Value operand : v.op()->operands()) work.push_back(operand);
    }
    for (Op &op : cluster_.function->block().ops())
      if (needed.contains(&op)) ops_.push_back(&op);
  }

  llvm::Error chooseDomain() {
    Value domain = accumulator_;
    for (Value v : values_) { // values_ is in a fixed order: the first of the largest
      if (accumulator_ || v.type().granularity != Granularity::none) continue;
      if (v.op() && v.op()->is("random_uniform") && v.op()->operand(0u) == v) continue;
      if (!domain || sizeHint(v.shape()) > sizeHint(domain.shape())) domain = v;
    }
    if (!domain) return opError("nothing is computed");
    dims_ = std::make_unique<DimClasses>(ops_);
    if (!dims_->setDomain(domain)) return opError("two dims of {0} are tied to each other", domain.type().str());
    plan_.domain.assign(domain.shape().begin(), domain.shape().end());
    last_ = 0;
    for (unsigned i = 0; i < plan_.domain.size(); ++i)
      if (!plan_.domain[i].is(1)) last_ = i;
    if (accumulator_) last_ = plan_.domain.size() - 1;
    return llvm::Error::success();
  }

  // The domain dims that `v` has (dims of size 1 have none).
  llvm::Expected<llvm::SmallBitVector> coverage(Value v) const {
    llvm::SmallBitVector covered(plan_.domain.size());
    for (unsigned i = 0; i < v.rank(); ++i) {
      auto dim = dims_->domainDim(v, i);
      if (!dim)
        return opError("{0} {1} is no part of a loop over [{2}]", v.op() ? v.op()->name() : "input", v.type().str(),
                       str(llvm::ArrayRef<Dim>(plan_.domain)));
      if (*dim < 0) continue;
      if (covered.test(*dim)) // x[i] + x[j] over a loop that has no j
        return opError("two dims of {0} are one dim of [{1}]", v.type().str(), str(llvm::ArrayRef<Dim>(plan_.domain)));
      covered.set(*dim);
    }
    return covered;
  }

  llvm::SmallBitVector nonUnit(unsigned from, unsigned to) const {
    llvm::SmallBitVector dims(plan_.domain.size());
    for (unsigned i = from; i < to; ++i)
      if (!plan_.domain[i].is(1)) dims.set(i);
    return dims;
  }

  // A reduction over dims of size 1: its result is its operand.
  static bool reducesNothing(const Op &op) {
    Value x = op.operand(0u);
    auto reduced = reducedDims(op.site(), x.rank());
    for (unsigned i = 0; i < x.rank(); ++i)
      if (reduced[i] && !x.shape()[i].is(1)) return false;
    return true;
  }

  // What `op` reduces over, and for rows the number of leading dims.
  llvm::Expected<std::pair<Over, unsigned>> classify(const Op &op) const {
    Value x = op.operand(0u);
    auto reduced = reducedDims(op.site(), x.rank());
    unsigned rank = plan_.domain.size();
    llvm::SmallBitVector over(rank);
    for (unsigned i = 0; i < x.rank(); ++i) {
      if (!reduced[i]) continue;
      auto dim = dims_->domainDim(x, i);
      if (!dim)
        return opError("{0} reduces a dim of {1} that is none of [{2}]", op.name(), x.type().str(),
                       str(llvm::ArrayRef<Dim>(plan_.domain)));
      if (*dim >= 0) over.set(*dim);
    }
    llvm::SmallBitVector all = nonUnit(0, rank);
    if (over.none()) return opError("{0} of {1} reduces nothing", op.name(), x.type().str());
    if (over == nonUnit(last_, rank)) {
      if (accumulator_)
        return opError("{0} of {1} needs whole rows, a GEMM's kernel has tiles of them", op.name(), x.type().str());
      return std::pair{Over::columns, last_};
    }
    if (over == all) return std::pair{Over::everything, last_};
    for (unsigned p = 1; p < rank; ++p)
      if (over == nonUnit(0, p)) return std::pair{Over::rows, p};
    return opError("{0} of {1} reduces neither the last dim nor leading dims of [{2}]", op.name(), x.type().str(),
                   str(llvm::ArrayRef<Dim>(plan_.domain)));
  }

  // How many leading dims of the domain are the rows of the matrix whose transpose is `v`.
  llvm::Expected<unsigned> rowDimsOf(Value v) const {
    llvm::ArrayRef<Dim> domain = plan_.domain;
    for (unsigned dims = last_ + 1; dims-- > 0;)
      if (product(domain.take_front(dims)) == v.shape()[1] && product(domain.drop_front(dims)) == v.shape()[0])
        return dims;
    return opError("transpose {0} turns no matrix over [{1}]", v.type().str(), str(domain));
  }

  llvm::Error chooseRows() {
    std::optional<unsigned> required;
    for (const Output &output : outputs_) {
      if (!output.transposed) continue;
      auto rowDims = rowDimsOf(output.transposed);
      if (!rowDims) return rowDims.takeError();
      while (*rowDims < last_ && plan_.domain[*rowDims].is(1)) ++*rowDims;
      if (required && *required != *rowDims) return opError("two results are transposes of different matrices");
      required = *rowDims;
    }
    for (Op *op : ops_) {
      if (!isReduction(*op) || reducesNothing(*op)) continue;
      auto over = classify(*op);
      if (!over) return over.takeError();
      unsigned rowDims = over->second;
      while (rowDims < last_ && plan_.domain[rowDims].is(1)) ++rowDims; // dims of size 1 belong to either side
      if (required && *required != rowDims)
        return opError("one reduction or transpose is over {0} leading dims of [{1}], another over {2}", *required,
                       str(llvm::ArrayRef<Dim>(plan_.domain)), rowDims);
      required = rowDims;
    }
    plan_.rowDims = required.value_or(last_);
    if (accumulator_ && plan_.rowDims != last_)
      return opError("a sum over part of the rows of a GEMM is a kernel of its own");
    llvm::ArrayRef<Dim> domain = plan_.domain;
    plan_.rows = product(domain.take_front(plan_.rowDims));
    plan_.columns = product(domain.drop_front(plan_.rowDims));
    return llvm::Error::success();
  }

  Span spanOf(const llvm::SmallBitVector &covered) const {
    unsigned rank = plan_.domain.size();
    if (covered == nonUnit(0, rank)) return Span::full;
    llvm::SmallBitVector rows = nonUnit(0, plan_.rowDims), columns = nonUnit(plan_.rowDims, rank);
    bool hasRow = rows.anyCommon(covered), hasColumn = columns.anyCommon(covered);
    return hasRow && hasColumn ? Span::full : hasRow ? Span::row : hasColumn ? Span::column : Span::scalar;
  }

  static Span join(Span a, Span b) {
    if (a == b || b == Span::scalar) return a;
    if (a == Span::scalar) return b;
    return Span::full;
  }

  // Strides over the value's own dims become strides over the domain.
  llvm::Expected<llvm::SmallVector<Dim, 4>> toDomain(Value v, llvm::ArrayRef<Dim> own) const {
    llvm::SmallVector<Dim, 4> strides(plan_.domain.size(), Dim(0));
    for (unsigned i = 0; i < v.rank(); ++i) {
      auto dim = dims_->domainDim(v, i);
      if (!dim)
        return opError("{0} is no part of a loop over [{1}]", v.type().str(), str(llvm::ArrayRef<Dim>(plan_.domain)));
      if (*dim >= 0) strides[*dim] = strides[*dim] + own[i];
    }
    return strides;
  }

  bool isContiguous(const Access &access) const {
    if (access.gather || access.offset != Dim(0)) return false;
    auto expected = rowMajorStrides(plan_.domain);
    for (unsigned i = 0; i < expected.size(); ++i)
      if (!plan_.domain[i].is(1) && access.strides[i] != expected[i]) return false;
    return true;
  }

  llvm::Error addLoad(Value v) {
    if (span_.count(v.def())) return llvm::Error::success();
    LoopStep step;
    step.kind = LoopStep::Kind::load;
    step.result = v;
    auto covered = coverage(v);
    if (!covered) return covered.takeError();
    step.span = spanOf(*covered);
    if (v == accumulator_) {
      step.access.input = kAccumulator;
      step.access.strides = rowMajorStrides(plan_.domain);
    } else {
      auto own = leafAccess(v);
      if (!own) return own.takeError();
      step.access = *own;
      auto strides = toDomain(v, own->strides);
      if (!strides) return strides.takeError();
      step.access.strides = *strides;
      if (own->gather) {
        auto at = toDomain(v, own->gather->strides);
        if (!at) return at.takeError();
        step.access.gather->strides = *at;
      }
    }
    step.access.contiguous = isContiguous(step.access);
    return addStep(std::move(step));
  }

  llvm::Error addStep(LoopStep step) {
    Value v = step.result;
    bool late = false; // computed from a sum over rows
    if (step.op && step.kind != LoopStep::Kind::random)
      for (Value operand : step.op->operands()) late |= finish_.contains(operand.def());
    span_[v.def()] = step.span;
    if (!late) {
      plan_.main.push_back(std::move(step));
      return llvm::Error::success();
    }
    if (step.span == Span::full || step.span == Span::row || step.kind == LoopStep::Kind::rowReduce)
      return opError("a sum over rows feeds {0} over the whole [{1}]: it is known only after all rows", v.op()->name(),
                     str(llvm::ArrayRef<Dim>(plan_.domain)));
    finish_.insert(v.def());
    for (Value operand : step.op->operands())
      if (auto error = needInFinish(operand)) return error;
    plan_.finish.push_back(std::move(step));
    return llvm::Error::success();
  }

  // What finish uses of main is computed there again: it is per column or scalar, so cheap.
  llvm::Error needInFinish(Value v) {
    if (finish_.contains(v.def())) return llvm::Error::success();
    auto it = llvm::find_if(plan_.main, [&](const LoopStep &s) { return s.result == v; });
    if (it->span == Span::full || it->span == Span::row || it->kind == LoopStep::Kind::rowReduce)
      return opError("what follows a sum over rows also needs {0} per row", v.type().str());
    if (it->kind == LoopStep::Kind::random)
      return opError("what follows a sum over rows also needs random numbers, which are drawn in the loop");
    LoopStep copy = *it;
    finish_.insert(v.def());
    if (copy.op && copy.kind != LoopStep::Kind::random) // its operand, the seed, is no step
      for (Value operand : copy.op->operands())
        if (auto error = needInFinish(operand)) return error;
    plan_.finish.push_back(std::move(copy));
    return llvm::Error::success();
  }

  llvm::Error addReduction(Op &op) {
    Value x = op.operand(0u);
    auto over = classify(op);
    if (!over) return over.takeError();
    if (finish_.contains(x.def())) return opError("{0} reduces a value that is itself a sum over rows", op.name());
    Span of = span_.lookup(x.def());
    if (over->first == Over::columns) {
      LoopStep step;
      step.kind = LoopStep::Kind::rowReduce;
      step.op = &op;
      step.result = op.result();
      step.span = Span::row;
      return addStep(std::move(step));
    }
    auto covered = coverage(x);
    if (!covered) return covered.takeError();
    llvm::SmallBitVector rows = nonUnit(0, plan_.rowDims), missing = rows;
    missing.reset(*covered);
    if (missing.any())
      return opError("{0} sums {1}, which does not vary over all rows of [{2}]", op.name(), x.type().str(),
                     str(llvm::ArrayRef<Dim>(plan_.domain)));
    bool toScalar = over->first == Over::everything || of == Span::row;
    plan_.sums.push_back({&op, x, op.result(), toScalar ? Span::scalar : Span::column});
    LoopStep step;
    step.kind = LoopStep::Kind::sum;
    step.result = op.result();
    step.span = plan_.sums.back().span;
    step.sumIndex = plan_.sums.size() - 1;
    finish_.insert(op.result().def());
    span_[op.result().def()] = step.span;
    plan_.finish.push_back(std::move(step));
    return llvm::Error::success();
  }

  llvm::Error addOp(Op &op) {
    for (Value operand : op.operands())
      if (operand && isSource(operand) && !op.is("random_uniform"))
        if (auto error = addLoad(operand)) return error;
    if (auto covered = coverage(op.result()); !covered) return covered.takeError();
    if (isReduction(op) && !reducesNothing(op)) return addReduction(op);
    LoopStep step;
    step.kind = LoopStep::Kind::formula;
    step.op = &op;
    step.result = op.result();
    step.span = Span::scalar;
    if (op.is("constant"))
      step.kind = LoopStep::Kind::constant;
    else if (op.is("extent"))
      step.kind = LoopStep::Kind::extent;
    else if (op.is("iota") || op.is("random_uniform") || op.is("broadcast")) {
      auto covered = coverage(op.result());
      if (!covered) return covered.takeError();
      step.span = spanOf(*covered);
      if (op.is("broadcast")) {
        step.kind = LoopStep::Kind::spread;
      } else if (op.is("iota")) {
        step.kind = LoopStep::Kind::iota;
        int dim = *dims_->domainDim(op.result(), op.site().axis("axis", op.result().rank()));
        if (dim < 0) return opError("iota over a dim of size 1");
        step.iotaDim = dim;
      } else {
        step.kind = LoopStep::Kind::random;
        if (!op.operand(0u).isArgument()) return opError("the seed of random_uniform must be an input");
        step.access.input = op.operand(0u).index();
        auto strides = toDomain(op.result(), rowMajorStrides(op.result().shape()));
        if (!strides) return strides.takeError();
        step.access.strides = *strides;
      }
    } else if ((op.is("reshape") && unitReshape(op.operand(0u).shape(), op.result().shape())) || isReduction(op)) {
      step.kind = LoopStep::Kind::spread;
      step.span = span_.lookup(op.operand(0u).def());
    } else if (op.def().isElementwise()) {
      for (Value operand : op.operands()) step.span = join(step.span, span_.lookup(operand.def()));
    } else {
      return opError("{0} has no place in a loop", op.name());
    }
    return addStep(std::move(step));
  }

  llvm::Error makeSteps() {
    for (Op *op : ops_)
      if (auto error = addOp(*op)) return error;
    return llvm::Error::success();
  }

  llvm::Error makeStores() {
    for (unsigned i = 0; i < outputs_.size(); ++i) {
      Value v = outputs_[i].value;
      if (isSource(v))
        if (auto error = addLoad(v)) return error;
      auto covered = coverage(v);
      if (!covered) return covered.takeError();
      bool late = finish_.contains(v.def());
      LoopStore store{i, v, span_.lookup(v.def()), {}};
      auto strides = toDomain(v, rowMajorStrides(v.shape()));
      if (!strides) return strides.takeError();
      store.access.strides = *strides;
      store.access.contiguous = isContiguous(store.access);
      llvm::SmallBitVector missing(plan_.domain.size());
      if (store.span == Span::full || store.span == Span::row) missing |= nonUnit(0, plan_.rowDims);
      if (store.span == Span::full || store.span == Span::column)
        missing |= nonUnit(plan_.rowDims, plan_.domain.size());
      missing.reset(*covered);
      if (missing.any())
        return opError("{0} is stored from a loop over more, [{1}]", v.type().str(),
                       str(llvm::ArrayRef<Dim>(plan_.domain)));
      if (outputs_[i].transposed)
        if (auto error = transpose(store)) return error;
      (late ? plan_.finishStores : plan_.stores).push_back(std::move(store));
    }
    return checkTransposed();
  }

  llvm::Error transpose(LoopStore &store) const {
    Value v = store.value;
    if (store.span != Span::full || !store.access.contiguous)
      return opError("transpose of {0}, which is no whole matrix over [{1}]", v.type().str(),
                     str(llvm::ArrayRef<Dim>(plan_.domain)));
    llvm::ArrayRef<Dim> domain = plan_.domain;
    store.isTransposed = true;
    store.access.contiguous = false;
    store.access.strides = rowMajorStrides(domain.take_front(plan_.rowDims));
    for (const Dim &stride : rowMajorStrides(domain.drop_front(plan_.rowDims)))
      store.access.strides.push_back(stride * plan_.rows);
    return llvm::Error::success();
  }

  llvm::Error checkTransposed() const {
    auto count = llvm::count_if(plan_.stores, [](const LoopStore &store) { return store.isTransposed; });
    if (count > kMostTransposedStores)
      return opError("the kernel would have {0} transposed results, the limit is {1}", count, kMostTransposedStores);
    if (count == 0 || !plan_.hasRowReduction()) return llvm::Error::success();
    if (!plan_.columns.isConstant() || plan_.columns.value() * count > kMostTransposedRowColumns)
      return opError("rows of {0} columns are too long to be transposed by the kernel that reduces them",
                     plan_.columns.str());
    return llvm::Error::success();
  }

  /// A result; where it is transposed, `value` is what the loop computes.
  struct Output {
    Value value, transposed;
  };

  const FlatCluster &cluster_;
  Value accumulator_;
  LoopPlan plan_;
  std::vector<Op *> ops_;
  llvm::SmallVector<Output, 8> outputs_;
  llvm::SmallVector<Value, 32> values_;
  std::unique_ptr<DimClasses> dims_;
  unsigned last_ = 0;
  llvm::DenseMap<ValueDef *, Span> span_;
  llvm::SmallPtrSet<ValueDef *, 16> finish_;
};

} // namespace

bool LoopPlan::hasRowReduction() const {
  return llvm::any_of(main, [](const LoopStep &step) { return step.kind == LoopStep::Kind::rowReduce; });
}

bool LoopPlan::hasTransposedStore() const {
  return llvm::any_of(stores, [](const LoopStore &store) { return store.isTransposed; });
}

ClusterKind LoopPlan::kind() const {
  if (hasRowReduction()) return ClusterKind::row;
  return sums.empty() ? ClusterKind::pointwise : ClusterKind::column;
}

llvm::Expected<LoopPlan> planLoop(const FlatCluster &cluster, Value accumulator) {
  if (cluster.anchor && !accumulator) return opError("{0} is not a loop", cluster.anchor->name());
  return LoopPlanner(cluster, accumulator).plan();
}

llvm::SmallVector<Overwrite, 4> overwritable(const LoopPlan &plan, const Block &body) {
  llvm::SmallVector<Overwrite, 4> found;
  for (const LoopStep &step : plan.main) {
    if (step.kind != LoopStep::Kind::load || !step.access.contiguous || step.access.input == kAccumulator) continue;
    auto sameInput = [&](const LoopStep &other) {
      bool reads = (other.kind == LoopStep::Kind::load || other.kind == LoopStep::Kind::random) &&
                   other.access.input == step.access.input;
      return reads || (other.access.gather && other.access.gather->indices == step.access.input);
    };
    if (llvm::count_if(plan.main, sameInput) != 1 || llvm::any_of(plan.finish, sameInput)) continue;
    for (const LoopStore &store : plan.stores)
      if (store.access.contiguous && store.span == step.span &&
          byteSize(store.value.dtype()) == byteSize(body.argument(step.access.input).dtype()))
        found.push_back({step.access.input, store.output});
  }
  return found;
}

int64_t borderBytes(const FlatCluster &cluster, const SymbolValues &symbols) {
  int64_t bytes = 0;
  auto add = [&](Value v) { bytes += byteSize(v.type(), symbols).value_or(0); };
  for (Value argument : cluster.function->block().arguments()) {
    auto users = argument.users();
    bool onlyGathered =
        !users.empty() && llvm::all_of(users, [&](Op *op) { return op->is("gather") && op->operand(0u) == argument; });
    if (onlyGathered)
      add(users.front()->result()); // reads the rows it needs, not the table
    else
      add(argument);
  }
  for (const ReturnEntry &entry : cluster.function->returns()) add(entry.value);
  return bytes;
}

} // namespace fusor::codegen
