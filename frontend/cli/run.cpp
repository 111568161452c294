// fusor run: a module on .npy files.
#include "frontend/api/compile_module.h"
#include "frontend/api/fp8_calibration.h"
#include "frontend/api/fp8_weights.h"
#include "frontend/api/tensor_files.h"
#include "frontend/check/check_files.h"
#include "frontend/check/rewrites.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "frontend/dump/dump.h"
#include "frontend/onnx/import.h"
#include "ir/graph/literal.h"
#include "ir/ops/counter_rng.h"
#include "ir/reference/reference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend::cli {
namespace {

/// The file of input `i`; empty where none is given.
std::string inputFile(const RunOptions &options, unsigned i, llvm::StringRef name) {
  for (llvm::StringRef input : options.inputs)
    if (input.split('=').first == name) return input.split('=').second.str();
  return options.inputsFolder.empty() ? "" : findTensorFile(options.inputsFolder, tensorFileStem("input", i, name));
}

/// --input NAME=F.npy or --inputs DIR, one tensor an argument, in order.
llvm::Expected<std::vector<HostTensor>> readInputs(const ir::Function &function, const RunOptions &options) {
  std::vector<HostTensor> tensors;
  auto arguments = function.block().arguments();
  for (const std::string &input : options.inputs) {
    llvm::StringRef name = llvm::StringRef(input).split('=').first;
    if (!llvm::StringRef(input).contains('='))
      return failure(ErrorKind::usage, "--input needs NAME=F.npy, is '{0}'", input);
    if (llvm::none_of(arguments, [&](ir::Value a) { return a.name() == name; }))
      return inputError("--input {0}: @{1} has no input '{2}'", input, function.name(), name);
  }
  for (unsigned i = 0; i < arguments.size(); ++i) {
    llvm::StringRef name = arguments[i].name();
    std::string path = inputFile(options, i, name), stem = tensorFileStem("input", i, name);
    if (path.empty())
      return inputError("input '{0}' ({1}) is missing: give --input {0}=F.npy, or --inputs DIR with {2}.npy in it",
                        name, arguments[i].type().str(), stem);
    auto tensor = readTensorFile(path, arguments[i].dtype());
    if (!tensor) return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

/// For a dump without inputs: ones for integers (a token, a mask that is set), normal numbers else. A symbol that --dim
/// leaves open is 8, or as near as its range allows.
llvm::Expected<std::vector<HostTensor>> madeUpInputs(Console &console, const ir::Function &function, uint64_t seed,
                                                     ir::SymbolValues symbols) {
  constexpr int64_t kSize = 8;
  std::string sizes = fillDims(symbols, function.module(), kSize);
  std::vector<HostTensor> tensors;
  for (ir::Value argument : function.block().arguments()) {
    HostTensor tensor{argument.dtype(), {}, {}};
    for (const ir::Dim &dim : argument.shape()) tensor.shape.push_back(*dim.evaluate(symbols));
    tensor.bytes.resize(tensor.view().bytes());
    uint64_t key = ir::rngKey(seed, tensors.size());
    for (int64_t i = 0; i < tensor.elements(); ++i)
      ir::storeElement(tensor.dtype, tensor.bytes.data(), i, ir::isFloat(tensor.dtype) ? ir::rngNormal(key, i) : 1.0);
    tensors.push_back(std::move(tensor));
  }
  console.note("no inputs are given: the dump is of a run on made-up ones," +
               (sizes.empty() ? " of fixed sizes" : " with" + sizes) + "; --inputs DIR and --dim change that");
  return tensors;
}

/// Compares with DIR/output_<i>_<name>.npy; false where it does not agree, which has been said.
llvm::Expected<bool> check(Console &console, const RunOptions &o, llvm::StringRef stem, const HostTensor &found) {
  std::string path = findTensorFile(o.expectFolder, stem);
  if (path.empty()) return inputError("--expect {0}: there is no {1}.npy", o.expectFolder, stem);
  auto expected = readTensorFile(path, found.dtype);
  if (!expected) return expected.takeError();
  if (expected->shape != found.shape)
    return inputError("{0}: is {1}, {2} is expected", stem, runtime::TensorView{found.dtype, found.shape}.typeText(),
                      expected->view().typeText());
  Comparison c = compare(found, *expected, o.atol, o.rtol);
  console.object({{"compared", stem}, {"agrees", c.agrees}, {"mismatches", c.mismatches}, {"max_abs_diff", c.worst}});
  std::string apart = ir::realLiteral(c.worst);
  if (c.agrees)
    console.say(llvm::formatv("{0}: agrees, at most {1} apart", stem, apart).str());
  else
    llvm::errs() << llvm::formatv("error: {0}: {1} of {2} elements differ by more than {3} + {4} x expected; the first "
                                  "is element {5}: {6}, expected {7}; at most {8} apart\n",
                                  stem, c.mismatches, found.elements(), ir::realLiteral(o.atol),
                                  ir::realLiteral(o.rtol), c.first, ir::realLiteral(c.found),
                                  ir::realLiteral(c.expected), apart);
  return c.agrees;
}

bool hasEmptyInput(const onnx::InputContent &content, size_t count) {
  for (unsigned i = 0; i < count; ++i)
    if (auto data = content(i); data && data->elements() == 0) return true;
  return false;
}

/// Milliseconds of `count` runs, sorted.
llvm::Expected<std::vector<double>> timeRuns(runtime::Program &program, llvm::StringRef name,
                                             llvm::ArrayRef<runtime::TensorView> inputs,
                                             llvm::ArrayRef<runtime::TensorView> outputs,
                                             const ir::SymbolValues &symbols, unsigned count) {
  std::vector<double> ms;
  for (unsigned i = 0; i < count; ++i) {
    Stopwatch watch;
    if (auto error = program.run(name, inputs, outputs, symbols)) return error;
    ms.push_back(watch.ms());
  }
  llvm::sort(ms);
  return ms;
}

/// The model for the inputs given: with symbols where it can be read so, else for their sizes alone.
llvm::Expected<LoadedModule> loadOnnx(Console &console, const RunOptions &o) {
  auto declared = onnx::readDeclared(o.file);
  if (!declared) return declared.takeError();
  onnx::ImportOptions options;
  options.content = [&](unsigned i) -> std::optional<onnx::Data> {
    if (i >= declared->inputs.size() || !declared->inputs[i].dtype) return std::nullopt;
    std::string path = inputFile(o, i, declared->inputs[i].name);
    if (path.empty()) return std::nullopt;
    auto tensor = readTensorFile(path, *declared->inputs[i].dtype);
    if (!tensor) return llvm::consumeError(tensor.takeError()), std::nullopt; // said when it is read as an input
    return onnx::Data{tensor->dtype, tensor->shape,
                      std::make_shared<const std::vector<char>>(std::move(tensor->bytes))};
  };
  auto imported = onnx::importModel(o.file, options);
  if (imported && hasEmptyInput(options.content, declared->inputs.size()) && !imported->module->symbols().empty()) {
    options.fixSizes = true; // symbols are 1 or more
    if (auto fixed = onnx::importModel(o.file, options)) {
      console.note("an input has a size of 0: the model is compiled for the sizes of these inputs only");
      imported = std::move(fixed);
    } else {
      llvm::consumeError(fixed.takeError()); // the run says which size is not allowed
    }
  }
  if (!imported && (!o.inputs.empty() || !o.inputsFolder.empty())) {
    options.fixSizes = true;
    auto fixed = onnx::importModel(o.file, options);
    if (!fixed) return llvm::consumeError(fixed.takeError()), imported.takeError();
    llvm::consumeError(imported.takeError());
    console.note("the model is compiled for the sizes of these inputs only: with any size it cannot be read (`fusor "
                 "import` says why)");
    imported = std::move(fixed);
  }
  if (!imported) return imported.takeError();
  for (const std::string &warning : imported->warnings) console.warning(warning);
  for (const std::string &name : imported->fixedInputs)
    console.note("input '" + name + "' decides shapes: the program is for this content of it");
  LoadedModule loaded;
  loaded.module = std::move(imported->module);
  loaded.outputs = std::move(imported->outputs);
  loaded.indexBounds = std::move(imported->indexBounds);
  return loaded;
}

llvm::Expected<bool> runModule(Console &console, const CommonOptions &common, const RunOptions &o) {
  auto loaded = isOnnx(o.file) ? loadOnnx(console, o) : loadModule(o);
  if (!loaded) return loaded.takeError();
  std::vector<std::string> outputNames = std::move(loaded->outputs);
  std::vector<onnx::IndexBound> indexBounds = std::move(loaded->indexBounds);
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  auto passOpts = passOptions(common, o, *loaded->module);
  if (!passOpts) return passOpts.takeError();
  auto symbols = parseDims(o.dims, *loaded->module);
  if (!symbols) return symbols.takeError();
  auto source = passes::sourceFunction(*loaded->module, *passOpts);
  if (!source) return source.takeError();
  std::string name = loaded->pipeline == passes::PipelineKind::train ? "train_step" : (*source)->name().str();

  DeviceSettings settings = deviceSettings(common);
  auto dump = beginDump(settings);
  if (!dump) return dump.takeError();
  CompileRequest request(settings);
  request.pipeline = loaded->pipeline, request.passes = std::move(*passOpts);
  const passes::PipelineKind pipeline = request.pipeline;
  request.program.symbols = *symbols;
  passes::PassOptions checkedPasses = request.passes;
  checkedPasses.target = device->target;
  const bool measuresScales = request.passes.fp8 && pipeline == passes::PipelineKind::infer;
  const CompileRequest measuring = request;
  if (request.passes.fp8Weights && request.pipeline == passes::PipelineKind::train)
    return failure(ErrorKind::usage, "--weights fp8 is for inference: add --pipeline infer");
  auto compiled = compileModule(std::move(loaded->module), *device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(common.seed)) return error;
  if (auto error = initializeFp8Weights(program, common.seed)) return error;
  if (!o.weights.empty()) {
    auto bytes = fp8WeightBytes(program);
    if (!bytes) return bytes.takeError();
    if (bytes->fp8 == 0)
      console.note("no weight is in FP8; `fusor explain " + o.file + " --weights fp8 --rule fp8-weights` says why");
  }

  const ir::Function &function = *program.module().function(name);
  bool makesInputs = *dump && o.inputs.empty() && o.inputsFolder.empty() && o.expectFolder.empty();
  auto inputs = makesInputs ? madeUpInputs(console, function, common.seed, *symbols) : readInputs(function, o);
  if (!inputs) return inputs.takeError();
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (HostTensor &t : *inputs) inputViews.push_back(t.view());
  auto bound = program.bindSymbols(name, inputViews, *symbols);
  if (!bound) return bound.takeError();
  std::vector<onnx::IndexElements> elements;
  for (const HostTensor &t : *inputs) elements.push_back({t.dtype, t.bytes});
  if (auto error = onnx::checkIndexBounds(indexBounds, function, elements, *bound))
    return inputError("{0}: {1}", o.file, llvm::toString(std::move(error)));
  auto types = program.resultTypes(name, *bound);
  if (!types) return types.takeError();
  auto loadAgain = [&]() -> llvm::Expected<std::unique_ptr<ir::Module>> {
    CommonOptions quiet = common;
    quiet.quiet = true;
    Console silent(quiet);
    auto again = isOnnx(o.file) ? loadOnnx(silent, o) : loadModule(o);
    if (!again) return again.takeError();
    return std::move(again->module);
  };
  if (measuresScales) {
    auto again = loadAgain();
    if (!again) return again.takeError();
    if (auto error = calibrateFp8(program, std::move(*again), *device, measuring, name, inputViews)) return error;
    console.note("FP8 scales are those of these inputs");
  }
  if (settings.check) {
    RewriteCheck rewrites{.load = loadAgain,
                          .pipeline = pipeline,
                          .options = checkedPasses,
                          .function = name,
                          .symbols = *bound,
                          .seed = common.seed};
    for (runtime::TensorView &view : inputViews) rewrites.inputs.push_back(referenceTensor(view));
    if (auto error = checkRewrites(rewrites, settings.bisect)) return error;
  }
  std::vector<HostTensor> outputs;
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : outputs) outputViews.push_back(t.view());
  Stopwatch watch;
  if (auto error = program.run(name, inputViews, outputViews, *symbols)) return error;
  double ms = watch.ms();
  if (program.firstNonFinite()) {
    auto text = writeNonFinite(*program.firstNonFinite(), checkFolder(common.dump));
    if (!text) return text.takeError();
    console.warning(*text);
  }
  if (o.repeat) {
    auto times = timeRuns(program, name, inputViews, outputViews, *symbols, o.repeat);
    if (!times) return times.takeError();
    console.say(
        llvm::formatv("{0} runs: median {1:f4} ms, least {2:f4} ms", o.repeat, (*times)[o.repeat / 2], times->front())
            .str());
    console.object({{"runs", o.repeat}, {"ms", (*times)[o.repeat / 2]}, {"ms_min", times->front()}});
  }
  for (const runtime::Fallback &fallback : program.fallbacks())
    console.warning("fallback: " + fallback.where + ": " + fallback.reason);

  bool agrees = true;
  unsigned i = 0;
  for (const ir::ReturnEntry &entry : function.returns()) {
    if (entry.kind != ir::ReturnKind::result) continue;
    HostTensor &output = outputs[i];
    std::string name = i < outputNames.size() ? outputNames[i] : entry.value.name().str();
    std::string stem = tensorFileStem("output", i++, name);
    console.say("%" + name + " : " + output.view().typeText());
    console.object({{"output", name}, {"type", output.view().typeText()}, {"ms", ms}});
    if (!o.outputsFolder.empty())
      if (auto error = writeTensorFile(o.outputsFolder, stem, output)) return error;
    if (o.expectFolder.empty()) continue;
    auto same = check(console, o, stem, output);
    if (!same) return same.takeError();
    agrees &= *same;
  }
  if (*dump) {
    if (auto error = dumpRun(**dump, *compiled, *device, settings,
                             {.verb = "run",
                              .config = o.file,
                              .precision = o.precision,
                              .function = name,
                              .inputs = inputViews,
                              .outputs = outputViews}))
      return error;
    if (auto error = finishDump(**dump)) return error;
  }
  return agrees;
}

} // namespace

int run(const CommonOptions &common, const RunOptions &options) {
  Console console(common);
  auto agrees = runModule(console, common, options);
  if (!agrees) return console.fail(agrees.takeError());
  return *agrees ? 0 : 1;
}

} // namespace fusor::frontend::cli
