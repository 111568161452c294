#include "frontend/report/sections.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace fusor::frontend {
namespace {

using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// {"B": 16} as [{"name": "B", "value": 16}], by name: keys of the data are the page's own.
Array pairs(const Object *object, StringRef keyName, StringRef valueName) {
  Array list;
  if (!object) return list;
  std::map<StringRef, const Value *> sorted;
  for (const auto &[key, value] : *object) sorted[key] = &value;
  for (const auto &[key, value] : sorted)
    if (value->getAsNumber()) list.push_back(Object{{keyName, key.str()}, {valueName, *value}});
  return list;
}

Array textArray(std::vector<std::string> texts) {
  Array array;
  for (std::string &text : texts) array.push_back(std::move(text));
  return array;
}

/// Fields of the objects of an array.
Array pickedEach(
    const std::optional<Array> &list, llvm::ArrayRef<StringRef> texts, llvm::ArrayRef<StringRef> numbers,
    llvm::function_ref<void(const Object &from, Object &to)> more = [](const Object &, Object &) {}) {
  Array result;
  if (!list) return result;
  for (const Value &entry : *list) {
    Object to = picked(*entry.getAsObject(), texts, numbers);
    more(*entry.getAsObject(), to);
    result.push_back(std::move(to));
  }
  return result;
}

/// Names of a buffer's values, the first ones of many, and their type.
void addValues(const Object &buffer, Object &to) {
  constexpr size_t kShown = 6;
  const Array *values = buffer.getArray("values");
  if (!values) return;
  std::vector<std::string> names;
  for (const Value &value : *values)
    if (const Object *object = value.getAsObject()) {
      if (names.empty())
        if (auto type = object->getString("type")) to["type"] = type->str();
      if (auto name = object->getString("name")) names.push_back(name->str());
    }
  size_t count = names.size();
  names.resize(std::min(count, kShown));
  std::string text = llvm::join(names, ", ");
  if (count > kShown) text += " and " + std::to_string(count - kShown) + " more";
  to["names"] = text;
}

} // namespace

Object picked(const Object &from, llvm::ArrayRef<StringRef> texts, llvm::ArrayRef<StringRef> numbers) {
  Object to;
  for (StringRef key : texts)
    if (const Value *value = from.get(key)) {
      if (value->getAsString()) to[key] = *value;
      if (auto integer = value->getAsInteger()) to[key] = std::to_string(*integer);
    }
  for (StringRef key : numbers)
    if (const Value *value = from.get(key))
      if (value->getAsNumber() || value->getAsBoolean()) to[key] = *value;
  return to;
}

std::vector<std::string> stringsOf(const Object &object, StringRef key) {
  std::vector<std::string> strings;
  if (const Array *array = object.getArray(key))
    for (const Value &value : *array)
      if (auto text = value.getAsString()) strings.push_back(text->str());
  return strings;
}

std::string linesText(const Object &object, StringRef key) {
  if (auto text = object.getString(key)) return text->rtrim('\n').str();
  return llvm::join(stringsOf(object, key), "\n");
}

Object runSection(const DumpFiles &folder) {
  Object run = picked(folder.run, {"verb", "function", "config", "precision", "device", "arch", "tier", "fusor"},
                      {"peak_bytes", "launches_per_step", "step_ms", "back_to_back_ms", "idle_ms"});
  run["symbols"] = pairs(folder.run.getObject("symbols"), "name", "value");
  if (const Object *roofline = folder.run.getObject("roofline")) {
    Object to = picked(*roofline, {"source"}, {"bytes_per_ms"});
    to["flops"] = pairs(roofline->getObject("flops_per_ms"), "type", "per_ms");
    run["roofline"] = std::move(to);
  }
  return run;
}

Array passesSection(const DumpFiles &folder) {
  return pickedEach(folder.passes, {"pass", "why", "file"}, {"index", "changed", "ms", "ops", "added", "removed"});
}

Array gemmsSection(const DumpFiles &folder) {
  return pickedEach(folder.gemms,
                    {"op", "result", "role", "layer", "type", "m", "n", "k", "batch", "compute", "why_not_fp8",
                     "algorithm", "fallback"},
                    {"fp8", "ms", "tflops"}, [](const Object &from, Object &to) {
                      to["operands"] = llvm::join(stringsOf(from, "operands"), " x ");
                    });
}

Array kernelsSection(const DumpFiles &folder) {
  std::set<std::string> launched;
  if (folder.steps)
    for (const Value &step : *folder.steps) {
      launched.insert(step.getAsObject()->getString("kernel").getValueOr("").str());
      for (std::string &name : stringsOf(*step.getAsObject(), "kernel_set")) launched.insert(std::move(name));
    }
  Array kernels;
  for (const DumpedKernel &kernel : folder.kernels) {
    Object to = picked(kernel.about, {"kind", "grid", "block"},
                       {"grid_blocks", "shared_bytes", "static_shared_bytes", "registers", "spill_bytes", "bytes_read",
                        "bytes_written", "bytes_saved", "flops", "ms", "roofline_percent"});
    to["name"] = kernel.name;
    // Of a kernel that is launched it is its node's text.
    if (!launched.count(kernel.name)) to["ir"] = linesText(kernel.about, "ir");
    to["locations"] = textArray(stringsOf(kernel.about, "locations"));
    Array arguments;
    if (const Array *list = kernel.about.getArray("arguments"))
      for (const Value &argument : *list)
        if (const Object *object = argument.getAsObject())
          arguments.push_back(picked(*object, {"name", "kind", "value", "type"}, {"index"}));
    to["arguments"] = std::move(arguments);
    Array source;
    llvm::SmallVector<StringRef, 0> paragraphs;
    StringRef(kernel.source).rtrim('\n').split(paragraphs, "\n\n");
    if (!kernel.source.empty())
      for (StringRef paragraph : paragraphs)
        source.push_back(paragraph.str()); // a Value of a StringRef does not own it
    to["source"] = std::move(source);
    kernels.push_back(std::move(to));
  }
  return kernels;
}

Object memorySection(const DumpFiles &folder) {
  if (!folder.plan) return {};
  Object memory = picked(
      *folder.plan, {},
      {"peak_bytes", "arena_bytes", "persistent_bytes", "constant_bytes", "workspace_bytes", "lower_bound_bytes"});
  Array live;
  if (const Array *bytes = folder.plan->getArray("live_bytes"))
    for (const Value &value : *bytes)
      if (value.getAsNumber()) live.push_back(value);
  memory["live"] = std::move(live);
  Array buffers;
  if (const Array *list = folder.plan->getArray("buffers"))
    for (const Value &buffer : *list)
      if (const Object *object = buffer.getAsObject()) {
        Object to = picked(*object, {"place", "why"}, {"offset", "bytes", "first", "last"});
        addValues(*object, to);
        buffers.push_back(std::move(to));
      }
  memory["buffers"] = std::move(buffers);
  return memory;
}

Object fp8Section(const DumpFiles &folder) {
  constexpr size_t kMostSteps = 120; // a point a pixel
  struct Tensor {
    Array amax, scale;
    Object stats;
  };
  std::map<std::string, Tensor> tensors;
  Array steps, loss;
  size_t count = folder.fp8Trace ? folder.fp8Trace->size() : 0, taken = std::min(count, kMostSteps);
  for (size_t i = 0; i < taken; ++i) {
    const Object &line = (*folder.fp8Trace)[taken == count ? i : i * (count - 1) / (taken - 1)];
    steps.push_back(line.getInteger("step").getValueOr(static_cast<int64_t>(i) + 1));
    if (auto value = line.getNumber("loss")) loss.push_back(*value);
    const Object *state = line.getObject("state");
    if (!state) continue;
    for (const auto &[key, value] : *state)
      if (const Object *numbers = value.getAsObject()) {
        Tensor &tensor = tensors[StringRef(key).str()];
        // A NaN is null in the trace: a place of its own, so that the rest keeps its step.
        for (auto [name, list] : {std::pair{"amax", &tensor.amax}, {"scale", &tensor.scale}})
          list->push_back(numbers->getNumber(name) ? Value(*numbers->getNumber(name)) : Value("not finite"));
      }
  }
  if (folder.fp8Stats)
    for (const auto &[key, value] : *folder.fp8Stats)
      if (const Object *stats = value.getAsObject())
        tensors[StringRef(key).str()].stats = picked(*stats, {}, {"clipped", "underflow"});
  Object fp8{{"steps", std::move(steps)}, {"loss", std::move(loss)}, {"left_out", static_cast<int64_t>(count - taken)}};
  Array list;
  for (auto &[name, tensor] : tensors) {
    Object to = std::move(tensor.stats);
    to["name"] = name;
    to["amax"] = std::move(tensor.amax);
    to["scale"] = std::move(tensor.scale);
    list.push_back(std::move(to));
  }
  fp8["tensors"] = std::move(list);
  return fp8;
}

} // namespace fusor::frontend
