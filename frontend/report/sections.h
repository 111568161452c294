// The parts of a page's data that come from one file of the folder each. Only fields that the page knows are taken,
// and only where they have the type it expects: a number that is missing stays missing ("not measured").
#pragma once
#include "frontend/report/dump_files.h"

namespace fusor::frontend {

/// dump.json: {"verb", "function", "config", "precision", "device", "arch", "tier", "symbols": [{"name","value"}],
/// "peak_bytes", "launches_per_step", "step_ms", "back_to_back_ms", "idle_ms", "roofline": {"bytes_per_ms", "source",
/// "flops": [{"type", "per_ms"}]}}
llvm::json::Object runSection(const DumpFiles &folder);

/// modules/index.json: [{"index","pass","why","changed","file","ms","ops","added","removed"}]
llvm::json::Array passesSection(const DumpFiles &folder);

/// kernels/*/kernel.json and kernel.cu: [{..., "source": [paragraphs]}]. Equal paragraphs (the device library) are
/// stored once by compact.h.
llvm::json::Array kernelsSection(const DumpFiles &folder);

/// gemms.json: as it is.
llvm::json::Array gemmsSection(const DumpFiles &folder);

/// plan.json: {"peak_bytes", ..., "live": [bytes at step i], "buffers": [{"names", "type", "place", "offset", "bytes",
/// "first", "last", "why"}]}
llvm::json::Object memorySection(const DumpFiles &folder);

/// fp8_trace.jsonl and fp8_stats.json: {"steps": [n], "loss": [x], "left_out": n, "tensors": [{"name", "amax": [one a
/// step], "scale": [...], "clipped", "underflow"}]}. Of more than 120 steps evenly many are taken.
llvm::json::Object fp8Section(const DumpFiles &folder);

/// Copies the fields `texts` of `from` that are text (or a number, as text) and the fields `numbers` that are numbers
/// or truth values.
llvm::json::Object picked(const llvm::json::Object &from, llvm::ArrayRef<llvm::StringRef> texts,
                          llvm::ArrayRef<llvm::StringRef> numbers);
/// The strings of field `key`, an array.
std::vector<std::string> stringsOf(const llvm::json::Object &object, llvm::StringRef key);
/// "a b\nc" from a text, or from an array of lines.
std::string linesText(const llvm::json::Object &object, llvm::StringRef key);

} // namespace fusor::frontend
