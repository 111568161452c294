// needs: types.cuh
// Copies from device to shared memory in the background (sm_80 and later).

#ifndef FUSOR_EMULATOR // which has these functions under the same names: runtime/emulator/shim_mma.h
__device__ inline u32 sharedAddress(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// 16 aligned bytes from device to shared memory, in the background; zeros where they do not exist (`from` is not read).
__device__ inline void copyAsync16(void *to, const void *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
// The same for 4 bytes.
__device__ inline void copyAsync4(void *to, const void *from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"(exists ? 4 : 0)
               : "memory");
}
// The copies since the last commit become a group; this thread waits until at most kInFlight newest groups are missing.
// Other threads see them behind a barrier.
__device__ inline void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kInFlight> __device__ inline void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kInFlight) : "memory");
}
#endif
