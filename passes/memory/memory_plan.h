// Where the values of a function live while it runs: one arena, offsets by lifetime.
//
//   op 0  %h = fusion(%x)       h needs bytes [0, 4096)      alive 0..1
//   op 1  %g = fusion(%h, @w)   g takes over h's place       in place: each element is read where it is written
//   op 2  %v = reshape %g       v is g                       a view has no bytes of its own
//   op 3  %s = fusion(%v)       s needs bytes [4096, 4100)
//         return %s, @w = %w2   w2 is @w's own buffer        where its producer may write in place; else a copy at the
//         end
//
// Lifetimes are by op order, which every back end keeps. Offsets are 64-byte aligned and depend on the function and the
// symbols alone.
#pragma once
#include "ir/graph/graph.h"
#include "ir/graph/printer.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace fusor::passes {

/// What holds a value's bytes.
enum class PlaceKind : uint8_t {
  arena,      // `offset` bytes into the arena
  input,      // the caller's input number `index`
  output,     // the caller's output number `index`
  persistent, // persistent value `name`
  constant,   // an op without operands: computed when the function is planned, kept outside the arena
};
llvm::StringRef name(PlaceKind kind);

struct Place {
  PlaceKind kind = PlaceKind::arena;
  int64_t offset = 0; // arena; constant: bytes into the constants
  unsigned index = 0; // input, output
  std::string name;   // persistent
  bool operator==(const Place &o) const {
    return kind == o.kind && offset == o.offset && index == o.index && name == o.name;
  }
};

/// One buffer of the plan: a value, and the views and in-place successors that share it.
struct PlannedBuffer {
  Place place;
  int64_t bytes = 0;
  int first = 0, last = 0;                // op numbers; arguments start at -1, returned values end at the op count
  llvm::SmallVector<ir::Value, 2> values; // in order of definition
  std::string why;                        // it is where it is, and took over no other's place: one sentence, for people
};

/// The new content of a persistent value that could not be written in place: copied when all ops are done.
struct UpdateCopy {
  std::string persistent;
  ir::Value from;
  int64_t stagingOffset = -1; // >= 0: copied to this place in the arena first, because `from` is itself overwritten
  std::string reason;         // why not in place
};

struct MemoryPlan {
  std::string function;
  std::vector<PlannedBuffer> buffers;
  llvm::DenseMap<const ir::ValueDef *, unsigned> bufferOf;
  std::vector<UpdateCopy> updateCopies;
  /// Results that have a place of their own elsewhere and are copied to the caller's output at the end: {output,
  /// value}.
  std::vector<std::pair<unsigned, ir::Value>> resultCopies;
  int64_t arenaBytes = 0;      // size of the arena
  int64_t lowerBoundBytes = 0; // most arena bytes alive at one op: no plan can do with less
  int64_t constantBytes = 0;
  int64_t workspaceBytes = 0;     // of the kernels, added by the back end: partial sums, widened operands
  int64_t persistentBytes = 0;    // of all persistent values of the module
  std::vector<int64_t> liveBytes; // of the arena at each op, and at the end
  int64_t peakBytes() const { return arenaBytes + constantBytes + workspaceBytes + persistentBytes; }

  const PlannedBuffer &buffer(ir::Value value) const { return buffers[bufferOf.find(value.def())->second]; }
  /// Who needs what, largest first, and the totals.
  std::string text(unsigned most = 20) const;
  /// The plan.json of a dump, see docs/dump.md.
  /// `names` are those of the function's block.
  std::string json(const ir::ValueNames &names) const;
};

struct MemoryOptions {
  int64_t alignment = 64;
  /// Whether result `result` of `op` may be written over operand `operand`: every element of the operand is read only
  /// where the same element of the result is written, by the same thread, before. Absent: never in place.
  llvm::function_ref<bool(const ir::Op &op, unsigned result, unsigned operand)> mayOverwrite;
};

/// Bytes that hold a value of `type`: its elements, and for a quantised tensor its scale (an f32 behind the elements,
/// at the next multiple of 16).
std::optional<int64_t> storageBytes(const ir::TensorType &type, const ir::SymbolValues &symbols);

/// Every symbol at the middle of its range: what a pass weighs bytes at.
ir::SymbolValues middleOfRanges(const ir::Module &module);

/// Plans `function` under `symbols`. The error names a symbol without a value.
llvm::Expected<MemoryPlan> planMemory(const ir::Function &function, const ir::SymbolValues &symbols,
                                      const MemoryOptions &options = {});

} // namespace fusor::passes
