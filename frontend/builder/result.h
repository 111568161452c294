// What can go wrong, as a value. Nothing in Fusor's interface throws or exits.
//   auto program = fusor::compile(module, device);
//   if (!program) return fusor::report(program.error());
#pragma once
#include <string>
#include <utility>
#include <variant>

#define FUSOR_API __attribute__((visibility("default")))

namespace fusor {

/// Whose fault it is. The number is the exit code of a program that ends with it.
enum class ErrorKind : unsigned char {
  none = 0,
  input = 1,        ///< the caller's module, file or value is wrong
  usage = 64,       ///< the command line is wrong, or asks for what is not there yet
  device = 69,      ///< a device or library is missing or failed
  bug = 70,         ///< ours
  output = 74,      ///< a file could not be written: disk full, no permission
  memory = 75,      ///< out of memory
  interrupted = 130 ///< Ctrl-C, after saving what was to be saved
};

/// A diagnostic: "model.cpp:12: error: 'add' operands must broadcast ...". Converts to true where there is an error.
class FUSOR_API Error {
public:
  Error() = default;
  Error(ErrorKind kind, std::string text) : kind_(kind), text_(std::move(text)) {}
  explicit operator bool() const { return kind_ != ErrorKind::none; }
  ErrorKind kind() const { return kind_; }
  /// One diagnostic a line, each with its place in front.
  const std::string &text() const { return text_; }
  int exitCode() const { return static_cast<int>(kind_); }

private:
  ErrorKind kind_ = ErrorKind::none;
  std::string text_;
};

/// A value or an Error.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return held_.index() == 0; }
  T &operator*() & { return std::get<0>(held_); }
  T &&operator*() && { return std::get<0>(std::move(held_)); }
  const T &operator*() const & { return std::get<0>(held_); }
  T *operator->() { return &std::get<0>(held_); }
  const T *operator->() const { return &std::get<0>(held_); }
  /// No error where there is a value.
  Error error() const { return held_.index() == 0 ? Error() : std::get<1>(held_); }

private:
  std::variant<T, Error> held_;
};

/// Prints `error` to stderr, as "error: TEXT" where it has no place; returns the exit code, 0 where there is none.
FUSOR_API int report(const Error &error);

} // namespace fusor
