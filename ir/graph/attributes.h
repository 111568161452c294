// Attributes of an op: a small sorted list of named constants. Values equal to the op table's default are not stored.
#pragma once
#include "ir/types/type.h"
#include <string>
#include <variant>

namespace fusor::ir {

/// true, 3, 0.5, tanh, [1, 2], ["a", "b"], f32, [B, 256]: the op table says which kind an attribute is, so the text
/// need not.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>, DType, Shape>;
/// The alternatives of AttrValue in order.
enum class AttrKind : uint8_t { boolean, integer, real, word, integers, words, dtype, shape };

std::string str(const AttrValue &value);

class Attrs {
public:
  struct Entry {
    std::string name;
    AttrValue value;
    bool operator==(const Entry &o) const { return name == o.name && value == o.value; }
  };
  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);

  void set(llvm::StringRef name, AttrValue value);
  void erase(llvm::StringRef name);
  const AttrValue *find(llvm::StringRef name) const;
  llvm::ArrayRef<Entry> entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Attrs &o) const { return entries_ == o.entries_; }

private:
  llvm::SmallVector<Entry, 2> entries_; // sorted by name
};

} // namespace fusor::ir
