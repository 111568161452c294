"use strict";
// FP8 over the steps of the run: scale and amax of each tensor, and which part of it was clipped or lost.

const finite = values => values.filter(v => typeof v === "number" && v > 0);

/** A line of `values` (log scale), one a step; what is not finite leaves a gap. */
function spark(values, {width = 120, height = 24, name = "", axis = false} = {}) {
  const good = finite(values);
  if (!good.length) return known(undefined);
  const low = Math.log(Math.min(...good)), high = Math.log(Math.max(...good)), range = Math.max(high - low, 0.05);
  const bottom = axis ? 16 : 2, x = i => 2 + i / Math.max(1, values.length - 1) * (width - 4);
  const y = v => 2 + (1 - (Math.log(v) - low + (range - (high - low)) / 2) / range) * (height - bottom - 4);
  let d = "", isDown = false;
  values.forEach((v, i) => {
    const ok = typeof v === "number" && v > 0;
    if (ok) d += `${isDown ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    isDown = ok;
  });
  return svg("svg", {class: "spark " + name, width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `from ${format.number(good[0])} to ${format.number(good[good.length - 1])}`},
    svg("path", {d}), values.length === 1 ? svg("circle", {cx: x(0), cy: y(good[0]), r: 2}) : null,
    axis ? [svg("text", {class: "axis", x: 2, y: height - 3}, "step " + report.fp8.steps[0]),
      svg("text", {class: "axis", x: width - 2, y: height - 3, "text-anchor": "end"}, "step " + report.fp8.steps[values.length - 1])] : null);
}

function fp8View({panel}) {
  const fp8 = report.fp8;
  if (!fp8.tensors.length)
    return {element: h("p", {class: "nothing"}, report.run.precision === "fp8" ? "The FP8 state was not traced in this run (fp8_trace.jsonl)." :
      `This run computed in ${report.run.precision || "another precision"}: there is no FP8 state.`)};
  const last = values => { const v = values[values.length - 1]; return v === undefined ? known(undefined) : typeof v === "number" ? format.number(v) : v; };
  const fraction = v => (v === 0 ? "0" : v < 1e-4 ? v.toExponential(1) : (100 * v).toPrecision(3) + " %");
  const columns = [
    {name: "name", title: "tensor", label: true, show: t => h("code", {}, t.name)},
    {name: "amax", title: "amax", number: true, value: t => t.amax[t.amax.length - 1], show: t => last(t.amax)},
    {name: "amax-line", title: "over steps", value: t => t.amax.length, show: t => spark(t.amax, {name: "amax"})},
    {name: "scale", number: true, value: t => t.scale[t.scale.length - 1], show: t => last(t.scale)},
    {name: "scale-line", title: "over steps", value: t => t.scale.length, show: t => spark(t.scale, {name: "scale"})},
    {name: "clipped", number: true, show: t => known(t.clipped, fraction)},
    {name: "underflow", number: true, about: "Elements that became 0", show: t => known(t.underflow, fraction)},
  ];
  const big = t => panel.show(h("h2", {}, t.name), h("section", {}, h("h3", {}, "amax, log scale"), spark(t.amax, {width: 360, height: 110, name: "amax", axis: true})),
    h("section", {}, h("h3", {}, "scale, log scale"), spark(t.scale, {width: 360, height: 110, name: "scale", axis: true})),
    h("dl", {class: "rows"}, h("dt", {}, "clipped"), h("dd", {}, known(t.clipped, fraction)), h("dt", {}, "underflow"), h("dd", {}, known(t.underflow, fraction))));
  const list = table({name: "fp8", columns, rows: fp8.tensors, select: big});
  return {element: h("div", {class: "scroll"}, h("p", {class: "summary"},
    h("b", {}, format.count(fp8.tensors.length)), " tensors over ", h("b", {}, format.count(fp8.steps.length)), " steps",
    fp8.left_out ? ` (evenly taken, ${format.count(fp8.left_out)} left out)` : "", ". Clipped and underflow are parts of a tensor's elements",
    has("fp8_stats.json") ? "." : "; they were not counted in this run (train --fp8-stats)."),
    fp8.loss.length ? h("p", {class: "summary loss"}, "loss ", spark(fp8.loss, {name: "loss", width: 160}), ` ${format.number(fp8.loss[0])} to ${format.number(fp8.loss[fp8.loss.length - 1])}`) : null,
    list.element)};
}
