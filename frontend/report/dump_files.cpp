#include "frontend/report/dump_files.h"
#include "frontend/api/errors.h"
#include "frontend/text/parser.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>

namespace fusor::frontend {
namespace {

using llvm::StringRef;

std::string inside(StringRef folder, const llvm::Twine &name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// The bytes of a file; absent where there is none.
llvm::Expected<std::optional<std::string>> textOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (buffer) return std::optional((*buffer)->getBuffer().str());
  // "d/absent.json" and "a.txt/absent.json"
  if (buffer.getError() == std::errc::no_such_file_or_directory || buffer.getError() == std::errc::not_a_directory)
    return std::optional<std::string>();
  return runtime::readError(path, buffer.getError().value());
}

/// The parser of LLVM is recursive: brackets are counted before it sees the text.
bool nestsTooDeeply(StringRef text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

StringRef kindOf(const llvm::json::Value &value) {
  switch (value.kind()) {
  case llvm::json::Value::Object: return "an object";
  case llvm::json::Value::Array: return "an array";
  case llvm::json::Value::String: return "a string";
  case llvm::json::Value::Number: return "a number";
  case llvm::json::Value::Boolean: return "a boolean";
  case llvm::json::Value::Null: return "null";
  }
  return "";
}

/// A file that holds one object; absent where there is no file.
llvm::Expected<std::optional<llvm::json::Object>> objectOf(const std::string &path) {
  auto text = textOf(path);
  if (!text) return text.takeError();
  if (!*text) return std::optional<llvm::json::Object>();
  auto value = parseJson(**text, path);
  if (!value) return value.takeError();
  if (!value->getAsObject()) return inputError("{0}: expected an object, found {1}", path, kindOf(*value));
  return std::optional(std::move(*value->getAsObject()));
}

/// A file that holds an array of objects; absent where there is no file.
llvm::Expected<std::optional<llvm::json::Array>> objectsOf(const std::string &path) {
  auto text = textOf(path);
  if (!text) return text.takeError();
  if (!*text) return std::optional<llvm::json::Array>();
  auto value = parseJson(**text, path);
  if (!value) return value.takeError();
  if (!value->getAsArray()) return inputError("{0}: expected an array of objects, found {1}", path, kindOf(*value));
  size_t index = 0;
  for (const llvm::json::Value &entry : *value->getAsArray()) {
    if (!entry.getAsObject())
      return inputError("{0}: entry {1}: expected an object, found {2}", path, index, kindOf(entry));
    ++index;
  }
  return std::optional(std::move(*value->getAsArray()));
}

llvm::Expected<std::optional<std::vector<llvm::json::Object>>> linesOf(const std::string &path) {
  auto text = textOf(path);
  if (!text) return text.takeError();
  if (!*text) return std::optional<std::vector<llvm::json::Object>>();
  std::vector<llvm::json::Object> lines;
  llvm::SmallVector<StringRef, 0> parts;
  StringRef(**text).split(parts, '\n');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].trim().empty()) continue;
    std::string place = path + ":" + std::to_string(i + 1);
    auto value = parseJson(parts[i], place);
    if (!value) return value.takeError();
    if (!value->getAsObject()) return inputError("{0}: expected an object, found {1}", place, kindOf(*value));
    lines.push_back(std::move(*value->getAsObject()));
  }
  return std::optional(std::move(lines));
}

/// Names of the entries of a folder that pass `wanted`, sorted; none where there is no such folder.
llvm::Expected<std::vector<std::string>> entriesOf(const std::string &path, bool folders) {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(path, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::fs::is_directory(it->path()) == folders)
      names.push_back(llvm::sys::path::filename(it->path()).str());
  if (code && code != std::errc::no_such_file_or_directory) return runtime::readError(path, code.value());
  std::sort(names.begin(), names.end());
  return names;
}

llvm::Error checkFormat(const llvm::json::Object &run, const std::string &path) {
  auto format = run.getInteger("format");
  if (!format) return inputError("{0}: expected \"format\", the number of the folder's format, found none", path);
  if (*format > kDumpFormat)
    return inputError("{0}: format {1} is newer than this fusor reads ({2}): use the fusor that wrote it", path,
                      *format, kDumpFormat);
  if (*format < 1) return inputError("{0}: format {1}: expected 1 to {2}", path, *format, kDumpFormat);
  return llvm::Error::success();
}

llvm::Expected<std::vector<DumpedKernel>> kernelsOf(const std::string &path) {
  auto names = entriesOf(path, /*folders=*/true);
  if (!names) return names.takeError();
  std::vector<DumpedKernel> kernels;
  for (const std::string &name : *names) {
    auto about = objectOf(inside(path, name + "/kernel.json"));
    if (!about) return about.takeError();
    auto source = textOf(inside(path, name + "/kernel.cu"));
    if (!source) return source.takeError();
    if (*about || *source)
      kernels.push_back({name, *about ? std::move(**about) : llvm::json::Object(), source->value_or("")});
  }
  return kernels;
}

} // namespace

llvm::Expected<llvm::json::Value> parseJson(StringRef text, StringRef fileName) {
  if (nestsTooDeeply(text)) return inputError("{0}: more than 64 brackets inside each other", fileName);
  auto value = llvm::json::parse(text);
  if (value) return value;
  std::string why = llvm::toString(value.takeError());
  return inputError("{0}: damaged or cut short, it is no JSON from {1} on; write the dump again with --dump", fileName,
                    StringRef(why).trim());
}

llvm::Expected<DumpFiles> readDump(StringRef path) {
  DumpFiles folder;
  folder.path = path.str();
  if (!llvm::sys::fs::is_directory(path))
    return inputError("{0}: expected a dump folder, found {1}", path,
                      llvm::sys::fs::exists(path) ? "a file" : "nothing there");
  auto run = objectOf(inside(path, "dump.json"));
  if (!run) return run.takeError();
  if (!*run)
    return inputError("{0}: no dump: it has no dump.json; `fusor train --dump DIR` (run, bench, generate) writes one",
                      path);
  if (auto error = checkFormat(**run, inside(path, "dump.json"))) return error;
  folder.run = std::move(**run);

  for (auto [name, place] : {std::pair{"modules/index.json", &folder.passes},
                             {"steps.json", &folder.steps},
                             {"gemms.json", &folder.gemms},
                             {"fusions.json", &folder.decisions}}) {
    auto array = objectsOf(inside(path, name));
    if (!array) return array.takeError();
    *place = std::move(*array);
  }
  for (auto [name, place] :
       {std::pair{"plan.json", &folder.plan}, {"trace.json", &folder.trace}, {"fp8_stats.json", &folder.fp8Stats}}) {
    auto object = objectOf(inside(path, name));
    if (!object) return object.takeError();
    *place = std::move(*object);
  }
  auto trace = linesOf(inside(path, "fp8_trace.jsonl"));
  if (!trace) return trace.takeError();
  folder.fp8Trace = std::move(*trace);

  auto kernels = kernelsOf(inside(path, "kernels"));
  if (!kernels) return kernels.takeError();
  folder.kernels = std::move(*kernels);
  auto files = entriesOf(inside(path, "modules"), /*folders=*/false);
  if (!files) return files.takeError();
  llvm::copy_if(*files, std::back_inserter(folder.moduleFiles), [](StringRef name) { return name.endswith(".fir"); });
  return folder;
}

llvm::Expected<std::unique_ptr<ir::Module>> readModule(const DumpFiles &folder, StringRef file) {
  std::string path = inside(folder.path, "modules/" + file);
  auto text = textOf(path);
  if (!text) return text.takeError();
  if (!*text)
    return inputError("{0}: named in modules/index.json, and not there; write the dump again with --dump", path);
  return parseModule(**text, path);
}

} // namespace fusor::frontend
