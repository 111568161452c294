#define FUSOR_ISA avx2
#include "runtime/cpu/lanes/kernels.inc"
