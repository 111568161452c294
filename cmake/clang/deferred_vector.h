// std::vector whose members are instantiated late.
//
// clang 14 instantiates a constexpr member function where it is named, and in C++20 libstdc++ 12's vector is constexpr,
// so LLVM 14's json::Array, a vector of the still incomplete json::Value, does not compile. The members here forward to
// the same vector and are not constexpr. cmake/FusorDependencies.cmake lets clang builds see JSON.h with this in place
// of its std::vector<Value>; the layout is the same. g++, and LLVM 15's header, need none of this.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace fusor_clang {

template <typename T> class DeferredVector : std::vector<T> {
  using Base = std::vector<T>;

public:
  using typename Base::const_iterator;
  using typename Base::iterator;
  DeferredVector() {}
  DeferredVector(const DeferredVector &other) : Base(other) {}
  DeferredVector(DeferredVector &&other) noexcept : Base(std::move(other)) {}
  DeferredVector &operator=(const DeferredVector &other) { return Base::operator=(other), *this; }
  DeferredVector &operator=(DeferredVector &&other) noexcept { return Base::operator=(std::move(other)), *this; }
  ~DeferredVector() {}

  T &operator[](std::size_t i) { return Base::operator[](i); }
  const T &operator[](std::size_t i) const { return Base::operator[](i); }
  T &front() { return Base::front(); }
  const T &front() const { return Base::front(); }
  T &back() { return Base::back(); }
  const T &back() const { return Base::back(); }
  T *data() { return Base::data(); }
  const T *data() const { return Base::data(); }
  iterator begin() { return Base::begin(); }
  const_iterator begin() const { return Base::begin(); }
  iterator end() { return Base::end(); }
  const_iterator end() const { return Base::end(); }
  bool empty() const { return Base::empty(); }
  std::size_t size() const { return Base::size(); }
  void reserve(std::size_t size) { Base::reserve(size); }
  void clear() { Base::clear(); }
  void push_back(const T &element) { Base::push_back(element); }
  void push_back(T &&element) { Base::push_back(std::move(element)); }
  template <typename... Args> void emplace_back(Args &&...args) { Base::emplace_back(std::forward<Args>(args)...); }
  void pop_back() { Base::pop_back(); }
  iterator insert(iterator at, const T &element) { return Base::insert(at, element); }
  iterator insert(iterator at, T &&element) { return Base::insert(at, std::move(element)); }
  template <typename It> iterator insert(iterator at, It first, It last) { return Base::insert(at, first, last); }
  template <typename... Args> iterator emplace(const_iterator at, Args &&...args) {
    return Base::emplace(at, std::forward<Args>(args)...);
  }
  friend bool operator==(const DeferredVector &a, const DeferredVector &b) {
    return static_cast<const Base &>(a) == static_cast<const Base &>(b);
  }
};

} // namespace fusor_clang
