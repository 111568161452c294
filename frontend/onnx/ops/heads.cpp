#include "frontend/onnx/ops/heads.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

Term headsFirst(NodeSite &s, Term x, int64_t heads) {
  auto d = heads > 0 && x.rank() == 3 ? x.dim(2).divide(Dim(heads)) : std::nullopt;
  if (!d) return s.fail("the last dim of {0} does not divide into {1} heads", x.typeText(), heads);
  return x.reshape({x.dim(0), x.dim(1), Dim(heads), *d}).transpose({0, 2, 1, 3});
}

Term headsLast(Term x) { return x.transpose({0, 2, 1, 3}).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}); }

Term repeated(Term x, const Dim &group) {
  if (group.is(1)) return x;
  Shape apart{x.dim(0), x.dim(1), Dim(1), x.dim(2), x.dim(3)}, wide = apart;
  wide[2] = group;
  return x.reshape(std::move(apart))
      .broadcast(std::move(wide))
      .reshape({x.dim(0), x.dim(1) * group, x.dim(2), x.dim(3)});
}

Term zeroOrInf(Term allowed, DType dtype) {
  if (!allowed) return {};
  Writer &w = allowed.writer();
  return select(allowed, w.constant(0, dtype), w.constant(-kInf, dtype));
}

Term turned(Term x, Term cos, Term sin, const Dim &r, bool interleaved) {
  auto half = r.divide(Dim(2));
  if (!x || !cos || !sin || !half) return {};
  unsigned last = x.rank() - 1;
  Writer &w = x.writer();
  DType dtype = x.dtype(), compute = wide(dtype);
  Term part = x.part(last, Dim(0), r).cast(compute), rest;
  if (x.dim(last) != r) rest = x.part(last, r, x.dim(last) - r);
  cos = cos.cast(compute), sin = sin.cast(compute);
  Term y;
  if (interleaved) {
    Shape paired = part.shape(), flat = part.shape();
    paired.back() = *half;
    paired.push_back(Dim(2));
    Shape single = paired;
    single.pop_back();
    Term pairs = part.reshape(paired);
    Term a = pairs.part(last + 1, Dim(0), Dim(1)).reshape(single),
         b = pairs.part(last + 1, Dim(1), Dim(1)).reshape(single);
    Shape one = single;
    one.push_back(Dim(1));
    y = w.concat({(a * cos - b * sin).reshape(one), (b * cos + a * sin).reshape(one)}, last + 1).reshape(flat);
  } else {
    Term a = part.part(last, Dim(0), *half), b = part.part(last, *half, *half);
    y = w.concat({a * cos - b * sin, b * cos + a * sin}, last);
  }
  y = y.cast(dtype);
  return rest ? w.concat({y, rest}, last) : y;
}

} // namespace fusor::onnx
