#include "frontend/dump/module_files.h"
#include "frontend/dump/dump_folder.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {
namespace {

int64_t countOps(const ir::Block &block) {
  int64_t count = 0;
  for (const ir::Op &op : block.ops()) count += !op.def().isTerminator + (op.body() ? countOps(*op.body()) : 0);
  return count;
}

// Lines that are ops: "%h = add ...". Indentation and the columns of types are no difference.
llvm::StringMap<int64_t> opLines(llvm::StringRef text) {
  llvm::StringMap<int64_t> lines;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.trim();
    if (!line.startswith("%") || !line.contains(" = ")) continue;
    auto [op, type] = line.rsplit(" : ");
    ++lines[(op.rtrim() + " : " + type).str()];
  }
  return lines;
}

// Lines of `a` that `b` has not, each as often as it is too many.
int64_t missingFrom(const llvm::StringMap<int64_t> &a, const llvm::StringMap<int64_t> &b) {
  int64_t count = 0;
  for (const auto &line : a) count += std::max<int64_t>(0, line.getValue() - b.lookup(line.getKey()));
  return count;
}

} // namespace

llvm::Expected<ModuleFiles> ModuleFiles::begin(std::string folder, const ir::Module &input) {
  ModuleFiles files(std::move(folder));
  llvm::json::Object entry{{"index", 0}, {"pass", "input"}, {"why", "what came in"}, {"changed", true}};
  if (auto error = files.write(std::move(entry), "00_input.fir", input)) return error;
  return files;
}

llvm::Error ModuleFiles::add(const passes::PassReport &report, const ir::Module &after) {
  const passes::Pass *pass = passes::findPass(report.name);
  unsigned number = report.index + 1; // 0 is the input
  llvm::json::Object entry{{"index", number},
                           {"pass", report.name},
                           {"why", pass ? pass->why : ""},
                           {"changed", report.changed},
                           {"ms", report.timeMs}};
  if (report.changed)
    return write(std::move(entry), llvm::formatv("{0}_{1}.fir", llvm::format("%02u", number), report.name).str(),
                 after);
  entry["ops"] = ops_, entry["added"] = 0, entry["removed"] = 0;
  index_.push_back(std::move(entry));
  return llvm::Error::success();
}

llvm::Error ModuleFiles::write(llvm::json::Object entry, llvm::StringRef file, const ir::Module &module) {
  std::string text = module.str();
  auto lines = opLines(text);
  entry["added"] = missingFrom(lines, lines_), entry["removed"] = missingFrom(lines_, lines);
  lines_ = std::move(lines);
  ops_ = 0;
  for (const auto &function : module.functions()) ops_ += countOps(function->block());
  entry["ops"] = ops_, entry["file"] = file.str();
  index_.push_back(std::move(entry));
  return writeInto(folder_, "modules/" + file, text);
}

llvm::Error ModuleFiles::finish() {
  return writeInto(folder_, "modules/index.json", llvm::formatv("{0:2}\n", llvm::json::Value(std::move(index_))).str());
}

llvm::json::Object decisionJson(const passes::Decision &d) {
  llvm::json::Object object{{"kind", passes::name(d.kind)},
                            {"rule", d.rule},
                            {"function", d.function},
                            {"subject", d.subject},
                            {"reason", d.reason},
                            {"location", d.location.str()},
                            {"values", llvm::json::Array(d.values)},
                            {"bytes_saved", d.bytesSaved}};
  if (!d.op.empty()) object["op"] = d.op;
  return object;
}

std::string decisionsJson(llvm::ArrayRef<passes::Decision> decisions) {
  llvm::json::Array array;
  for (const passes::Decision *d : passes::byWorth(decisions)) array.push_back(decisionJson(*d));
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(array))).str();
}

} // namespace fusor::frontend
