#include "runtime/cpu/cluster_check.h"
#include "ir/graph/literal.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace fusor::runtime {

using namespace ir;

double checkTolerance(DType dtype) {
  switch (dtype) {
  case DType::f64: return 1e-9;
  case DType::bf16: return 1.0 / 64;
  case DType::f16: return 1.0 / 512;
  case DType::f8e4m3:
  case DType::f8e5m2:
  case DType::f8e8m0: return 0.3;
  default: return 1e-4;
  }
}

// Hopper's tensor cores keep some 13 bits of a sum of FP8 products behind its largest term.
constexpr double kFp8SumTolerance = 1.0 / 512;

bool sumsFp8(const Op &op) {
  return op.def().lowering == Lowering::contraction && isFp8(op.operand(0u).dtype()) && isFp8(op.operand(1).dtype());
}

// A value that the body rounds to bf16 may round to the other neighbour in a kernel that adds in another order, and
// what is summed from it in f32 carries that.
double bodyTolerance(const Block &body, DType result) {
  double tolerance = checkTolerance(result);
  for (const Op &op : body.ops())
    for (Value value : op.results())
      if (isNarrowFloat(value.dtype())) tolerance = std::max(tolerance, checkTolerance(value.dtype()));
  return tolerance;
}

double allowedDifference(const RefTensor &want, double tolerance) {
  double largest = 0;
  for (double v : want.data)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return tolerance * (largest + 1e-6);
}

static double resultTolerance(const Op &op, Value result) {
  const Block *body = op.body();
  if (!body) return checkTolerance(result.dtype());
  double tolerance = bodyTolerance(*body, result.dtype());
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
    double allowed = allowedDifference(want, resultTolerance(*code_.op, result));
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
