#include "passes/rewrite/pattern.h"

namespace fusor::passes {

Pattern Pattern::as(llvm::StringRef name) const {
  Pattern copy = *this;
  copy.name_ = name.str();
  return copy;
}

Pattern any(llvm::StringRef name) { return Pattern().as(name); }

Pattern number(double value) {
  Pattern p;
  p.kind_ = Pattern::Kind::number;
  p.value_ = value;
  return p;
}

Pattern constant(llvm::StringRef name) {
  Pattern p = any(name);
  p.kind_ = Pattern::Kind::constant;
  return p;
}

Pattern op(llvm::StringRef opName) {
  Pattern p;
  p.kind_ = Pattern::Kind::op;
  p.opName_ = opName.str();
  return p;
}

Pattern op(llvm::StringRef opName, std::vector<Pattern> operands) {
  Pattern p = op(opName);
  p.operands_ = std::make_shared<const std::vector<Pattern>>(std::move(operands));
  return p;
}

Pattern elementwise() {
  Pattern p;
  p.kind_ = Pattern::Kind::elementwise;
  return p;
}

Pattern once(Pattern pattern) {
  pattern.once_ = true;
  return pattern;
}

} // namespace fusor::passes
