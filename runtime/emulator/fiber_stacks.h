// Stacks for the fibers: mapped once, reused by every block and launch, each with an inaccessible page below it.
#pragma once
#include <cstddef>
#include <vector>

namespace fusor::emulator {

class FiberStacks {
public:
  struct Stack {
    void *bottom; // lowest usable address
    size_t bytes;
  };
  static FiberStacks &pool(); // of this process
  void ensure(unsigned count);
  Stack operator[](unsigned index) const { return stacks[index]; }

private:
  std::vector<Stack> stacks;
};

} // namespace fusor::emulator
