#include "frontend/report/compact.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <charconv>
#include <map>
#include <vector>

namespace fusor::frontend {
namespace {

using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr char kHole = '\x01';

/// A text taken apart: its template, and the numbers of its holes.
struct Parts {
  std::string shape;
  std::vector<int> numbers;
};

/// Only numbers that print as they are read: no "007", and few digits.
Parts partsOf(StringRef text) {
  constexpr size_t kDigits = 5;
  Parts parts;
  for (size_t i = 0; i < text.size();) {
    char c = text[i++];
    parts.shape += c == kHole ? ' ' : c;
    if (c != '.' && c != '%' && c != '_') continue;
    StringRef digits = text.substr(i).take_while(llvm::isDigit);
    if (digits.empty() || digits.size() > kDigits || (digits.size() > 1 && digits[0] == '0')) continue;
    parts.shape += kHole;
    parts.numbers.push_back(std::stoi(digits.str()));
    i += digits.size();
  }
  return parts;
}

class Writer {
public:
  std::string run(const Value &data) {
    std::string body;
    write(data, body);
    std::string text = "{\"templates\":[";
    for (size_t i = 0; i < templates_.size(); ++i) {
      if (i) text += ',';
      quote(templates_[i], text);
    }
    return text + "],\"data\":" + body + "}";
  }

private:
  static void quote(StringRef text, std::string &out) {
    std::string json;
    llvm::raw_string_ostream stream(json);
    stream << Value(llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text));
    for (char c : stream.str()) {
      if (c == '<')
        out += "\\u003c";
      else
        out += c;
    }
  }

  void writeText(StringRef text, std::string &out) {
    constexpr size_t kShort = 16;
    if (text.size() < kShort) return quote(text, out);
    Parts parts = partsOf(text);
    auto [it, isNew] = known_.try_emplace(parts.shape, templates_.size());
    if (isNew) templates_.push_back(parts.shape);
    if (parts.numbers.empty()) {
      out += "{\"$\":" + std::to_string(it->second) + "}";
      return;
    }
    out += "{\"$\":[" + std::to_string(it->second);
    for (int number : parts.numbers) out += "," + std::to_string(number);
    out += "]}";
  }

  static void writeNumber(double number, std::string &out) {
    char text[32];
    constexpr int kDigits = 5;
    auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::general, kDigits).ptr;
    out.append(text, end);
  }

  /// The keys of a list that is worth a table, in order of first sight; empty where it is none.
  static std::vector<StringRef> columnsOf(const Array &list) {
    constexpr size_t kFew = 3;
    std::vector<StringRef> columns;
    if (list.size() < kFew) return columns;
    std::map<StringRef, bool> seen;
    for (const Value &entry : list) {
      const Object *object = entry.getAsObject();
      if (!object) return {};
      std::vector<StringRef> keys;
      for (const auto &[key, value] : *object) {
        if (value.kind() == Value::Null) return {};
        if (!seen[key]) keys.push_back(key), seen[key] = true;
      }
      llvm::sort(keys); // an object's own order is that of its hash
      columns.insert(columns.end(), keys.begin(), keys.end());
    }
    return columns;
  }

  /// The different texts of a column and the place of each; empty where it is not worth it.
  using Words = llvm::MapVector<StringRef, size_t>;
  static Words wordsOf(const Array &list, StringRef column) {
    Words words;
    size_t count = 0;
    for (const Value &entry : list)
      if (const Value *value = entry.getAsObject()->get(column)) {
        auto text = value->getAsString();
        if (!text) return {};
        words.insert({*text, words.size()});
        ++count;
      }
    constexpr size_t kRepeats = 2;
    return words.size() * kRepeats <= count ? words : Words();
  }

  void writeList(const Array &list, std::string &out) {
    auto columns = columnsOf(list);
    if (columns.empty()) {
      out += '[';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i) out += ',';
        write(list[i], out);
      }
      out += ']';
      return;
    }
    std::vector<Words> words;
    out += "{\"#\":[";
    for (StringRef column : columns) {
      if (!words.empty()) out += ',';
      words.push_back(wordsOf(list, column));
      quote(column, out);
    }
    out += "],\"~\":{";
    bool isFirst = true;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (words[i].empty()) continue;
      if (!isFirst) out += ',';
      isFirst = false;
      quote(columns[i], out);
      out += ":[";
      for (const auto &[text, place] : words[i]) {
        if (place) out += ',';
        writeText(text, out);
      }
      out += ']';
    }
    out += "},\"=\":[";
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out += ',';
      writeRow(*list[i].getAsObject(), columns, words, out);
    }
    out += "]}";
  }

  void writeRow(const Object &object, llvm::ArrayRef<StringRef> columns, llvm::ArrayRef<Words> words,
                std::string &out) {
    while (!columns.empty() && !object.get(columns.back())) columns = columns.drop_back();
    out += '[';
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i) out += ',';
      const Value *value = object.get(columns[i]);
      if (!value)
        out += "null";
      else if (words[i].empty())
        write(*value, out);
      else
        out += std::to_string(words[i].find(*value->getAsString())->second);
    }
    out += ']';
  }

  void write(const Value &value, std::string &out) {
    if (auto text = value.getAsString()) return writeText(*text, out);
    if (auto integer = value.getAsInteger()) {
      out += std::to_string(*integer);
      return;
    }
    if (auto number = value.getAsNumber()) return writeNumber(*number, out);
    if (auto boolean = value.getAsBoolean()) {
      out += *boolean ? "true" : "false";
      return;
    }
    if (const Array *list = value.getAsArray()) return writeList(*list, out);
    const Object *object = value.getAsObject();
    if (!object) {
      out += "null";
      return;
    }
    std::vector<StringRef> keys;
    for (const auto &[key, inner] : *object) keys.push_back(key);
    llvm::sort(keys);
    out += '{';
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i) out += ',';
      quote(keys[i], out);
      out += ':';
      write(*object->get(keys[i]), out);
    }
    out += '}';
  }

  llvm::StringMap<size_t> known_;
  std::vector<std::string> templates_;
};

} // namespace

std::string compactJson(const Value &data) { return Writer().run(data); }

} // namespace fusor::frontend
