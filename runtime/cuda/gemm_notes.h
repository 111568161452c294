// What the user should know about a program's products, in its CompileStats.
#pragma once
#include "runtime/cuda/device_code.h"
#include "runtime/cuda/gemm_choice.h"

namespace fusor::runtime {

/// Products of which `why` gives a reason run as own kernels: counted, and said once. `where`: "@train_step with B=5".
void noteOwnGemms(CompileStats &stats, const llvm::Twine &where, llvm::ArrayRef<DeviceCode> codes,
                  llvm::function_ref<std::string(const DeviceCode &)> why);

/// How many algorithms were measured, and what the chooser had to say.
void noteGemmChoices(CompileStats &stats, const GemmChoices &choices);

} // namespace fusor::runtime
