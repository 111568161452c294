"use strict";
// A table that sorts by any column and draws its rows as they are scrolled to.

/**
 * columns: [{name, title, value(row) for sorting, show(row) -> text or element, number: right-aligned, wide: several
 *   lines, label: one line, cut where it is long}].
 * rows: objects. select(row): on click or Enter. sort: a column's name, or "-name" for the largest first; none: as given.
 * Gives {element, filter(predicate), count()}.
 */
function table({columns, rows, select, sort, name, empty}) {
  const batch = 80;
  const classOf = column => (column.number ? "number" : column.wide ? "wide" : column.label ? "name" : undefined);
  let order = [...rows], shown = 0, keep = () => true;
  let key = sort ? sort.replace(/^-/, "") : undefined, down = !!sort && sort.startsWith("-");
  const body = h("tbody");
  const heads = columns.map(column => h("th", {scope: "col", class: classOf(column)},
    h("button", {type: "button", title: column.about || "Sort by " + (column.title || column.name), onclick: () => sortBy(column)}, column.title || column.name)));
  const more = h("button", {type: "button", class: "more", onclick: () => draw(batch * 4)}, "more");
  const frame = h("div", {class: "table-frame", tabindex: "0", role: "region", "aria-label": name},
    h("table", {"data-table": name}, h("thead", {}, h("tr", {}, heads)), body), more);

  function sortBy(column) {
    down = key === column.name ? !down : !!column.number;
    key = column.name;
    arrange();
  }
  function arrange() {
    order = rows.filter(keep);
    const column = columns.find(c => c.name === key);
    if (column) {
      const value = column.value || (row => row[column.name]);
      const places = new Map(order.map(row => [row, value(row)]));
      order.sort((a, b) => {
        const x = places.get(a), y = places.get(b);
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined); // unknown ones last
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
    }
    heads.forEach((head, i) => {
      if (columns[i].name === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren();
    shown = 0;
    draw(batch);
  }
  function draw(count) {
    const part = document.createDocumentFragment();
    for (const row of order.slice(shown, shown + count)) part.append(line(row));
    shown = Math.min(order.length, shown + count);
    body.append(part);
    if (!order.length) body.append(h("tr", {class: "none"}, h("td", {colspan: columns.length}, empty || "nothing here")));
    more.hidden = shown >= order.length;
    more.textContent = `${format.count(shown)} of ${format.count(order.length)} shown: more`;
  }
  function line(row) {
    const cells = columns.map(column => h("td", {class: classOf(column), title: column.label ? row[column.name] : undefined},
      column.show ? column.show(row) : known(row[column.name])));
    if (!select) return h("tr", {}, cells);
    return h("tr", {class: "pick", tabindex: "0", onclick: () => pick(row, body), onkeydown: event => {
      if (event.key === "Enter") pick(row, body);
      if (event.key === "ArrowDown" && event.currentTarget.nextSibling) { event.currentTarget.nextSibling.focus(); event.preventDefault(); }
      if (event.key === "ArrowUp" && event.currentTarget.previousSibling) { event.currentTarget.previousSibling.focus(); event.preventDefault(); }
    }}, cells);
  }
  function pick(row) {
    if (getSelection() && String(getSelection())) return; // text is being copied
    body.querySelectorAll(".selected").forEach(e => e.classList.remove("selected"));
    const index = order.indexOf(row);
    if (body.children[index]) body.children[index].classList.add("selected");
    select(row);
  }
  new IntersectionObserver(entries => { if (entries.some(e => e.isIntersecting) && shown < order.length) draw(batch); })
    .observe(more);
  arrange();
  return {element: frame, filter(predicate) { keep = predicate; arrange(); }, count: () => order.length};
}

/** A bar of 0 to 100 % with its number. */
function bar(percent, title) {
  if (percent === undefined) return known(undefined);
  const width = Math.max(0, Math.min(100, percent));
  return h("span", {class: "meter", title: title || ""}, h("span", {class: "meter-fill", style: `width:${width.toFixed(1)}%`}),
    h("span", {class: "meter-text"}, format.percent(percent)));
}
