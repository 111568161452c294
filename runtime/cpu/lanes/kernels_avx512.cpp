#define FUSOR_ISA avx512
#include "runtime/cpu/lanes/kernels.inc"
