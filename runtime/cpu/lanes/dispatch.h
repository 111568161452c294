// The kernels of the instruction set at hand.
#pragma once
#include "runtime/cpu/isa.h"
#include "runtime/cpu/lanes/kernels.h"

namespace fusor::runtime::lanes {

const Kernels &kernelsFor(Isa isa);

} // namespace fusor::runtime::lanes
