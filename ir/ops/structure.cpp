// Ops that hold a program together: return, yield, fusion, constant, extent.
#include "ir/ops/families.h"
#include "ir/ops/op_builder.h"

namespace fusor::ir {
namespace {

llvm::Expected<ResultTypes> inferConstant(const OpSite &site) { return ResultTypes{{site.attr<DType>("dtype"), {}}}; }

void constantReference(const RefCall &call) {
  call.outputs[0].data[0] = roundTo(call.site.attr<DType>("dtype"), call.site.real("value"));
}

void extentReference(const RefCall &call) {
  call.outputs[0].data[0] = static_cast<double>(*product(call.site.attr<Shape>("shape")).evaluate(call.symbols));
}

llvm::SmallVector<Value, 4> noOperands(const GradientSite &) { return {}; }

} // namespace

llvm::ArrayRef<OpDef> structureOps() {
  static const std::vector<OpDef> ops = {
      op("return")
          .summary("ends a function: results, new persistent values, gradients")
          .quantised()
          .precision(PrecisionClass::any)
          .operands({"values..."})
          .results({})
          .attr({"targets", AttrKind::words, AttrValue(std::vector<std::string>()), false, {}, {}})
          .note("which persistent value each operand replaces, or is the gradient of; empty for a plain result")
          .terminator()
          .ordered(),
      op("yield")
          .summary("ends a fusion's body")
          .quantised()
          .precision(PrecisionClass::any)
          .operands({"values..."})
          .results({})
          .terminator()
          .ordered(),
      // Its results are those its body yields; Builder cannot infer them, passes/fusion makes it.
      op("fusion")
          .summary("ordinary IR that runs as one cluster of kernels")
          .quantised()
          .precision(PrecisionClass::any)
          .operands({"inputs..."})
          .results({})
          .optional("name", AttrKind::word)
          .note("of the cluster, seen in kernel names")
          .optional("kind", AttrKind::word)
          .note("kernel class it was formed for"),
      op("constant")
          .summary("a scalar")
          .operands({})
          .real("value")
          .note("rounded to dtype")
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f32), false, {}, {}})
          .note("of the result")
          .infer(inferConstant)
          .reference(constantReference)
          .gradient(noOperands),
      op("extent")
          .summary("the product of dims, known when the program is launched")
          .operands({})
          .required("shape", AttrKind::shape)
          .note("the dims multiplied")
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::f32), false, {}, {}})
          .note("of the result")
          .infer(inferConstant)
          .reference(extentReference)
          .gradient(noOperands),
  };
  return ops;
}

} // namespace fusor::ir
