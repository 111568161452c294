#define FUSOR_ISA avx2
#include "runtime/cpu/gemm/kernel_eigen.inc"
