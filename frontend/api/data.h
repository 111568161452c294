// Where training tokens come from. Sequence k of a source is a function of (source, seed, k) alone, so a resumed run
// sees what an uninterrupted one would, and a step split into micro-batches what a whole one does.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fusor::frontend {

/// The rule of the synthetic data: (phase + stride*i) mod vocab for i in [0, length), phase in [0, vocab), stride in
/// 1..6, both drawn for sequence `index`.
void syntheticSequence(uint64_t seed, int64_t index, int64_t vocab, llvm::MutableArrayRef<int32_t> sequence);

class DataSource {
public:
  virtual ~DataSource();
  /// Sequence `index`, context + 1 tokens: inputs are all but the last, targets all but the first.
  virtual void sequence(int64_t index, llvm::MutableArrayRef<int32_t> tokens) const = 0;
  /// The first sequence that is not there; absent where there are any number.
  virtual std::optional<int64_t> count() const { return std::nullopt; }
  /// Tokens are below this.
  virtual int64_t vocab() const = 0;
};

/// `tokens` and `targets` [rows, context] of sequences first, first + 1, ...
void fillBatch(const DataSource &source, int64_t first, int64_t rows, int64_t context,
               llvm::MutableArrayRef<int32_t> tokens, llvm::MutableArrayRef<int32_t> targets);

std::unique_ptr<DataSource> syntheticData(uint64_t seed, int64_t vocab);

/// The bytes of a file. `held` is the part kept out of training: non-overlapping windows in order; null where percent
/// is 0. Errors: the file cannot be read; it, or the part held out, is shorter than one sequence.
struct TextData {
  std::unique_ptr<DataSource> training, held;
};
llvm::Expected<TextData> textData(llvm::StringRef path, uint64_t seed, int64_t context, double heldPercent);

/// int32 or int64 [steps, batch, context+1] in an .npy file.
struct TokensData {
  std::unique_ptr<DataSource> source;
  int64_t steps, batch, context;
};
llvm::Expected<TokensData> tokensData(llvm::StringRef path);

} // namespace fusor::frontend
