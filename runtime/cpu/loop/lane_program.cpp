#include "runtime/cpu/loop/lane_program.h"
#include "ir/graph/bug.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <tuple>

namespace fusor::runtime {

using namespace ir;
using codegen::LoopPlan;
using codegen::LoopStep;
using lanes::Fn1;
using lanes::Fn2;
using Kind = LaneInstruction::Kind;
using Home = LaneRegister::Home;

namespace {

std::optional<Fn1> unaryFunction(llvm::StringRef name) {
  static constexpr const char *names[] = {"neg",   "abs",  "exp",   "expm1", "log",   "log1p", "sqrt",
                                          "rsqrt", "sin",  "cos",   "tan",   "asin",  "acos",  "atan",
                                          "sinh",  "cosh", "tanh",  "asinh", "acosh", "atanh", "erf",
                                          "floor", "ceil", "round", "trunc", "isnan", "isinf", "not"};
  for (unsigned i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<Fn1>(i);
  return std::nullopt;
}

std::optional<Fn2> binaryFunction(llvm::StringRef name) {
  static constexpr const char *names[] = {"add", "sub", "mul", "div", "lt",  "le",   "gt",  "ge",
                                          "eq",  "ne",  "and", "or",  "pow", "fmod", "max", "min"};
  for (unsigned i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<Fn2>(i);
  return std::nullopt;
}

lanes::Reduce reduction(const Op &op) {
  return op.is("sum") ? lanes::Reduce::sum : op.is("reduce_max") ? lanes::Reduce::max : lanes::Reduce::min;
}

// A choice between operands, or a change of sign: a result that needs no rounding when the operands needed none.
bool isExact(const Expr &expr) {
  if (expr.kind() == Expr::Kind::input) return true;
  if (expr.kind() == Expr::Kind::constant) return expr.constantValue() == 0;
  llvm::StringRef f = expr.function();
  if (f == "select") return isExact(expr.args()[1]) && isExact(expr.args()[2]);
  if (f == "neg" || f == "abs") return isExact(expr.args()[0]);
  return (f == "max" || f == "min") && isExact(expr.args()[0]) && isExact(expr.args()[1]);
}

Span join(Span a, Span b) {
  if (a == b || b == Span::scalar) return a;
  if (a == Span::scalar) return b;
  return Span::full;
}

class Builder {
public:
  explicit Builder(const LaneContext &context) : context_(context) {}

  void add(const LoopStep &step) {
    switch (step.kind) {
    case LoopStep::Kind::load: return define(step, load(step));
    case LoopStep::Kind::constant:
      return define(
          step, constant(roundTo(step.result.dtype(), step.op->attr<double>("value")), laneOf(step.result.dtype())));
    case LoopStep::Kind::extent:
      return define(step,
                    constant(static_cast<double>(*product(step.op->attr<Shape>("shape")).evaluate(context_.symbols)),
                             laneOf(step.result.dtype())));
    case LoopStep::Kind::iota: return define(step, iota(step));
    case LoopStep::Kind::random: return define(step, random(step));
    case LoopStep::Kind::formula: return define(step, formula(step));
    case LoopStep::Kind::spread: return define(step, valueOf(step.op->operand(0u)));
    case LoopStep::Kind::rowReduce: return define(step, rowReduce(step));
    case LoopStep::Kind::sum: FUSOR_BUG("a sum over rows is bound by the finish phase");
    }
  }

  void bindSum(const LoopStep &step, unsigned index, Lane lane) {
    int reg = addRegister(step.span, lane);
    LaneInstruction instruction;
    instruction.kind = Kind::sum;
    instruction.dst = reg;
    instruction.index = index;
    emit(instruction);
    define(step, rounded(reg, step.result.dtype()));
  }

  /// The register of `value`, covering exactly `span`.
  int covering(Value value, Span span) {
    int reg = valueOf(value);
    if (program_.registers[reg].span == span) return reg;
    LaneInstruction splat;
    splat.kind = Kind::splat;
    splat.a = reg;
    return merged(splat, span, program_.registers[reg].lane);
  }

  void store(const codegen::LoopStore &store) {
    LaneStore s;
    s.output = store.output;
    s.dtype = context_.outputs[store.output];
    s.span = store.span;
    s.map = context_.isFlat ? (store.span == Span::scalar ? AccessMap() : AccessMap::flat())
                            : AccessMap(store.access.offset, store.access.strides, context_.extents, context_.symbols);
    s.reg = covering(store.value, store.span);
    program_.stores.push_back(std::move(s));
  }

  LaneProgram finish(llvm::ArrayRef<LaneSum> sums) {
    storeDirectly(sums);
    assignSlots(sums);
    assignShared();
    return std::move(program_);
  }

  Lane lane(int reg) const { return program_.registers[reg].lane; }
  /// Of a number that may lie in the middle of an array.
  static const LoopExtents &noDims() {
    static const LoopExtents none;
    return none;
  }

private:
  const LaneContext &context_;
  LaneProgram program_;
  llvm::DenseMap<ValueDef *, int> registerOf_;
  using Key = std::tuple<Kind, uint8_t, DType, int, int, int, double, Span, Lane>;
  std::map<Key, int> made_;

  void define(const LoopStep &step, int reg) { registerOf_[step.result.def()] = reg; }
  int valueOf(Value value) const {
    auto it = registerOf_.find(value.def());
    if (it == registerOf_.end()) FUSOR_BUG("a loop uses {0} before it is computed", value.type().str());
    return it->second;
  }

  int addRegister(Span span, Lane lane) {
    LaneRegister reg;
    reg.span = span;
    reg.lane = lane;
    reg.home = span == Span::full || span == Span::row ? Home::slot : Home::shared;
    program_.registers.push_back(reg);
    return static_cast<int>(program_.registers.size()) - 1;
  }

  void emit(const LaneInstruction &instruction) {
    switch (program_.registers[instruction.dst].span) {
    case Span::scalar: program_.scalars.push_back(instruction); break;
    case Span::column: program_.columns.push_back(instruction); break;
    default: program_.block.push_back(instruction);
    }
  }

  // The register of an equal instruction, or a new one.
  int merged(LaneInstruction instruction, Span span, Lane lane) {
    Key key{instruction.kind,   instruction.fn, instruction.dtype,
            instruction.a,      instruction.b,  instruction.c,
            instruction.number, span,           lane};
    if (instruction.number == instruction.number) { // a NaN is no key
      if (auto it = made_.find(key); it != made_.end()) return it->second;
    }
    instruction.dst = addRegister(span, lane);
    emit(instruction);
    if (instruction.number == instruction.number) made_[key] = instruction.dst;
    return instruction.dst;
  }

  int constant(double value, Lane lane) {
    LaneInstruction instruction;
    instruction.kind = Kind::constant;
    instruction.number = value;
    if (value == 0 && std::signbit(value)) instruction.a = -2; // -0 and 0 are equal as keys
    return merged(instruction, Span::scalar, lane);
  }

  int toLane(int reg, Lane to) {
    if (lane(reg) == to) return reg;
    LaneInstruction instruction;
    instruction.kind = to == Lane::f64 ? Kind::toF64 : Kind::toF32;
    instruction.a = reg;
    return merged(instruction, program_.registers[reg].span, to);
  }

  int rounded(int reg, DType dtype, bool saturates = true) {
    if (isLaneType(dtype)) return reg;
    LaneInstruction instruction;
    instruction.kind = Kind::round;
    instruction.fn = !saturates;
    instruction.dtype = dtype;
    instruction.a = reg;
    return merged(instruction, program_.registers[reg].span, lane(reg));
  }

  int load(const LoopStep &step) {
    bool isAccumulator = step.access.input == codegen::kAccumulator;
    DType dtype = isAccumulator ? step.result.dtype() : context_.inputs[step.access.input];
    int reg = addRegister(step.span, laneOf(dtype));
    LaneRegister &r = program_.registers[reg];
    if (isAccumulator) {
      r.home = Home::accumulator;
      return reg;
    }
    LaneLoad load;
    load.input = step.access.input;
    load.dtype = dtype;
    if (context_.isFlat)
      load.map =
          step.span == Span::scalar ? AccessMap(step.access.offset, {}, noDims(), context_.symbols) : AccessMap::flat();
    else
      load.map = AccessMap(step.access.offset, step.access.strides, context_.extents, context_.symbols);
    if (const auto &gather = step.access.gather) {
      load.isGather = true;
      load.indices = gather->indices;
      load.indicesType = context_.inputs[gather->indices];
      load.indexMap = AccessMap(gather->offset, gather->strides, context_.extents, context_.symbols);
      load.tableRowStride = *gather->rowStride.evaluate(context_.symbols);
      load.tableRows = *gather->rows.evaluate(context_.symbols);
    }
    bool rowsFit =
        step.span == Span::row ? load.map.rowsAreAffine() && load.map.rowStride() == 1 : load.map.rowsAreAffine();
    bool columnsFit = step.span == Span::row || step.span == Span::scalar ||
                      (load.map.columnsAreAffine() && (load.map.columnStride() == 1 || context_.extents.columns == 1));
    if (isLaneType(dtype) && !load.isGather && rowsFit && columnsFit) { // read where it lies
      r.home = Home::input;
      r.port = load.input;
      r.offset = load.map.offset();
      r.rowStride = load.map.rowStride();
      return reg;
    }
    LaneInstruction instruction;
    instruction.kind = Kind::load;
    instruction.dst = reg;
    instruction.index = program_.loads.size();
    program_.loads.push_back(std::move(load));
    emit(instruction);
    return reg;
  }

  int iota(const LoopStep &step) {
    LaneInstruction instruction;
    instruction.kind = Kind::iota;
    bool alongRows = step.iotaDim < context_.extents.rowDims;
    instruction.extent = context_.extents.dims[step.iotaDim];
    unsigned end = alongRows ? context_.extents.rowDims : context_.extents.dims.size();
    for (unsigned i = step.iotaDim + 1; i < end; ++i) instruction.inner *= context_.extents.dims[i];
    instruction.dst = addRegister(alongRows ? Span::row : Span::column, laneOf(step.result.dtype()));
    emit(instruction);
    return instruction.dst;
  }

  int random(const LoopStep &step) {
    LaneLoad load;
    load.input = step.access.input;
    load.dtype = context_.inputs[load.input];
    load.map = context_.isFlat ? AccessMap::flat()
                               : AccessMap(step.access.offset, step.access.strides, context_.extents, context_.symbols);
    load.stream = step.op->attr<int64_t>("stream");
    LaneInstruction instruction;
    instruction.kind = Kind::random;
    instruction.dst = addRegister(step.span, Lane::f32);
    instruction.index = program_.loads.size();
    program_.loads.push_back(std::move(load));
    emit(instruction);
    return instruction.dst;
  }

  int rowReduce(const LoopStep &step) {
    LaneInstruction instruction;
    instruction.kind = Kind::rowReduce;
    instruction.fn = static_cast<uint8_t>(reduction(*step.op));
    instruction.a = covering(step.op->operand(0u), Span::full);
    return rounded(merged(instruction, Span::row, lane(instruction.a)), step.result.dtype());
  }

  int formula(const LoopStep &step) {
    const Op &op = *step.op;
    DType to = step.result.dtype();
    llvm::SmallVector<int, 4> operands;
    for (Value operand : op.operands()) operands.push_back(valueOf(operand));
    if (op.is("cast")) {
      DType from = op.operand(0u).dtype();
      if (to == DType::i1 && from != DType::i1) {
        LaneInstruction ne;
        ne.kind = Kind::binary;
        ne.fn = static_cast<uint8_t>(Fn2::ne);
        ne.a = operands[0], ne.b = constant(0, lane(operands[0]));
        return toLane(merged(ne, program_.registers[ne.a].span, lane(ne.a)), Lane::f32);
      }
      int reg = toLane(operands[0], laneOf(to));
      bool holds =
          from == to || from == DType::i1 || (to == DType::f64) || (to == DType::f32 && laneOf(from) == Lane::f32);
      return holds ? reg : rounded(reg, to, !isUnsaturatedCast(op.site()));
    }
    Lane compute = Lane::f32;
    for (int reg : operands)
      if (lane(reg) == Lane::f64) compute = Lane::f64;
    if (!op.def().yieldsBoolean && laneOf(to) == Lane::f64) compute = Lane::f64;
    llvm::SmallVector<Expr, 4> inputs;
    for (unsigned i = 0; i < operands.size(); ++i) {
      inputs.push_back(Expr::input(i));
      operands[i] = toLane(operands[i], compute);
    }
    Expr expr = op.def().formula.expr(inputs, op.site());
    int reg = toLane(evaluate(expr, operands, compute), laneOf(to));
    if (to == DType::i1 || (isExact(expr) && isNarrowFloat(to))) return reg;
    return rounded(reg, to);
  }

  int evaluate(const Expr &expr, llvm::ArrayRef<int> operands, Lane compute) {
    switch (expr.kind()) {
    case Expr::Kind::input: return operands[expr.inputIndex()];
    case Expr::Kind::constant:
      return constant(compute == Lane::f32 ? static_cast<float>(expr.constantValue()) : expr.constantValue(), compute);
    case Expr::Kind::call: break;
    }
    llvm::SmallVector<int, 3> args;
    Span span = Span::scalar;
    for (const Expr &arg : expr.args()) {
      args.push_back(evaluate(arg, operands, compute));
      span = join(span, program_.registers[args.back()].span);
    }
    LaneInstruction instruction;
    instruction.a = args[0];
    if (auto unary = unaryFunction(expr.function()); unary && args.size() == 1) {
      instruction.kind = Kind::unary;
      instruction.fn = static_cast<uint8_t>(*unary);
    } else if (auto binary = binaryFunction(expr.function()); binary && args.size() == 2) {
      instruction.kind = Kind::binary;
      instruction.fn = static_cast<uint8_t>(*binary);
      instruction.b = args[1];
    } else if (expr.function() == "select") {
      instruction.kind = Kind::select;
      instruction.b = args[1], instruction.c = args[2];
      if (program_.registers[args[0]].span != span) { // the condition is a vector in every loop
        LaneInstruction splat;
        splat.kind = Kind::splat;
        splat.a = args[0];
        instruction.a = merged(splat, span, compute);
      }
    } else {
      FUSOR_BUG("the CPU interpreter has no function '{0}'", expr.function());
    }
    return merged(instruction, span, compute);
  }

  // Results that lie in memory as lanes are computed there, where nothing reads that memory afterwards.
  void storeDirectly(llvm::ArrayRef<LaneSum> sums) {
    std::vector<LaneStore> kept;
    for (LaneStore &store : program_.stores) {
      LaneRegister &reg = program_.registers[store.reg];
      bool fits = reg.home == Home::slot && reg.span == Span::full && isLaneType(store.dtype) &&
                  laneOf(store.dtype) == reg.lane && store.map.rowsAreAffine() && store.map.columnsAreAffine() &&
                  (store.map.columnStride() == 1 || context_.extents.columns == 1);
      if (fits && !isReadAfter(store, sums)) {
        reg.home = Home::output;
        reg.port = store.output;
        reg.offset = store.map.offset();
        reg.rowStride = store.map.rowStride();
      } else {
        kept.push_back(std::move(store));
      }
    }
    program_.stores = std::move(kept);
  }

  bool isReadAfter(const LaneStore &store, llvm::ArrayRef<LaneSum> sums) const {
    if (context_.overlaps.empty() || context_.overlaps[store.output].empty()) return false;
    auto overlaps = [&](int reg) {
      if (reg < 0) return false;
      const LaneRegister &r = program_.registers[reg];
      return r.home == Home::input && llvm::is_contained(context_.overlaps[store.output], r.port);
    };
    bool made = false;
    for (const LaneInstruction &instruction : program_.block) {
      if (made && (overlaps(instruction.a) || overlaps(instruction.b) || overlaps(instruction.c))) return true;
      if (made && instruction.kind == Kind::load &&
          llvm::is_contained(context_.overlaps[store.output], program_.loads[instruction.index].input))
        return true;
      made |= instruction.dst == store.reg;
    }
    for (const LaneStore &other : program_.stores)
      if (overlaps(other.reg)) return true;
    for (const LaneSum &sum : sums)
      if (overlaps(sum.reg)) return true;
    return false;
  }

  void assignSlots(llvm::ArrayRef<LaneSum> sums) {
    size_t end = program_.block.size();
    std::vector<size_t> lastUse(program_.registers.size(), 0);
    auto use = [&](int reg, size_t at) {
      if (reg >= 0) lastUse[reg] = std::max(lastUse[reg], at);
    };
    for (size_t at = 0; at < end; ++at)
      for (int reg : {program_.block[at].dst, program_.block[at].a, program_.block[at].b, program_.block[at].c})
        use(reg, at);
    for (const LaneStore &store : program_.stores) use(store.reg, end);
    for (const LaneSum &sum : sums) use(sum.reg, end);

    std::vector<unsigned> free[2];
    std::vector<std::pair<size_t, int>> alive; // last use, register
    for (size_t at = 0; at < end; ++at) {
      llvm::erase_if(alive, [&](auto &entry) {
        if (entry.first >= at) return false;
        const LaneRegister &r = program_.registers[entry.second];
        free[static_cast<int>(r.lane)].push_back(r.slot);
        return true;
      });
      int dst = program_.block[at].dst;
      LaneRegister &reg = program_.registers[dst];
      if (reg.home != Home::slot) continue;
      if (reg.span == Span::row) {
        reg.slot = program_.rowSlots++;
        continue;
      }
      auto &pool = free[static_cast<int>(reg.lane)];
      if (pool.empty()) {
        reg.slot = program_.slots[static_cast<int>(reg.lane)]++;
      } else {
        reg.slot = pool.back();
        pool.pop_back();
      }
      alive.push_back({lastUse[dst], dst});
    }
  }

  void assignShared() {
    int64_t at = llvm::alignTo(context_.firstSharedByte, 64);
    for (LaneRegister &reg : program_.registers) {
      if (reg.home != Home::shared) continue;
      reg.offset = at;
      at += reg.span == Span::scalar ? 8 : llvm::alignTo(context_.extents.columns * laneBytes(reg.lane), 64);
    }
    program_.sharedBytes = llvm::alignTo(at, 64);
  }
};

} // namespace

LaneProgram buildMain(const LoopPlan &plan, const LaneContext &context, std::vector<LaneSum> &sums) {
  Builder builder(context);
  llvm::DenseMap<ValueDef *, Span> planned;
  for (const LoopStep &step : plan.main) {
    builder.add(step);
    planned[step.result.def()] = step.span;
  }
  for (const codegen::RowsSum &sum : plan.sums) {
    LaneSum s;
    s.reduce = reduction(*sum.op);
    s.span = sum.span;
    bool overRows = sum.span == Span::scalar && planned.lookup(sum.of.def()) == Span::row;
    s.reg = builder.covering(sum.of, overRows ? Span::row : Span::full);
    sums.push_back(s);
  }
  for (const codegen::LoopStore &store : plan.stores) builder.store(store);
  return builder.finish(sums);
}

LaneProgram buildFinish(const LoopPlan &plan, const LaneContext &context, llvm::ArrayRef<LaneSum> sums) {
  Builder builder(context);
  for (const LoopStep &step : plan.finish) {
    if (step.kind == LoopStep::Kind::sum)
      builder.bindSum(step, step.sumIndex, laneOf(step.result.dtype()));
    else
      builder.add(step);
  }
  for (const codegen::LoopStore &store : plan.finishStores) builder.store(store);
  return builder.finish({});
}

} // namespace fusor::runtime
