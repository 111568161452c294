// AddressSanitizer, where the tests are built with it; nothing otherwise.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FUSOR_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUSOR_EMULATOR_ASAN 1
#endif
#endif
#ifndef FUSOR_EMULATOR_ASAN
#define FUSOR_EMULATOR_ASAN 0
#endif

#if FUSOR_EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace fusor::emulator {

inline constexpr bool kAddressSanitizer = FUSOR_EMULATOR_ASAN;
// What UBSan checks with type information, which is left out here.
#ifdef __clang__
inline constexpr const char *kWithoutTypes = "-fno-sanitize=vptr,function";
#else
inline constexpr const char *kWithoutTypes = "-fno-sanitize=vptr";
#endif

#if FUSOR_EMULATOR_ASAN
inline void poison(const void *p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void unpoison(const void *p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
// Around a switch of stacks. `ownFake` keeps the leaving fiber's fake stack; null: the fiber ends and it is freed.
inline void beforeSwitch(void **ownFake, const void *bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(ownFake, bottom, bytes);
}
inline void afterSwitch(void *ownFake, const void **fromBottom, size_t *fromBytes) {
  __sanitizer_finish_switch_fiber(ownFake, fromBottom, fromBytes);
}
#else
inline void poison(const void *, size_t) {}
inline void unpoison(const void *, size_t) {}
inline void beforeSwitch(void **, const void *, size_t) {}
inline void afterSwitch(void *, const void **, size_t *) {}
#endif

} // namespace fusor::emulator
