// The operators Fusor reads. An operator is (domain, name, first version of its domain it is written for) and an
// expansion into the op table; a version that changed the meaning has an entry of its own. Adding an operator is one
// entry in the file of its family, nothing else.
#pragma once
#include "frontend/onnx/site.h"

namespace fusor::onnx {

struct OpEntry {
  llvm::StringRef domain; // "" is ai.onnx
  llvm::StringRef name;
  int64_t since;
  void (*expand)(NodeSite &);
  /// Inputs (bit i) whose elements the operator only moves: on a known tensor of sizes it is computed at import.
  unsigned moves = 0;
  /// What it does to elements, on sizes; `boolean` where that gives i1.
  Fold fold = nullptr;
  bool boolean = false;
};

/// Where (domain, name) is in the table.
struct Found {
  const OpEntry *entry = nullptr; // for the version asked for
  int64_t oldest = 0;             // its first version in the table, 0 where the table does not have it
};
Found findOperator(llvm::StringRef domain, llvm::StringRef name, int64_t version);

/// The newest version of the default domain that the table was written against.
inline constexpr int64_t kNewestOpset = 28;

// The families, one file each.
llvm::ArrayRef<OpEntry> elementwiseOperators();
llvm::ArrayRef<OpEntry> activationOperators();
llvm::ArrayRef<OpEntry> castOperators();
llvm::ArrayRef<OpEntry> reductionOperators();
llvm::ArrayRef<OpEntry> shapeOperators();
llvm::ArrayRef<OpEntry> partsOperators();
llvm::ArrayRef<OpEntry> padOperators();
llvm::ArrayRef<OpEntry> resizeOperators();
llvm::ArrayRef<OpEntry> movementOperators();
llvm::ArrayRef<OpEntry> gatherOperators();
llvm::ArrayRef<OpEntry> scatterOperators();
llvm::ArrayRef<OpEntry> rankingOperators();
llvm::ArrayRef<OpEntry> constantOperators();
llvm::ArrayRef<OpEntry> linearOperators();
llvm::ArrayRef<OpEntry> einsumOperators();
llvm::ArrayRef<OpEntry> packedWeightsOperators();
llvm::ArrayRef<OpEntry> normalizationOperators();
llvm::ArrayRef<OpEntry> attentionOperators();
llvm::ArrayRef<OpEntry> fusedAttentionOperators();
llvm::ArrayRef<OpEntry> groupQueryAttentionOperators();
llvm::ArrayRef<OpEntry> convolutionOperators();
llvm::ArrayRef<OpEntry> quantizeOperators();

/// All of them, in that order.
llvm::ArrayRef<llvm::ArrayRef<OpEntry>> operatorFamilies();

} // namespace fusor::onnx
