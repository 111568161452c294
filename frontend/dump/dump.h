// A whole dump folder: what compileModule wrote into it, and what there is to say about a function that ran.
//
//   auto folder = DumpFolder::create("d");                        // before anything runs
//   CompileRequest request(settings); request.dumpFolder = folder->path();
//   auto compiled = compileModule(...);                           // modules/, fusions.json
//   ... runs ...
//   dumpRun(*folder, *compiled, device, settings, run);           // all other files; runs the function a few times
//   finishDump(*folder);                                          // the page, and all of it to its place
#pragma once
#include "frontend/api/compile_module.h"
#include "frontend/bench/step_profile.h"
#include "frontend/dump/dump_folder.h"

namespace fusor::frontend {

/// The folder of --dump, where there is to be one; then `settings` write into it from now on. Errors: DumpFolder's.
llvm::Expected<std::optional<DumpFolder>> beginDump(DeviceSettings &settings);

/// The run that is described.
struct DumpedRun {
  std::string verb, config, precision; // "train", "seed" or a module's file, "bf16"
  std::string function;                // what ran: "train_step"
  llvm::ArrayRef<runtime::TensorView> inputs, outputs;
  double stepMs = 0;                       // a run's time as its caller saw it, median; 0: it is measured now
  std::optional<StepProfile> profile = {}; // measured already; else it is now
};

/// Writes kernels/, steps.json, plan.json, gemms.json, trace.json and dump.json. `inputs` must still be there: the
/// function runs a few times more, so states go on. Errors: FileError (write), and what a run may fail with.
llvm::Error dumpRun(const DumpFolder &folder, Compiled &compiled, const ChosenDevice &device,
                    const DeviceSettings &settings, const DumpedRun &run);

/// Adds the folder's page (report.html) and commits it. Where no page can be made of what is in it, the folder is put
/// in place without one, and the error says why.
llvm::Error finishDump(DumpFolder &folder);

} // namespace fusor::frontend
