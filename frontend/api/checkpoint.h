// Checkpoint folders: model.safetensors (params), optimizer.safetensors (states), fp8.safetensors (FP8 scales and
// histories), checkpoint.json.
//
// A save is complete or not there: the new files are written into FOLDER/.next.tmp, which is renamed to FOLDER/.next
// (the moment the new checkpoint counts) and emptied into FOLDER. A reader takes each file from .next where it is
// there, so a crash between two renames loses nothing, and a full disk leaves the old checkpoint as it was.
#pragma once
#include "runtime/execute/program.h"
#include "llvm/Support/JSON.h"

namespace fusor::frontend {

inline constexpr int64_t kCheckpointVersion = 1;

/// What of a program's persistent values: params, FP8 scales and histories, all other states.
struct CheckpointParts {
  bool fp8 = true, states = true;
};

/// Params and states of `program`, and `info` as checkpoint.json, to which "format_version" is added; its "step",
/// "seed" and "recipe" go into the metadata of the tensor files too; "gemm_plans" are the program's. Errors: FileError
/// (write); the old checkpoint is intact.
llvm::Error saveCheckpoint(runtime::Program &program, llvm::StringRef folder, llvm::json::Object info,
                           CheckpointParts parts = {});

/// The checkpoint.json of a folder: an object with "format_version" of this version.
llvm::Expected<llvm::json::Object> readCheckpointInfo(llvm::StringRef folder);

/// Fills params and `parts` from a folder; with states the program adopts its GEMM plans too. A param that is missing
/// or has another shape is an error, all of them at once. A state that is missing keeps its value; its name is added to
/// `missing`. Weights in FP8 become what the program has and the other way round, see fp8_weights.h.
llvm::Error loadCheckpoint(runtime::Program &program, llvm::StringRef folder, CheckpointParts parts,
                           std::vector<std::string> *missing = nullptr);

/// "blocks.0.qkv.input.scale": in fp8.safetensors.
bool isFp8State(llvm::StringRef name);

/// Fills the params from one safetensors file, other float types converted.
llvm::Error loadParameters(runtime::Program &program, llvm::StringRef file);

} // namespace fusor::frontend
