// Model configurations by name or from FILE.json, and back to JSON for checkpoints.
#pragma once
#include "frontend/nn/modules.h"
#include "llvm/Support/JSON.h"

namespace fusor::frontend {

/// "tiny", or the path of a file {"vocab":…,"width":…,"heads":…,"layers":…,"ffn":…,"context":…}. The error lists the
/// names, or says which key of the file is missing, unknown or wrong. What it returns makes a model.
llvm::Expected<nn::GptConfig> loadConfig(llvm::StringRef nameOrFile);

llvm::json::Object toJson(const nn::GptConfig &config);
/// `where` begins the error's text.
llvm::Expected<nn::GptConfig> configFromJson(const llvm::json::Object &object, llvm::StringRef where);

} // namespace fusor::frontend
