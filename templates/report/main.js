// SPDX-License-Identifier: Apache-2.0
// The page: what stands where, and what happens when something is chosen.

const page = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
paint(page.styles);

const state = { launch: null, tab: "ranges", pick: null, bar: null, query: "", matches: null, match: -1 };

const timeline = new Timeline(
  { canvas: at("timeline"), scroller: at("rows"), content: at("content"), overview: at("overview") },
  page.styles,
  { hovered: showTip, clicked: choose, viewed: showView },
);
const table = new Table(at("table"), pickRow);
const histogram = new Histogram(at("histogram"), (low, high) => {
  state.bar = low === undefined ? null : [low, high];
  updateFilter();
});

// --- Launches ------------------------------------------------------------------------------------------------

function launchLabel(launch) {
  const kernel = page.kernels[launch.kernel];
  const graph = launch.graph ? ` · ${launch.graph}` : "";
  const length = launch.ranges + launch.markers ? time(launch.span) : "no events";
  return `#${launch.number} ${kernel.short} · ${length}${graph}`;
}

function fillChooser() {
  const chooser = at("launch");
  page.processes.forEach((process, number) => {
    const options = page.launches
      .map((launch, place) => [launch, place])
      .filter(([launch]) => launch.process === number)
      .map(([launch, place]) => el("option", { value: place }, launchLabel(launch)));
    if (page.processes.length > 1) chooser.append(el("optgroup", { label: process.label }, ...options));
    else chooser.append(...options);
  });
  chooser.addEventListener("change", () => openLaunch(Number(chooser.value)));
  at("previous").addEventListener("click", () => openLaunch(state.place - 1));
  at("next").addEventListener("click", () => openLaunch(state.place + 1));
}

function openLaunch(place) {
  if (place < 0 || place >= page.launches.length) return;
  const about = page.launches[place];
  state.launch = new Launch(place, about, JSON.parse(at(`launch-${place}`).textContent));
  Object.assign(state, { place, pick: null, bar: null, matches: null, match: -1 });
  at("launch").value = String(place);
  at("previous").disabled = place === 0;
  at("next").disabled = place === page.launches.length - 1;
  table.chosen = null;
  at("empty").hidden = !state.launch.empty && about.ranges + about.markers > 0;
  at("view").hidden = state.launch.empty;
  showFacts();
  showLeft();
  showTabs();
  timeline.show(state.launch);
  search(at("search").value, false);
  choose(null);
}

function showFacts() {
  const { about } = state.launch,
    { balance } = about;
  const facts = [
    ["grid", about.grid.join(" × ")],
    ["block", about.block.join(" × ")],
    about.clusters > 1 ? ["clusters", number(about.clusters)] : null,
    ["duration", time(about.span)],
    ["ranges", number(about.ranges)],
    ["markers", number(about.markers)],
    ["warps", number(about.warps)],
    balance && ["CTAs", number(balance.ctas)],
    balance && ["SMs", number(balance.sms)],
    balance && [
      "tail",
      `${time(balance.tail)}, ${percent(balance.idle)} idle`,
      "from the end of the first SM that has nothing left to the end of the launch, and the share of all SMs' time that is lost in it",
    ],
    balance && ["slowest CTA", `${number(balance.imbalance, 2, true)}× the mean`, `CTA ${balance.slowest}`],
  ];
  at("facts").replaceChildren(
    ...facts
      .filter(Boolean)
      .map(([label, text, title]) => el("div", { title: title || null }, el("dt", {}, label), el("dd", {}, text))),
  );
}

/** Say what is not shown: of the trace, and of this launch. */
function showLeft() {
  const said = [...page.left];
  if (state.launch.about.left) said.push(state.launch.about.left);
  at("left").hidden = !said.length;
  at("left").replaceChildren(el("strong", {}, "Not everything is drawn. "), said.join(" "));
}

// --- Tables --------------------------------------------------------------------------------------------------

function tables() {
  return [...state.launch.tables, ...page.kernels[state.launch.about.kernel].tables];
}

function showTabs() {
  const found = tables();
  if (!found.some((one) => one.id === state.tab)) state.tab = found[0].id;
  const tabs = found.map((one) => {
    const on = one.id === state.tab;
    const tab = el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${one.id}`,
        "aria-selected": String(on),
        "aria-controls": "table",
        tabindex: on ? 0 : -1,
        title: one.help || null,
      },
      one.title,
    );
    tab.addEventListener("click", () => openTab(one.id));
    return tab;
  });
  at("tabs").replaceChildren(...tabs);
  table.show(
    found.find((one) => one.id === state.tab),
    styleOfPick,
  );
}

function openTab(id) {
  state.tab = id;
  showTabs();
}

at("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const found = tables(),
    now = found.findIndex((one) => one.id === state.tab);
  openTab(found[(now + step + found.length) % found.length].id);
  at(`tab-${state.tab}`).focus();
  event.stopPropagation();
});

function stylesOfPick(pick) {
  return page.styles.flatMap((style, row) => (style.kind === pick.kind && style.name === pick.name ? [row] : []));
}

function styleOfPick(pick) {
  const found = stylesOfPick(pick);
  return page.styles[found.find((row) => state.launch.styles.has(row)) ?? found[0]];
}

function pickRow(pick) {
  state.pick = pick;
  state.bar = null;
  updateFilter();
  showHistogram();
}
