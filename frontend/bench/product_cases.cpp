// Linear layers and attention.
#include "frontend/bench/cases.h"
#include "frontend/builder/graph_state.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend::bench {
namespace {

using Values = std::vector<Value>;
const Init kNormal = Init::normal(0.02); // numbers of a model: a GPU multiplies zeros at less power, so faster

KernelCase gemmCase(ir::DType precision, const GemmDims &g, const char *op, bool own) {
  KernelCase c{"gemm",
               llvm::formatv("{0}{1}{2}", g.name, g.name.empty() ? "" : " ", op).str(),
               llvm::formatv("m={0} n={1} k={2}", g.m, g.n, g.k).str(),
               precision,
               {},
               {},
               {},
               own};
  DType type = fromIr(precision);
  CaseTensor x{"x", type, {g.m, g.k}, kNormal}, weight{"weight", type, {g.n, g.k}, kNormal};
  CaseTensor dy{"dy", type, {g.m, g.n}, kNormal};
  std::string name = op;
  if (name == "linear")
    c.inputs = {x, weight}, c.outputs = {{"y", type, {g.m, g.n}}};
  else if (name == "linear_input_grad")
    c.inputs = {dy, weight}, c.outputs = {{"dx", type, {g.m, g.k}}};
  else // as in a training step: f32 for the optimizer
    c.inputs = {dy, x}, c.outputs = {{"dweight", f32, {g.n, g.k}}};
  std::vector<Attr> attrs;
  if (name != "linear") attrs.push_back({"out", c.outputs[0].dtype});
  c.body = [name, attrs](Builder &b, const Values &in) { return Values{b.op(name, in, attrs)}; };
  return c;
}

// As a training step has it: two scalars, and bf16 in the end.
KernelCase fp8GemmCase(const GemmDims &g) {
  KernelCase c = gemmCase(ir::DType::f8e4m3, g, "linear", false);
  c.inputs.push_back({"x.scale_inv", f32, {}, Init::constant(1)});
  c.inputs.push_back({"weight.scale_inv", f32, {}, Init::constant(1)});
  c.outputs[0].dtype = bf16;
  c.body = [](Builder &b, const Values &in) {
    Value product = b.op("linear", {in[0], in[1]}, {{"out", f32}, {"fast_accum", true}});
    return Values{b.op("cast", {b.op("mul", {b.op("mul", {product, in[2]}), in[3]})}, {{"to", bf16}})};
  };
  return c;
}

KernelCase attentionCase(ir::DType precision, const AttentionDims &a, bool backward) {
  KernelCase c{"attention",
               backward ? "attention backward" : "attention forward",
               llvm::formatv("batch={0} heads={1} kv_heads={2} seq={3} head_size={4} causal={5} window={6}", a.batch,
                             a.heads, a.kvHeads ? a.kvHeads : a.heads, a.sequence, a.headSize, a.causal, a.window)
                   .str(),
               precision,
               {},
               {},
               {},
               false};
  DType type = fromIr(precision);
  int64_t kv = a.kvHeads ? a.kvHeads : a.heads;
  auto rows = [&](const char *name, int64_t heads) {
    return CaseTensor{name, type, {a.batch, a.sequence, heads * a.headSize}, Init::normal(1)};
  };
  CaseTensor lse{"lse", f32, {a.batch, a.heads, a.sequence}, Init::constant(6)};
  std::vector<Attr> attrs = {{"heads", a.heads}, {"kv_heads", a.kvHeads}, {"causal", a.causal}, {"window", a.window}};
  if (backward) {
    c.inputs = {rows("dy", a.heads), rows("q", a.heads), rows("k", kv), rows("v", kv), rows("y", a.heads), lse};
    c.outputs = {rows("dq", a.heads), rows("dk", kv), rows("dv", kv)};
  } else {
    c.inputs = {rows("q", a.heads), rows("k", kv), rows("v", kv)};
    c.outputs = {rows("y", a.heads), lse};
  }
  c.body = [attrs, backward](Builder &b, const Values &in) {
    return b.ops(backward ? "attention_grad" : "attention", in, attrs);
  };
  return c;
}

} // namespace

std::vector<KernelCase> gemmCases(ir::DType precision, llvm::ArrayRef<GemmDims> shapes, const ChosenDevice &device,
                                  bool gradients) {
  std::vector<KernelCase> cases;
  for (const GemmDims &g : shapes) {
    if (ir::isFp8(precision)) {
      cases.push_back(fp8GemmCase(g));
      continue;
    }
    for (const char *op : {"linear", "linear_input_grad", "linear_weight_grad"}) {
      if (!gradients && op != std::string("linear")) continue;
      cases.push_back(gemmCase(precision, g, op, false));
      if (device.target.kind == ir::DeviceKind::cuda) cases.push_back(gemmCase(precision, g, op, true));
    }
  }
  return cases;
}

std::vector<KernelCase> attentionCases(ir::DType precision, llvm::ArrayRef<AttentionDims> shapes) {
  std::vector<KernelCase> cases;
  for (const AttentionDims &a : shapes)
    for (bool backward : {false, true}) cases.push_back(attentionCase(precision, a, backward));
  return cases;
}

std::vector<GemmDims> modelGemms() { // batch 32 of seed and scaled, batch 8 of gpt2: 8192 tokens
  return {{"qkv", 8192, 2304, 768},         {"proj", 8192, 768, 768},        {"fc1", 8192, 3072, 768},
          {"fc2", 8192, 768, 3072},         {"gpt2 head", 8192, 50304, 768}, {"scaled qkv", 8192, 6144, 2048},
          {"scaled fc1", 8192, 8192, 2048}, {"scaled fc2", 8192, 2048, 8192}};
}

std::vector<AttentionDims> modelAttentions() {
  return {{32, 12, 0, 256, 64}, {32, 16, 0, 256, 128}, {8, 12, 0, 1024, 64}};
}

} // namespace fusor::frontend::bench
