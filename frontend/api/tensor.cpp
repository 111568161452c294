#include "frontend/api/data.h"
#include "frontend/api/fusor.h"
#include "frontend/builder/graph_state.h"

namespace fusor {

Tensor::Tensor(DType type, std::vector<int64_t> shape) : type_(type), shape_(std::move(shape)) {
  own_ = std::make_shared<std::vector<char>>(bytes());
  data_ = own_->data();
}

int64_t Tensor::elements() const {
  int64_t n = 1;
  for (int64_t d : shape_) n *= d;
  return n;
}
int64_t Tensor::bytes() const { return elements() * ir::byteSize(frontend::toIr(type_)); }
double Tensor::at(int64_t i) const { return ir::loadElement(frontend::toIr(type_), data_, i); }

Batch SyntheticBatches::at(int64_t step) const {
  const SyntheticOptions &o = options_;
  Batch batch{Tensor(i32, {o.batch, o.context}), Tensor(i32, {o.batch, o.context})};
  auto source = frontend::syntheticData(o.seed, o.vocab);
  auto elements = static_cast<size_t>(o.batch * o.context);
  frontend::fillBatch(*source, step * o.batch, o.batch, o.context, {batch.tokens.as<int32_t>(), elements},
                      {batch.targets.as<int32_t>(), elements});
  return batch;
}

} // namespace fusor
