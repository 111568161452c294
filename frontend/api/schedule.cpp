#include "frontend/api/schedule.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace fusor::frontend {

double learningRate(Schedule schedule, double peak, int64_t step, int64_t warmup, int64_t steps) {
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (schedule == Schedule::constant) return peak;
  double done = static_cast<double>(step - warmup - 1),
         length = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done / length, 1.0)));
}

} // namespace fusor::frontend
