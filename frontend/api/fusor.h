// Fusor: build a transformer, compile it for the device at hand, train it or run it.
//
//   namespace f = fusor;
//   f::Builder b("minigpt");
//   auto tokens  = b.input("tokens",  f::i32, {f::dim("B", 1, 64), 256});
//   auto targets = b.input("targets", f::i32, {f::dim("B"), 256});
//   auto loss    = f::crossEntropy(f::nn::gpt(b, tokens, {.vocab = 96, .width = 768}), targets);
//   f::Module m  = b.trainingStep(loss, f::AdamW{.lr = 3e-4}, f::Bf16{});
//   auto program = f::compile(m, f::Device::best());          // value or a diagnostic
//   if (!program) return f::report(program.error());
//   for (auto [x, y] : f::syntheticBatches({.batch = 32, .steps = 60}))
//     std::printf("%.4f\n", program->run({{"tokens", x}, {"targets", y}}).loss());
//   return f::report(program->save("checkpoint"));
//
// Nothing throws and nothing exits: what can fail gives an Error or a Result. Two Programs live beside each other; a
// Program is used by one thread at a time; compile() may be called from several.
#pragma once
#include "frontend/builder/builder.h"
#include "frontend/nn/gpt.h"
#include <utility>

namespace fusor {

// --- what to train with

/// AdamW as in PyTorch: decoupled weight decay, bias-corrected f32 moments.
struct AdamW {
  double lr = 3e-4, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weightDecay = 0.01;
  std::string noDecay = {}; ///< regular expression: parameters with a match in their name do not decay
  double clipNorm = 0;      ///< the largest L2 norm of all gradients together; 0: no clipping
};

struct F32 {};  ///< everything in f32
struct Bf16 {}; ///< f32 master weights, bf16 compute, f32 statistics and loss
struct F16 {};
enum class Fp8Format : uint8_t { hybrid, e4m3 };
inline constexpr Fp8Format hybrid = Fp8Format::hybrid, e4m3 = Fp8Format::e4m3;
enum class AmaxAlgo : uint8_t { max, mostRecent };
/// The scale of a tensor follows the largest values of the steps before.
struct DelayedScaling {
  Fp8Format format = hybrid; ///< hybrid: gradients in E5M2
  int64_t amaxHistory = 1024;
  AmaxAlgo amaxAlgo = AmaxAlgo::max;
  int margin = 0;             ///< scales are divided by 2^margin
  bool fp8Wgrad = true;       ///< false: weight gradients from bf16 operands
  std::string select = "all"; ///< or a regular expression of layers: "blocks.[0-9]+.fc1"
  bool skipNonFinite = false; ///< amaxes of Inf do not enter the history; in it they keep the scale for its length
  bool calibrate = false;     ///< the first run measures scales before it quantises; else they start at 1
};
/// FP8 GEMMs in the linear layers of blocks, the rest as Bf16. Where the device has no FP8 the same values are
/// emulated.
struct Fp8 {
  DelayedScaling scaling = {};
};
/// One of the above.
class FUSOR_API Recipe {
public:
  Recipe(F32 r) : held_(r) {}
  Recipe(Bf16 r) : held_(r) {}
  Recipe(F16 r) : held_(r) {}
  Recipe(Fp8 r) : held_(r) {}
  /// "f32", "bf16", "f16", "fp8"
  std::string name() const;
  const Fp8 *fp8() const { return std::get_if<Fp8>(&held_); }

private:
  std::variant<F32, Bf16, F16, Fp8> held_;
};

// --- modules

namespace frontend {
struct ModuleState;
struct ProgramState;
struct StepState;
} // namespace frontend

/// What a Builder built or a text said, and how it is to be compiled. Copies share it; it does not change.
class FUSOR_API Module {
public:
  /// Reads IR text (`str()` of another module, a .fir file).
  static Result<Module> parse(const std::string &text, const std::string &fileName = "<text>");
  /// The mistakes made while building it; compile() returns them too.
  Error error() const;
  /// The IR as text. Of a training step: with gradients, optimizer and fusions, as the CPU runs it.
  std::string str() const;

private:
  friend struct frontend::ModuleState;
  std::shared_ptr<const frontend::ModuleState> state_;
};

// --- devices and tensors

class FUSOR_API Device {
public:
  /// A GPU where there is one that can be used, else the CPU.
  static Device best() { return Device("auto"); }
  static Device cpu() { return Device("cpu"); }
  static Device cuda(int ordinal = 0) { return Device("cuda:" + std::to_string(ordinal)); }
  /// As it was asked for; compile() finds out whether it is there.
  const std::string &name() const { return name_; }

private:
  explicit Device(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

/// Elements in host memory, row-major: its own, or the caller's where it was made from a pointer.
class FUSOR_API Tensor {
public:
  Tensor() = default;
  /// Own memory, zero.
  Tensor(DType type, std::vector<int64_t> shape);
  /// The caller's memory, which must outlive it.
  Tensor(DType type, std::vector<int64_t> shape, void *data) : type_(type), shape_(std::move(shape)), data_(data) {}
  DType dtype() const { return type_; }
  const std::vector<int64_t> &shape() const { return shape_; }
  int64_t elements() const;
  int64_t bytes() const;
  void *data() const { return data_; }
  template <typename T> T *as() const { return static_cast<T *>(data_); }
  /// Element `i` as a number, whatever its dtype.
  double at(int64_t i) const;

private:
  DType type_ = DType::f32;
  std::vector<int64_t> shape_;
  std::shared_ptr<std::vector<char>> own_;
  void *data_ = nullptr;
};
using Named = std::pair<std::string, Tensor>;

// --- programs

struct CompileOptions {
  unsigned threads = 0;      ///< of the CPU; 0: all
  uint64_t seed = 0;         ///< of the initial values
  bool strict = false;       ///< a fallback is an error
  std::string cacheDir = {}; ///< of compiled kernels; empty: FUSOR_CACHE_DIR, else the user's cache folder
  std::string dumpDir = {};  ///< where the module after each pass and the reasons are written; empty: nowhere
};

/// One run of a function.
class FUSOR_API Step {
public:
  int64_t index = 0; ///< 1 for the first run of a training step after compile()
  /// The first result as a number; NaN after an error.
  double loss() const;
  /// Result `i`.
  Tensor result(size_t i = 0) const;
  Error error() const;

private:
  friend class Program;
  std::shared_ptr<const frontend::StepState> state_;
};

/// One kernel of a program.
struct Kernel {
  std::string function, name, kind;
  std::string ops;    ///< the IR it implements
  std::string source; ///< CUDA text; empty on the CPU
};

class FUSOR_API Program {
public:
  /// Runs the training step, or the only function, or "forward", on inputs by name. The first error sticks: later
  /// calls do nothing and return it.
  Step run(const std::vector<Named> &inputs);
  Step run(const std::string &function, const std::vector<Named> &inputs);

  /// Writes the parameters and states as a checkpoint folder. A folder that is there stays as it is until the new one
  /// is complete.
  Error save(const std::string &folder);
  Error load(const std::string &folder);
  /// The content of a parameter or state.
  Result<Tensor> get(const std::string &name);
  Error set(const std::string &name, const Tensor &value);
  Error setLearningRate(double lr);

  std::vector<Kernel> kernels() const;
  /// Where something ran in another way than it should, with the reason.
  std::vector<std::string> fallbacks() const;
  /// The IR as it runs.
  std::string str() const;
  std::string device() const;
  /// The largest arena used so far and all persistent values.
  int64_t peakBytes() const;

private:
  friend struct frontend::ProgramState;
  std::shared_ptr<frontend::ProgramState> state_;
};

FUSOR_API Result<Program> compile(const Module &module, const Device &device = Device::best(),
                                  const CompileOptions &options = {});

// --- data

struct SyntheticOptions {
  int64_t batch = 16, steps = 60, vocab = 96, context = 256;
  uint64_t seed = 0;
};
struct Batch {
  Tensor tokens, targets; ///< i32 [batch, context]; targets are the tokens one place later
};
/// Sequences (phase + stride*i) mod vocab. Batch n is a function of (seed, n) alone.
class FUSOR_API SyntheticBatches {
public:
  explicit SyntheticBatches(SyntheticOptions options) : options_(options) {}
  Batch at(int64_t step) const;

  class iterator {
  public:
    iterator(const SyntheticBatches *source, int64_t step) : source_(source), step_(step) {}
    Batch operator*() const { return source_->at(step_); }
    iterator &operator++() { return ++step_, *this; }
    bool operator!=(const iterator &o) const { return step_ != o.step_; }

  private:
    const SyntheticBatches *source_;
    int64_t step_;
  };
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, options_.steps}; }

private:
  SyntheticOptions options_;
};
inline SyntheticBatches syntheticBatches(SyntheticOptions options) { return SyntheticBatches(options); }

} // namespace fusor
