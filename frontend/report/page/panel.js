"use strict";
// The details at the side: of a node, a layer, a kernel, or a tensor in FP8.

/** Takes {show(side, node), showStep(step)}: how to go to what a link names. Gives {node, layer, kernel, tensor, welcome}. */
function detailsPanel(element, go) {
  const fill = (...children) => {
    element.replaceChildren();
    add(element, children);
    element.scrollTop = 0;
    element.classList.add("filled");
  };
  const close = () => h("button", {type: "button", class: "close", "aria-label": "Close the details", onclick: welcome}, "×");
  const link = (text, act) => h("button", {type: "button", class: "link", onclick: act}, text);
  const facts = rows => h("dl", {class: "rows"}, rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  const section = (title, ...children) => h("section", {}, h("h3", {}, title), children);
  const list = items => h("ul", {class: "plain"}, items.map(item => h("li", {}, item)));

  /** Nothing selected: the panel takes no room. */
  function welcome() {
    element.classList.remove("filled");
    element.replaceChildren();
  }

  /** Of all launches of a node: time, traffic, share of the roofline. */
  function work(steps) {
    const ms = sumOf(steps, "ms"), bytes = sumOf(steps, "bytes"), flops = sumOf(steps, "flops");
    const rate = gbPerSecond(bytes, ms);
    return facts([
      ["time", [known(ms, format.ms), ms !== undefined && stepMs ? h("small", {}, ` ${format.percent(100 * ms / stepMs)} of the step`) : ""]],
      ["bytes moved", [known(bytes, format.bytes), rate === undefined ? "" : h("small", {}, ` ${format.rate(rate)} GB/s`)]],
      ["FLOPs", [known(flops, format.flops), flops !== undefined && ms ? h("small", {}, " " + format.flopRate(flops / ms)) : ""]],
      ["of the roofline", roofline(steps)],
    ]);
  }
  /** Time of the roofline beside time taken, over launches that were measured; what bounds it, where that is known. */
  function roofline(steps) {
    const measured = steps.filter(s => s.ms !== undefined && s.roofline_percent !== undefined);
    if (!measured.length) return known(undefined);
    const ms = sumOf(measured, "ms");
    const ideal = measured.reduce((sum, s) => sum + s.ms * s.roofline_percent / 100, 0);
    const [bytesMs, flopsMs] = boundsOf(measured);
    const bound = bytesMs === undefined || flopsMs === undefined ? "" :
      h("small", {}, ` ${bytesMs >= flopsMs ? "memory" : "arithmetic"} bound: ${format.ms(Math.max(bytesMs, flopsMs))} of ${format.ms(ms)}`);
    return [bar(100 * ideal / ms, "time at the device's measured peak / time taken"), bound];
  }
  /** Milliseconds that bytes and FLOPs take at the device's rates. */
  function boundsOf(steps) {
    const rates = report.run.roofline || {}, flopsRate = type => ((rates.flops || []).find(r => r.type === type) || {}).per_ms;
    let bytesMs, flopsMs;
    for (const s of steps) {
      const gemm = s.gemm === undefined ? undefined : report.gemms[s.gemm];
      const rate = flopsRate(!gemm ? "f32" : gemm.fp8 ? "fp8" : gemm.compute);
      if (s.bytes !== undefined && rates.bytes_per_ms) bytesMs = (bytesMs || 0) + s.bytes / rates.bytes_per_ms;
      if (s.flops !== undefined && rate) flopsMs = (flopsMs || 0) + s.flops / rate;
    }
    return [bytesMs, flopsMs];
  }

  const isCpu = report.run.device === "cpu";
  const launchFacts = kernel => facts([
    ["grid", [known(kernel.grid), kernel.grid_blocks === undefined ? "" : h("small", {}, ` = ${format.count(kernel.grid_blocks)} blocks`)]],
    ["block", [known(kernel.block), kernel.block === undefined ? "" : h("small", {}, " threads")]],
    ["registers", known(kernel.registers)],
    ["shared memory", [known(kernel.shared_bytes === undefined && kernel.static_shared_bytes === undefined ? undefined :
      (kernel.shared_bytes || 0) + (kernel.static_shared_bytes || 0), format.bytes)]],
    ["spilled", known(kernel.spill_bytes, format.bytes)],
    ["read", known(kernel.bytes_read, format.bytes)],
    ["written", known(kernel.bytes_written, format.bytes)],
    ["saved by fusion", known(kernel.bytes_saved, format.bytes)],
  ]);

  /** The kernel's own text; the parts of the device library in front of it stand folded behind. */
  function source(kernel) {
    if (!kernel.source || !kernel.source.length) return h("p", {class: "unknown"}, "No source in this dump.");
    const text = kernel.source.join("\n\n"), mark = `// ---- ${kernel.name} ----\n`, at = text.lastIndexOf(mark);
    const own = at < 0 ? text : text.slice(at + mark.length), library = at < 0 ? "" : text.slice(0, at);
    const box = h("div", {class: "source", "data-source": kernel.name}, code(own, cudaTokens));
    if (library) {
      const lines = library.split("\n").length - 1;
      const rest = h("details", {}, h("summary", {}, `the device library it uses, ${format.count(lines)} lines in front of it`));
      rest.addEventListener("toggle", () => { if (rest.open && rest.children.length === 1) rest.append(code(library, cudaTokens)); });
      box.append(rest);
    }
    return box;
  }

  function kernelSection(kernel, isOpen, steps) {
    const box = h("details", {class: "kernel", open: isOpen, "data-kernel": kernel.name},
      h("summary", {}, h("code", {}, kernel.name), " ",
        steps && steps.length ? h("small", {}, known(sumOf(steps, "ms"), format.ms)) : ""));
    const draw = () => {
      if (box.children.length > 1) return;
      add(box, [launchFacts(kernel), source(kernel), args(kernel)]);
    };
    if (isOpen) draw();
    box.addEventListener("toggle", () => { if (box.open) draw(); });
    return box;
  }
  function args(kernel) {
    if (!kernel.arguments || !kernel.arguments.length) return null;
    return h("details", {}, h("summary", {}, `${kernel.arguments.length} arguments`),
      h("div", {class: "table-frame"}, h("table", {}, h("tbody", {}, kernel.arguments.map(a => h("tr", {},
        h("td", {}, h("code", {}, a.name || "")), h("td", {}, a.kind || ""), h("td", {}, a.value || ""), h("td", {}, h("code", {}, a.type || ""))))))));
  }

  function gemmSection(gemm) {
    return section("GEMM", facts([
      ["role", known(gemm.role)],
      ["m × n × k", h("span", {"data-field": "shape"}, shapeOf(gemm))],
      ["operands", h("code", {}, gemm.operands || "")],
      ["computes in", h("span", {}, chip(gemm.compute || "?", gemm.fp8 ? "fp8" : ""))],
      gemm.fp8 ? null : ["why not FP8", h("span", {"data-field": "why-not-fp8"}, gemm.why_not_fp8 || "not said")],
      ["algorithm", known(gemm.algorithm)],
      ["time", [known(gemm.ms, format.ms), gemm.tflops === undefined ? "" : h("small", {}, " " + format.flopRate(gemm.tflops * 1e9))]],
      gemm.fallback === undefined ? null : ["fallback", String(gemm.fallback)],
    ]));
  }

  function decisionsOf(side, index) {
    const about = report.decisions.filter(d => (d[side] || []).includes(index));
    if (!about.length) return section("Decisions about it", h("p", {class: "unknown"}, "none recorded"));
    return section(`Decisions about it (${about.length})`, h("ul", {class: "decisions"}, about.slice(0, 40).map(d =>
      h("li", {}, chip(d.kind, "d-" + d.kind.replace(/ /g, "-")), " ", h("b", {}, d.rule), " ", d.reason,
        d.bytes_saved ? h("small", {}, ` · ${format.bytes(d.bytes_saved)}`) : ""))),
      about.length > 40 ? h("p", {class: "unknown"}, `and ${about.length - 40} more: see Decisions`) : null);
  }

  function node(side, node) {
    const graph = report.graphs[side], steps = (node.steps || []).map(i => report.steps[i]);
    const kernels = [...new Set(steps.flatMap(s => [s.kernel, ...(s.kernel_set || [])]).filter(k => k !== undefined))].map(k => report.kernels[k]);
    const gemms = steps.map(s => s.gemm).filter(g => g !== undefined).map(g => report.gemms[g]);
    const locations = [...new Set([...steps.flatMap(s => s.locations || []), ...kernels.flatMap(k => k.locations || [])])];
    const others = indices => indices.map(i => link(graph.nodes[i].result || graph.nodes[i].name, () => go.show(side, graph.nodes[i])));
    const into = node.after === undefined ? undefined : report.graphs.after.nodes[node.after];
    fill(close(), h("h2", {}, node.name),
      h("p", {class: "chips"}, chip(node.kind, "k-" + kindName(node.kind)), chip(node.phase), node.layer ? chip(node.layer) : "",
        node.ops > 1 ? chip(node.ops + " ops in it") : ""),
      side === "after" && node.kind !== "input" ? [work(steps),
        steps.length > 1 ? h("p", {class: "unknown"}, `${steps.length} launches: ` + steps.map(s => s.name).join(", ")) : null] : null,
      into ? h("p", {}, "Became part of ", link(into.name, () => go.show("after", into)), " ", into.result || "") : null,
      node.parts && node.parts.length > 1 ? h("details", {}, h("summary", {}, `made of ${node.parts.length} ops of before`),
        list(node.parts.map(i => { const part = report.graphs.before.nodes[i];
          return [link(part.name, () => go.show("before", part)), " ", part.result || ""]; }))) : null,
      [...new Set(steps.map(s => s.fallback).filter(Boolean))].map(why => h("p", {class: "fallback"}, "Fallback: " + why)),
      section("IR", code(node.text, irTokens, {"data-field": "ir"})),
      gemms.map(gemmSection),
      kernels.length ? section(kernels.length > 1 ? `Kernels (${kernels.length})` : "Kernel",
        isCpu ? h("p", {class: "unknown"}, "The CUDA text that a GPU of the simt tier would get; times are the CPU's.") : null, kernels.map((k, i) =>
          kernelSection(k, i === 0 || kernels.length <= 2, steps.filter(s => s.kernel === k.index)))) :
        side === "after" && node.kind !== "input" ? section("Kernel", h("p", {class: "unknown"}, missingKernel(steps))) : null,
      decisionsOf(side, node.index),
      section("Reads and readers",
        node.inputs.length ? h("p", {}, "reads ", between(others(node.inputs))) : null,
        node.reads ? h("p", {}, "stored values ", h("code", {}, node.reads.join(", "))) : null,
        node.users.length ? h("p", {}, "read by ", between(others(node.users))) : h("p", {class: "unknown"}, "read by nothing in the graph: a result, or the new content of a stored value"),
        h("p", {}, "makes ", h("code", {}, node.type || "nothing"))),
      locations.length ? section("From", list(locations.map(l => h("code", {}, l)))) : null,
      node.line ? h("p", {class: "unknown"}, `modules/${graph.file}:${node.line}`) : null);
  }
  const between = items => items.flatMap((item, i) => (i ? [", ", item] : [item]));
  function missingKernel(steps) {
    if (!steps.length) return "This dump has no launch of it.";
    if (steps.some(s => s.gemm !== undefined)) return "A library's or the CPU's own kernel: there is no generated source.";
    return "Ran without a generated CUDA kernel (the CPU back end, or a copy).";
  }

  function layer(side, group) {
    const steps = group.steps.map(i => report.steps[i]);
    fill(close(), h("h2", {}, group.layer), h("p", {class: "chips"}, chip(group.phase), chip(`${group.nodes.length} nodes`)),
      side === "after" ? work(steps) : null,
      section("In it", h("ol", {class: "plain nodes"}, group.nodes.map(n => h("li", {},
        h("i", {class: "dot", style: `background:${kindColour(n.kind)}`}), link(n.name, () => go.show(side, n)), " ",
        h("small", {}, side === "after" ? known(sumOf(n.steps.map(i => report.steps[i]), "ms"), format.ms) : n.result || ""))))));
  }

  function kernel(k) {
    const steps = k.steps.map(i => report.steps[i]);
    fill(close(), h("h2", {}, k.name), h("p", {class: "chips"}, chip(k.kind || "kernel", "k-" + kindName(k.kind)), chip(`${steps.length} launches a step`)),
      work(steps), irOf(k, steps) ? section("IR", code(irOf(k, steps), irTokens, {"data-field": "ir"})) : null, section("Launch", launchFacts(k)), section("Source", source(k), args(k)),
      section("Launches", list(steps.slice(0, 60).map(s => [link("#" + s.index, () => go.showStep(s)), " ", s.layer || "", " ", h("small", {}, known(s.ms, format.ms))]))),
      k.locations && k.locations.length ? section("From", list(k.locations.map(l => h("code", {}, l)))) : null);
  }

  const irOf = (k, steps) => k.ir || steps.map(s => (s.node === undefined ? s.ir : report.graphs.after.nodes[s.node].text))[0];

  /** A launch whose node is not in the graph. */
  function step(s) {
    if (s.kernel !== undefined) return kernel(report.kernels[s.kernel]);
    fill(close(), h("h2", {}, s.name), h("p", {class: "chips"}, chip(s.kind || "", "k-" + kindName(s.kind)), s.layer ? chip(s.layer) : ""),
      work([s]), s.ir ? section("IR", code(s.ir, irTokens)) : null, s.gemm === undefined ? null : gemmSection(report.gemms[s.gemm]));
  }

  return {node, layer, kernel, step, welcome, show: (...children) => fill(close(), ...children)};
}

const shapeOf = gemm => (gemm.m === undefined ? known(undefined) :
  `${gemm.batch !== undefined && gemm.batch !== "1" ? gemm.batch + " × " : ""}${gemm.m} × ${gemm.n} × ${gemm.k}`);
