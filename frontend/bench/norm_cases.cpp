#include "frontend/bench/cases.h"
#include "frontend/builder/graph_state.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend::bench {
namespace {

using Values = std::vector<Value>;

KernelCase rowCase(const char *name, ir::DType precision, RowShape s, const char *what = "norm") {
  return {what, name, llvm::formatv("{0}x{1}", s.rows, s.columns).str(), precision, {}, {}, {}, false};
}

/// dy, x, mean, rstd and the weight of a layer_norm's backward.
std::vector<CaseTensor> backwardInputs(DType type, RowShape s) {
  return {{"dy", type, {s.rows, s.columns}},
          {"x", type, {s.rows, s.columns}},
          {"mean", f32, {s.rows, 1}},
          {"rstd", f32, {s.rows, 1}},
          {"weight", f32, {s.columns}}};
}

KernelCase layerNormForward(ir::DType precision, RowShape s) {
  KernelCase c = rowCase("layer_norm forward", precision, s);
  DType type = fromIr(precision);
  c.inputs = {{"x", type, {s.rows, s.columns}}, {"weight", f32, {s.columns}}, {"bias", f32, {s.columns}}};
  c.outputs = {{"y", type, {s.rows, s.columns}}, {"mean", f32, {s.rows, 1}}, {"rstd", f32, {s.rows, 1}}};
  c.body = [](Builder &b, const Values &in) { return b.ops("layer_norm", in); };
  return c;
}

KernelCase layerNormBackward(ir::DType precision, RowShape s, bool addsResidual) {
  KernelCase c = rowCase(addsResidual ? "layer_norm backward + residual" : "layer_norm backward", precision, s);
  DType type = fromIr(precision);
  c.inputs = backwardInputs(type, s);
  if (addsResidual) c.inputs.push_back({"residual", type, {s.rows, s.columns}});
  c.outputs = {{"dx", type, {s.rows, s.columns}}, {"dweight", f32, {s.columns}}, {"dbias", f32, {s.columns}}};
  c.body = [addsResidual](Builder &b, const Values &in) {
    Value dx = b.op("layer_norm_grad", {in[0], in[1], in[2], in[3], in[4]});
    auto params = b.ops("layer_norm_param_grad", {in[0], in[1], in[2], in[3]});
    return Values{addsResidual ? b.op("add", {dx, in[5]}) : dx, params[0], params[1]};
  };
  return c;
}

KernelCase geluForward(ir::DType precision, RowShape s) {
  KernelCase c = rowCase("bias + gelu forward", precision, s);
  DType type = fromIr(precision);
  c.inputs = {{"x", type, {s.rows, s.columns}}, {"bias", type, {s.columns}}};
  c.outputs = {{"y", type, {s.rows, s.columns}}};
  c.body = [](Builder &b, const Values &in) { return Values{b.op("gelu", {b.op("add", in)})}; };
  return c;
}

KernelCase geluBackward(ir::DType precision, RowShape s) {
  KernelCase c = rowCase("bias + gelu backward", precision, s);
  DType type = fromIr(precision);
  c.inputs = {{"dy", type, {s.rows, s.columns}}, {"x", type, {s.rows, s.columns}}, {"bias", type, {s.columns}}};
  c.outputs = {{"dx", type, {s.rows, s.columns}}, {"dbias", f32, {s.columns}}};
  c.body = [](Builder &b, const Values &in) {
    Value dx = b.op("gelu_grad", {in[0], b.op("add", {in[1], in[2]})});
    return Values{dx, sum(cast(dx, f32), {0})};
  };
  return c;
}

KernelCase crossEntropyForward(ir::DType precision, RowShape s) {
  KernelCase c = rowCase("cross_entropy forward", precision, s);
  c.inputs = {{"logits", fromIr(precision), {s.rows, s.columns}}, {"targets", i32, {s.rows}, Init::constant(3)}};
  c.outputs = {{"loss", f32, {}}, {"lse", f32, {s.rows, 1}}, {"count", f32, {}}};
  c.body = [](Builder &b, const Values &in) { return b.ops("cross_entropy", in); };
  return c;
}

KernelCase crossEntropyBackward(ir::DType precision, RowShape s) {
  KernelCase c = rowCase("cross_entropy backward", precision, s);
  DType type = fromIr(precision);
  c.inputs = {{"dloss", f32, {}},
              {"logits", type, {s.rows, s.columns}},
              {"targets", i32, {s.rows}, Init::constant(3)},
              {"lse", f32, {s.rows, 1}},
              {"count", f32, {}, Init::constant(static_cast<double>(s.rows))}};
  c.outputs = {{"dlogits", type, {s.rows, s.columns}}};
  c.body = [](Builder &b, const Values &in) { return b.ops("cross_entropy_grad", in); };
  return c;
}

/// One optimizer step of f32 masters with their copies for the next forward pass.
KernelCase adamw(ir::DType precision, int64_t elements) {
  constexpr int64_t kTensors = 24;
  int64_t each = std::max<int64_t>(1, elements / kTensors);
  KernelCase c{"norm", "adamw", llvm::formatv("{0}x{1}", kTensors, each).str(), precision, {}, {}, {}, false};
  c.inputs = {{"step", i32, {}, Init::constant(1)}, {"lr", f32, {}, Init::constant(3e-4)}};
  bool narrow = precision != ir::DType::f32;
  for (int64_t i = 0; i < kTensors; ++i) {
    for (const char *name : {"param", "grad", "m", "v"})
      c.inputs.push_back({llvm::formatv("{0}{1}", name, i), f32, {each}, Init::constant(0.01)});
    for (const char *name : {"param", "m", "v"}) c.outputs.push_back({llvm::formatv("{0}{1}", name, i), f32, {each}});
    if (narrow) c.outputs.push_back({llvm::formatv("copy{0}", i), fromIr(precision), {each}});
  }
  c.body = [narrow, precision](Builder &b, const Values &in) {
    Values out;
    for (int64_t i = 0; i < kTensors; ++i) {
      const Value *t = &in[2 + 4 * i];
      auto updated = b.ops("adamw", {t[0], t[1], t[2], t[3], in[0], in[1]});
      out.insert(out.end(), updated.begin(), updated.begin() + 3);
      if (narrow) out.push_back(cast(updated[0], fromIr(precision)));
    }
    return out;
  };
  return c;
}

} // namespace

std::vector<KernelCase> normCases(ir::DType precision, llvm::ArrayRef<RowShape> shapes) {
  std::vector<KernelCase> cases;
  constexpr RowShape kModels[] = {{8192, 768}, {16384, 4096}}, kLogits[] = {{32768, 50304}};
  for (RowShape s : shapes.empty() ? llvm::ArrayRef<RowShape>(kModels) : shapes) {
    cases.push_back(layerNormForward(precision, s));
    cases.push_back(layerNormBackward(precision, s, false));
    cases.push_back(layerNormBackward(precision, s, true));
    cases.push_back(geluForward(precision, s));
    cases.push_back(geluBackward(precision, s));
  }
  for (RowShape s : shapes.empty() ? llvm::ArrayRef<RowShape>(kLogits) : shapes) {
    cases.push_back(crossEntropyForward(precision, s));
    cases.push_back(crossEntropyBackward(precision, s));
  }
  constexpr int64_t kLargeModel = 600'000'000;
  cases.push_back(adamw(precision, shapes.empty() ? kLargeModel : shapes[0].rows * shapes[0].columns));
  return cases;
}

std::vector<KernelCase> quantizeCases(RowShape s) {
  KernelCase c = rowCase("quantize + dequantize", ir::DType::f8e4m3, s, "quantize");
  c.inputs = {{"x", f32, {s.rows, s.columns}}, {"scale", f32, {}, Init::constant(1)}};
  c.outputs = {{"y", f32, {s.rows, s.columns}}};
  c.body = [](Builder &b, const Values &in) { return Values{b.op("dequantize", {b.op("quantize", in)})}; };
  return {c};
}

} // namespace fusor::frontend::bench
