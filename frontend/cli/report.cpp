// fusor report: a page from a dump folder.
#include "frontend/report/report.h"
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"

namespace fusor::frontend::cli {

int report(const CommonOptions &common, const ReportOptions &options) {
  Console console(common);
  auto written = writeReport(options.folder, options.output);
  if (!written) return console.fail(written.takeError());
  console.object({{"file", written->path}, {"bytes", static_cast<int64_t>(written->bytes)}});
  console.result(written->path + ": " + bytesText(static_cast<int64_t>(written->bytes)));
  return 0;
}

} // namespace fusor::frontend::cli
