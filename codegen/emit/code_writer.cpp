#include "codegen/emit/code_writer.h"

namespace fusor::codegen {

namespace {
constexpr unsigned kMargin = 80;
}

void CodeWriter::raw(llvm::StringRef line) {
  if (!line.empty()) text_.append(indent_, ' ').append(line.begin(), line.end());
  text_ += '\n';
}

void CodeWriter::noted(llvm::StringRef line, llvm::StringRef note) {
  std::string text = line.str();
  unsigned width = indent_ + text.size();
  text.append(width + 2 < kMargin ? kMargin - width : 2, ' ');
  raw(text + "// " + note.str());
}

CodeWriter::Block CodeWriter::open(llvm::StringRef head, llvm::StringRef close) {
  raw(head.empty() ? std::string("{") : head.str() + " {");
  indent_ += 2;
  return Block(this, close.str());
}

void CodeWriter::Block::end() {
  if (!writer_) return;
  writer_->indent_ -= 2;
  writer_->raw(close_);
  writer_ = nullptr;
}

} // namespace fusor::codegen
