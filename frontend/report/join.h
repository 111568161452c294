// The data of a page: everything in a dump folder, joined. Launches know their node of the graph, their kernel and
// their GEMM; ops before fusion the node they became part of; decisions the nodes they are about.
#pragma once
#include "frontend/report/dump_files.h"

namespace fusor::frontend {

/// {"run", "passes", "kernels", "gemms", "memory", "fp8" as in sections.h,
///  "graphs": {"before", "after": {"pass", "file", "function", "nodes": [GraphNode::json, "after": node it went
///  into]}}, "steps": [{"name", "kind", "kernel": index, "gemm": index, "node": index of after, "layer", "reads",
///  "writes",
///             "bytes", "flops", "ms", "start_ms", "roofline_percent", "ir", "locations"}],
///  "decisions": [{"kind", "rule", "function", "subject", "location", "reason", "bytes_saved", "before": [nodes],
///                 "after": [nodes]}],
///  "has": [files of the schema that the folder has]}
llvm::Expected<llvm::json::Object> pageData(const DumpFiles &folder);

} // namespace fusor::frontend
