#include "ir/graph/attributes.h"
#include "ir/graph/literal.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::ir {
namespace {

bool isBareWord(llvm::StringRef text) {
  return !text.empty() && (llvm::isAlpha(text[0]) || text[0] == '_') &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; }) && text != "true" && text != "false";
}

struct Printer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return realLiteral(v); }
  std::string operator()(const std::string &v) const { return isBareWord(v) ? v : quoted(v); }
  std::string operator()(const std::vector<int64_t> &v) const {
    return "[" + llvm::join(llvm::map_range(v, [](int64_t i) { return std::to_string(i); }), ", ") + "]";
  }
  std::string operator()(const std::vector<std::string> &v) const {
    return "[" + llvm::join(llvm::map_range(v, [](const std::string &s) { return quoted(s); }), ", ") + "]";
  }
  std::string operator()(DType v) const { return name(v).str(); }
  std::string operator()(const Shape &v) const { return "[" + ir::str(llvm::ArrayRef<Dim>(v)) + "]"; }
};

} // namespace

std::string str(const AttrValue &value) { return std::visit(Printer(), value); }

Attrs::Attrs(std::initializer_list<Entry> entries) {
  for (const Entry &entry : entries) set(entry.name, entry.value);
}

void Attrs::set(llvm::StringRef name, AttrValue value) {
  auto it = llvm::lower_bound(entries_, name, [](const Entry &e, llvm::StringRef n) { return e.name < n; });
  if (it != entries_.end() && it->name == name)
    it->value = std::move(value);
  else
    entries_.insert(it, Entry{name.str(), std::move(value)});
}

void Attrs::erase(llvm::StringRef name) {
  llvm::erase_if(entries_, [&](const Entry &e) { return e.name == name; });
}

const AttrValue *Attrs::find(llvm::StringRef name) const {
  auto it = llvm::find_if(entries_, [&](const Entry &e) { return e.name == name; });
  return it == entries_.end() ? nullptr : &it->value;
}

} // namespace fusor::ir
