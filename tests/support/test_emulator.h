// The emulator with the build's folder of compiled kernels, which all tests share.
#pragma once
#include "runtime/emulator/emulator.h"

namespace fusor::tests {

inline emulator::Emulator testEmulator() { return emulator::Emulator(FUSOR_BINARY_DIR "/emulator-cache"); }

} // namespace fusor::tests
