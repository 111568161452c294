#define FUSOR_ISA baseline
#include "runtime/cpu/gemm/kernel_eigen.inc"
