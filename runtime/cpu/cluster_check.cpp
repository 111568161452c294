#include "runtime/cpu/cluster_check.h"
#include "ir/graph/literal.h"
#include "ir/graph/printer.h"
#include "ir/ops/flops.h"
#include "ir/ops/op_def.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

namespace fusor::runtime {

using namespace ir;

constexpr double kF32Roundoff = 0x1p-24; // half a step, relative to the value

double checkTolerance(DType dtype) {
  switch (dtype) {
  case DType::f64: return 1e-9;
  case DType::bf16: return 1.0 / 64;
  case DType::f16: return 1.0 / 512;
  case DType::f8e4m3:
  case DType::f8e5m2:
  case DType::f8e8m0: return 0.3;
  // exp, tanh and rsqrt of a kernel are a few steps off, and where terms cancel so are results far smaller than they:
  // the attention of distilbert_tiny is 438 u off the largest of its results, 1.6e-5.
  default: return 1024 * kF32Roundoff;
  }
}

// n terms added in f32, in any order: each rounding is at most u times the partial sum that it rounds, so the error is
// at most (n - 1) u sum|x| (Higham, Accuracy and Stability of Numerical Algorithms, 4.2). Roundings go up as often as
// down, so they add up as sqrt(n); and relative to the largest result of a tensor, which is about sqrt(n) |x| where
// terms have either sign and n |x| where they have one, the error is about sqrt(n) u in both cases. Measured, one term
// after the other, four sums of either sign: at most 0.97 of that for 4096 terms, 0.69 for 2^20. 4 of it: where few
// results are checked their largest may be a small one by chance.
double sumTolerance(double terms) { return 4 * kF32Roundoff * std::sqrt(terms); }

double summedTerms(const Op &op, const SymbolValues &symbols) {
  if (op.body()) return summedTerms(*op.body(), symbols);
  auto elements = [&](Value v) {
    return v ? static_cast<double>(v.type().elements().evaluate(symbols).value_or(0)) : 0;
  };
  switch (op.def().lowering) {
  case Lowering::none:
  case Lowering::pointwise:
  case Lowering::view:
  case Lowering::indexMap: return 0;
  case Lowering::contraction:
  case Lowering::attention: // products of two chained sums count as one of both lengths
    return elements(op.result(0)) > 0 ? contractionFlops(op, symbols) / 2 / elements(op.result(0)) : 0;
  default: break;
  }
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (Value operand : op.operands()) largest = std::max(largest, elements(operand));
  for (Value result : op.results()) smallest = std::min(smallest, elements(result));
  if (op.def().lowering == Lowering::expansion && op.operand(0u).rank() > 0) { // softmax and norms sum rows inside
    double row = static_cast<double>(op.operand(0u).type().dim(-1).evaluate(symbols).value_or(0));
    return std::max(row, smallest > 0 ? largest / smallest : 0);
  }
  return smallest > 0 && largest > smallest ? largest / smallest : 0;
}

double summedTerms(const Block &body, const SymbolValues &symbols) {
  double terms = 0;
  for (const Op &op : body.ops()) terms += summedTerms(op, symbols);
  return terms;
}

// Hopper's tensor cores keep some 13 bits of a sum of FP8 products behind its largest term.
constexpr double kFp8SumTolerance = 1.0 / 512;

bool sumsFp8(const Op &op) {
  return op.def().lowering == Lowering::contraction && isFp8(op.operand(0u).dtype()) && isFp8(op.operand(1).dtype());
}

// A value that the body rounds to bf16 may round to the other neighbour in a kernel that adds in another order, and
// what is summed from it in f32 carries that.
double bodyTolerance(const Block &body, DType result, const SymbolValues &symbols) {
  double tolerance = checkTolerance(result);
  for (const Op &op : body.ops())
    for (Value value : op.results())
      if (isNarrowFloat(value.dtype())) tolerance = std::max(tolerance, checkTolerance(value.dtype()));
  return tolerance + sumTolerance(summedTerms(body, symbols));
}

double allowedDifference(const RefTensor &want, double tolerance) {
  double largest = 0;
  for (double v : want.data)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return tolerance * (largest + 1e-6);
}

static double resultTolerance(const Op &op, Value result, const SymbolValues &symbols) {
  const Block *body = op.body();
  if (!body) return checkTolerance(result.dtype()) + sumTolerance(summedTerms(op, symbols));
  double tolerance = bodyTolerance(*body, result.dtype(), symbols);
  return llvm::any_of(body->ops(), sumsFp8) ? std::max(tolerance, kFp8SumTolerance) : tolerance;
}

ClusterCheck::ClusterCheck(const ClusterCode &code, const StepMemory &memory, const SymbolValues &symbols)
    : code_(code), symbols_(symbols), inputs_(code.body->read(memory.inputs, symbols)) {}

llvm::Error ClusterCheck::compare(llvm::StringRef function, const StepMemory &memory) const {
  auto expected = code_.body->evaluate(inputs_, symbols_);
  if (!expected) return expected.takeError();
  for (unsigned r = 0; r < expected->size(); ++r) {
    Value result = code_.op->result(r);
    RefTensor got = readTensor(result.type(), memory.outputs[r], symbols_);
    const RefTensor &want = (*expected)[r];
    double allowed = allowedDifference(want, resultTolerance(*code_.op, result, symbols_));
    for (int64_t i = 0; i < want.elements(); ++i) {
      double a = got.data[i], b = want.data[i];
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed) continue;
      return llvm::make_error<CheckError>(llvm::formatv("@{0}: {1} kernel '{2}' computes {3} for element {4} of %{5}, "
                                                        "{6}; its body gives {7}, and {8} may differ",
                                                        function, code_.kind, code_.name, realLiteral(a), i,
                                                        result.name(), result.type().str(), realLiteral(b),
                                                        realLiteral(allowed))
                                              .str());
    }
  }
  return llvm::Error::success();
}

std::optional<NonFiniteOp> ClusterCheck::nonFinite(llvm::StringRef function, const StepMemory &memory) const {
  auto isFinite = [](const RefTensor &t) { return llvm::all_of(t.data, [](double v) { return std::isfinite(v); }); };
  if (!llvm::all_of(inputs_, isFinite)) return std::nullopt;
  bool isClean = true;
  for (unsigned r = 0; r < code_.op->resultCount(); ++r)
    isClean &= isFinite(readTensor(code_.op->result(r).type(), memory.outputs[r], symbols_));
  if (isClean) return std::nullopt;

  std::optional<NonFiniteOp> found;
  auto see = [&](const Op &op, llvm::ArrayRef<const RefTensor *> inputs, llvm::ArrayRef<RefTensor> outputs) {
    if (found || inputs.empty() || op.is("fusion")) return; // a constant is meant
    if (!llvm::all_of(inputs, [&](const RefTensor *t) { return !t || isFinite(*t); })) return;
    auto bad = llvm::find_if(outputs, [&](const RefTensor &t) { return !isFinite(t); });
    if (bad == outputs.end()) return;
    Value result = op.result(bad - outputs.begin());
    int64_t element = llvm::find_if(bad->data, [](double v) { return !std::isfinite(v); }) - bad->data.begin();
    found.emplace();
    found->text = llvm::formatv("@{0}: {1} gives {2} for element {3} of %{4}, in {5} kernel '{6}'{7}", function,
                                printOp(op), realLiteral(bad->data[element]), element, result.name(), code_.kind,
                                code_.name, op.location().known() ? "   (" + op.location().str() + ")" : "")
                      .str();
    ReferenceBody alone(op);
    found->module = alone.asModule(symbols_);
    llvm::ArrayRef<Value> operands = op.operands();
    auto arguments = alone.function().block().arguments();
    llvm::SmallVector<Value, 8> distinct = ReferenceBody::inputsOf(op);
    for (unsigned i = 0; i < distinct.size(); ++i) {
      const RefTensor &tensor = *inputs[llvm::find(operands, distinct[i]) - operands.begin()];
      NonFiniteOp::Input input{arguments[i].name().str(), tensor.dtype, tensor.shape, {}};
      input.bytes.resize(tensor.elements() * byteSize(tensor.dtype));
      writeTensor(TensorType{tensor.dtype, {}}, tensor, input.bytes.data());
      found->inputs.push_back(std::move(input));
    }
  };
  auto evaluated = ir::evaluate(code_.body->function(), inputs_, {}, symbols_, see);
  if (!evaluated) llvm::consumeError(evaluated.takeError()); // compare() has said it
  return found;
}

} // namespace fusor::runtime
