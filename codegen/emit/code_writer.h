// Writes indented C: line(), and block() whose closing brace is written when it goes out of scope.
//
//   auto loop = w.block("for (i64 i = {0}; i < {1}; ++i)", first, count);
//   w.line("store({0} + i, {1});", out, value);
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>

namespace fusor::codegen {

class CodeWriter {
public:
  explicit CodeWriter(unsigned indent = 0) : indent_(indent) {}

  /// Appends a line as it is, indented. An empty one stays empty.
  void raw(llvm::StringRef line);
  template <typename... Args> void line(const char *format, Args &&...args) {
    raw(llvm::formatv(format, std::forward<Args>(args)...).str());
  }
  /// `line` with its note in the margin: "float x8[8];          // [8] elements of a row".
  void noted(llvm::StringRef line, llvm::StringRef note);

  class Block {
  public:
    Block(Block &&other) noexcept : writer_(other.writer_), close_(std::move(other.close_)) { other.writer_ = nullptr; }
    Block(const Block &) = delete;
    ~Block() { end(); }
    /// Closes it now.
    void end();

  private:
    friend class CodeWriter;
    Block(CodeWriter *writer, std::string close) : writer_(writer), close_(std::move(close)) {}
    CodeWriter *writer_;
    std::string close_;
  };
  /// "head {", deeper indent until the Block ends.
  template <typename... Args> [[nodiscard]] Block block(const char *format, Args &&...args) {
    return open(llvm::formatv(format, std::forward<Args>(args)...).str());
  }
  [[nodiscard]] Block open(llvm::StringRef head, llvm::StringRef close = "}");

  /// Text that has its indentation already.
  void append(llvm::StringRef text) { text_ += text; }
  unsigned indent() const { return indent_; }
  llvm::StringRef text() const { return text_; }
  bool empty() const { return text_.empty(); }

private:
  unsigned indent_;
  std::string text_;
};

} // namespace fusor::codegen
