// A fusion's body with names that kernels can use, ready for the plans.
//
// Names of values become identifiers (names.h), so that the header of a kernel and its variables agree; or, under
// Naming::canonical, v1, v2, ... in order: two fusions are the same kernel when their canonical texts are equal, as
// those of identical layers are.
#pragma once
#include "codegen/emit/names.h"
#include "codegen/plan/cluster.h"

namespace fusor::codegen {

enum class Naming : uint8_t { pretty, canonical };

struct FusionBody {
  std::unique_ptr<ir::Module> module; // holds `fusion`, a copy with the new names
  ir::Op *fusion = nullptr;
  FlatCluster flat; // absent (function == null) for multi-tensor fusions, which have their own plan
  ClusterKind kind = ClusterKind::pointwise;
  std::string chain; // "linear_gelu", an identifier

  ir::Block &block() const { return *fusion->body(); }
};

/// Errors: no kind, an unknown kind, or a body that does not flatten.
llvm::Expected<FusionBody> fusionBody(const ir::Op &fusion, Naming naming);

} // namespace fusor::codegen
