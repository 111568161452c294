#define FUSOR_ISA avx512
#include "runtime/cpu/gemm/kernel_eigen.inc"
