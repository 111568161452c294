"use strict";
// One step: its launches by start and duration, what is idle between them, and the longest.

function timelineView({selectStep}) {
  const steps = report.steps, run = report.run;
  if (!steps.length) return {element: h("p", {class: "nothing"}, "This dump has no launches (steps.json).")};
  const timed = steps.filter(step => step.ms !== undefined);
  const longest = timed.length ? timed.reduce((a, b) => (b.ms > a.ms ? b : a)) : undefined;
  const summary = h("p", {class: "summary"},
    h("b", {"data-field": "kernels"}, format.count(steps.length)), " launches of ",
    h("b", {}, format.count(report.kernels.length || new Set(steps.map(s => s.name)).size)), report.kernels.length ? " distinct kernels" : " distinct names",
    longest ? [", together ", h("b", {}, format.ms(stepMs)), ". The longest is ",
      h("button", {type: "button", class: "link", "data-field": "longest", onclick: () => selectStep(longest)}, longest.name),
      ` (#${longest.index}${longest.layer ? ", " + longest.layer : ""}): ${format.ms(longest.ms)}, ${format.percent(100 * longest.ms / stepMs)} of them.`] :
      ". Times: not measured.",
    run.idle_ms === undefined ? "" : ` Idle between them: ${format.ms(run.idle_ms)}.`);
  const columns = [
    {name: "index", title: "#", number: true, show: s => s.index},
    {name: "name", label: true, show: s => [h("i", {class: "dot", style: `background:${kindColour(s.kind)}`}), s.name]},
    {name: "ms", title: "time", number: true, show: s => known(s.ms, format.ms)},
    {name: "share", title: "of step", number: true, value: s => s.ms, show: s => (s.ms === undefined || !stepMs ? known(undefined) : format.percent(100 * s.ms / stepMs))},
    {name: "kind"}, {name: "layer", show: s => s.layer || ""},
    {name: "bytes", number: true, show: s => known(s.bytes, format.bytes)},
    {name: "rate", title: "GB/s", number: true, value: s => gbPerSecond(s.bytes, s.ms), show: s => known(gbPerSecond(s.bytes, s.ms), format.rate)},
    {name: "roofline_percent", title: "% of roofline", number: true, show: s => bar(s.roofline_percent)},
  ];
  const list = table({name: "launches", columns, rows: steps, select: selectStep, sort: timed.length ? "-ms" : undefined});
  const strip = timed.length ? timeStrip(steps, selectStep) : undefined;
  return {element: h("div", {class: "scroll"}, summary, strip && strip.element, h("h3", {}, "Launches"), list.element), start: strip && strip.draw,
          mark: strip && strip.mark};
}

/** The launches as blocks on a line of time, which scrolls when zoomed. */
function timeStrip(steps, selectStep) {
  const last = Math.max(...steps.map(s => (s.start_ms || 0) + (s.ms || 0)));
  // Launches that were timed one by one stand close together: what is idle in a step is then one piece behind them.
  const idleBehind = last - stepMs < (report.run.idle_ms || 0) / 2 ? report.run.idle_ms : 0, end = last + idleBehind;
  let scale = 1, selected = -1;
  const drawing = svg("svg", {class: "strip", tabindex: "0", role: "group", "aria-label": "Launches in time. Left and right go from one to the next, plus and minus zoom."});
  const scroller = h("div", {class: "strip-scroll"}, drawing);
  const caption = h("span", {class: "unknown", role: "status"}, "");
  const height = 92, barTop = 26, barHeight = 44;
  function draw() {
    const width = Math.max(200, (scroller.clientWidth || 900) - 2) * scale, x = ms => ms / end * width;
    setAll(drawing, {width, height, viewBox: `0 0 ${width} ${height}`});
    const parts = [svg("rect", {class: "idle", x: 0, y: barTop, width, height: barHeight})];
    if (x(idleBehind) > 40) parts.push(svg("text", {class: "axis", x: x(last) + 5, y: barTop + 27}, "idle"));
    const marks = Math.max(2, Math.floor(width / 130)), every = niceStep(end / marks);
    for (let t = 0; t <= end; t += every)
      parts.push(svg("line", {class: "tick", x1: x(t), x2: x(t), y1: 16, y2: height}),
        svg("text", {class: "axis", x: x(t) + 3, y: 12}, t === 0 ? "0" : format.number(t) + " ms"));
    for (const step of steps) {
      if (step.ms === undefined) continue;
      const w = Math.max(0.6, x(step.ms) - (x(step.ms) > 3 ? 0.6 : 0));
      parts.push(svg("g", {class: "launch", "data-step": step.index, onclick: () => pick(step)},
        svg("title", {}, `#${step.index} ${step.name}\n${format.ms(step.ms)}${step.layer ? ", " + step.layer : ""}`),
        svg("rect", {x: x(step.start_ms || 0), y: barTop, width: w, height: barHeight, fill: kindColour(step.kind)}),
        w > 60 ? svg("text", {class: "on-kind", x: x(step.start_ms || 0) + 5, y: barTop + 27}, shortened(step.name, Math.floor(w / 7))) : null));
    }
    const phases = phaseSpans(steps);
    for (const span of phases)
      parts.push(svg("text", {class: "axis", x: x(span.start) + 3, y: height - 6}, x(span.end - span.start) > 60 ? span.phase : ""),
        svg("line", {class: "phase " + span.phase, x1: x(span.start), x2: x(span.end), y1: barTop + barHeight + 4, y2: barTop + barHeight + 4}));
    drawing.replaceChildren(...parts);
    mark(selected);
  }
  function mark(index) {
    selected = index;
    drawing.querySelectorAll(".selected").forEach(e => e.classList.remove("selected"));
    const chosen = drawing.querySelector(`[data-step="${index}"]`);
    if (!chosen) return;
    chosen.classList.add("selected");
    const step = steps[index], at = (step.start_ms || 0) / end * drawing.clientWidth;
    if (at < scroller.scrollLeft || at > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = at - scroller.clientWidth / 2;
    caption.textContent = `#${index} ${step.name} · ${step.ms === undefined ? "not measured" : format.ms(step.ms)}`;
  }
  function pick(step) { mark(step.index); selectStep(step); }
  function zoom(by) {
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / scroller.scrollWidth;
    scale = Math.min(64, Math.max(1, scale * by));
    draw();
    scroller.scrollLeft = middle * scroller.scrollWidth - scroller.clientWidth / 2;
  }
  drawing.addEventListener("keydown", event => {
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = selected + (event.key === "ArrowRight" ? 1 : -1);
      if (steps[next]) pick(steps[next]);
    } else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else return;
    event.preventDefault();
  });
  scroller.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8);
  }, {passive: false});
  new ResizeObserver(() => { if (scroller.clientWidth) draw(); }).observe(scroller);
  const button = (text, title, by) => h("button", {type: "button", title, "aria-label": title, onclick: () => zoom(by)}, text);
  return {element: h("div", {class: "strip-frame"}, h("div", {class: "bar"}, caption, h("span", {class: "space"}),
            h("div", {class: "switch"}, button("−", "Zoom out in time", 1 / 1.6), button("+", "Zoom in in time", 1.6))), scroller),
          draw, mark};
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(m => m * power).find(v => v >= least);
}

/** Where each phase begins and ends in time, from the nodes of the launches. */
function phaseSpans(steps) {
  const spans = [];
  for (const step of steps) {
    const node = step.node === undefined ? undefined : report.graphs.after.nodes[step.node];
    if (!node || step.ms === undefined) continue;
    const start = step.start_ms || 0, last = spans[spans.length - 1];
    if (last && last.phase === node.phase) last.end = start + step.ms;
    else spans.push({phase: node.phase, start, end: start + step.ms});
  }
  return spans;
}
