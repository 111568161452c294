#include "passes/memory/memory_plan.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::passes {

using namespace ir;

namespace {

// A buffer before it has its offset.
class Planner {
public:
  Planner(const Function &function, const SymbolValues &symbols, const MemoryOptions &options)
      : function_(function), symbols_(symbols), options_(options), returns_(function.returns()) {
    plan_.function = function.name().str();
    for (const Op &op : function.block().ops())
      if (!op.def().isTerminator) ops_.push_back(&op);
    end_ = static_cast<int>(ops_.size());
  }

  llvm::Expected<MemoryPlan> run() {
    if (auto error = measure()) return error;
    for (unsigned i = 0; i < function_.block().argumentCount(); ++i)
      place(function_.block().argument(i), -1, {PlaceKind::input, 0, i, ""}, "the caller's input");
    for (Value read : function_.reads())
      place(read, -1, {PlaceKind::persistent, 0, 0, read.name().str()}, "a persistent value has a buffer of its own");
    findLastReads();
    claimUpdates();
    claimOutputs();
    for (int at = 0; at < end_; ++at) placeResults(at);
    copyTheRest();
    assignOffsets();
    return std::move(plan_);
  }

private:
  const Function &function_;
  const SymbolValues &symbols_;
  const MemoryOptions &options_;
  llvm::SmallVector<ReturnEntry, 4> returns_;
  ValueNames names_{function_.block()};
  std::vector<const Op *> ops_;
  int end_ = 0;
  MemoryPlan plan_;
  llvm::DenseMap<const ValueDef *, int64_t> bytes_;
  llvm::DenseMap<const ValueDef *, const ValueDef *> root_; // of views: whose bytes they are
  llvm::DenseMap<const ValueDef *, int> lastRead_;          // by root: the last op that reads it or a view of it
  llvm::DenseMap<const ValueDef *, Place> claimed_;         // by root: values placed outside the arena
  llvm::StringSet<> updatedInPlace_;

  const ValueDef *root(Value value) const {
    auto it = root_.find(value.def());
    return it == root_.end() ? value.def() : it->second;
  }
  static bool isView(const Op &op) { return op.def().lowering == Lowering::view; }
  static bool isConstant(const Op &op) { return op.operands().empty() && !op.body() && !op.def().hasSideEffectOrder; }

  llvm::Error measure(Value value) {
    auto bytes = storageBytes(value.type(), symbols_);
    if (!bytes)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          llvm::formatv("@{0}: the size of %{1}, {2}, is not known: give its symbols a value", function_.name(),
                        value.name(), value.type().str())
              .str());
    bytes_[value.def()] = *bytes;
    return llvm::Error::success();
  }

  llvm::Error measure() {
    for (Value argument : function_.block().arguments())
      if (auto error = measure(argument)) return error;
    for (Value read : function_.reads())
      if (auto error = measure(read)) return error;
    for (const Op *op : ops_)
      for (Value result : op->results())
        if (auto error = measure(result)) return error;
    for (const auto &persistent : function_.module().persistents())
      if (auto bytes = storageBytes(persistent->type, symbols_))
        plan_.persistentBytes += llvm::alignTo(*bytes, options_.alignment);
    return llvm::Error::success();
  }

  void findLastReads() {
    for (int at = 0; at < end_; ++at) {
      const Op &op = *ops_[at];
      if (isView(op)) root_[op.result().def()] = root(op.operand(0u));
      for (Value operand : op.operands())
        if (operand) lastRead_[root(operand)] = at;
      for (Value result : op.results()) lastRead_.try_emplace(root(result), at);
    }
    for (const ReturnEntry &entry : returns_) lastRead_[root(entry.value)] = end_;
  }

  int opNumber(const Op *op) const { return static_cast<int>(llvm::find(ops_, op) - ops_.begin()); }

  bool mayOverwrite(const Op &op, unsigned result, unsigned operand) const {
    return options_.mayOverwrite && options_.mayOverwrite(op, result, operand);
  }

  // Whether every operand of `op` that lies in `buffer` may be overwritten by `result`.
  bool mayOverwriteAll(const Op &op, unsigned result, const ValueDef *buffer) const {
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (op.operands()[i] && root(op.operands()[i]) == buffer && !mayOverwrite(op, result, i)) return false;
    return true;
  }

  // Why `return @name = value` must copy; empty when value may be computed in @name's own buffer.
  std::string whyNotInPlace(const ReturnEntry &entry) {
    const ValueDef *value = root(entry.value);
    if (!value->definingOp || isConstant(*value->definingOp)) return "its new value is not computed here";
    if (claimed_.count(value)) return "its new value is also that of @" + claimed_[value].name;
    const Persistent *persistent = function_.module().persistent(entry.name);
    auto bytes = persistent ? storageBytes(persistent->type, symbols_) : std::nullopt;
    if (!bytes || *bytes != bytes_[value]) return "its new value has another size";
    int made = opNumber(value->definingOp);
    for (Value read : function_.reads()) {
      if (read.name() != entry.name) continue;
      auto last = lastRead_.find(read.def());
      if (last == lastRead_.end()) continue;
      if (last->second == end_) return "its old value is returned";
      if (last->second > made) return llvm::formatv("its old value is read later, by {0}", ops_[last->second]->name());
      if (last->second == made && !mayOverwriteAll(*value->definingOp, value->index, read.def()))
        return llvm::formatv("{0} reads its old value at other places than it writes", value->definingOp->name());
    }
    return "";
  }

  void claimUpdates() {
    for (const ReturnEntry &entry : returns_) {
      if (entry.kind != ReturnKind::update) continue;
      std::string reason = whyNotInPlace(entry);
      if (reason.empty()) {
        claimed_[root(entry.value)] = {PlaceKind::persistent, 0, 0, entry.name};
        updatedInPlace_.insert(entry.name);
      } else {
        plan_.updateCopies.push_back({entry.name, entry.value, -1, reason});
      }
    }
  }

  void claimOutputs() {
    unsigned output = 0;
    for (const ReturnEntry &entry : returns_) {
      if (entry.kind != ReturnKind::result) continue;
      const ValueDef *value = root(entry.value);
      bool computed = value->definingOp && !isConstant(*value->definingOp);
      // A quantised tensor has its scale behind its elements, which a caller's buffer does not.
      if (computed && !claimed_.count(value) && value->type.granularity == Granularity::none)
        claimed_[value] = {PlaceKind::output, 0, output, ""};
      else
        plan_.resultCopies.push_back({output, entry.value});
      ++output;
    }
  }

  unsigned place(Value value, int at, Place place, std::string why) {
    PlannedBuffer buffer;
    buffer.place = std::move(place);
    buffer.why = std::move(why);
    buffer.bytes = bytes_[value.def()];
    buffer.first = at;
    buffer.values.push_back(value);
    plan_.bufferOf[value.def()] = plan_.buffers.size();
    plan_.buffers.push_back(std::move(buffer));
    return plan_.buffers.size() - 1;
  }

  // The buffer of an operand that dies at op `at` and may be written over, or -1 and why there is none.
  int donor(const Op &op, unsigned result, int at, llvm::ArrayRef<unsigned> taken, std::string &why) const {
    Value value = op.result(result);
    auto refuse = [&](Value operand, const llvm::Twine &reason) {
      if (!why.empty()) return; // one reason is enough: the first operand of a fitting size
      why = (names_(operand) + " " + reason).str();
    };
    for (unsigned i = 0; i < op.operands().size(); ++i) {
      Value operand = op.operands()[i];
      if (!operand) continue;
      unsigned buffer = plan_.bufferOf.find(operand.def())->second;
      if (plan_.buffers[buffer].place.kind != PlaceKind::arena) continue;
      if (byteSize(operand.dtype()) != byteSize(value.dtype()) ||
          plan_.buffers[buffer].bytes < bytes_.lookup(value.def()))
        continue;
      // The buffer may have passed from value to value: what counts is who holds it now.
      const ValueDef *holder = root(plan_.buffers[buffer].values.back());
      int last = lastRead_.lookup(holder);
      if (llvm::is_contained(taken, buffer))
        refuse(operand, "went to another result");
      else if (holder != root(operand))
        refuse(operand, "has passed its place on");
      else if (last > at)
        refuse(operand, last == end_ ? llvm::Twine("is returned") : "is read later, by op " + llvm::Twine(last));
      else if (mayOverwriteAll(op, result, holder))
        return static_cast<int>(buffer);
      else
        refuse(operand, "is read at other places than the result is written");
    }
    if (why.empty()) why = "no operand in the arena is as large";
    return -1;
  }

  void placeResults(int at) {
    const Op &op = *ops_[at];
    if (isView(op)) {
      unsigned buffer = plan_.bufferOf[op.operand(0u).def()];
      plan_.bufferOf[op.result().def()] = buffer;
      plan_.buffers[buffer].values.push_back(op.result());
      return;
    }
    llvm::SmallVector<unsigned, 4> taken;
    for (unsigned i = 0; i < op.resultCount(); ++i) {
      Value result = op.result(i);
      std::string why;
      if (isConstant(op)) {
        Place constant{PlaceKind::constant, plan_.constantBytes, 0, ""};
        plan_.constantBytes += llvm::alignTo(bytes_[result.def()], options_.alignment);
        place(result, at, constant, "has no operands: computed once, when the function is planned");
      } else if (auto claim = claimed_.find(result.def()); claim != claimed_.end()) {
        place(result, at, claim->second,
              claim->second.kind == PlaceKind::output ? "computed where the caller wants it"
                                                      : "computed in @" + claim->second.name + " itself");
      } else if (int buffer = donor(op, i, at, taken, why); buffer >= 0) {
        plan_.bufferOf[result.def()] = buffer;
        plan_.buffers[buffer].values.push_back(result);
        taken.push_back(buffer);
      } else {
        place(result, at, {}, "not in place: " + why);
      }
    }
  }

  // Updates whose source is a persistent value that changes too: read before anything is written.
  void copyTheRest() {
    llvm::StringSet<> changed;
    for (const UpdateCopy &copy : plan_.updateCopies) changed.insert(copy.persistent);
    for (UpdateCopy &copy : plan_.updateCopies) {
      const Place &from = plan_.buffer(copy.from).place;
      if (from.kind != PlaceKind::persistent || from.name == copy.persistent || !changed.count(from.name)) continue;
      PlannedBuffer staging;
      staging.bytes = bytes_[copy.from.def()];
      staging.first = staging.last = end_;
      staging.why = "@" + from.name + " changes too, and @" + copy.persistent + " needs what it was";
      copy.stagingOffset = static_cast<int64_t>(plan_.buffers.size()); // replaced by its offset below
      plan_.buffers.push_back(std::move(staging));
    }
  }

  // "; its bytes were those of %x, dead after op 7": of what lived there before it.
  std::string whoseBytes(const PlannedBuffer &buffer, llvm::ArrayRef<unsigned> placed) const {
    const PlannedBuffer *before = nullptr;
    for (unsigned other : placed) {
      const PlannedBuffer &o = plan_.buffers[other];
      bool overlaps =
          o.place.offset < buffer.place.offset + buffer.bytes && buffer.place.offset < o.place.offset + o.bytes;
      if (overlaps && o.last < buffer.first && (!before || o.last > before->last)) before = &o;
    }
    if (!before || before->values.empty()) return "";
    return llvm::formatv("; its bytes were those of {0}, dead after op {1}", names_(before->values.back()),
                         before->last);
  }

  void assignOffsets() {
    for (PlannedBuffer &buffer : plan_.buffers) {
      if (!buffer.values.empty()) buffer.last = buffer.first;
      for (Value value : buffer.values) {
        auto last = lastRead_.find(root(value));
        if (last != lastRead_.end()) buffer.last = std::max(buffer.last, last->second);
      }
    }
    // Largest first, each at the lowest offset that is free while it lives.
    std::vector<unsigned> order;
    for (unsigned i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].place.kind == PlaceKind::arena) order.push_back(i);
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return plan_.buffers[a].bytes > plan_.buffers[b].bytes; });
    auto aligned = [&](int64_t bytes) { return static_cast<int64_t>(llvm::alignTo(bytes, options_.alignment)); };
    std::vector<unsigned> placed; // by offset
    for (unsigned id : order) {
      PlannedBuffer &buffer = plan_.buffers[id];
      int64_t offset = 0;
      for (unsigned other : placed) {
        const PlannedBuffer &o = plan_.buffers[other];
        if (o.last < buffer.first || buffer.last < o.first || o.bytes == 0) continue;
        if (offset + buffer.bytes <= o.place.offset) break;
        offset = std::max(offset, aligned(o.place.offset + o.bytes));
      }
      buffer.place.offset = offset;
      buffer.why += whoseBytes(buffer, placed);
      plan_.arenaBytes = std::max(plan_.arenaBytes, aligned(offset + buffer.bytes));
      placed.insert(std::upper_bound(placed.begin(), placed.end(), id,
                                     [&](unsigned a, unsigned b) {
                                       return plan_.buffers[a].place.offset < plan_.buffers[b].place.offset;
                                     }),
                    id);
    }
    for (UpdateCopy &copy : plan_.updateCopies)
      if (copy.stagingOffset >= 0) copy.stagingOffset = plan_.buffers[copy.stagingOffset].place.offset;
    for (int at = 0; at <= end_; ++at) {
      int64_t alive = 0;
      for (unsigned id : order)
        if (plan_.buffers[id].first <= at && at <= plan_.buffers[id].last) alive += plan_.buffers[id].bytes;
      plan_.liveBytes.push_back(alive);
      plan_.lowerBoundBytes = std::max(plan_.lowerBoundBytes, alive);
    }
  }
};

std::string label(const PlannedBuffer &buffer) {
  if (buffer.values.empty()) return "(staging of an update)";
  std::string text = "%" + buffer.values.front().name().str();
  if (buffer.values.size() > 1) text += llvm::formatv(" and {0} more", buffer.values.size() - 1);
  return text;
}

} // namespace

llvm::StringRef name(PlaceKind kind) {
  static constexpr const char *names[] = {"arena", "input", "output", "persistent", "constant"};
  return names[static_cast<unsigned>(kind)];
}

std::optional<int64_t> storageBytes(const TensorType &type, const SymbolValues &symbols) {
  auto bytes = byteSize(type, symbols);
  if (bytes && type.granularity == Granularity::tensor) *bytes = static_cast<int64_t>(llvm::alignTo(*bytes, 16)) + 4;
  return bytes;
}

SymbolValues middleOfRanges(const Module &module) {
  SymbolValues symbols;
  for (const auto &[name, range] : module.symbols()) symbols[name] = (range.low + range.high) / 2;
  return symbols;
}

llvm::Expected<MemoryPlan> planMemory(const Function &function, const SymbolValues &symbols,
                                      const MemoryOptions &options) {
  return Planner(function, symbols, options).run();
}

std::string MemoryPlan::text(unsigned most) const {
  std::string text =
      llvm::formatv("@{0}: peak {1} bytes = arena {2} + persistent {3} + constants {4} + work "
                    "space {5}; at least {6} of the arena are alive at once\n",
                    function, peakBytes(), arenaBytes, persistentBytes, constantBytes, workspaceBytes, lowerBoundBytes);
  std::vector<const PlannedBuffer *> order;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.place.kind == PlaceKind::arena) order.push_back(&buffer);
  llvm::stable_sort(order, [](const PlannedBuffer *a, const PlannedBuffer *b) { return a->bytes > b->bytes; });
  for (unsigned i = 0; i < order.size() && i < most; ++i)
    text += llvm::formatv("  {0,12} bytes at {1,-12} ops {2} to {3}  {4}\n", order[i]->bytes, order[i]->place.offset,
                          order[i]->first, order[i]->last, label(*order[i]));
  if (order.size() > most) text += llvm::formatv("  ... and {0} smaller ones\n", order.size() - most);
  for (const UpdateCopy &copy : updateCopies)
    text += llvm::formatv("  @{0} is copied at the end: {1}\n", copy.persistent, copy.reason);
  return text;
}

std::string MemoryPlan::json(const ValueNames &names) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream out(os);
  out.object([&] {
    out.attribute("function", function);
    out.attribute("peak_bytes", peakBytes());
    out.attribute("arena_bytes", arenaBytes);
    out.attribute("persistent_bytes", persistentBytes);
    out.attribute("constant_bytes", constantBytes);
    out.attribute("workspace_bytes", workspaceBytes);
    out.attribute("lower_bound_bytes", lowerBoundBytes);
    out.attributeArray("buffers", [&] {
      for (const PlannedBuffer &buffer : buffers)
        out.object([&] {
          out.attributeArray("values", [&] {
            for (Value value : buffer.values)
              out.object([&] {
                out.attribute("name", names(value));
                out.attribute("type", value.type().str());
              });
          });
          out.attribute("place", name(buffer.place.kind));
          if (buffer.place.kind == PlaceKind::persistent) out.attribute("persistent", buffer.place.name);
          out.attribute("offset", buffer.place.offset);
          out.attribute("bytes", buffer.bytes);
          out.attribute("first", buffer.first);
          out.attribute("last", buffer.last);
          out.attribute("why", buffer.why);
        });
    });
    out.attributeArray("live_bytes", [&] {
      for (int64_t bytes : liveBytes) out.value(bytes);
    });
    out.attributeArray("copies", [&] {
      for (const UpdateCopy &copy : updateCopies)
        out.object([&] {
          out.attribute("persistent", copy.persistent);
          out.attribute("reason", copy.reason);
        });
    });
  });
  return os.str();
}

} // namespace fusor::passes
