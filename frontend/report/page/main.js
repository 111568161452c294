"use strict";
// Puts the page together: the header, a tab for each view (drawn when it is first seen), the panel.

function header() {
  const run = report.run, unknown = "not measured";
  const what = [run.verb && `fusor ${run.verb}`, run.config, run.precision].filter(Boolean).join(" · ");
  document.getElementById("title").textContent = what || "fusor report";
  document.title = `${what || "report"}: fusor report`;
  const symbols = (run.symbols || []).map(s => `${s.name} = ${s.value}`).join(", ");
  document.getElementById("subtitle").textContent =
    [run.device, run.arch !== run.device && run.arch, run.device !== "cpu" && run.tier && `tier ${run.tier}`, run.function && `@${run.function}`, symbols].filter(Boolean).join("  ·  ");
  const gemms = new Map();
  for (const gemm of report.gemms) gemms.set(gemm.fp8 ? "fp8" : gemm.compute || "?", (gemms.get(gemm.fp8 ? "fp8" : gemm.compute || "?") || 0) + 1);
  const facts = [
    ["a step", "step_ms", known(run.step_ms, format.ms)],
    ["kernels a step", "kernels", report.steps.length ? format.count(report.steps.length) : known(undefined)],
    ["host launches", "launches", known(run.launches_per_step, format.count)],
    ["peak memory", "peak", known(run.peak_bytes !== undefined ? run.peak_bytes : report.memory.peak_bytes, format.bytes)],
    ["idle", "idle", known(run.idle_ms, format.ms)],
    ["GEMMs", "gemms", report.gemms.length ? [...gemms].map(([kind, count]) => `${count} ${kind}`).join(", ") : known(undefined)],
  ];
  add(document.getElementById("facts"), facts.map(([name, id, value]) => h("div", {}, h("dt", {}, name), h("dd", {"data-fact": id}, value))));
}

function page() {
  header();
  const panelElement = document.getElementById("panel"), views = document.getElementById("views"), tabs = document.getElementById("tabs");
  const onSelect = (side, node) => {
    panel.node(side, node);
    history.replaceState(null, "", `#graph/${side}/${node.index}`);
    if (side === "after" && node.steps.length) markStep(node.steps[0]);
  };
  const showNode = (side, node) => { open("graph"); onSelect(side, node); graph.show(side, node); };
  const panel = detailsPanel(panelElement, {show: showNode, showStep: selectStep});
  const graph = graphView({onSelect, onGroup: (side, group) => panel.layer(side, group)});
  const nodeOf = step => (step.node === undefined ? undefined : report.graphs.after.nodes[step.node]);
  function selectStep(step) {
    const node = nodeOf(step);
    if (node) panel.node("after", node); else panel.step(step);
    const goTo = node && h("button", {type: "button", class: "link to-graph", onclick: () => showNode("after", node)}, "show in the graph");
    if (goTo) panelElement.querySelector("h2").after(goTo);
    markStep(step.index);
  }
  const markStep = index => { if (made.timeline && made.timeline.mark) made.timeline.mark(index); };
  const selectGemm = gemm => { if (gemm.step !== undefined) selectStep(report.steps[gemm.step]); else panel.step({name: gemm.op, kind: "contraction", gemm: gemm.index}); };
  const selectDecision = decision => {
    const side = decision.after ? "after" : decision.before ? "before" : undefined;
    if (side) panel.node(side, report.graphs[side].nodes[decision[side][0]]);
    else panel.show(h("h2", {}, decision.rule), h("p", {}, decision.reason), code(decision.subject || "", irTokens), h("p", {class: "unknown"}, decision.location || ""));
  };

  const made = {};
  const makers = {
    graph: ["Graph", () => (report.graphs.after.nodes.length || report.graphs.before.nodes.length ? graph :
      {element: h("p", {class: "nothing"}, "This dump has no modules.")})],
    timeline: ["Timeline", () => timelineView({selectStep})],
    memory: ["Memory", () => memoryView({selectStep})],
    fp8: ["FP8", () => fp8View({panel})],
    gemms: ["GEMMs", () => gemmsView({selectGemm})],
    kernels: ["Kernels", () => kernelsView({panel})],
    decisions: ["Decisions", () => decisionsView({selectDecision})],
    passes: ["Passes", () => passesView()],
  };
  const names = Object.keys(makers);
  for (const name of names)
    tabs.append(h("button", {type: "button", role: "tab", id: "tab-" + name, "aria-controls": "view-" + name, "data-tab": name,
      onclick: () => open(name)}, makers[name][0]));
  tabs.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const next = names[(names.indexOf(document.activeElement.dataset.tab) + step + names.length) % names.length];
    open(next);
    document.getElementById("tab-" + next).focus();
  });
  function open(name) {
    if (!made[name]) {
      made[name] = makers[name][1]();
      views.append(h("section", {class: "view", id: "view-" + name, role: "tabpanel", "aria-labelledby": "tab-" + name}, made[name].element));
      made[name].isNew = true;
    }
    for (const other of names) {
      const tab = document.getElementById("tab-" + other), view = document.getElementById("view-" + other);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      if (other === name) tabs.scrollLeft = Math.max(0, tab.offsetLeft - tabs.offsetLeft - 60);
      if (view) view.hidden = other !== name;
    }
    if (made[name].isNew && made[name].start) made[name].start();
    made[name].isNew = false;
    if (matchMedia("(max-width: 860px)").matches) panel.welcome(); // it lies over the view
    if (location.hash.split("/")[0] !== "#" + name) history.replaceState(null, "", "#" + name);
  }
  /** "#memory" is a view, "#graph/after/12" a node of it. */
  function follow() {
    const [name, side, index] = location.hash.slice(1).split("/");
    open(names.includes(name) ? name : "graph");
    const node = report.graphs[side === "before" ? side : "after"].nodes[index];
    if (name === "graph" && node) showNode(side === "before" ? side : "after", node);
  }
  panel.welcome();
  follow();
  addEventListener("hashchange", follow);
}
page();
