#include "runtime/execute/tensor_view.h"

namespace fusor::runtime {

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

std::string TensorView::typeText() const {
  std::string text = ir::name(dtype).str() + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace fusor::runtime
