#include "codegen/emit/body.h"
#include "ir/graph/clone.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr unsigned kMostOfAChain = 48;

void rename(Block &block, Naming naming) {
  NamePool names;
  unsigned number = 0;
  auto give = [&](Value v, llvm::StringRef otherwise) {
    if (naming == Naming::canonical)
      v.setName("v" + std::to_string(++number));
    else
      v.setName(names.make(v.name().empty() ? otherwise : v.name()));
  };
  for (Value argument : block.arguments()) give(argument, "x");
  for (Op &op : block.ops())
    for (Value result : op.results()) give(result, op.name());
}

} // namespace

llvm::Expected<FusionBody> fusionBody(const Op &fusion, Naming naming) {
  FusionBody body;
  if (!fusion.site().has("kind")) return opError("fusion has no kind: it did not come from passes/fusion");
  auto kind = parseClusterKind(fusion.attr<std::string>("kind"));
  if (!kind) return opError("fusion of unknown kind '{0}'", fusion.attr<std::string>("kind"));
  body.kind = *kind;
  body.chain =
      fusion.site().has("name") ? identifierFrom(fusion.attr<std::string>("name"), kMostOfAChain) : name(*kind).str();

  body.module = std::make_unique<Module>("kernel");
  Block &block = body.module->addFunction("fusion").block();
  ValueMap map;
  for (Value operand : fusion.operands())
    if (!map.count(operand.def())) map[operand.def()] = block.addArgument(operand.type(), operand.name());
  body.fusion = cloneInto(block, fusion, map);
  rename(body.block(), naming);
  if (*kind == ClusterKind::multiTensor) return body;
  auto flat = flatten(*body.fusion);
  if (!flat) return flat.takeError();
  body.flat = std::move(*flat);
  return body;
}

} // namespace fusor::codegen
