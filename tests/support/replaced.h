// A text as a template: cases that differ in a type or a size.
#pragma once
#include <string>

namespace fusor::tests {

inline std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

} // namespace fusor::tests
