"use strict";
// The graph view: draws a picture of graph_model.js, zooms, pans, searches, and says which node was clicked.

/** Takes {onSelect(side, node), onGroup(side, group)}; gives {element, show(side, node), mark(side, node)}. */
function graphView({onSelect, onGroup}) {
  const models = {};
  const state = {side: report.graphs.after.nodes.length ? "after" : "before", open: {before: new Set(), after: new Set()},
                 selected: undefined};
  const scene = svg("g");
  const canvas = svg("svg", {class: "graph", tabindex: "0", role: "group",
    "aria-label": "Graph. Arrow keys pan, plus and minus zoom, 0 fits; Tab goes through the nodes."}, scene);
  const view = panZoom(canvas, scene, () => fit(false));
  const found = h("span", {class: "found", role: "status"});
  const search = h("input", {type: "search", placeholder: "search a name or an op", "aria-label": "Search the graph"});
  const model = () => (models[state.side] ||= graphModel(report.graphs[state.side]));
  let boxOf = new Map();
  let matches = [], match = -1, searched = "";

  const sides = h("div", {class: "switch", role: "group", "aria-label": "Module"});
  for (const side of ["before", "after"]) {
    const count = report.graphs[side].nodes.filter(node => node.kind !== "input").length;
    sides.append(h("button", {type: "button", "data-side": side, onclick: () => setSide(side), disabled: !count},
      side + " fusion", h("small", {}, " " + format.count(count))));
  }
  const button = (label, title, act) => h("button", {type: "button", title, "aria-label": title, onclick: act}, label);
  const bar = h("div", {class: "bar"}, sides, search, found, h("span", {class: "space"}),
    h("div", {class: "switch"}, button("expand", "Open all layers", () => setAllOpen(true)),
      button("collapse", "Collapse all layers", () => setAllOpen(false))),
    h("div", {class: "switch"}, button("−", "Zoom out", () => view.zoom(1 / 1.25)), button("+", "Zoom in", () => view.zoom(1.25)),
      button("fit", "Fit all", () => fit(false))));
  const legend = h("div", {class: "legend"}, ["contraction", "attention", "row", "column", "pointwise", "multi", "movement"].map(
    kind => h("span", {}, h("i", {style: `background:${kindColour(kind)}`}), kind === "multi" ? "multi-tensor" : kind)),
    h("span", {class: "hint"}, "Click a node: IR, CUDA source, launch, decisions. + opens a layer."));
  const element = h("div", {class: "graph-view"}, bar, canvas, legend);

  function setSide(side) {
    state.side = side;
    state.selected = undefined;
    draw();
    fit(true);
    if (search.value) find(search.value.trim());
  }
  function setAllOpen(open) {
    state.open[state.side] = new Set(open ? model().groups.keys() : []);
    draw();
    fit(true);
  }
  function toggle(group) {
    const open = state.open[state.side];
    const before = boxOf.get(group.key);
    if (!open.delete(group.key)) open.add(group.key);
    draw();
    // The layer stays where it was on the screen.
    const after = boxOf.get(group.key);
    if (before && after) { view.x += (before.x - after.x) * view.k; view.y += (before.y - after.y) * view.k; }
    view.move();
  }

  let picture;
  /** All of it; or, at first, as wide as there is room at a size that can be read, from the top. */
  function fit(readable) {
    const width = canvas.clientWidth || 800, height = canvas.clientHeight || 600, margin = 24;
    const across = (width - 2 * margin) / picture.width, down = (height - 2 * margin) / picture.height;
    view.k = readable ? Math.min(1, Math.max(width < 600 ? 0.85 : 0.7, across)) : Math.min(1, across, down);
    view.x = Math.max(margin, (width - picture.width * view.k) / 2);
    view.y = margin;
    if (readable && picture.width * view.k > width) view.x = margin;
    view.move();
  }

  function draw() {
    picture = pictureOf(model(), state.open[state.side]);
    boxOf = new Map();
    const lanes = picture.lanes.map(lane => [
      svg("rect", {class: "lane " + lane.phase, x: lane.x - 16, y: 0, width: lane.width + 32, height: picture.height + 16, rx: 8}),
      svg("text", {class: "lane-title", x: lane.x - 4, y: 20}, picture.lanes.length > 1 ? lane.phase : report.graphs[state.side].function),
    ]);
    const edges = picture.lanes.flatMap(lane => lane.paths.map(path => svg("path", {class: "edge", d: curve(path)})));
    const boxes = picture.lanes.flatMap(lane => lane.boxes.map(box => (box.group ? drawGroup(box) : drawNode(box))));
    picture.lanes.forEach(lane => lane.boxes.forEach(box => {
      if (box.group) boxOf.set(box.group.key, box);
      else boxOf.set(box.node.index, box);
    }));
    scene.replaceChildren(...lanes.flat(), svg("g", {class: "edges"}, crossEdges(), edges), svg("g", {class: "marks"}),
      svg("g", {class: "boxes"}, boxes));
    for (const b of sides.children) b.setAttribute("aria-pressed", String(b.dataset.side === state.side));
    const layers = model().groups.size;
    bar.querySelectorAll(".switch")[1].hidden = !layers;
    markMatches();
    mark();
  }

  function curve({points, up}) {
    const bend = up ? -1 : 1;
    let d = `M${points[0].x.toFixed(1)} ${points[0].y.toFixed(1)}`;
    for (let i = 1; i < points.length; ++i) {
      const a = points[i - 1], b = points[i], pull = bend * Math.max(10, Math.abs(b.y - a.y) / 2);
      d += `C${a.x.toFixed(1)} ${(a.y + pull).toFixed(1)} ${b.x.toFixed(1)} ${(b.y - pull).toFixed(1)} ${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
    }
    return d;
  }
  const visibleBox = node => boxOf.get(node.index) || boxOf.get(groupKey(node));
  /** What crosses lanes, between the boxes that are seen: activations kept for the backward pass, gradients. */
  function crossEdges() {
    const place = new Map();
    for (const lane of picture.lanes) for (const box of lane.boxes) place.set(box.group ? box.group.key : box.node.index, box);
    const boxFor = node => place.get(node.index) || place.get(groupKey(node));
    const seen = new Set(), lines = [];
    for (const node of report.graphs[state.side].nodes)
      for (const index of node.inputs) {
        const from = report.graphs[state.side].nodes[index];
        if (from.phase !== "forward" || node.phase !== "backward") continue;
        const a = boxFor(from), b = boxFor(node);
        const key = (from.layer && !place.has(from.index) ? groupKey(from) : from.index) + ">" +
                    (node.layer && !place.has(node.index) ? groupKey(node) : node.index);
        if (!a || !b || seen.has(key)) continue;
        seen.add(key);
        lines.push(svg("path", {class: "edge cross", d: sideways(a, b)}));
      }
    return lines;
  }
  function sideways(a, b) {
    const right = a.x < b.x;
    const x1 = right ? a.x + a.width : a.x, x2 = right ? b.x : b.x + b.width;
    const y1 = a.y + a.height / 2, y2 = b.y + b.height / 2, pull = (right ? 1 : -1) * Math.max(24, Math.abs(x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + pull} ${y1} ${x2 - pull} ${y2} ${x2} ${y2}`;
  }

  function pressable(attributes, label, act, children) {
    return svg("g", {tabindex: "0", role: "button", "aria-label": label, ...attributes,
      onclick: event => { event.stopPropagation(); if (!view.dragging()) act(); },
      onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); act(); } },
      onfocus: event => { if (event.target.matches(":focus-visible")) bringIn(event.target); }}, children);
  }
  function drawNode(box) {
    const node = box.node, ms = sumOf((node.steps || []).map(i => report.steps[i]), "ms");
    const below = node.kind === "input" ? node.type : [ms === undefined ? undefined : format.ms(ms), node.result || ""].filter(Boolean).join(" · ");
    return pressable({class: "node " + kindName(node.kind), "data-node": node.index, transform: `translate(${box.x} ${box.y})`},
      `${node.name} ${node.result || ""}, ${node.kind}`, () => select(node), [
        svg("title", {}, node.name + "\n" + (node.result || "") + "\n" + node.type),
        svg("rect", {class: "box", width: box.width, height: box.height, rx: node.kind === "input" ? 20 : 4}),
        node.kind === "input" ? null : svg("rect", {class: "kind", width: 5, height: box.height, rx: 2, fill: kindColour(node.kind)}),
        svg("text", {class: "name", x: 13, y: 17}, fitted(node.name, box.width - (node.fp8 ? 46 : 20), 12)),
        svg("text", {class: "below", x: 13, y: 32}, fitted(below, box.width - 20, 11)),
        node.fp8 ? svg("text", {class: "badge", x: box.width - 8, y: 16}, "fp8") : null,
      ]);
  }
  function drawGroup(box) {
    const group = box.group, kernels = group.steps.length;
    const counted = format.count(group.nodes.length) + (state.side === "after" ? " nodes" : " ops");
    const below = [kernels ? kernels + " launches" : counted, group.ms === undefined ? undefined : format.ms(group.ms)].filter(Boolean).join(" · ");
    const toggler = pressable({class: "toggle", "data-toggle": group.key, transform: `translate(${box.width - 26} 2)`},
      (box.isOpen ? "Collapse " : "Open ") + group.key, () => toggle(group),
      [svg("rect", {width: 24, height: 24, rx: 4}), svg("text", {x: 12, y: 17}, box.isOpen ? "−" : "+")]);
    if (box.isOpen)
      return svg("g", {class: "layer open", transform: `translate(${box.x} ${box.y})`},
        svg("rect", {class: "box", width: box.width, height: box.height, rx: 6}),
        pressable({class: "layer-title", "data-group": group.key}, group.key + ", open", () => onGroup(state.side, group),
          [svg("text", {class: "name", x: 12, y: 18}, fitted(`${group.layer}  ·  ${below}`, box.width - 44, 12))]), toggler);
    return svg("g", {class: "layer", transform: `translate(${box.x} ${box.y})`},
      svg("rect", {class: "under", x: 4, y: 4, width: box.width, height: box.height, rx: 5}),
      pressable({"data-group": group.key}, `${group.key}, ${counted}`, () => onGroup(state.side, group), [
        svg("rect", {class: "box", width: box.width, height: box.height, rx: 5}),
        svg("text", {class: "name", x: 12, y: 19}, fitted(group.layer, box.width - 44, 12)),
        svg("text", {class: "below", x: 12, y: 34}, fitted(below, box.width - 20, 11)),
        shares(group, box.width - 24).map(part => svg("rect", {x: 12 + part.x, y: 41, width: part.width, height: 3, fill: kindColour(part.kind)})),
      ]), toggler);
  }
  /** A layer's kinds as parts of a line, by time or, where there is none, by number. */
  function shares(group, width) {
    const byKind = new Map();
    for (const node of group.nodes) {
      const ms = group.ms === undefined ? 1 : sumOf((node.steps || []).map(i => report.steps[i]), "ms") || 0;
      const kind = kindName(node.kind);
      byKind.set(kind, (byKind.get(kind) || 0) + ms);
    }
    const total = [...byKind.values()].reduce((a, b) => a + b, 0) || 1;
    let x = 0;
    return [...byKind].map(([kind, ms]) => {
      const part = {kind, x, width: Math.max(0, width * ms / total - 0.5)};
      x += width * ms / total;
      return part;
    });
  }

  function select(node) {
    state.selected = node;
    mark();
    onSelect(state.side, node);
  }
  /** The selected node, and curves to what it reads and who reads it. */
  function mark() {
    scene.querySelectorAll(".selected").forEach(e => e.classList.remove("selected"));
    const marks = scene.querySelector(".marks");
    marks.replaceChildren();
    const node = state.selected;
    if (!node) return;
    const nodes = report.graphs[state.side].nodes, own = visibleBox(node);
    const drawn = scene.querySelector(`[data-node="${node.index}"]`);
    if (drawn) drawn.classList.add("selected");
    if (!own) return;
    const line = (a, b, name) => {
      if (a === b) return;
      const lane = picture.lanes.find(l => l.phase === node.phase), down = a.y + a.height <= b.y;
      const isBeside = Math.abs(a.x - b.x) > Math.max(a.width, b.width) + laneGap / 2 && Math.abs(a.y - b.y) < 400;
      const points = down ? [{x: a.x + a.width / 2, y: a.y + a.height}, {x: b.x + b.width / 2, y: b.y}]
                          : [{x: a.x + a.width / 2, y: a.y}, {x: b.x + b.width / 2, y: b.y + b.height}];
      marks.append(svg("path", {class: name, d: isBeside || !lane ? sideways(a, b) : curve({points, up: !down})}));
    };
    for (const input of node.inputs) { const box = visibleBox(nodes[input]); if (box) line(box, own, "reads"); }
    for (const user of node.users) { const box = visibleBox(nodes[user]); if (box) line(own, box, "read-by"); }
  }
  function bringIn(target) {
    const box = target.getBoundingClientRect(), frame = canvas.getBoundingClientRect(), margin = 16;
    if (box.left < frame.left) view.x += frame.left - box.left + margin;
    if (box.right > frame.right) view.x -= box.right - frame.right + margin;
    if (box.top < frame.top) view.y += frame.top - box.top + margin;
    if (box.bottom > frame.bottom) view.y -= box.bottom - frame.bottom + margin;
    canvas.scrollTop = canvas.scrollLeft = 0;
    view.move();
  }
  /** Opens what hides a node, puts it in the middle and selects it. */
  function show(side, node) {
    if (side !== state.side) { state.side = side; state.selected = undefined; draw(); }
    const key = groupKey(node);
    if (model().groups.has(key) && !state.open[side].has(key)) { state.open[side].add(key); draw(); }
    state.selected = node;
    const box = boxOf.get(node.index);
    view.k = Math.max(view.k, 0.7);
    // In the middle, as far as that leaves no empty margin.
    const middle = (size, at, whole) => Math.min(24, Math.max(size / 2 - at * view.k, Math.min(24, size - 24 - whole * view.k)));
    view.x = middle(canvas.clientWidth, box.x + box.width / 2, picture.width);
    view.y = middle(canvas.clientHeight, box.y + box.height / 2, picture.height);
    view.move();
    mark();
  }

  function find(text) {
    const wanted = text.toLowerCase();
    searched = text;
    matches = !wanted ? [] : report.graphs[state.side].nodes.filter(node =>
      node.name.toLowerCase().includes(wanted) || node.text.toLowerCase().includes(wanted));
    match = -1;
    found.textContent = !wanted ? "" : matches.length ? format.count(matches.length) + " found" : "nothing found";
    markMatches();
  }
  function markMatches() {
    const set = new Set(matches.map(node => node.index)), keys = new Set(matches.map(groupKey));
    scene.querySelectorAll("[data-node]").forEach(e => e.classList.toggle("match", set.has(+e.dataset.node)));
    scene.querySelectorAll("[data-group]").forEach(e => e.classList.toggle("match", keys.has(e.dataset.group)));
    scene.classList.toggle("searching", matches.length > 0);
  }
  whenTyped(search, text => { if (text !== searched) find(text); });
  search.addEventListener("keydown", event => {
    if (event.key !== "Enter") return;
    if (search.value.trim() !== searched) find(search.value.trim());
    if (!matches.length) return;
    match = (match + (event.shiftKey ? matches.length - 1 : 1)) % matches.length;
    found.textContent = `${match + 1} of ${matches.length}`;
    onSelect(state.side, matches[match]); // the panel takes its room first
    show(state.side, matches[match]);
    markMatches();
  });

  // Few layers are opened at once; many start collapsed.
  for (const side of ["before", "after"]) {
    const groups = graphModel(report.graphs[side]).groups;
    const layers = new Set([...groups.values()].map(group => group.layer));
    if (layers.size <= 2) state.open[side] = new Set(groups.keys());
  }
  return {
    element, show,
    /** Once it has a size. */
    start() { draw(); fit(true); },
    side: () => state.side,
  };
}
