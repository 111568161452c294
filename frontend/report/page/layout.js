"use strict";
// Where boxes go: layers by longest path, their order by barycentres, long edges through points of their own.

/**
 * Places boxes {width, height} so that edges [from, to] point down. Returns {width, height, places: [{x, y}],
 * paths: [[{x, y}, ...] for each edge]}, all from the top left corner; boxes keep `gap` between them.
 * Layers with more than `most` boxes are broken into rows.
 */
function layered(boxes, edges, {gapX = 18, gapY = 30, most = 6} = {}) {
  const layerOf = longestPaths(boxes.length, edges);
  // Points of edges that cross layers are boxes without size.
  const items = boxes.map((box, i) => ({...box, layer: layerOf[i]}));
  const chains = edges.map(([from, to]) => {
    const chain = [from];
    for (let layer = layerOf[from] + 1; layer < layerOf[to]; ++layer) {
      items.push({width: 6, height: 0, layer, isPoint: true});
      chain.push(items.length - 1);
    }
    chain.push(to);
    return chain;
  });
  const layers = [];
  items.forEach((item, i) => (layers[item.layer] ||= []).push(i));
  const neighbours = items.map(() => ({up: [], down: []}));
  for (const chain of chains)
    for (let i = 1; i < chain.length; ++i) {
      neighbours[chain[i]].up.push(chain[i - 1]);
      neighbours[chain[i - 1]].down.push(chain[i]);
    }
  orderByBarycentre(layers, neighbours);
  const size = placeRows(items, layers, neighbours, gapX, gapY, most);
  const paths = chains.map(chain => chain.map((i, k) => {
    const item = items[i], x = item.x + item.width / 2;
    if (k === 0) return {x, y: item.y + item.height};
    return {x, y: k === chain.length - 1 ? item.y : item.y + item.rowHeight / 2};
  }));
  return {...size, places: boxes.map((_, i) => ({x: items[i].x, y: items[i].y})), paths};
}

/** The longest path that ends at each box; edges go from earlier boxes to later ones, as IR does. */
function longestPaths(count, edges) {
  const incoming = Array.from({length: count}, () => []);
  for (const [from, to] of edges) incoming[to].push(from);
  const layer = new Array(count).fill(0);
  for (let i = 0; i < count; ++i) for (const from of incoming[i]) layer[i] = Math.max(layer[i], layer[from] + 1);
  // Pull boxes without predecessors down to their first reader: an input stands beside its use.
  const outgoing = Array.from({length: count}, () => []);
  for (const [from, to] of edges) outgoing[from].push(to);
  for (let i = count - 1; i >= 0; --i)
    if (!incoming[i].length && outgoing[i].length) layer[i] = Math.min(...outgoing[i].map(to => layer[to])) - 1;
  return layer;
}

function orderByBarycentre(layers, neighbours) {
  const place = [];
  const renumber = layer => layer.forEach((i, k) => { place[i] = layer.length > 1 ? k / (layer.length - 1) : 0.5; });
  layers.forEach(renumber);
  const sweep = (layer, side) => {
    const keys = new Map(layer.map(i => {
      const others = neighbours[i][side];
      return [i, others.length ? others.reduce((sum, o) => sum + place[o], 0) / others.length : place[i]];
    }));
    layer.sort((a, b) => keys.get(a) - keys.get(b));
    renumber(layer);
  };
  for (let round = 0; round < 4; ++round) {
    for (let k = 1; k < layers.length; ++k) if (layers[k]) sweep(layers[k], "up");
    for (let k = layers.length - 2; k >= 0; --k) if (layers[k]) sweep(layers[k], "down");
  }
}

/** Gives items x and y. Rows are centred, then pulled towards what they are connected to where there is room. */
function placeRows(items, layers, neighbours, gapX, gapY, most) {
  const rows = [];
  for (const layer of layers) {
    if (!layer) continue;
    let row = [], boxes = 0;
    for (const i of layer) {
      if (!items[i].isPoint && ++boxes > most) { rows.push(row); row = []; boxes = 1; }
      row.push(i);
    }
    if (row.length) rows.push(row);
  }
  const widthOf = row => row.reduce((sum, i) => sum + items[i].width, 0) + gapX * (row.length - 1);
  const width = Math.max(0, ...rows.map(widthOf));
  let y = 0;
  for (const row of rows) {
    const height = Math.max(...row.map(i => items[i].height));
    let x = (width - widthOf(row)) / 2;
    for (const i of row) {
      items[i].x = x;
      items[i].y = y;
      items[i].rowHeight = height;
      x += items[i].width + gapX;
    }
    y += height + gapY;
  }
  for (let round = 0; round < 6; ++round)
    for (const row of round % 2 ? [...rows].reverse() : rows) pull(row, items, neighbours, gapX, width);
  return {width, height: Math.max(0, y - gapY)};
}

/** Moves the boxes of a row under the middle of their neighbours, in order and without overlap. */
function pull(row, items, neighbours, gapX, width) {
  const wanted = row.map(i => {
    const others = [...neighbours[i].up, ...neighbours[i].down];
    if (!others.length) return items[i].x;
    const middle = others.reduce((sum, o) => sum + items[o].x + items[o].width / 2, 0) / others.length;
    return middle - items[i].width / 2;
  });
  const room = [];
  let right = width;
  for (let k = row.length - 1; k >= 0; --k) {
    right -= items[row[k]].width;
    room[k] = right;
    right -= gapX;
  }
  let left = 0;
  row.forEach((i, k) => {
    items[i].x = Math.max(left, Math.min(wanted[k], room[k]));
    left = items[i].x + items[i].width + gapX;
  });
}
