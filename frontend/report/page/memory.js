"use strict";
// Memory over the step: live bytes at each op in order, the peak, and which buffers are alive there.

function memoryView({selectStep}) {
  const memory = report.memory, live = memory.live || [];
  if (!memory.buffers) return {element: h("p", {class: "nothing"}, "This dump has no memory plan (plan.json).")};
  const facts = h("dl", {class: "facts-row"}, [["peak", memory.peak_bytes], ["arena", memory.arena_bytes], ["stored values", memory.persistent_bytes],
    ["workspaces", memory.workspace_bytes], ["lower bound of the arena", memory.lower_bound_bytes]].map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, known(value, format.bytes)))));
  const columns = [
    {name: "names", title: "holds", label: true, show: b => h("code", {}, b.names || "")},
    {name: "type", show: b => h("code", {}, b.type || "")},
    {name: "bytes", number: true, show: b => known(b.bytes, format.bytes)},
    {name: "place"},
    {name: "first", title: "from", number: true, show: b => (b.first === undefined ? known(undefined) : b.first < 0 ? "start" : "op " + b.first)},
    {name: "last", title: "to", number: true, show: b => (b.last === undefined ? known(undefined) : b.last >= live.length && live.length ? "end" : "op " + b.last)},
    {name: "offset", number: true, show: b => known(b.offset, format.count)},
    {name: "why", title: "why there", wide: true, show: b => b.why || ""},
  ];
  const buffers = table({name: "buffers", columns, rows: memory.buffers, sort: "-bytes"});
  const chart = live.length ? liveChart(memory, live, selectStep) : undefined;
  return {element: h("div", {class: "scroll"}, facts, chart ? chart.element : h("p", {class: "unknown"}, "Live bytes over the step: not in this dump."),
            h("h3", {}, "Buffers"), buffers.element), start: chart && chart.draw};
}

function liveChart(memory, live, selectStep) {
  const inputs = report.graphs.after.nodes.filter(node => node.kind === "input").length;
  const stepAt = i => (report.stepsOfOp[i] || [])[0], nodeAt = i => report.graphs.after.nodes[inputs + i];
  const nameAt = i => { const step = stepAt(i), node = nodeAt(i); return step ? step.name : node ? node.name : ""; };
  const peak = live.indexOf(Math.max(...live)), height = 190, left = 4, top = 18, bottom = 18;
  const drawing = svg("svg", {class: "chart", tabindex: "0", role: "group", "aria-label": "Live bytes at each op. Left and right go from one to the next."});
  const frame = h("div", {class: "chart-frame"}, drawing);
  const about = h("div", {class: "about", role: "status"});
  let at = peak, width = 800;
  const x = i => left + i / Math.max(1, live.length) * (width - 2 * left);
  const y = v => top + (1 - v / live[peak]) * (height - top - bottom);
  function draw() {
    width = frame.clientWidth || 800;
    setAll(drawing, {width, height, viewBox: `0 0 ${width} ${height}`});
    let path = `M${x(0)} ${y(0)}`;
    live.forEach((v, i) => { path += `L${x(i).toFixed(1)} ${y(v).toFixed(1)}H${x(i + 1).toFixed(1)}`; });
    path += `V${y(0)}Z`;
    const right = x(peak) > width / 2;
    drawing.replaceChildren(svg("path", {class: "area", d: path}),
      svg("line", {class: "peak", x1: left, x2: width - left, y1: y(live[peak]), y2: y(live[peak])}),
      svg("text", {class: "axis", x: x(peak) + (right ? -6 : 6), y: top - 6, "text-anchor": right ? "end" : "start"}, `peak ${format.bytes(live[peak])} at op ${peak}`),
      svg("text", {class: "axis", x: left, y: height - 5}, "first op"),
      svg("text", {class: "axis", x: width - left, y: height - 5, "text-anchor": "end"}, `op ${live.length - 1}`),
      svg("line", {class: "cursor", y1: top, y2: height - bottom}));
    point(at);
  }
  function point(i) {
    at = Math.max(0, Math.min(live.length - 1, i));
    const cursor = drawing.querySelector(".cursor"), middle = (x(at) + x(at + 1)) / 2;
    setAll(cursor, {x1: middle, x2: middle});
    const alive = memory.buffers.filter(b => b.place !== "persistent" && b.first <= at && b.last >= at && b.bytes).sort((a, b) => b.bytes - a.bytes);
    about.replaceChildren();
    add(about, [h("p", {}, h("b", {}, `op ${at} ${nameAt(at)}`), ` ${format.bytes(live[at])} alive`, at === peak ? ", the peak" : "",
        `; ${alive.length} buffers besides stored values${alive.length > 8 ? ", the largest:" : ":"}`),
      h("ul", {class: "plain buffers"}, alive.slice(0, 8).map(b => h("li", {}, h("span", {class: "amount"}, format.bytes(b.bytes)), h("code", {}, b.names || "?"))))]);
  }
  const under = event => {
    const box = drawing.getBoundingClientRect();
    return Math.floor((event.clientX - box.left - left) / (box.width - 2 * left) * live.length);
  };
  drawing.addEventListener("pointermove", event => point(under(event)));
  drawing.addEventListener("click", event => { point(under(event)); if (stepAt(at)) selectStep(stepAt(at)); });
  drawing.addEventListener("keydown", event => {
    if (event.key === "ArrowRight") point(at + 1);
    else if (event.key === "ArrowLeft") point(at - 1);
    else if (event.key === "Enter" && stepAt(at)) selectStep(stepAt(at));
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { if (frame.clientWidth) draw(); }).observe(frame);
  return {element: h("div", {}, frame, about), draw};
}
