#include "frontend/api/data.h"
#include "frontend/api/errors.h"
#include "ir/ops/counter_rng.h"
#include "ir/types/dtype.h"
#include "runtime/checkpoint/npy.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fusor::frontend {

DataSource::~DataSource() = default;

namespace {

// A number in [0, n) for draw `which` of sequence `index`.
int64_t draw(uint64_t seed, uint64_t stream, int64_t index, int64_t n) {
  uint64_t bits = ir::rngBits(ir::rngKey(seed, stream), static_cast<uint64_t>(index));
  return static_cast<int64_t>(bits % static_cast<uint64_t>(n));
}
// Streams of this file; others of the program are hashes of names.
enum Stream : uint64_t { kPhase = 0x5eed0001, kStride, kWindow };

class Synthetic : public DataSource {
public:
  Synthetic(uint64_t seed, int64_t vocab) : seed_(seed), vocab_(vocab) {}
  void sequence(int64_t index, llvm::MutableArrayRef<int32_t> tokens) const override {
    syntheticSequence(seed_, index, vocab_, tokens);
  }
  int64_t vocab() const override { return vocab_; }

private:
  uint64_t seed_;
  int64_t vocab_;
};

using Text = std::shared_ptr<const llvm::MemoryBuffer>;

void copyBytes(const Text &text, int64_t begin, llvm::MutableArrayRef<int32_t> tokens) {
  const char *from = text->getBufferStart() + begin;
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<unsigned char>(from[i]);
}

// Windows at random places of [0, length).
class TextWindows : public DataSource {
public:
  TextWindows(Text text, int64_t length, uint64_t seed) : text_(std::move(text)), length_(length), seed_(seed) {}
  void sequence(int64_t index, llvm::MutableArrayRef<int32_t> tokens) const override {
    copyBytes(text_, draw(seed_, kWindow, index, length_ - static_cast<int64_t>(tokens.size()) + 1), tokens);
  }
  int64_t vocab() const override { return 256; }

private:
  Text text_;
  int64_t length_;
  uint64_t seed_;
};

// Windows one after the other from `begin`; each next one starts with the last token of the one before.
class TextInOrder : public DataSource {
public:
  TextInOrder(Text text, int64_t begin, int64_t context) : text_(std::move(text)), begin_(begin), context_(context) {}
  void sequence(int64_t index, llvm::MutableArrayRef<int32_t> tokens) const override {
    copyBytes(text_, begin_ + index * context_, tokens);
  }
  std::optional<int64_t> count() const override {
    return (static_cast<int64_t>(text_->getBufferSize()) - begin_ - 1) / context_;
  }
  int64_t vocab() const override { return 256; }

private:
  Text text_;
  int64_t begin_, context_;
};

class Given : public DataSource {
public:
  Given(std::vector<int32_t> tokens, int64_t length, int64_t vocab)
      : tokens_(std::move(tokens)), length_(length), vocab_(vocab) {}
  void sequence(int64_t index, llvm::MutableArrayRef<int32_t> tokens) const override {
    std::copy_n(tokens_.begin() + index * length_, length_, tokens.begin());
  }
  std::optional<int64_t> count() const override { return static_cast<int64_t>(tokens_.size()) / length_; }
  int64_t vocab() const override { return vocab_; }

private:
  std::vector<int32_t> tokens_;
  int64_t length_, vocab_;
};

} // namespace

void syntheticSequence(uint64_t seed, int64_t index, int64_t vocab, llvm::MutableArrayRef<int32_t> sequence) {
  int64_t phase = draw(seed, kPhase, index, vocab), stride = 1 + draw(seed, kStride, index, 6);
  for (size_t i = 0; i < sequence.size(); ++i)
    sequence[i] = static_cast<int32_t>((phase + stride * static_cast<int64_t>(i)) % vocab);
}

void fillBatch(const DataSource &source, int64_t first, int64_t rows, int64_t context,
               llvm::MutableArrayRef<int32_t> tokens, llvm::MutableArrayRef<int32_t> targets) {
  std::vector<int32_t> sequence(context + 1);
  for (int64_t r = 0; r < rows; ++r) {
    source.sequence(first + r, sequence);
    std::copy_n(sequence.begin(), context, tokens.begin() + r * context);
    std::copy_n(sequence.begin() + 1, context, targets.begin() + r * context);
  }
}

std::unique_ptr<DataSource> syntheticData(uint64_t seed, int64_t vocab) {
  return std::make_unique<Synthetic>(seed, vocab);
}

llvm::Expected<TextData> textData(llvm::StringRef path, uint64_t seed, int64_t context, double heldPercent) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return inputError("cannot read '{0}': {1}", path, file.getError().message());
  Text text = std::move(*file);
  auto size = static_cast<int64_t>(text->getBufferSize());
  int64_t train = size - static_cast<int64_t>(static_cast<double>(size) * heldPercent / 100);
  if (train < context + 1)
    return inputError("'{0}' has {1} bytes to train on, one sequence needs {2}: use a longer text, or a configuration "
                      "with a smaller context",
                      path, train, context + 1);
  TextData data;
  data.training = std::make_unique<TextWindows>(text, train, seed);
  if (heldPercent > 0) {
    if (size - train < context + 1)
      return inputError("--eval {0:f1} holds out {1} bytes of '{2}', one sequence needs {3}: hold out more",
                        heldPercent, size - train, path, context + 1);
    data.held = std::make_unique<TextInOrder>(text, train, context);
  }
  return data;
}

llvm::Expected<TokensData> tokensData(llvm::StringRef path) {
  auto array = runtime::readNpy(path);
  if (!array) return array.takeError();
  if (array->shape.size() != 3 || !ir::isInteger(array->dtype) || array->shape[0] < 1 || array->shape[1] < 1 ||
      array->shape[2] < 2)
    return inputError("'{0}' must be integers [steps, batch, context+1], is {1}{2}", path, ir::name(array->dtype),
                      runtime::shapeText(array->shape));
  int64_t elements = array->shape[0] * array->shape[1] * array->shape[2];
  std::vector<int32_t> tokens(elements);
  int64_t vocab = 0;
  for (int64_t i = 0; i < elements; ++i) {
    double value = ir::loadElement(array->dtype, array->bytes.data(), i);
    if (value < 0 || value >= 1 << 30)
      return inputError("'{0}': element {1} is {2}, no token", path, i, static_cast<int64_t>(value));
    tokens[i] = static_cast<int32_t>(value);
    vocab = std::max<int64_t>(vocab, tokens[i] + 1);
  }
  return TokensData{std::make_unique<Given>(std::move(tokens), array->shape[2], vocab), array->shape[0],
                    array->shape[1], array->shape[2] - 1};
}

} // namespace fusor::frontend
