#include "frontend/replay/replay_case.h"
#include "codegen/emit/kernel_files.h"
#include "frontend/api/errors.h"
#include "frontend/text/parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace fusor::frontend {

using codegen::KernelArg;
using Kind = codegen::KernelArg::Kind;

namespace {

std::string inside(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Expected<std::string> readText(const std::string &path, llvm::StringRef hint = "") {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) return inputError("cannot read '{0}': {1}{2}", path, file.getError().message(), hint);
  return (*file)->getBuffer().str();
}

/// Objects of a JSON file, with errors that name the file and the field.
class JsonFile {
public:
  static llvm::Expected<JsonFile> read(const std::string &path, llvm::StringRef hint = "") {
    auto text = readText(path, hint);
    if (!text) return text.takeError();
    auto value = llvm::json::parse(*text);
    if (!value) return inputError("{0}: {1}", path, llvm::toString(value.takeError()));
    if (!value->getAsObject()) return inputError("{0}: must be a JSON object", path);
    return JsonFile(path, std::move(*value));
  }
  const llvm::json::Object &object() const { return *value_.getAsObject(); }
  llvm::Error missing(llvm::StringRef field, llvm::StringRef what) const {
    return inputError("{0}: \"{1}\" must be {2}; write the dump again", path_, field, what);
  }
  llvm::Expected<const llvm::json::Array *> array(llvm::StringRef field) const {
    if (const llvm::json::Array *array = object().getArray(field)) return array;
    return missing(field, "an array");
  }

private:
  JsonFile(std::string path, llvm::json::Value value) : path_(std::move(path)), value_(std::move(value)) {}
  std::string path_;
  llvm::json::Value value_;
};

std::optional<Kind> parseKind(llvm::StringRef name) {
  for (Kind kind : {Kind::input, Kind::output, Kind::workspace, Kind::symbol, Kind::tablePointers, Kind::tableSizes,
                    Kind::tableChunks, Kind::tableCount})
    if (codegen::name(kind) == name) return kind;
  return std::nullopt;
}

llvm::Error readTensors(const JsonFile &file, llvm::StringRef folder, llvm::StringRef field,
                        std::vector<HostTensor> &tensors) {
  auto array = file.array(field);
  if (!array) return array.takeError();
  for (const llvm::json::Value &value : **array) {
    const llvm::json::Object *entry = value.getAsObject();
    auto name = entry ? entry->getString("file") : llvm::None, type = entry ? entry->getString("dtype") : llvm::None;
    auto dtype = type ? ir::parseDType(*type) : std::nullopt;
    if (!name || !dtype) return file.missing(field, "objects with \"file\" and \"dtype\"");
    auto tensor = readTensorFile(inside(folder, ("inputs/" + *name).str()), *dtype);
    if (!tensor) return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return llvm::Error::success();
}

llvm::Expected<KernelArg> readArgument(const JsonFile &file, const ReplayCase &given, const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  auto kind = object ? parseKind(object->getString("kind").getValueOr("")) : std::nullopt;
  if (!kind) return file.missing("launches", "objects whose arguments have a \"kind\"");
  KernelArg argument;
  argument.kind = *kind;
  argument.name = object->getString("name").getValueOr("").str();
  argument.symbol = object->getString("symbol").getValueOr("").str();
  int64_t index = object->getInteger("index").getValueOr(0);
  size_t count = *kind == Kind::input       ? given.inputs.size()
                 : *kind == Kind::output    ? given.outputs.size()
                 : *kind == Kind::workspace ? given.workspaces.size()
                                            : 1;
  if (index < 0 || static_cast<size_t>(index) >= count ||
      (*kind == Kind::symbol && !given.symbols.count(argument.symbol)))
    return file.missing("launches", "objects whose arguments are among its inputs, outputs, workspaces and symbols");
  argument.index = index;
  return argument;
}

llvm::Error readLaunches(const JsonFile &file, ReplayCase &into) {
  auto launches = file.array("launches");
  if (!launches) return launches.takeError();
  for (const llvm::json::Value &value : **launches) {
    const llvm::json::Object *object = value.getAsObject();
    auto kernel = object ? object->getString("kernel") : llvm::None;
    auto grid = object ? object->getInteger("grid_blocks") : llvm::None;
    auto block = object ? object->getInteger("block") : llvm::None;
    const llvm::json::Array *arguments = object ? object->getArray("arguments") : nullptr;
    bool isSound =
        kernel && grid && block && arguments && *grid >= 0 && *grid <= INT32_MAX && *block > 0 && *block <= 1024;
    if (!isSound) return file.missing("launches", "objects with kernel, grid_blocks, block and arguments");
    ReplayedLaunch &launch = into.launches.emplace_back();
    launch.kernel = kernel->str(), launch.grid = *grid, launch.block = *block;
    launch.sharedBytes = object->getInteger("shared_bytes").getValueOr(0);
    for (const llvm::json::Value &argument : *arguments) {
      auto read = readArgument(file, into, argument);
      if (!read) return read.takeError();
      launch.arguments.push_back(std::move(*read));
    }
  }
  return llvm::Error::success();
}

llvm::Error readTable(const JsonFile &file, ReplayCase &into) {
  const llvm::json::Object *object = file.object().getObject("table");
  if (!object) return llvm::Error::success();
  ReplayedTable table;
  auto numbers = [&](const char *field, std::vector<int64_t> &to) {
    if (const llvm::json::Array *array = object->getArray(field))
      for (const llvm::json::Value &value : *array) to.push_back(value.getAsInteger().getValueOr(-1));
  };
  numbers("sizes", table.sizes);
  table.tensors = table.sizes.size();
  numbers("columns", table.sizes), numbers("chunks", table.chunks);
  if (const llvm::json::Array *columns = object->getArray("pointers"))
    for (const llvm::json::Value &column : *columns)
      for (const llvm::json::Value &value : column.getAsArray() ? *column.getAsArray() : llvm::json::Array()) {
        const llvm::json::Object *pointer = value.getAsObject();
        bool isOutput = pointer && pointer->getString("kind").getValueOr("") == "output";
        int64_t index = pointer ? pointer->getInteger("index").getValueOr(-1) : -1;
        if (index < 0 || static_cast<size_t>(index) >= (isOutput ? into.outputs : into.inputs).size())
          return file.missing("table", "pointers among its inputs and outputs");
        table.pointers.push_back({isOutput, static_cast<unsigned>(index)});
      }
  bool isSound = table.tensors > 0 && table.chunks.size() == table.tensors + 1 &&
                 table.pointers.size() % table.tensors == 0 &&
                 llvm::all_of(table.sizes, [](int64_t n) { return n >= 0; });
  if (!isSound) return file.missing("table", "pointers, sizes and chunks of as many tensors");
  into.table = std::move(table);
  return llvm::Error::success();
}

} // namespace

llvm::Expected<KernelText> readKernelText(llvm::StringRef folder) {
  KernelText text;
  auto now = readText(inside(folder, "kernel.cu"), "; give the folder of a kernel, DIR/kernels/NAME");
  if (!now) return now.takeError();
  auto original =
      readText(inside(folder, "kernel.original.cu"), "; it is written with the dump and says what was edited");
  if (!original) return original.takeError();
  return KernelText{std::move(*now), std::move(*original)};
}

llvm::Expected<ReplayCase> readReplayCase(llvm::StringRef given) {
  llvm::StringRef folder = given.rtrim('/');
  ReplayCase read;
  auto facts = JsonFile::read(inside(folder, "kernel.json"), "; give the folder of a kernel, DIR/kernels/NAME");
  if (!facts) return facts.takeError();
  read.name = facts->object().getString("name").getValueOr("").str();
  if (!llvm::sys::fs::exists(inside(folder, "inputs/inputs.json")))
    return inputError("'{0}' has no inputs to run on: write the dump again with --dump-inputs '^{1}$'", folder,
                      read.name);
  auto file = JsonFile::read(inside(folder, "inputs/inputs.json"));
  if (!file) return file.takeError();
  if (const llvm::json::Object *symbols = file->object().getObject("symbols"))
    for (const auto &entry : *symbols)
      read.symbols[llvm::StringRef(entry.first)] = entry.second.getAsInteger().getValueOr(0);
  if (auto error = readTensors(*file, folder, "inputs", read.inputs)) return error;
  if (auto error = readTensors(*file, folder, "outputs", read.outputs)) return error;
  auto workspaces = file->array("workspaces");
  if (!workspaces) return workspaces.takeError();
  for (const llvm::json::Value &bytes : **workspaces)
    read.workspaces.push_back(std::max<int64_t>(0, bytes.getAsInteger().getValueOr(0)));
  if (auto product = file->object().getString("product")) {
    auto bytes = llvm::MemoryBuffer::getFile(inside(folder, ("inputs/" + *product).str()), false, false);
    if (!bytes) return inputError("cannot read '{0}/inputs/{1}': {2}", folder, *product, bytes.getError().message());
    read.product.assign((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
    if (read.workspaces.empty() || static_cast<int64_t>(read.product.size()) != read.workspaces[0])
      return file->missing("product", "as large as workspace 0");
  }
  if (auto output = file->object().getInteger("product_output")) {
    if (*output < 0 || *output >= static_cast<int64_t>(read.outputs.size()))
      return file->missing("product_output", "the number of an output");
    read.productOutput = static_cast<unsigned>(*output);
  }
  if (auto error = readLaunches(*file, read)) return error;
  if (auto error = readTable(*file, read)) return error;
  llvm::StringRef kernels = llvm::sys::path::parent_path(folder);
  for (const ReplayedLaunch &launch : read.launches) {
    auto text = readKernelText(launch.kernel == read.name ? folder.str() : inside(kernels, launch.kernel));
    if (!text) return text.takeError();
    read.texts.try_emplace(launch.kernel, std::move(*text));
  }
  std::string path = inside(folder, "kernel.fir");
  auto text = readText(path);
  if (!text) return text.takeError();
  auto module = parseModule(*text, path);
  if (!module) return module.takeError();
  if ((*module)->functions().size() != 1) return inputError("{0}: must have one function", path);
  read.module = std::move(*module);
  const ir::Block &block = read.function().block();
  if (block.argumentCount() != read.inputs.size() || read.function().returns().size() != read.outputs.size())
    return inputError(
        "{0}: takes {1} inputs and returns {2} results, inputs.json has {3} and {4}; write the dump again", path,
        block.argumentCount(), read.function().returns().size(), read.inputs.size(), read.outputs.size());
  return read;
}

} // namespace fusor::frontend
