// A function with all sizes known, and then with all addresses known: its memory plan, and what is put on the stream.
//
//   makeDeviceBucket   sizes: the plan, which steps there are, how much workspace; needs no device memory
//   bind()             addresses: argument blocks, tables of multi-tensor kernels, GEMM plans; again when a shared
//   buffer moved
#pragma once
#include "passes/memory/memory_plan.h"
#include "runtime/cuda/device_buffers.h"
#include "runtime/cuda/device_code.h"
#include "runtime/cuda/gemm_choice.h"
#include "runtime/execute/program.h"

namespace fusor::runtime {

/// One thing on the stream.
struct DeviceLaunch {
  enum class Kind : uint8_t { kernel, gemm, copy, host } kind = Kind::kernel;
  static constexpr unsigned kBehindAllSteps = ~0u;
  unsigned step = 0; // number in the bucket; or kBehindAllSteps
  std::string name;
  unsigned kernel = 0; // number among the program's
  CudaFunctionHandle function = nullptr;
  LaunchShape shape;
  llvm::SmallVector<uint64_t, 12> arguments;
  unsigned gemm = 0;              // number in DeviceBucket::gemms
  DevicePointer to = 0, from = 0; // copy
  int64_t bytes = 0;
};

/// The caller's side of a run: pinned memory for its inputs and results, laid out as DeviceBucket::io.
struct HostSide {
  PinnedMemory memory;
  CudaGraph graph; // a whole run: the inputs' copy, the launches, the results' copy
  CudaEvent done;  // behind all of these
  bool isInFlight = false;
};

class DeviceBucket {
public:
  struct Step {
    const DeviceCode *code = nullptr;
    llvm::SmallVector<unsigned, 8> inputs, outputs; // buffers of the plan
    int64_t bytes = 0;                              // read and written once
    double flops = 0;                               // of products
  };

  ir::SymbolValues symbols;
  passes::MemoryPlan memory;
  std::vector<Step> steps;
  std::vector<char> constants; // on the host
  int64_t workspaceBytes = 0;

  // The caller's inputs and outputs on the device: one buffer, one copy each way.
  llvm::SmallVector<int64_t, 8> inputOffsets, inputBytes, outputOffsets, outputBytes;
  int64_t inputTotal = 0, ioTotal = 0; // inputs are in [0, inputTotal), outputs in [inputTotal, ioTotal)
  DeviceMemory io;
  HostSide sides[Program::kMostAhead]; // in turn: the host fills one, or two, while the device works on another
  unsigned turn = 0;

  // With addresses.
  unsigned boundTo = 0; // DeviceBuffers::version
  std::vector<DeviceLaunch> launches;
  std::vector<CublasLt::Plan> gemms;
  CudaGraph graph, timedGraph;   // the launches alone; the latter with an event before, between and behind them
  std::vector<CudaEvent> events; // of timedGraph
  bool ranOnce = false;

  bool hasHostSteps() const;
  DevicePointer address(const passes::Place &place, const DeviceBuffers &shared) const;
  /// Allocates what is the bucket's own, and fills `launches`. `gemm` may be null where no step needs it.
  llvm::Error bind(const CudaContextRef &context, const CudaStream &stream, const DeviceBuffers &shared,
                   llvm::ArrayRef<DeviceKernels::Kernel> kernels, GemmChooser *gemm);

private:
  llvm::Error bindStep(unsigned number, llvm::ArrayRef<DevicePointer> at, const DeviceBuffers &shared,
                       llvm::ArrayRef<DeviceKernels::Kernel> kernels);
  llvm::Error bindGemm(unsigned number, llvm::ArrayRef<DevicePointer> at, llvm::ArrayRef<DevicePointer> workspaces,
                       const CudaStream &stream, const DeviceBuffers &shared, GemmChooser &chooser);
  llvm::SmallVector<DevicePointer, 4> workspacesOf(const Step &step, const DeviceBuffers &shared) const;
  llvm::Error bindTables(llvm::ArrayRef<DevicePointer> at, const CudaContextRef &context, const CudaStream &stream);
  DeviceMemory constantMemory_, tables_;
  std::vector<DevicePointer> tableOf_; // by step: pointers, sizes and chunks one after another
};

/// Plans `function`, whose ops have the given code. Errors name what has no size.
llvm::Expected<std::unique_ptr<DeviceBucket>>
makeDeviceBucket(const ir::Function &function, llvm::ArrayRef<DeviceCode> codes, const ir::SymbolValues &symbols);

} // namespace fusor::runtime
