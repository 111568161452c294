"use strict";
// The data of the page: what frontend/report/compact.h wrote, as plain objects again, with what all views ask of it.

function revive(packed) {
  const templates = packed.templates;
  // Text from a template: each U+0001 is the next number.
  const fill = ([index, ...numbers]) => {
    let next = 0;
    return templates[index].replace(/\u0001/g, () => numbers[next++]);
  };
  const walk = value => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(walk);
    if ("$" in value) return Array.isArray(value.$) ? fill(value.$) : templates[value.$];
    if ("#" in value) {
      const keys = value["#"], words = {};
      for (const key of Object.keys(value["~"])) words[key] = walk(value["~"][key]);
      return value["="].map(row => {
        const object = {};
        row.forEach((cell, i) => { if (cell !== null) object[keys[i]] = words[keys[i]] ? words[keys[i]][cell] : walk(cell); });
        return object;
      });
    }
    const object = {};
    for (const key of Object.keys(value)) object[key] = walk(value[key]);
    return object;
  };
  return walk(packed.data);
}

const report = revive(JSON.parse(document.getElementById("data").textContent));

/** Launches by node of the graph after fusion, and what a kernel's launches take together. */
function indexLaunches() {
  for (const graph of [report.graphs.before, report.graphs.after])
    graph.nodes.forEach((node, index) => { node.index = index; node.users = []; });
  for (const graph of [report.graphs.before, report.graphs.after])
    for (const node of graph.nodes)
      for (const input of node.inputs) graph.nodes[input].users.push(node.index);
  for (const node of report.graphs.after.nodes) { node.steps = []; node.parts = []; }
  for (const node of report.graphs.before.nodes)
    if (node.after !== undefined) report.graphs.after.nodes[node.after].parts.push(node.index);
  report.kernels.forEach((kernel, index) => { kernel.index = index; kernel.steps = []; });
  report.gemms.forEach((gemm, index) => { gemm.index = index; });
  report.steps.forEach((step, index) => {
    step.index = index;
    if (step.node !== undefined) report.graphs.after.nodes[step.node].steps.push(index);
    for (const kernel of new Set([step.kernel, ...(step.kernel_set || [])]))
      if (kernel !== undefined) report.kernels[kernel].steps.push(index);
    if (step.gemm !== undefined) report.gemms[step.gemm].step = index;
  });
  // The memory plan counts ops, of which one may be several launches, or none.
  report.stepsOfOp = [];
  for (const step of report.steps) if (step.op !== undefined) (report.stepsOfOp[step.op] ||= []).push(step);
  report.decisions.forEach((decision, index) => { decision.index = index; });
}
indexLaunches();

/** The sum of a field over objects that have it; undefined where none has. */
function sumOf(objects, key) {
  let sum;
  for (const object of objects) if (object[key] !== undefined) sum = (sum || 0) + object[key];
  return sum;
}

const stepMs = sumOf(report.steps, "ms");
const has = file => report.has.includes(file);

// Numbers as text. What is undefined was not measured, and no number stands in its place.
const format = {
  ms(v) {
    if (v === 0) return "0 ms";
    if (v >= 100) return v.toFixed(0) + " ms";
    if (v >= 1) return v.toFixed(2) + " ms";
    return v >= 0.1 ? v.toFixed(3) + " ms" : (v * 1000).toFixed(v < 0.01 ? 2 : 1) + " µs";
  },
  bytes(v) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (Math.abs(v) >= 1024 && unit + 1 < units.length) { v /= 1024; ++unit; }
    return (unit === 0 || v >= 100 ? v.toFixed(0) : v.toFixed(1)) + " " + units[unit];
  },
  flops(v) {
    const units = ["", "k", "M", "G", "T", "P"];
    let unit = 0;
    while (v >= 1000 && unit + 1 < units.length) { v /= 1000; ++unit; }
    return (v >= 100 ? v.toFixed(0) : v.toFixed(1)) + " " + units[unit] + "FLOP";
  },
  percent: v => (v > 0 && v < 0.05 ? "< 0.1" : v >= 10 ? v.toFixed(0) : v.toFixed(1)) + " %",
  flopRate(perMs) {
    const giga = perMs / 1e6;
    return giga >= 100 ? (giga / 1000).toFixed(giga >= 1e5 ? 0 : 1) + " TFLOP/s" : giga.toFixed(giga >= 10 ? 0 : 1) + " GFLOP/s";
  },
  rate: v => (v >= 100 ? v.toFixed(0) : v.toFixed(1)),
  count: v => v.toLocaleString("en-US"),
  number: v => (Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4))),
  text: v => String(v),
};

/** GB/s of a launch that moved `bytes` in `ms`. */
const gbPerSecond = (bytes, ms) => (bytes === undefined || !ms ? undefined : bytes / ms / 1e6);
