// fusor replay: compile a dumped kernel as it is now, run it on its dumped inputs, compare, time; and perhaps let it
// stand in for the generated one in later runs.
#include "frontend/cli/console.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "frontend/replay/comparison.h"
#include "frontend/replay/kernel_runner.h"
#include "ir/graph/literal.h"
#include "runtime/cache/edited_kernel.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend::cli {
namespace {

/// Both texts of the step's kernels, run one after the other.
struct Replayed {
  ReplayedRun now, original;
  bool isEmulated = false;
};

llvm::Expected<std::string> cacheRoot(const CommonOptions &common) {
  std::string root = common.cache.empty() ? runtime::Cache::defaultRoot() : common.cache;
  if (root.empty()) return inputError("there is no cache folder: set FUSOR_CACHE_DIR, XDG_CACHE_HOME or HOME");
  return root;
}

llvm::Expected<Replayed> runBoth(Console &console, const CommonOptions &common, const ReplayCase &given) {
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  auto now = [&](const std::string &kernel) { return llvm::StringRef(given.texts.at(kernel).now); };
  auto original = [&](const std::string &kernel) { return llvm::StringRef(given.texts.at(kernel).original); };
  Replayed replayed;
  replayed.isEmulated = device->target.kind == ir::DeviceKind::cpu;
  std::function<llvm::Expected<ReplayedRun>(TextOf)> run;
  runtime::CudaPlatform platform;
  if (replayed.isEmulated) {
    auto root = cacheRoot(common);
    if (!root) return root.takeError();
    int64_t threads = 0;
    for (const ReplayedLaunch &launch : given.launches) threads += int64_t(launch.grid) * launch.block;
    console.note("no GPU is used: " + llvm::Twine(threads) + " threads run in the emulator, its times are not a GPU's");
    run = [&given, folder = *root + "/emulator"](TextOf text) { return runInEmulator(given, text, folder); };
  } else {
    runtime::CompileOptions options;
    options.device = device->ordinal, options.ownGemm = true, options.cacheDir = common.cache;
    auto opened = runtime::openCudaPlatform(device->target, options);
    if (!opened) return opened.takeError();
    platform = std::move(*opened);
    run = [&](TextOf text) { return runOnGpu(given, text, platform); };
  }
  auto first = run(original);
  if (!first) return first.takeError();
  replayed.original = std::move(*first);
  auto second = run(now);
  if (!second) return second.takeError();
  replayed.now = std::move(*second);
  return replayed;
}

std::string number(double value) { return llvm::formatv("{0}", llvm::format("%.6g", value)).str(); }

std::string firstText(const Difference &d, const HostTensor &tensor, const char *before) {
  return llvm::formatv("{0} of {1} elements differ, by at most {2} ({3} of the value); the first is {4}: {5}, {6} {7}",
                       d.differing, tensor.elements(), number(d.absolute), number(d.relative),
                       indexText(d.first, tensor.shape), ir::realLiteral(d.found), before, ir::realLiteral(d.expected));
}

llvm::json::Object json(const Difference &d, const HostTensor &tensor) {
  llvm::json::Object object{{"max_abs", d.absolute}, {"max_rel", d.relative}, {"differing", d.differing}};
  if (d.differing == 0) return object;
  llvm::json::Array index;
  int64_t rest = d.first;
  for (int64_t size : llvm::reverse(tensor.shape)) index.insert(index.begin(), rest % size), rest /= size;
  object["first"] = std::move(index);
  if (std::isfinite(d.found)) object["found"] = d.found;
  if (std::isfinite(d.expected)) object["expected"] = d.expected;
  return object;
}

/// Says it of each output; false where one is further from the reference than --check allows.
llvm::Expected<bool> compareAll(Console &console, const ReplayCase &given, const Replayed &replayed,
                                llvm::json::Object &result) {
  auto reference = referenceOf(given);
  if (!reference) return reference.takeError();
  auto returns = given.function().returns();
  bool agrees = true, sameBits = true;
  llvm::json::Array outputs;
  for (unsigned i = 0; i < given.outputs.size(); ++i) {
    HostTensor tensor = given.outputs[i];
    double allowed = allowedFor(given, i, (*reference)[i]);
    Difference fromReference = differenceOf(tensor.dtype, replayed.now.outputs[i], (*reference)[i], allowed);
    Difference fromOriginal = differenceOf(tensor.dtype, replayed.now.outputs[i], replayed.original.outputs[i]);
    Difference fromRun = differenceOf(tensor.dtype, replayed.now.outputs[i], tensor.bytes);
    agrees &= fromReference.differing == 0, sameBits &= fromOriginal.differing == 0;
    console.result(llvm::formatv("output {0}, %{1} : {2}", i, returns[i].value.name(), tensor.view().typeText()).str());
    std::string apart =
        fromReference.differing
            ? firstText(fromReference, tensor, "it is") + ", " + number(allowed) + " may be"
            : llvm::formatv("agrees: at most {0} apart ({1} of the value), {2} may be", number(fromReference.absolute),
                            number(fromReference.relative), number(allowed))
                  .str();
    console.result("  from the reference  " + apart);
    console.result("  from the original   " + (fromOriginal.differing ? firstText(fromOriginal, tensor, "it was")
                                                                      : std::string("equal bit for bit")));
    console.result("  from the dump's run " +
                   (fromRun.differing ? firstText(fromRun, tensor, "it was") : std::string("equal bit for bit")));
    llvm::json::Object entry{{"name", returns[i].value.name()},
                             {"type", tensor.view().typeText()},
                             {"allowed", allowed},
                             {"from_reference", json(fromReference, tensor)},
                             {"from_original", json(fromOriginal, tensor)},
                             {"from_run", json(fromRun, tensor)}};
    outputs.push_back(std::move(entry));
  }
  result["outputs"] = std::move(outputs), result["agrees"] = agrees, result["same_bits"] = sameBits;
  return agrees;
}

llvm::Error install(Console &console, const CommonOptions &common, const std::string &name, const KernelText &text,
                    bool agrees) {
  auto root = cacheRoot(common);
  if (!root) return root.takeError();
  auto cache = runtime::Cache::open(*root);
  if (!cache) return cache.takeError();
  if (!text.isEdited()) return inputError("kernel '{0}' is not edited: there is nothing to install", name);
  if (auto error = (*cache)->put(runtime::kEditedKernel, runtime::editedKernelKey(text.original), text.now))
    return error;
  if (!agrees) console.warning("kernel '" + name + "' is installed though it differs from its reference");
  console.warning("runs on a GPU that would use kernel '" + name +
                  "' use its edited text from now on; --uninstall, or `fusor " +
                  "cache clear`, ends that; --strict refuses it");
  return llvm::Error::success();
}

llvm::Error uninstall(Console &console, const CommonOptions &common, const ReplayOptions &o) {
  auto text = readKernelText(o.folder);
  if (!text) return text.takeError();
  auto root = cacheRoot(common);
  if (!root) return root.takeError();
  auto cache = runtime::Cache::open(*root);
  if (!cache) return cache.takeError();
  auto removed = (*cache)->remove(runtime::kEditedKernel, runtime::editedKernelKey(text->original));
  if (!removed) return removed.takeError();
  if (!*removed) return inputError("'{0}': no edited text is installed for this kernel", o.folder);
  console.result("the generated kernel is used again");
  console.object({{"uninstalled", o.folder}});
  return llvm::Error::success();
}

llvm::Expected<bool> replayKernel(Console &console, const CommonOptions &common, const ReplayOptions &o) {
  if (o.installs && common.strict)
    return failure(ErrorKind::usage, "--strict runs no edited kernels: it goes with no --install");
  auto given = readReplayCase(o.folder);
  if (!given) return given.takeError();
  auto replayed = runBoth(console, common, *given);
  if (!replayed) return replayed.takeError();
  std::string edited;
  for (const auto &[kernel, text] : given->texts)
    if (text.isEdited()) edited += (edited.empty() ? "" : ", ") + kernel;
  console.result("kernel " + given->name +
                 (given->texts.size() > 1 ? llvm::formatv(", one of {0} of its step", given->texts.size()).str() : "") +
                 ": " + (edited.empty() ? "as it was written" : "edited (" + edited + ")"));
  llvm::json::Object result{{"kernel", given->name},
                            {"edited", !edited.empty()},
                            {"emulated", replayed->isEmulated},
                            {"ms", replayed->now.ms},
                            {"original_ms", replayed->original.ms}};
  auto agrees = compareAll(console, *given, *replayed, result);
  if (!agrees) return agrees.takeError();
  console.result(llvm::formatv("time: {0} ms, the original {1} ms{2}{3}", number(replayed->now.ms),
                               number(replayed->original.ms), given->texts.size() > 1 ? ", of the whole step" : "",
                               replayed->isEmulated ? " (in the emulator: not a GPU's times)" : "")
                     .str());
  console.object(std::move(result));
  if (o.installs)
    if (auto error = install(console, common, given->name, given->texts.at(given->name), *agrees)) return error;
  return agrees;
}

} // namespace

int replay(const CommonOptions &common, const ReplayOptions &options) {
  Console console(common);
  if (options.uninstalls) return console.fail(uninstall(console, common, options));
  auto agrees = replayKernel(console, common, options);
  if (!agrees) return console.fail(agrees.takeError());
  return *agrees ? 0 : 1;
}

} // namespace fusor::frontend::cli
