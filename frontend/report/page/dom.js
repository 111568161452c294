"use strict";
// Elements. All text goes in as text: a name from a dump is never markup.

function add(parent, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

/** h("button", {class: "x", onclick: f}, "text", otherElement) */
const h = (tag, attributes, ...children) => add(setAll(document.createElement(tag), attributes), children);
const svg = (tag, attributes, ...children) =>
  add(setAll(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);

/** A value that a dump may lack: as `how` says, or "not measured". */
const known = (value, how) =>
  value === undefined ? h("span", {class: "unknown"}, "not measured") : (how || format.text)(value);

/** A word on a coloured ground: a kind of kernel, a dtype, a verdict. */
const chip = (text, name) => h("span", {class: "chip " + (name || "")}, text);

/** The colour of a class of kernels: a CSS variable. */
const kindNames = ["contraction", "attention", "row", "column", "pointwise", "multi", "movement", "input"];
function kindName(kind) {
  const text = String(kind || "").toLowerCase();
  if (text.startsWith("attention")) return "attention";
  if (text.startsWith("multi") || text === "native" || text.includes("adamw") || text.includes("amax_update")) return "multi";
  if (["gemm", "contraction", "library"].some(word => text.startsWith(word))) return "contraction";
  if (text.startsWith("reduction")) return "row";
  if (["movement", "indexmap", "view", "scatter", "copy", "split"].some(word => text.startsWith(word))) return "movement";
  return kindNames.find(name => text.startsWith(name)) || "other";
}
const kindColour = kind => `var(--k-${kindName(kind)})`;

/** Text that leaves out its middle where it is longer than `most`. */
const shortened = (text, most) =>
  text.length <= most ? text : text.slice(0, Math.ceil(most / 2) - 1) + "…" + text.slice(text.length - Math.floor(most / 2));

/** A filter's text, taken when typing pauses. */
function whenTyped(input, act) {
  let timer;
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => act(input.value.trim()), 120); });
}

/** `text` without its middle, so that it fits `width` pixels in the page's font at `size`. */
const pageFont = getComputedStyle(document.body).fontFamily;
const ruler = document.createElement("canvas").getContext("2d");
function fitted(text, width, size) {
  ruler.font = `${size}px ${pageFont}`;
  if (ruler.measureText(text).width <= width) return text;
  let most = Math.floor(text.length * width / ruler.measureText(text).width);
  while (most > 4 && ruler.measureText(shortened(text, most)).width > width) --most;
  return shortened(text, most);
}
