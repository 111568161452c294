// Runs the threads of one block at a time as fibers. See emulator.h for the order of turns.
#pragma once

#include "runtime/emulator/emulator.h"

namespace fusor::emulator {

// The hooks to be stored into a library's `fusor_emulator_hooks`.
const Hooks &schedulerHooks();

// Runs all blocks of `shape`. `kernel` is a library's trampoline, `lane` its `fusor_emulator_lane`.
llvm::Error runGrid(llvm::StringRef name, void (*kernel)(void **), void **arguments, const LaunchShape &shape,
                    Lane **lane);

} // namespace fusor::emulator
