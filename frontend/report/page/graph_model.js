"use strict";
// What the graph view draws: lanes (forward, backward, optimizer), in them nodes and layers, open or collapsed.

const boxSize = {node: {width: 196, height: 40}, layer: {width: 196, height: 50}, title: 24, inset: 12};
const laneGap = 56;

const groupKey = node => (node.layer ? node.phase + "/" + node.layer : undefined);

/** {lanes: [{phase, nodes}], groups: Map key -> {key, layer, phase, nodes}} of a graph's nodes. */
function graphModel(graph) {
  const lanes = [];
  const groups = new Map();
  for (const phase of ["forward", "backward", "optimizer"]) {
    const nodes = graph.nodes.filter(node => node.phase === phase);
    if (nodes.length) lanes.push({phase, nodes});
    for (const node of nodes) {
      const key = groupKey(node);
      if (!key) continue;
      if (!groups.has(key)) groups.set(key, {key, layer: node.layer, phase, nodes: []});
      groups.get(key).nodes.push(node);
    }
  }
  for (const [key, group] of groups) if (group.nodes.length < 2) groups.delete(key);
  for (const group of groups.values()) {
    group.steps = group.nodes.flatMap(node => node.steps || []);
    group.ms = sumOf(group.steps.map(i => report.steps[i]), "ms");
  }
  return {graph, lanes, groups};
}

/** Edges between the `items` that hold nodes, each once, as [from, to] with from < to; `home` maps a node to its item. */
function edgesBetween(nodes, home) {
  const seen = new Set();
  const edges = [], back = [];
  for (const node of nodes)
    for (const input of node.inputs) {
      const from = home.get(input), to = home.get(node.index);
      if (from === undefined || to === undefined || from === to || seen.has(from + ">" + to)) continue;
      seen.add(from + ">" + to);
      (from < to ? edges : back).push([from, to]);
    }
  return {edges, back};
}

/** Boxes and edges of a lane, from its own corner: {width, height, boxes: [{x, y, width, height, node | group, open}],
    paths}. */
function laneLayout(model, lane, open) {
  const items = [], home = new Map(), placed = new Map();
  for (const node of lane.nodes) {
    const key = groupKey(node), group = model.groups.get(key);
    if (!group) {
      home.set(node.index, items.length);
      items.push({node, ...boxSize.node});
      continue;
    }
    if (!placed.has(key)) {
      placed.set(key, items.length);
      items.push(open.has(key) ? openGroup(group) : {group, ...boxSize.layer});
    }
    home.set(node.index, placed.get(key));
  }
  const {edges, back} = edgesBetween(lane.nodes, home);
  const {width, height, places, paths} = layered(items, edges, {most: lane.phase === "optimizer" ? 3 : 6});
  const boxes = [];
  items.forEach((item, i) => {
    const box = {...item, ...places[i]};
    boxes.push(box);
    for (const inner of item.inner || []) boxes.push({...inner, x: inner.x + box.x, y: inner.y + box.y});
  });
  const allPaths = [...paths];
  items.forEach((item, i) => {
    for (const path of item.innerPaths || []) allPaths.push(path.map(p => ({x: p.x + places[i].x, y: p.y + places[i].y})));
  });
  // Two layers may read each other: the line that is there stands for both ways.
  for (const [from, to] of back) {
    if (edges.some(edge => edge[0] === to && edge[1] === from)) continue;
    const a = {...items[from], ...places[from]}, b = {...items[to], ...places[to]};
    allPaths.push([{x: b.x + b.width / 2, y: b.y + b.height}, {x: a.x + a.width / 2, y: a.y}]);
  }
  return {width, height, boxes, paths: allPaths};
}

/** A layer with its nodes inside it. */
function openGroup(group) {
  const home = new Map(group.nodes.map((node, i) => [node.index, i]));
  const {edges} = edgesBetween(group.nodes, home);
  const {width, height, places, paths} = layered(group.nodes.map(() => boxSize.node), edges, {most: 4});
  const dx = boxSize.inset, dy = boxSize.title + boxSize.inset;
  return {
    group,
    isOpen: true,
    width: Math.max(width, boxSize.node.width) + 2 * dx,
    height: height + dy + boxSize.inset,
    inner: group.nodes.map((node, i) => ({node, ...boxSize.node, x: places[i].x + dx, y: places[i].y + dy})),
    innerPaths: paths.map(path => path.map(p => ({x: p.x + dx, y: p.y + dy}))),
  };
}

/** Turns a lane upside down: a backward pass runs up beside the forward pass it answers. */
function mirrored(layout) {
  const flip = box => ({...box, y: layout.height - box.y - box.height});
  return {
    ...layout,
    boxes: layout.boxes.map(flip),
    paths: layout.paths.map(path => path.map(p => ({x: p.x, y: layout.height - p.y}))),
    up: true,
  };
}

/** Moves what stands at or below `y` in a lane down by `by`. */
function moveDown(lane, y, by) {
  for (const box of lane.boxes) if (box.y >= y) box.y += by;
  for (const path of lane.paths) for (const point of path) if (point.y >= y - 1) point.y += by;
  lane.height += by;
}

/** Gives the layers that both passes have the same top, from the first on: a layer's gradients are beside it. */
function alignLayers(forward, backward) {
  const topsOf = lane => new Map(lane.boxes.filter(box => box.group).map(box => [box.group.layer, box]));
  const left = topsOf(forward), right = topsOf(backward);
  const shared = [...left.keys()].filter(layer => right.has(layer)).sort((a, b) => left.get(a).y - left.get(b).y);
  for (const layer of shared) {
    const a = left.get(layer), b = right.get(layer), by = a.y - b.y;
    if (by > 0) moveDown(backward, b.y, by);
    else if (by < 0) moveDown(forward, a.y, -by);
  }
}

/** The whole picture: lanes side by side. Boxes of open layers come before what is in them. */
function pictureOf(model, open) {
  const lanes = model.lanes.map(lane => {
    const layout = laneLayout(model, lane, open);
    return {phase: lane.phase, ...(lane.phase === "backward" ? mirrored(layout) : layout)};
  });
  const forward = lanes.find(lane => lane.phase === "forward"), backward = lanes.find(lane => lane.up);
  if (forward && backward) alignLayers(forward, backward);
  const top = 34, tall = Math.max(0, ...lanes.map(lane => lane.height));
  let x = 0;
  for (const lane of lanes) {
    lane.x = x;
    lane.boxes.forEach(box => { box.x += x; box.y += top; });
    lane.paths = lane.paths.map(path => ({points: path.map(p => ({x: p.x + x, y: p.y + top})), up: lane.up}));
    x += lane.width + laneGap;
  }
  return {lanes, width: Math.max(1, x - laneGap), height: tall + top};
}
