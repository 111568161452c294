// The free functions and operators of builder.h: each is one op of the table.
#include "frontend/builder/graph_state.h"

namespace fusor {
using frontend::Access;
using frontend::applyOp;
using frontend::GraphState;

namespace {

// The graph of the first operand that has one. Where none has, the op makes an empty Value, which output() reports.
std::vector<Value> apply(llvm::StringRef op, llvm::ArrayRef<Value> operands, ir::Attrs attrs, Site site) {
  for (const Value &operand : operands)
    if (Access::shared(operand)) return applyOp(Access::shared(operand), op, operands, std::move(attrs), site);
  return std::vector<Value>(1);
}
Value one(llvm::StringRef op, llvm::ArrayRef<Value> operands, Site site, ir::Attrs attrs = {}) {
  return apply(op, operands, std::move(attrs), site).front();
}

ir::Shape irShape(const Value &x, const Shape &shape, Site site) {
  return Access::shared(x) ? Access::shared(x)->shape(shape, site) : ir::Shape();
}

// A number beside a value becomes a constant of the value's dtype.
Value binary(llvm::StringRef op, const Operand &a, const Operand &b) {
  auto number = [](const Operand &n, const Value &like) {
    if (Access::shared(n.value) || !Access::shared(like) || like.empty()) return n.value;
    return applyOp(Access::shared(like), "constant", {}, {{"value", n.number}, {"dtype", frontend::toIr(like.dtype())}},
                   n.site)
        .front();
  };
  return one(op, {number(a, b.value), number(b, a.value)}, a.site);
}

} // namespace

Value operator+(Operand a, Operand b) { return binary("add", a, b); }
Value operator-(Operand a, Operand b) { return binary("sub", a, b); }
Value operator*(Operand a, Operand b) { return binary("mul", a, b); }
Value operator/(Operand a, Operand b) { return binary("div", a, b); }
Value operator-(Operand a) { return one("neg", {a.value}, a.site); }

Value gelu(Value x, Site site) { return one("gelu", {x}, site); }
Value geluErf(Value x, Site site) { return one("gelu", {x}, site, {{"form", std::string("erf")}}); }
Value geluQuick(Value x, Site site) { return one("gelu", {x}, site, {{"form", std::string("quick")}}); }
Value relu(Value x, Site site) { return one("relu", {x}, site); }
Value silu(Value x, Site site) { return one("silu", {x}, site); }
Value sigmoid(Value x, Site site) { return one("sigmoid", {x}, site); }
Value tanh(Value x, Site site) { return one("tanh", {x}, site); }
Value exp(Value x, Site site) { return one("exp", {x}, site); }
Value log(Value x, Site site) { return one("log", {x}, site); }
Value sqrt(Value x, Site site) { return one("sqrt", {x}, site); }
Value rsqrt(Value x, Site site) { return one("rsqrt", {x}, site); }
Value cast(Value x, DType to, bool saturate, Site site) {
  if (!x.empty() && x.dtype() == to) return x;
  return one("cast", {x}, site, {{"to", frontend::toIr(to)}, {"saturate", saturate}});
}
Value dropout(Value x, Value seed, double rate, int64_t stream, Site site) {
  return one("dropout", {x, seed}, site, {{"rate", rate}, {"stream", stream}});
}

Value matmul(Value a, Value b, Site site) { return one("matmul", {a, b}, site); }
Value linear(Value x, Value weight, Value bias, Site site) { return one("linear", {x, weight, bias}, site); }
Value layerNorm(Value x, Value weight, Value bias, double eps, Site site) {
  return one("layer_norm", {x, weight, bias}, site, {{"eps", eps}});
}
Value rmsNorm(Value x, Value weight, double eps, Site site) {
  return one("rms_norm", {x, weight}, site, {{"eps", eps}});
}
Value softmax(Value x, int64_t axis, Site site) { return one("softmax", {x}, site, {{"axis", axis}}); }
Value sum(Value x, std::vector<int64_t> dims, bool keep, Site site) {
  return one("sum", {x}, site, {{"dims", std::move(dims)}, {"keep", keep}});
}
Value mean(Value x, std::vector<int64_t> dims, bool keep, Site site) {
  return one("mean", {x}, site, {{"dims", std::move(dims)}, {"keep", keep}});
}
Value embedding(Value table, Value ids, Site site) { return one("embedding", {table, ids}, site); }
Value crossEntropy(Value logits, Value targets, Site site) { return one("cross_entropy", {logits, targets}, site); }

Value attention(Value q, Value k, Value v, const AttentionOptions &o, Site site) {
  ir::Attrs attrs{{"heads", o.heads}, {"kv_heads", o.kvHeads}, {"causal", o.causal}, {"window", o.window}};
  if (o.scale != 0) attrs.set("scale", o.scale);
  return one("attention", {q, k, v, o.keyMask, o.kvLength, o.bias}, site, std::move(attrs));
}
Value rope(Value x, Value positions, int64_t heads, double base, Site site) {
  return one("rope", {x, positions}, site, {{"heads", heads}, {"base", base}});
}

Value reshape(Value x, const Shape &shape, Site site) {
  return one("reshape", {x}, site, {{"shape", irShape(x, shape, site)}});
}
Value transpose(Value x, std::vector<int64_t> perm, Site site) {
  return one("transpose", {x}, site, {{"perm", std::move(perm)}});
}
Value slice(Value x, const Shape &start, const Shape &size, Site site) {
  return one("slice", {x}, site, {{"start", irShape(x, start, site)}, {"size", irShape(x, size, site)}});
}
std::vector<Value> split(Value x, const Shape &sizes, int64_t axis, Site site) {
  auto parts = apply("split", {x}, {{"sizes", irShape(x, sizes, site)}, {"axis", axis}}, site);
  parts.resize(std::max(parts.size(), sizes.size()), parts.front()); // after an error: as many empty values
  return parts;
}
Value concat(const std::vector<Value> &parts, int64_t axis, Site site) {
  return one("concat", parts, site, {{"axis", axis}});
}
Value gather(Value x, Value indices, int64_t axis, Site site) {
  return one("gather", {x, indices}, site, {{"axis", axis}});
}

} // namespace fusor
