"use strict";
// Moving a drawing: `scene` is a group in the SVG element `canvas`.

/** One pointer or the arrow keys pan, two pointers, the wheel, + and - zoom. Gives {x, y, k: the transform, move(): applies
    it, zoom(by, cx, cy), dragging(): a drag has just ended}. `fit` is called on 0. */
function panZoom(canvas, scene, fit) {
  const view = {x: 0, y: 0, k: 1, move, zoom, dragging: () => dragged};
  const pointers = new Map();
  let dragged = false;

  function move() { scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`); }
  function zoom(by, cx = canvas.clientWidth / 2, cy = canvas.clientHeight / 2) {
    const k = Math.min(3, Math.max(0.05, view.k * by)), real = k / view.k;
    view.x = cx - (cx - view.x) * real;
    view.y = cy - (cy - view.y) * real;
    view.k = k;
    move();
  }

  canvas.addEventListener("pointerdown", event => {
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
    dragged = false;
  });
  canvas.addEventListener("pointermove", event => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const dx = event.clientX - last.x, dy = event.clientY - last.y;
    if (!dragged && Math.hypot(dx, dy) < 4) return;
    if (!dragged) { dragged = true; canvas.setPointerCapture(event.pointerId); }
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(last.x - other.x, last.y - other.y);
      const now = Math.hypot(event.clientX - other.x, event.clientY - other.y), frame = canvas.getBoundingClientRect();
      if (before > 0) zoom(now / before, (event.clientX + other.x) / 2 - frame.left, (event.clientY + other.y) / 2 - frame.top);
    } else {
      view.x += dx;
      view.y += dy;
      move();
    }
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, event => {
      pointers.delete(event.pointerId);
      setTimeout(() => { dragged = false; }); // behind the click that ends a drag
    });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const frame = canvas.getBoundingClientRect(), isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (isSideways && !event.ctrlKey) { view.x -= event.deltaX; view.y -= event.deltaY; return move(); }
    const perPixel = event.deltaMode ? 0.05 : 0.0015; // or per line
    zoom(Math.exp(-event.deltaY * perPixel), event.clientX - frame.left, event.clientY - frame.top);
  }, {passive: false});
  canvas.addEventListener("keydown", event => {
    const by = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]}[event.key];
    if (by) { view.x += by[0]; view.y += by[1]; move(); }
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(1 / 1.25);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });
  return view;
}
