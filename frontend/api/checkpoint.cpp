#include "frontend/api/checkpoint.h"
#include "frontend/api/errors.h"
#include "frontend/api/fp8_weights.h"
#include "runtime/checkpoint/file_error.h"
#include "runtime/checkpoint/safetensors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace fusor::frontend {
namespace {

namespace fs = llvm::sys::fs;
using llvm::StringRef;

constexpr const char *kModel = "model.safetensors", *kOptimizer = "optimizer.safetensors", *kFp8 = "fp8.safetensors",
                     *kInfo = "checkpoint.json";
constexpr const char *kFiles[] = {kModel, kOptimizer, kFp8, kInfo};

std::string inFolder(StringRef folder, StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}
std::string nextOf(StringRef folder) { return inFolder(folder, ".next"); }

/// The file as a reader must see it: that of a save that was committed but not yet moved, else the folder's own.
std::string currentFile(StringRef folder, StringRef name) {
  std::string next = inFolder(nextOf(folder), name);
  return fs::exists(next) ? next : inFolder(folder, name);
}

llvm::Error cannotWrite(StringRef path, std::error_code code) {
  return llvm::make_error<runtime::FileError>(runtime::FileError::Action::Write, path, code);
}

llvm::Error syncFolder(StringRef folder) {
  int descriptor = open(folder.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return runtime::writeError(folder, errno);
  int failed = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  return failed ? runtime::writeError(folder, failed) : llvm::Error::success();
}

/// Moves the files of a committed save to their places.
llvm::Error finishSave(StringRef folder) {
  std::string next = nextOf(folder);
  if (!fs::exists(next)) return llvm::Error::success();
  // A run that had FP8 state leaves its file behind; a checkpoint without any must not be read with it.
  for (const char *name : {kFp8, kOptimizer})
    if (fs::exists(inFolder(next, kModel)) && !fs::exists(inFolder(next, name))) fs::remove(inFolder(folder, name));
  for (const char *name : kFiles) {
    std::string from = inFolder(next, name), to = inFolder(folder, name);
    if (!fs::exists(from)) continue;
    if (std::error_code code = fs::rename(from, to)) return cannotWrite(to, code);
  }
  if (std::error_code code = fs::remove(next)) return cannotWrite(next, code);
  return syncFolder(folder);
}

/// Zero between steps, so not part of a checkpoint.
bool isAccumulator(StringRef name) { return name.startswith("accum."); }

const char *fileOf(const ir::Persistent &p) {
  if (p.kind == ir::PersistentKind::param) return kModel;
  if (p.kind != ir::PersistentKind::state || isAccumulator(p.name)) return nullptr;
  return isFp8State(p.name) ? kFp8 : kOptimizer;
}

std::vector<const char *> filesOf(CheckpointParts parts) {
  std::vector<const char *> files{kModel};
  if (parts.states) files.push_back(kOptimizer);
  if (parts.fp8) files.push_back(kFp8);
  return files;
}

llvm::Error writeTensors(runtime::Program &program, StringRef folder, const char *file,
                         const runtime::Metadata &metadata) {
  std::vector<runtime::TensorInfo> infos;
  for (const auto &p : program.module().persistents()) {
    if (fileOf(*p) != file) continue;
    auto type = program.persistentType(p->name);
    if (!type) return type.takeError();
    infos.push_back({p->name, type->dtype, type->shape});
  }
  if (infos.empty() && file == kFp8) return llvm::Error::success();
  auto writer = runtime::SafetensorsWriter::create(inFolder(folder, file), infos, metadata);
  if (!writer) return writer.takeError();
  std::vector<char> bytes;
  for (const runtime::TensorInfo &info : infos) {
    bytes.resize(*runtime::tensorBytes(info.dtype, info.shape));
    if (auto error = program.readPersistent(info.name, bytes)) return error;
    if (auto error = writer->write(info.name, {reinterpret_cast<uint8_t *>(bytes.data()), bytes.size()})) return error;
  }
  return writer->commit();
}

llvm::Error writeAll(runtime::Program &program, StringRef folder, llvm::json::Object info, CheckpointParts parts) {
  runtime::Metadata metadata{{"format", "pt"}, {"format_version", std::to_string(kCheckpointVersion)}};
  for (const char *key : {"step", "seed", "recipe"})
    if (const llvm::json::Value *value = info.get(key)) metadata[key] = llvm::formatv("{0}", *value).str();
  for (const char *file : filesOf(parts))
    if (auto error = writeTensors(program, folder, file, metadata)) return error;
  info["format_version"] = kCheckpointVersion;
  if (runtime::GemmPlans plans = program.gemmPlans(); !plans.text.empty()) {
    llvm::json::Object text;
    for (const auto &[shape, plan] : plans.text) text[shape] = plan;
    info["gemm_plans"] = llvm::json::Object{{"environment", plans.environment}, {"plans", std::move(text)}};
  }
  auto json = runtime::AtomicFile::create(inFolder(folder, kInfo));
  if (!json) return json.takeError();
  if (auto error = json->write(StringRef(llvm::formatv("{0:2}\n", llvm::json::Value(std::move(info))).str())))
    return error;
  return json->commit();
}

/// Copies a tensor of a file into a persistent value; the shape must agree, float types are converted. `inverse`: 1 /
/// scale of what the file has in FP8.
llvm::Error fill(runtime::Program &program, const ir::Persistent &p, const runtime::SafetensorsFile::Tensor &tensor,
                 std::string &mismatches, float inverse = 1) {
  auto type = program.persistentType(p.name);
  if (!type) return type.takeError();
  bool convertible = tensor.info.dtype == type->dtype || (ir::isFloat(tensor.info.dtype) && ir::isFloat(type->dtype));
  if (tensor.info.shape != type->shape || !convertible) {
    mismatches += llvm::formatv("\n  '{0}' is {1}{2} in the file, {3} in the model", p.name,
                                ir::name(tensor.info.dtype), runtime::shapeText(tensor.info.shape), type->typeText());
    return llvm::Error::success();
  }
  std::vector<char> bytes(type->bytes());
  if (passes::isFp8Weight(program.module(), p)) {
    if (tensor.info.dtype == type->dtype)
      return writeFp8Weight(program, p.name, {{tensor.bytes.begin(), tensor.bytes.end()}, inverse});
    return writeFp8Weight(program, p.name, quantiseWeight(tensor.info.dtype, tensor.bytes.data(), type->elements()));
  }
  if (inverse != 1)
    for (int64_t i = 0, n = type->elements(); i < n; ++i)
      ir::storeElement(type->dtype, bytes.data(), i,
                       static_cast<float>(ir::loadElement(tensor.info.dtype, tensor.bytes.data(), i)) * inverse);
  else if (tensor.info.dtype == type->dtype)
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), bytes.begin());
  else
    for (int64_t i = 0, n = type->elements(); i < n; ++i)
      ir::storeElement(type->dtype, bytes.data(), i, ir::loadElement(tensor.info.dtype, tensor.bytes.data(), i));
  return program.writePersistent(p.name, bytes);
}

/// What is not as saveCheckpoint writes it is left out: then algorithms are chosen anew.
void adoptPlans(runtime::Program &program, StringRef folder) {
  auto info = readCheckpointInfo(folder);
  if (!info) return llvm::consumeError(info.takeError());
  const llvm::json::Object *kept = info->getObject("gemm_plans");
  const llvm::json::Object *text = kept ? kept->getObject("plans") : nullptr;
  if (!text) return;
  runtime::GemmPlans plans{kept->getString("environment").getValueOr("").str(), {}};
  for (const auto &[shape, plan] : *text) plans.text[shape.str()] = plan.getAsString().getValueOr("").str();
  program.adoptGemmPlans(plans);
}

llvm::Error fillParameters(runtime::Program &program, const runtime::SafetensorsFile &file, StringRef path) {
  std::string problems;
  const ir::Module &module = program.module();
  for (const auto &p : module.persistents()) {
    if (p->kind != ir::PersistentKind::param) continue;
    StringRef weight = p->name;
    if (weight.consume_back(".scale_inv"))
      if (const ir::Persistent *of = module.persistent(weight); of && passes::isFp8Weight(module, *of))
        continue; // written with its weight
    if (const auto *tensor = file.find(p->name)) {
      float inverse = 1;
      if (tensor->info.dtype == ir::DType::f8e4m3) {
        const auto *scale = file.find(passes::weightInverseName(p->name));
        if (!scale || scale->info.dtype != ir::DType::f32 || scale->bytes.size() != sizeof(inverse)) {
          problems += llvm::formatv("\n  '{0}' is in FP8 in the file, without {1} (F32, one element)", p->name,
                                    passes::weightInverseName(p->name));
          continue;
        }
        std::memcpy(&inverse, scale->bytes.data(), sizeof(inverse));
      }
      if (auto error = fill(program, *p, *tensor, problems, inverse)) return error;
    } else {
      problems += llvm::formatv("\n  '{0}' is not in the file", p->name);
    }
  }
  if (problems.empty()) return llvm::Error::success();
  return inputError("'{0}' does not fit the model:{1}", path, problems);
}

} // namespace

bool isFp8State(StringRef name) { return name.endswith(".scale") || name.endswith(".amax_history"); }

llvm::Error saveCheckpoint(runtime::Program &program, StringRef folder, llvm::json::Object info,
                           CheckpointParts parts) {
  if (std::error_code code = fs::create_directories(folder)) return cannotWrite(folder, code);
  if (auto error = finishSave(folder)) return error;
  std::string temporary = inFolder(folder, ".next.tmp");
  fs::remove_directories(temporary);
  if (std::error_code code = fs::create_directory(temporary)) return cannotWrite(temporary, code);
  llvm::Error error = writeAll(program, temporary, std::move(info), parts);
  if (!error) error = syncFolder(temporary);
  if (!error)
    if (std::error_code code = fs::rename(temporary, nextOf(folder))) error = cannotWrite(folder, code);
  if (error) {
    fs::remove_directories(temporary);
    return error;
  }
  return finishSave(folder);
}

llvm::Expected<llvm::json::Object> readCheckpointInfo(StringRef folder) {
  std::string path = currentFile(folder, kInfo);
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!text)
    return inputError("'{0}' is no checkpoint: cannot read {1}: {2}", folder, kInfo, text.getError().message());
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json) return inputError("{0}: {1}", path, llvm::toString(json.takeError()));
  const llvm::json::Object *object = json->getAsObject();
  auto version = object ? object->getInteger("format_version") : llvm::None;
  if (!version) return inputError("{0}: has no \"format_version\", so it is no checkpoint of Fusor", path);
  if (*version != kCheckpointVersion)
    return inputError("{0}: has format version {1}, this Fusor reads {2}", path, *version, kCheckpointVersion);
  return *object;
}

llvm::Error loadCheckpoint(runtime::Program &program, StringRef folder, CheckpointParts parts,
                           std::vector<std::string> *missing) {
  std::string path = currentFile(folder, kModel);
  auto model = runtime::SafetensorsFile::open(path);
  if (!model) return model.takeError();
  if (auto error = fillParameters(program, *model, path)) return error;
  if (parts.states) adoptPlans(program, folder);
  std::string problems;
  for (const char *name : filesOf(parts)) {
    if (name == kModel) continue;
    path = currentFile(folder, name);
    std::optional<runtime::SafetensorsFile> file;
    if (fs::exists(path)) {
      auto opened = runtime::SafetensorsFile::open(path);
      if (!opened) return opened.takeError();
      file = std::move(*opened);
    }
    for (const auto &p : program.module().persistents()) {
      if (fileOf(*p) != name) continue;
      const auto *tensor = file ? file->find(p->name) : nullptr;
      if (!tensor) {
        if (missing) missing->push_back(p->name);
        continue;
      }
      if (auto error = fill(program, *p, *tensor, problems)) return error;
    }
  }
  return problems.empty() ? llvm::Error::success() : inputError("'{0}' does not fit the program:{1}", folder, problems);
}

llvm::Error loadParameters(runtime::Program &program, StringRef path) {
  auto file = runtime::SafetensorsFile::open(path);
  if (!file) return file.takeError();
  return fillParameters(program, *file, path);
}

} // namespace fusor::frontend
