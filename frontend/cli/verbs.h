// The verbs, one file each; every one returns the exit code.
#pragma once
#include "frontend/cli/options.h"

namespace fusor::frontend::cli {

int doctor(const CommonOptions &common);
int demo(const CommonOptions &common);
int train(const CommonOptions &common, const TrainOptions &options);
int generate(const CommonOptions &common, const GenerateOptions &options);
int bench(const CommonOptions &common, const BenchOptions &options);
int opt(const CommonOptions &common, const OptOptions &options);
int explain(const CommonOptions &common, const ExplainOptions &options);
int emit(const CommonOptions &common, const EmitOptions &options);
int run(const CommonOptions &common, const RunOptions &options);
int importModel(const CommonOptions &common, const ImportOptions &options);
int report(const CommonOptions &common, const ReportOptions &options);
int ops(const CommonOptions &common, const OpsOptions &options);
int fuzz(const CommonOptions &common, const FuzzOptions &options);
int replay(const CommonOptions &common, const ReplayOptions &options);
int cache(const CommonOptions &common, const CacheOptions &options);

} // namespace fusor::frontend::cli
