"use strict";
// The tables: GEMMs, kernels, decisions, passes.

function gemmsView({selectGemm}) {
  if (!report.gemms.length) return {element: h("p", {class: "nothing"}, has("gemms.json") ? "This function has no GEMM." : "This dump has no gemms.json.")};
  const counts = new Map();
  for (const gemm of report.gemms) {
    const kind = gemm.fp8 ? "fp8" : gemm.compute || "?";
    counts.set(kind, (counts.get(kind) || 0) + 1);
  }
  const columns = [
    {name: "role"}, {name: "result", label: true, show: g => h("code", {}, g.result || "")},
    {name: "ms", title: "time", number: true, show: g => known(g.ms, format.ms)},
    {name: "compute", title: "computes in", show: g => chip(g.compute || "?", g.fp8 ? "fp8" : "")},
    {name: "shape", title: "m × n × k", number: true, value: g => (g.m === undefined ? undefined : g.m * g.n * g.k), show: shapeOf},
    {name: "tflops", title: "rate", number: true, show: g => known(g.tflops, v => format.flopRate(v * 1e9))},
    {name: "layer", show: g => g.layer || ""},
    {name: "why_not_fp8", title: "why not FP8", wide: true, show: g => (g.fp8 ? "" : g.why_not_fp8 || "not said")},
    {name: "algorithm", label: true, show: g => known(g.algorithm)},
    {name: "operands", label: true, show: g => h("code", {}, g.operands || "")},
  ];
  const list = table({name: "gemms", columns, rows: report.gemms, select: selectGemm, sort: report.gemms.some(g => g.ms !== undefined) ? "-ms" : undefined});
  const reasons = new Map();
  for (const gemm of report.gemms) if (!gemm.fp8 && gemm.why_not_fp8) reasons.set(gemm.why_not_fp8, (reasons.get(gemm.why_not_fp8) || 0) + 1);
  return {element: h("div", {class: "scroll"},
    h("p", {class: "summary"}, h("b", {}, format.count(report.gemms.length)), " GEMMs a step: ",
      [...counts].map(([kind, count]) => [chip(`${count} in ${kind}`, kind === "fp8" ? "fp8" : ""), " "])),
    reasons.size ? h("ul", {class: "plain reasons"}, [...reasons].map(([why, count]) => h("li", {}, h("b", {}, count), " not in FP8: ", why))) : null, list.element)};
}

function kernelsView({panel}) {
  if (!report.kernels.length) {
    const names = new Map();
    for (const step of report.steps) names.set(step.name, [...(names.get(step.name) || []), step]);
    if (!names.size) return {element: h("p", {class: "nothing"}, "This dump has no kernels.")};
    const rows = [...names].map(([name, steps]) => ({name, steps, kind: steps[0].kind}));
    return {element: h("div", {class: "scroll"}, h("p", {class: "summary"}, "This run generated no CUDA kernels: these are the launches by name."),
      table({name: "kernels", columns: kernelColumns(), rows, select: row => panel.step(row.steps[0]), sort: stepMs === undefined ? "-count" : "-ms"}).element)};
  }
  const rows = report.kernels.map(kernel => ({name: kernel.name, kind: kernel.kind, kernel, steps: kernel.steps.map(i => report.steps[i])}));
  const list = table({name: "kernels", columns: [...kernelColumns(),
    {name: "registers", number: true, value: r => r.kernel.registers, show: r => known(r.kernel.registers)},
    {name: "shared", number: true, value: r => r.kernel.static_shared_bytes, show: r => known(r.kernel.static_shared_bytes === undefined && r.kernel.shared_bytes === undefined ? undefined : (r.kernel.static_shared_bytes || 0) + (r.kernel.shared_bytes || 0), format.bytes)},
    {name: "spills", number: true, value: r => r.kernel.spill_bytes, show: r => known(r.kernel.spill_bytes, format.bytes)},
    {name: "saved", title: "saved by fusion", number: true, value: r => r.kernel.bytes_saved, show: r => known(r.kernel.bytes_saved, format.bytes)},
  ], rows, select: row => panel.kernel(row.kernel), sort: stepMs === undefined ? "-count" : "-ms"});
  const others = report.steps.filter(step => step.kernel === undefined);
  return {element: h("div", {class: "scroll"}, h("p", {class: "summary"}, h("b", {}, format.count(rows.length)), " generated kernels, ",
    h("b", {}, format.count(report.steps.length - others.length)), " launches of them a step", others.length ? ` and ${format.count(others.length)} launches of libraries or copies` : "", "."), list.element)};
}
function kernelColumns() {
  const total = row => sumOf(row.steps, "ms");
  const rate = row => gbPerSecond(sumOf(row.steps, "bytes"), total(row));
  const roofline = row => {
    const measured = row.steps.filter(s => s.ms !== undefined && s.roofline_percent !== undefined);
    return measured.length ? measured.reduce((sum, s) => sum + s.ms * s.roofline_percent, 0) / sumOf(measured, "ms") : undefined;
  };
  return [
    {name: "name", title: "kernel", label: true, show: r => [h("i", {class: "dot", style: `background:${kindColour(r.kind)}`}), h("code", {}, r.name)]},
    {name: "count", number: true, value: r => r.steps.length, show: r => format.count(r.steps.length)},
    {name: "ms", title: "time a step", number: true, value: total, show: r => known(total(r), format.ms)},
    {name: "share", title: "of step", number: true, value: total, show: r => (total(r) === undefined || !stepMs ? known(undefined) : format.percent(100 * total(r) / stepMs))},
    {name: "kind", show: r => r.kind || ""},
    {name: "rate", title: "GB/s", number: true, value: rate, show: r => known(rate(r), format.rate)},
    {name: "roofline", title: "% of roofline", number: true, value: roofline, show: r => bar(roofline(r))},
  ];
}

function decisionsView({selectDecision}) {
  if (!report.decisions.length) return {element: h("p", {class: "nothing"}, has("fusions.json") ? "No decision was recorded." : "This dump has no fusions.json.")};
  const kinds = [...new Set(report.decisions.map(d => d.kind))];
  const on = new Set(kinds);
  let text = "";
  const filter = h("input", {type: "search", placeholder: "filter by rule, reason, name", "aria-label": "Filter the decisions"});
  const count = h("span", {class: "found", role: "status"});
  const boxes = kinds.map(kind => h("label", {}, h("input", {type: "checkbox", checked: true, onchange: event => {
    if (event.target.checked) on.add(kind); else on.delete(kind);
    apply();
  }}), " ", chip(`${report.decisions.filter(d => d.kind === kind).length} ${kind}`, "d-" + kind.replace(/ /g, "-"))));
  const columns = [
    {name: "kind", show: d => chip(d.kind, "d-" + d.kind.replace(/ /g, "-"))},
    {name: "rule"},
    {name: "bytes_saved", title: "bytes", about: "Saved, or what it would have saved", number: true, show: d => (d.bytes_saved ? format.bytes(d.bytes_saved) : d.bytes_saved === undefined ? known(undefined) : "0")},
    {name: "reason", wide: true},
    {name: "subject", title: "about", wide: true, show: d => h("code", {class: "clamp", title: d.subject || ""}, d.subject || "")},
    {name: "location", show: d => h("code", {}, d.location || "")},
  ];
  const list = table({name: "decisions", columns, rows: report.decisions, select: selectDecision});
  function apply() {
    list.filter(d => on.has(d.kind) && (!text || [d.rule, d.reason, d.subject, d.location].some(part => part && part.toLowerCase().includes(text))));
    count.textContent = `${format.count(list.count())} of ${format.count(report.decisions.length)}`;
  }
  whenTyped(filter, value => { text = value.toLowerCase(); apply(); });
  apply();
  return {element: h("div", {class: "scroll"}, h("div", {class: "bar"}, filter, count, boxes), list.element)};
}

function passesView() {
  if (!report.passes.length) return {element: h("p", {class: "nothing"}, "This dump has no modules/index.json.")};
  const columns = [
    {name: "index", title: "#", number: true, show: p => known(p.index)},
    {name: "pass", show: p => h("b", {}, p.pass || "")},
    {name: "changed", show: p => (p.changed ? "yes" : "no")},
    {name: "ops", title: "ops after", number: true, show: p => (p.ops === undefined && !p.changed ? "" : known(p.ops, format.count))},
    {name: "added", title: "lines added", number: true, show: p => (p.added === undefined ? (p.changed ? known(undefined) : "") : "+" + format.count(p.added))},
    {name: "removed", title: "removed", number: true, show: p => (p.removed === undefined ? (p.changed ? known(undefined) : "") : "−" + format.count(p.removed))},
    {name: "ms", title: "time", number: true, show: p => known(p.ms, format.ms)},
    {name: "file", show: p => h("code", {}, p.file ? "modules/" + p.file : "")},
    {name: "why", title: "why it stands there", wide: true, show: p => p.why || ""},
  ];
  return {element: h("div", {class: "scroll"}, table({name: "passes", columns, rows: report.passes}).element)};
}
