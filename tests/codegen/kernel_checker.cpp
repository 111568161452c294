#include "tests/codegen/kernel_checker.h"
#include "frontend/text/parser.h"
#include "ir/graph/clone.h"
#include "ir/graph/literal.h"
#include "ir/graph/printer.h"
#include "ir/ops/counter_rng.h"
#include "passes/fusion/fusion.h"
#include "passes/layout/layout.h"
#include "passes/pipeline.h"
#include "tests/support/test_emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

namespace fusor::codegen::tests {

using namespace ir;
using emulator::EmulatedModule;
using emulator::GuardedBuffer;

std::unique_ptr<Module> parseOrFail(llvm::StringRef text) {
  auto module = frontend::parseModule(text, "test.fir");
  if (module) return std::move(*module);
  ADD_FAILURE() << llvm::toString(module.takeError()) << "in\n" << text.str();
  return std::make_unique<Module>("broken");
}

void fuse(Module &module) {
  passes::PassOptions options;
  options.target.kind = DeviceKind::cuda, options.target.tier = ArchTier::sm90a;
  passes::PassContext context(options);
  if (auto error = passes::runPasses(module, {"layout", "fusion"}, context))
    ADD_FAILURE() << llvm::toString(std::move(error));
}

struct KernelChecker::Job {
  std::unique_ptr<Module> module;
  std::vector<SymbolValues> runs;
  Options options;
  FunctionKernels kernels;
  std::vector<std::string> entries; // names of the distinct kernels in the compiled text
};

KernelChecker::KernelChecker() = default;
KernelChecker::~KernelChecker() = default;

void KernelChecker::add(llvm::StringRef text, std::vector<Symbols> runs, Options options) {
  auto module = parseOrFail(text);
  fuse(*module);
  add(std::move(module), std::move(runs), options);
}

void KernelChecker::add(std::unique_ptr<Module> fused, std::vector<Symbols> runs, Options options) {
  auto job = std::make_unique<Job>();
  job->module = std::move(fused);
  for (const Symbols &symbols : runs) {
    job->runs.emplace_back();
    for (const auto &[name, value] : symbols) job->runs.back()[name] = value;
  }
  job->options = options;
  Target target;
  target.kind = DeviceKind::cuda;
  target.tier = options.tier;
  job->kernels = kernelsOf(*job->module, target);
  if (!options.mayRefuse)
    for (const auto &refused : job->kernels.refused) ADD_FAILURE() << refused.reason << "\n" << printOp(*refused.op);
  jobs_.push_back(std::move(job));
}

void KernelChecker::edit(llvm::StringRef from, llvm::StringRef to) {
  for (auto &job : jobs_)
    for (DistinctKernel &distinct : job->kernels.kernels) {
      std::string &source = distinct.kernel.source;
      size_t at = source.find(from.str(), source.find("// ---- " + distinct.kernel.name));
      if (at == std::string::npos)
        ADD_FAILURE() << "'" << from.str() << "' is not in " << distinct.kernel.name;
      else
        source.replace(at, from.size(), to.str());
    }
}

std::vector<const FunctionKernels *> KernelChecker::kernels() const {
  std::vector<const FunctionKernels *> all;
  for (const auto &job : jobs_) all.push_back(&job->kernels);
  return all;
}

namespace {

// --- tensors as bytes

GuardedBuffer bytesOf(const RefTensor &tensor) {
  GuardedBuffer buffer(tensor.data.size() * byteSize(tensor.dtype));
  for (int64_t i = 0; i < tensor.elements(); ++i) storeElement(tensor.dtype, buffer.data(), i, tensor.data[i]);
  return buffer;
}

struct Bounds {
  double relative, absolute; // of the value; of the tensor's largest magnitude
};
Bounds boundsOf(DType type) {
  switch (type) {
  case DType::f64: return {1e-11, 1e-12};
  case DType::bf16: return {1.0 / 120, 1e-3};
  case DType::f16: return {1.0 / 1000, 1e-4};
  case DType::f8e4m3: return {1.0 / 8, 1e-3};
  case DType::f8e5m2: return {1.0 / 4, 1e-3};
  default: return isFloat(type) ? Bounds{3e-5, 3e-6} : Bounds{0, 0};
  }
}

std::string compare(const RefTensor &expected, const GuardedBuffer &actual, double tolerance) {
  Bounds bounds = boundsOf(expected.dtype);
  double largest = 0;
  for (double v : expected.data)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  for (int64_t i = 0; i < expected.elements(); ++i) {
    double want = expected.data[i], have = loadElement(expected.dtype, actual.data(), i);
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    if (std::fabs(want - have) <= tolerance * (bounds.relative * std::fabs(want) + bounds.absolute * largest)) continue;
    return llvm::formatv("element {0} of {1} is {2}, the reference has {3} (largest {4})", i, expected.elements(),
                         realLiteral(have), realLiteral(want), realLiteral(largest))
        .str();
  }
  return "";
}

// --- one fusion

// The arrays of a multi-tensor kernel, as the run time builds them.
struct Table {
  std::vector<uint64_t> pointers;
  std::vector<long long> sizes, chunks = {0};
};

class FusionRun {
public:
  FusionRun(const EmulatedModule &module, const FunctionKernels::Fusion &fusion, llvm::ArrayRef<std::string> entries,
            const SymbolValues &symbols)
      : module_(module), fusion_(fusion), entries_(entries), symbols_(symbols) {}

  // Runs all kernels. `aliased`: outputs that may are the buffers of inputs.
  std::string run(llvm::ArrayRef<const RefTensor *> inputs, llvm::ArrayRef<RefTensor> expected, bool aliased,
                  double tolerance) {
    std::vector<GuardedBuffer> in, out, work;
    for (const RefTensor *tensor : inputs) in.push_back(bytesOf(*tensor));
    std::vector<GuardedBuffer *> outputs;
    for (const RefTensor &tensor : expected) out.emplace_back(tensor.data.size() * byteSize(tensor.dtype));
    for (GuardedBuffer &buffer : out) outputs.push_back(&buffer);
    if (aliased) {
      std::vector<bool> used(in.size());
      for (const InPlace &pair : fusion_.set.inPlace)
        if (!used[pair.input] && outputs[pair.output] == &out[pair.output]) {
          outputs[pair.output] = &in[pair.input];
          used[pair.input] = true;
        }
    }
    for (const Count &bytes : fusion_.set.workspaces) work.emplace_back(*bytes.evaluate(symbols_));
    Table table = tableFor(in, outputs);

    for (unsigned i = 0; i < fusion_.set.kernels.size(); ++i) {
      const Kernel &kernel = fusion_.set.kernels[i];
      int64_t blocks = *kernel.grid.evaluate(symbols_);
      if (fusion_.set.table && blocks == 0) blocks = table.chunks.back();
      if (kernel.skipWhereAliased && outputs[kernel.skipWhereAliased->second] == &in[kernel.skipWhereAliased->first])
        continue;
      if (blocks == 0) continue;
      std::vector<void *> values;
      std::vector<long long> numbers(kernel.args.size());
      const void *pointers[] = {table.pointers.data(), table.sizes.data(), table.chunks.data()};
      for (unsigned a = 0; a < kernel.args.size(); ++a) {
        const KernelArg &arg = kernel.args[a];
        switch (arg.kind) {
        case KernelArg::Kind::input: values.push_back(addressOf(in[arg.index])); break;
        case KernelArg::Kind::output: values.push_back(addressOf(*outputs[arg.index])); break;
        case KernelArg::Kind::workspace: values.push_back(addressOf(work[arg.index])); break;
        case KernelArg::Kind::symbol:
          numbers[a] = symbols_.lookup(arg.symbol);
          values.push_back(&numbers[a]);
          break;
        case KernelArg::Kind::tablePointers: values.push_back(&pointers[0]); break;
        case KernelArg::Kind::tableSizes: values.push_back(&pointers[1]); break;
        case KernelArg::Kind::tableChunks: values.push_back(&pointers[2]); break;
        case KernelArg::Kind::tableCount:
          numbers[a] = static_cast<long long>(fusion_.set.table->tensors.size());
          values.push_back(&numbers[a]);
          break;
        }
      }
      emulator::LaunchShape shape;
      shape.grid.x = blocks, shape.block.x = kernel.block, shape.sharedBytes = kernel.sharedBytes;
      if (auto error = module_.launch(entries_[fusion_.kernels[i]], shape, values))
        return llvm::toString(std::move(error));
      for (auto *buffers : {&in, &out, &work})
        for (GuardedBuffer &buffer : *buffers)
          if (auto error = buffer.check("kernel " + kernel.name)) return llvm::toString(std::move(error));
    }
    for (unsigned i = 0; i < expected.size(); ++i)
      if (std::string wrong = compare(expected[i], *outputs[i], tolerance); !wrong.empty())
        return llvm::formatv("output {0}: {1}", i, wrong).str();
    return "";
  }

private:
  static void *addressOf(const GuardedBuffer &buffer) {
    return const_cast<void *>(static_cast<const void *>(buffer.address()));
  }

  Table tableFor(llvm::ArrayRef<GuardedBuffer> in, llvm::ArrayRef<GuardedBuffer *> out) const {
    Table table;
    if (!fusion_.set.table) return table;
    const auto &tensors = fusion_.set.table->tensors;
    unsigned pointers = tensors.front().pointers.size();
    table.pointers.resize(pointers * tensors.size());
    for (unsigned t = 0; t < tensors.size(); ++t) {
      for (unsigned p = 0; p < pointers; ++p) {
        const auto &pointer = tensors[t].pointers[p];
        table.pointers[p * tensors.size() + t] =
            reinterpret_cast<uint64_t>(pointer.isOutput ? out[pointer.index]->data() : in[pointer.index].data());
      }
      table.sizes.push_back(*tensors[t].elements.evaluate(symbols_));
      table.chunks.push_back(table.chunks.back() + fusion_.set.table->chunks(t, table.sizes.back()));
    }
    if (fusion_.set.table->tileSide)
      for (const auto &tensor : tensors) table.sizes.push_back(tensor.columns);
    return table;
  }

  const EmulatedModule &module_;
  const FunctionKernels::Fusion &fusion_;
  llvm::ArrayRef<std::string> entries_;
  const SymbolValues &symbols_;
};

// --- a function, one op after the other

RefTensor randomTensor(const TensorType &type, const SymbolValues &symbols, const KernelChecker::Options &options,
                       uint64_t seed) {
  RefTensor tensor = llvm::cantFail(zeros(type, symbols));
  uint64_t key = rngKey(11, seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double v = isFloat(type.dtype) ? rngNormal(key, i)
               : type.dtype == DType::i1
                   ? static_cast<double>(rngUniform(key, i) < 0.5)
                   : static_cast<double>(options.lowest) +
                         std::floor(rngUniform(key, i) * static_cast<double>(options.classes - options.lowest));
    tensor.data[i] = type.dtype == DType::f32 ? static_cast<float>(v) : roundTo(type.dtype, v);
  }
  return tensor;
}

llvm::Expected<std::vector<RefTensor>> evaluateFusion(const Op &fusion, llvm::ArrayRef<const RefTensor *> inputs,
                                                      const SymbolValues &symbols) {
  Module module("reference");
  Function &function = module.addFunction("body");
  ValueMap map;
  std::vector<RefTensor> arguments;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    map[fusion.body()->argument(i).def()] =
        function.block().addArgument(inputs[i] ? fusion.operand(i).type() : TensorType(), "a");
    arguments.push_back(*inputs[i]);
  }
  cloneInto(function.block(), *fusion.body(), map, CloneTerminator::no);
  llvm::SmallVector<ReturnEntry, 4> returns;
  for (Value v : fusion.body()->terminator()->operands())
    returns.push_back({ReturnKind::result, "", map.lookup(v.def())});
  function.setReturns(returns);
  auto result = evaluate(function, arguments, {}, symbols);
  if (!result) return result.takeError();
  return std::move(result->results);
}

} // namespace

std::string KernelChecker::text() {
  std::string text;
  unsigned number = 0;
  for (auto &job : jobs_) {
    job->entries.clear();
    for (const DistinctKernel &distinct : job->kernels.kernels) {
      std::string entry = llvm::formatv("k{0}_{1}", number, distinct.kernel.name).str();
      llvm::StringRef source = distinct.kernel.source, name = distinct.kernel.name;
      size_t at = source.rfind("\n" + name.str() + "(");
      if (at == llvm::StringRef::npos) {
        ADD_FAILURE() << "no kernel " << name.str() << " in\n" << source.str();
        return text;
      }
      text += llvm::formatv("namespace k{0} {{\n{1}{2}{3}\n}\nusing k{0}::{2};\n", number, source.take_front(at + 1),
                            entry, source.drop_front(at + 1 + name.size()))
                  .str();
      job->entries.push_back(entry);
      ++number;
    }
  }
  return text;
}

void KernelChecker::run() {
  auto module = fusor::tests::testEmulator().compile(text());
  if (!module) FAIL() << llvm::toString(module.takeError());

  for (auto &job : jobs_)
    for (const SymbolValues &symbols : job->runs)
      for (const auto &function : job->module->functions()) {
        llvm::DenseMap<const ValueDef *, RefTensor> env;
        uint64_t seed = 0;
        for (Value v : function->block().arguments())
          env[v.def()] = randomTensor(v.type(), symbols, job->options, ++seed);
        for (Value v : function->reads()) {
          RefTensor &tensor = env[v.def()] = randomTensor(v.type(), symbols, job->options, ++seed);
          if (isFloat(v.dtype()))
            for (double &x : tensor.data) x = roundTo(v.dtype(), x * job->options.deviation);
          if (v.name().startswith("adamw.v.") || v.name() == "adamw.step") // no state a run could be in, else
            for (double &x : tensor.data) x = std::fabs(x) + (v.name() == "adamw.step");
        }
        for (const Op &op : function->block().ops()) {
          if (op.def().isTerminator) continue;
          std::vector<const RefTensor *> inputs;
          for (Value v : op.operands()) inputs.push_back(v ? &env[v.def()] : nullptr);
          std::vector<RefTensor> outputs;
          if (op.is("fusion")) {
            auto evaluated = evaluateFusion(op, inputs, symbols);
            if (!evaluated) FAIL() << llvm::toString(evaluated.takeError());
            outputs = std::move(*evaluated);
            for (const auto &fusion : job->kernels.fusions) {
              if (fusion.op != &op) continue;
              FusionRun one(*module, fusion, job->entries, symbols);
              for (bool aliased : {false, true}) {
                if (aliased && (fusion.set.inPlace.empty() || !job->options.inPlaceToo)) continue;
                std::string wrong = one.run(inputs, outputs, aliased, job->options.tolerance);
                if (wrong.empty()) continue;
                std::string where;
                for (const auto &entry : symbols)
                  where += llvm::formatv(" {0}={1}", entry.getKey(), entry.getValue()).str();
                llvm::StringRef source = fusion.set.kernels.front().source;
                ADD_FAILURE() << wrong << (aliased ? ", in place" : "") << ", with" << where << "\n"
                              << printOp(op) << "\n"
                              << source.substr(source.find("// ---- " + fusion.set.kernels.front().name)).str();
                break;
              }
            }
          } else {
            for (Value v : op.results()) outputs.push_back(llvm::cantFail(zeros(v.type(), symbols)));
            if (auto error = evaluateOp(op.site(), inputs, outputs, symbols))
              FAIL() << llvm::toString(std::move(error));
          }
          for (unsigned i = 0; i < outputs.size(); ++i) {
            if (outputs[i].dtype == DType::f32) // what memory holds
              for (double &v : outputs[i].data) v = static_cast<float>(v);
            env[op.result(i).def()] = std::move(outputs[i]);
          }
        }
      }
}

} // namespace fusor::codegen::tests
