#include "frontend/api/config_file.h"
#include "frontend/api/errors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fusor::frontend {
namespace {

struct Field {
  const char *key;
  int64_t nn::GptConfig::*member;
};
constexpr Field kFields[] = {{"vocab", &nn::GptConfig::vocab}, {"width", &nn::GptConfig::width},
                             {"heads", &nn::GptConfig::heads}, {"layers", &nn::GptConfig::layers},
                             {"ffn", &nn::GptConfig::ffn},     {"context", &nn::GptConfig::context}};

} // namespace

llvm::json::Object toJson(const nn::GptConfig &config) {
  llvm::json::Object object;
  for (const Field &f : kFields) object[f.key] = config.*f.member;
  return object;
}

llvm::Expected<nn::GptConfig> configFromJson(const llvm::json::Object &object, llvm::StringRef where) {
  nn::GptConfig config;
  for (const Field &f : kFields) {
    const llvm::json::Value *value = object.get(f.key);
    if (!value) return inputError("{0}: \"{1}\" is missing", where, f.key);
    auto number = value->getAsInteger();
    if (!number || *number < 1 || *number > (int64_t(1) << 31))
      return inputError("{0}: \"{1}\" must be a whole number of at least 1, is {2}", where, f.key,
                        llvm::formatv("{0}", *value).str());
    config.*f.member = *number;
  }
  for (const auto &entry : object)
    if (llvm::none_of(kFields, [&](const Field &f) { return entry.first == f.key; }))
      return inputError("{0}: there is no setting \"{1}\"; there are vocab, width, heads, layers, ffn and context",
                        where, entry.first.str());
  if (auto error = nn::check(config)) return inputError("{0}: {1}", where, llvm::toString(std::move(error)));
  return config;
}

llvm::Expected<nn::GptConfig> loadConfig(llvm::StringRef name) {
  if (auto config = nn::configuration(name)) return *config;
  if (!name.endswith(".json")) {
    auto names = llvm::map_range(nn::configurations(), [](const nn::NamedConfig &c) { return std::string(c.name); });
    return inputError("there is no configuration '{0}'; there are {1}, or give a FILE.json", name,
                      llvm::join(names, ", "));
  }
  auto text = llvm::MemoryBuffer::getFile(name, /*IsText=*/true);
  if (!text) return inputError("cannot read '{0}': {1}", name, text.getError().message());
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json) return inputError("{0}: {1}", name, llvm::toString(json.takeError()));
  const llvm::json::Object *object = json->getAsObject();
  if (!object) return inputError("{0}: must be an object with vocab, width, heads, layers, ffn and context", name);
  return configFromJson(*object, name);
}

} // namespace fusor::frontend
