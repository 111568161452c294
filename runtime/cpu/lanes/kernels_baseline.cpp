#define FUSOR_ISA baseline
#include "runtime/cpu/lanes/kernels.inc"
