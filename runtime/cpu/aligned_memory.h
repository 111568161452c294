#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace fusor::runtime {

/// Bytes aligned to 64, zeroed; null where the machine refuses.
class AlignedMemory {
public:
  AlignedMemory() = default;
  explicit AlignedMemory(int64_t bytes) : bytes_(bytes) {
    int64_t rounded = (std::max<int64_t>(bytes, 1) + 63) / 64 * 64;
    data_.reset(static_cast<char *>(std::aligned_alloc(64, rounded)));
    if (data_) std::memset(data_.get(), 0, rounded);
  }
  char *data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

private:
  struct Free {
    void operator()(char *p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data_;
  int64_t bytes_ = 0;
};

} // namespace fusor::runtime
