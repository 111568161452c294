// Lesson 6: an ONNX model with a KV cache, run token by token. (Against Fusor's own headers: the ONNX door is not in
// the installed library.)
//
// kv_cache/model.onnx takes past keys and values [B, H, P, d] and returns the present ones [B, H, P+S, d]. Sizes that
// grow with every token would be planned anew for every token. So the past is a bucket: a buffer of a fixed P, of which
// a mask shows the part that is filled; a new token's row is copied into it. All steps of one bucket are one plan; when
// it is full the next one is twice as large.
#include "frontend/api/compile_module.h"
#include "frontend/api/tensor_files.h"
#include "frontend/onnx/import.h"
#include "ir/ops/counter_rng.h"
#include "llvm/Support/Error.h"
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

using namespace fusor;
using frontend::HostTensor;

constexpr int64_t kWords = 64, kHeads = 2, kHeadSize = 8, kCaches = 4,
                  kSteps = 64; // caches: keys and values of two layers

HostTensor zeros(ir::DType dtype, llvm::SmallVector<int64_t, 4> shape) {
  runtime::TensorView view{dtype, shape};
  return {dtype, std::move(shape), std::vector<char>(view.bytes())};
}

class Decoder {
public:
  explicit Decoder(const char *file) {
    auto imported = llvm::cantFail(onnx::importModel(file));
    frontend::DeviceSettings settings;
    settings.device = "cpu";
    auto device = llvm::cantFail(frontend::chooseDevice(settings.device));
    program_ = std::move(
        llvm::cantFail(frontend::compileModule(std::move(imported.module), device, frontend::CompileRequest(settings)))
            .program);
    llvm::cantFail(program_->initialize(0));
    grow(32);
  }

  /// Logits [tokens, kWords] of `ids`, which come behind what was given before. At most one bucket of tokens.
  std::vector<float> step(llvm::ArrayRef<int64_t> ids) {
    const auto tokens = static_cast<int64_t>(ids.size());
    if (filled_ + tokens > bucket_) grow(2 * bucket_);
    std::vector<HostTensor> in;
    in.push_back(zeros(ir::DType::i64, {1, tokens}));
    in.push_back(zeros(ir::DType::i64, {1, tokens}));
    in.push_back(zeros(ir::DType::i64, {1, bucket_ + tokens}));
    auto integers = [&](unsigned i) { return reinterpret_cast<int64_t *>(in[i].bytes.data()); };
    for (int64_t t = 0; t < tokens; ++t) integers(0)[t] = ids[t], integers(1)[t] = filled_ + t;
    for (int64_t j = 0; j < bucket_ + tokens; ++j) integers(2)[j] = j < filled_ || j >= bucket_;
    std::vector<HostTensor> out = {zeros(ir::DType::f32, {1, tokens, kWords})};
    for (int64_t c = 0; c < kCaches; ++c)
      out.push_back(zeros(ir::DType::f32, {1, kHeads, bucket_ + tokens, kHeadSize}));
    std::vector<runtime::TensorView> inputs, outputs;
    for (HostTensor &t : in) inputs.push_back(t.view());
    for (HostTensor &t : caches_) inputs.push_back(t.view());
    for (HostTensor &t : out) outputs.push_back(t.view());
    llvm::cantFail(program_->run("forward", inputs, outputs));
    for (int64_t c = 0; c < kCaches; ++c) // the new rows are the last ones
      copyRows(out[1 + c], bucket_, caches_[c], filled_, tokens);
    filled_ += tokens;
    const auto *logits = reinterpret_cast<const float *>(out[0].bytes.data());
    return {logits, logits + tokens * kWords};
  }

  unsigned plans() const { return program_->plansBuilt(); }
  int64_t bucket() const { return bucket_; }

private:
  static void copyRows(const HostTensor &from, int64_t at, HostTensor &to, int64_t place, int64_t rows) {
    for (int64_t h = 0; h < kHeads; ++h)
      std::memcpy(to.bytes.data() + (h * to.shape[2] + place) * kHeadSize * 4,
                  from.bytes.data() + (h * from.shape[2] + at) * kHeadSize * 4, rows * kHeadSize * 4);
  }
  void grow(int64_t bucket) {
    for (int64_t c = 0; c < kCaches; ++c) {
      HostTensor larger = zeros(ir::DType::f32, {1, kHeads, bucket, kHeadSize});
      if (filled_) copyRows(caches_[c], 0, larger, 0, filled_);
      caches_[c] = std::move(larger);
    }
    bucket_ = bucket;
  }

  std::unique_ptr<runtime::Program> program_;
  HostTensor caches_[kCaches];
  int64_t bucket_ = 0, filled_ = 0;
};

} // namespace

int main(int count, char **arguments) {
  const char *file = count > 1 ? arguments[1] : FUSOR_SOURCE_DIR "/examples/kv_cache/model.onnx";
  std::vector<int64_t> ids;
  for (int64_t t = 0; t < kSteps; ++t)
    ids.push_back(static_cast<int64_t>(ir::rngUniform(ir::rngKey(3, 0), t) * kWords));

  Decoder steps(file), atOnce(file);
  double worst = 0;
  unsigned plansOfFirstBucket = 0;
  std::vector<float> half = atOnce.step(llvm::makeArrayRef(ids).take_front(kSteps / 2)), // a bucket at once
      rest = atOnce.step(llvm::makeArrayRef(ids).drop_front(kSteps / 2));
  for (int64_t t = 0; t < kSteps; ++t) {
    const std::vector<float> logits = steps.step(ids[t]);
    for (int64_t w = 0; w < kWords; ++w)
      worst = std::fmax(
          worst, std::fabs(logits[w] - (t < kSteps / 2 ? half[t * kWords + w] : rest[(t - kSteps / 2) * kWords + w])));
    if (t == 0) plansOfFirstBucket = steps.plans();
    if (t == kSteps / 2 - 1 && steps.plans() != plansOfFirstBucket)
      return std::printf("a step of the first bucket was planned anew\n"), 1;
  }
  std::printf("%lld tokens one by one, buckets of up to %lld: %u plans; logits differ by %g from those of %lld tokens "
              "at once\n",
              static_cast<long long>(kSteps), static_cast<long long>(steps.bucket()), steps.plans(), worst,
              static_cast<long long>(kSteps / 2));
  return !(worst < 1e-4 && plansOfFirstBucket == 1 && steps.plans() == 2);
}
