// The learning rate of a step.
#pragma once
#include <cstdint>

namespace fusor::frontend {

enum class Schedule : uint8_t { constant, cosine };

/// For step 1, 2, ..., `steps`: grows linearly over the first `warmup` steps, then stays (constant) or falls along half
/// a cosine, reaching 0 after the last step.
double learningRate(Schedule schedule, double peak, int64_t step, int64_t warmup, int64_t steps);

} // namespace fusor::frontend
