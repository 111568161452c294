// A small transformer as some exporter might have written it: its blocks, their spelling and their mistakes are drawn.
#pragma once
#include "tests/onnx/model_builder.h"
#include <random>

namespace fusor::tests {

/// Input x: f32[B, S, 8], mask: i64[B, S] of 0 and 1, extra: f32[B, 1, S, S]; one result. Every block takes [B, S, D]
/// and gives [B, S, D]; one in eight is spelt so that no big op is the same.
class RandomModel {
public:
  explicit RandomModel(uint64_t seed);
  ModelBuilder builder;
  std::vector<std::string> blocks; // what was drawn, in order

private:
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  unsigned upTo(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string name();
  /// A node with one result; operands of a commutative one in either order.
  std::string op(const char *type, std::vector<std::string> inputs);
  std::string either(const char *type, const std::string &a, const std::string &b);
  std::string number(double value);
  std::string weights(std::vector<int64_t> dims, double deviation);
  std::string integers(std::vector<int64_t> values);
  void attribute(const char *name, std::vector<int64_t> values);

  std::string linear(const std::string &x, int64_t in, int64_t out);
  std::string layerNorm(const std::string &x);
  std::string rmsNorm(const std::string &x);
  std::string gelu(const std::string &x);
  std::string silu(const std::string &x);
  std::string softmax(const std::string &x);
  std::string heads(const std::string &x, bool across);
  std::string rotated(const std::string &x);
  std::string masked(const std::string &scores);
  std::string causal();
  std::string attention(const std::string &x);
  std::string feedForward(const std::string &x);

  std::mt19937_64 random_;
  unsigned names_ = 0;
};

} // namespace fusor::tests
