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

function launchLabel(launch, place) {
  const kernel = page.kernels[launch.kernel];
  const graph = launch.graph ? ` · ${launch.graph}` : "";
  const time_ = launch.ranges + launch.markers ? time(launch.span) : "no events";
  return `${place + 1}. ${kernel.short} · ${time_}${graph}`;
}

function fillChooser() {
  const chooser = at("launch");
  page.processes.forEach((process, number) => {
    const options = page.launches
      .map((launch, place) => [launch, place])
      .filter(([launch]) => launch.process === number)
      .map(([launch, place]) => el("option", { value: place }, launchLabel(launch, place)));
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
  const { about } = state.launch, { balance } = about;
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
    balance && ["tail", `${time(balance.tail)}, ${percent(balance.idle)} idle`, "from the end of the first SM that has nothing left to the end of the launch, and the share of all SMs' time that is lost in it"],
    balance && ["slowest CTA", `${number(balance.imbalance, 2, true)}× the mean`, `CTA ${balance.slowest}`],
  ];
  at("facts").replaceChildren(
    ...facts.filter(Boolean).map(([label, text, title]) => el("div", { title: title || null }, el("dt", {}, label), el("dd", {}, text))),
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
    const tab = el("button", { type: "button", role: "tab", id: `tab-${one.id}`, "aria-selected": String(on), "aria-controls": "table", tabindex: on ? 0 : -1, title: one.help || null }, one.title);
    tab.addEventListener("click", () => openTab(one.id));
    return tab;
  });
  at("tabs").replaceChildren(...tabs);
  table.show(found.find((one) => one.id === state.tab), styleOfPick);
}

function openTab(id) {
  state.tab = id;
  showTabs();
}

at("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const found = tables(), now = found.findIndex((one) => one.id === state.tab);
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

// --- What is bright ------------------------------------------------------------------------------------------

/** A function that says whether a range or marker belongs to a row of a table. */
function filterOfPick(pick) {
  const { launch } = state, styles = new Set(stylesOfPick(pick));
  const role = pick.role === undefined ? null : pick.role;
  return (kind, row) => {
    if (kind === "marker") return pick.kind === "mark" && styles.has(launch.markerStyle[row]);
    if (!styles.has(launch.rangeStyle[row])) return false;
    if (role !== null && launch.warps.role[launch.warpOf({ kind: "range", row })] !== role) return false;
    return pick.payload === undefined || (launch.payloadOf(launch.payload[row])?.[1] ?? "no payload") === pick.payload;
  };
}

function filterOfSearch(query) {
  const { launch } = state, wanted = query.toLowerCase();
  const styles = new Set(page.styles.flatMap((style, row) => (style.name.toLowerCase().includes(wanted) ? [row] : [])));
  return (kind, row) => styles.has(kind === "range" ? launch.rangeStyle[row] : launch.markerStyle[row]);
}

function updateFilter() {
  const parts = [];
  if (state.pick) parts.push(filterOfPick(state.pick));
  if (state.query) parts.push(filterOfSearch(state.query));
  if (state.bar) {
    const subject = histogramSubject(), [low, high] = state.bar;
    if (subject) parts.push(filterOfPick(subject));
    parts.push((kind, row) => kind === "range" && state.launch.duration[row] >= low && state.launch.duration[row] < high);
  }
  timeline.highlight(parts.length ? (kind, row) => parts.every((part) => part(kind, row)) : null);
}

// --- Histogram and details -----------------------------------------------------------------------------------

/** Whose durations are drawn: the chosen row's, else the selected range's. */
function histogramSubject() {
  if (state.pick && state.pick.kind !== "mark") return state.pick;
  const item = timeline.selected;
  if (item?.kind !== "range") return null;
  const style = page.styles[state.launch.styleOf(item)];
  return { key: `${style.kind} ${style.name}`, kind: style.kind, name: style.name };
}

function showHistogram() {
  const subject = histogramSubject(), { launch } = state;
  const selected = timeline.selected?.kind === "range" ? launch.duration[timeline.selected.row] : null;
  if (!subject) {
    histogram.hide("Choose a range, here or in the timeline, to see how its durations are spread.");
    state.shown = null;
    return;
  }
  if (state.shown === subject.key + launch.number) {
    histogram.pointAt(selected);
    return;
  }
  const bright = filterOfPick(subject), durations = [];
  for (let row = 0; row < launch.rangeCount; row++) if (bright("range", row)) durations.push(launch.duration[row]);
  if (!durations.length) {
    histogram.hide("No such range is in this launch.");
    state.shown = null;
    return;
  }
  state.shown = subject.key + launch.number;
  const note = launch.about.left ? "Of the ranges that are drawn; the table counts all." : "";
  const title = subject.label ? `${subject.name}, ${subject.label}` : subject.name;
  histogram.show({ title, style: styleOfPick(subject), durations, note }, selected);
}

function placesOf(style) {
  return (style && page.kernels[state.launch.about.kernel].places[page.styles.indexOf(style)]) || [];
}

function choose(item) {
  timeline.select(item);
  if (!state.pick && state.bar) {
    state.bar = null;
    updateFilter();
  }
  showHistogram();
  const place = at("details");
  if (!item) {
    place.replaceChildren(launchDetails());
    return;
  }
  const { launch } = state, style = page.styles[launch.styleOf(item)];
  const title = style ? style.name : `warp ${launch.warps.id[launch.warpOf(item)]}`;
  const lines = describe(launch, item, page.styles, placesOf, page.tick);
  place.replaceChildren(
    el("h3", {}, ...(style ? [swatch(style)] : []), title),
    el("dl", {}, ...lines.flatMap(([label, text]) => [el("dt", { class: label === "beware" ? "beware" : "" }, label), el("dd", {}, text)])),
  );
  at("said").textContent = [title, ...lines.slice(0, 4).map(([label, text]) => `${label} ${text}`)].join(", ");
}

/** Details while nothing is selected: the launch. */
function launchDetails() {
  const { about } = state.launch, process = page.processes[about.process];
  const kernel = page.kernels[about.kernel];
  const lines = [
    ["kernel", kernel.name],
    ["grid", `${about.grid.join(" × ")} CTAs of ${about.block.join(" × ")} threads`],
    ["launch", `grid id ${about.gridId} of context ${about.context}`],
    about.graph ? ["graph", about.graph] : null,
    about.cluster ? ["recorded", about.cluster] : null,
    ["begins", `${time(about.start)} after the first launch of its process`],
    ["file", process.path],
    page.alignment ? ["clocks", page.alignment] : null,
  ].filter(Boolean);
  return el("div", {}, el("h3", {}, "This launch"), el("dl", {}, ...lines.flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)])));
}

function showTip(item, x, y) {
  const tip = at("tip");
  if (!item) {
    tip.hidden = true;
    return;
  }
  const { launch } = state, style = page.styles[launch.styleOf(item)];
  const lines = [];
  const payload = item.kind === "range" ? launch.payload[item.row] : item.kind === "marker" ? launch.markerPayload[item.row] : 0;
  const end = item.kind === "range" ? launch.payloadOf(launch.endPayload[item.row]) : null;
  const [from, until] = launch.timesOf(item);
  if (item.kind === "range") lines.push(exactTime(launch.duration[item.row]));
  else lines.push(item.kind === "marker" ? `at ${exactTime(from)}` : `lives ${exactTime(until - from)}`);
  const first = launch.payloadOf(payload);
  if (first || end) lines.push(`payload ${[first, end].map((one) => (one ? `${one[1]} (${one[0]})` : "–")).slice(0, end ? 2 : 1).join(" → ")}`);
  const source = placesOf(style);
  if (source.length) lines.push(source.join(", "));
  lines.push(launch.place(launch.warpOf(item)));
  const title = el("div", { class: "title" }, ...(style ? [swatch(style)] : []), style ? style.name : "warp");
  tip.replaceChildren(title, ...lines.map((line) => el("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}

function showView() {
  const { from, until } = timeline;
  at("span").textContent = `${time(Math.max(0, Math.round(from)))} – ${time(Math.round(Math.min(until, timeline.launch.span)))}`;
}

// --- Search --------------------------------------------------------------------------------------------------

/** Everything of this launch whose name has the text, in the order of time. */
function search(query, go) {
  state.query = query.trim();
  state.match = -1;
  state.matches = null;
  if (state.query) {
    const { launch } = state, found = filterOfSearch(state.query);
    state.matches = [];
    for (let row = 0; row < launch.rangeCount; row++) if (found("range", row)) state.matches.push({ kind: "range", row, at: launch.start[row] });
    for (let row = 0; row < launch.markerCount; row++) if (found("marker", row)) state.matches.push({ kind: "marker", row, at: launch.markerTime[row] });
    state.matches.sort((a, b) => a.at - b.at);
  }
  updateFilter();
  if (go) step(1);
  else showMatches();
}

function step(by) {
  const { matches } = state;
  if (matches?.length) {
    state.match = state.match < 0 ? (by > 0 ? 0 : matches.length - 1) : (state.match + by + matches.length) % matches.length;
    const { kind, row } = matches[state.match];
    choose({ kind, row });
    timeline.focus({ kind, row });
  }
  showMatches();
}

function showMatches() {
  const { matches, match, query } = state;
  const text = !query ? "" : !matches.length ? "none" : match < 0 ? number(matches.length) : `${number(match + 1)} of ${number(matches.length)}`;
  at("matches").textContent = text;
}

at("search").addEventListener("input", (event) => search(event.target.value, false));
at("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  else if (event.key === "Escape") {
    event.target.value = "";
    search("", false);
    at("timeline").focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
});

// --- Keys ----------------------------------------------------------------------------------------------------

function go(direction) {
  const item = timeline.neighbour(direction);
  if (!item) return;
  choose(item);
  timeline.focus(item);
}

function letGo() {
  at("search").value = "";
  search("", false);
  state.pick = state.bar = null;
  table.clear();
  updateFilter();
  choose(null);
}

const KEYS = {
  ArrowLeft: () => timeline.pan(-timeline.width / 8),
  ArrowRight: () => timeline.pan(timeline.width / 8),
  ArrowUp: () => timeline.scrollBy(-60),
  ArrowDown: () => timeline.scrollBy(60),
  PageUp: () => timeline.scrollBy(-0.9 * at("rows").clientHeight),
  PageDown: () => timeline.scrollBy(0.9 * at("rows").clientHeight),
  "+": () => timeline.zoom(1 / 1.5),
  "=": () => timeline.zoom(1 / 1.5),
  "-": () => timeline.zoom(1.5),
  0: () => timeline.fit(),
  Home: () => timeline.fit(),
  f: () => timeline.selected && timeline.zoomTo(timeline.selected),
  1: () => timeline.setLevel(1),
  2: () => timeline.setLevel(2),
  3: () => timeline.setLevel(3),
  n: () => step(1),
  N: () => step(-1),
  "[": () => openLaunch(state.place - 1),
  "]": () => openLaunch(state.place + 1),
  "/": () => at("search").select(),
  d: () => nextTheme(),
  "?": () => at("help").showModal(),
  Escape: () => letGo(),
};
const SHIFTED = { ArrowLeft: "previous", ArrowRight: "next", ArrowUp: "up", ArrowDown: "down" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || at("help").open) return;
  const target = event.target, typing = target.matches("input[type=search], select");
  const scrolls = /^(Arrow|Page|Home)/.test(event.key);
  // Arrows belong to whatever has the focus: to the timeline only where that has it, or nothing.
  if (typing || (scrolls && target !== document.body && target !== at("timeline"))) return;
  if (state.launch.empty && scrolls) return;
  if (event.shiftKey && SHIFTED[event.key]) go(SHIFTED[event.key]);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

// --- Light and dark ------------------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function remembered() {
  // From a file some browsers refuse to remember anything.
  try {
    return localStorage.getItem("iket-theme");
  } catch {
    return null;
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  at("theme").textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[theme];
  timeline.readColors();
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  try {
    localStorage.setItem("iket-theme", theme);
  } catch {
    // See above.
  }
  setTheme(theme);
}

// --- Start ---------------------------------------------------------------------------------------------------

function showFindings() {
  const warnings = page.findings.filter((one) => one.severity === "warning").length;
  const notes = page.findings.length - warnings;
  const counts = [warnings ? `${warnings} warning${warnings > 1 ? "s" : ""}` : "", notes ? `${notes} note${notes > 1 ? "s" : ""}` : ""];
  at("findings").hidden = !page.findings.length;
  at("findings").className = warnings ? "warned" : "";
  at("findings-title").textContent = counts.filter(Boolean).join(", ");
  at("findings-list").replaceChildren(
    ...page.findings.map((one) =>
      el("li", { class: one.severity }, el("span", { class: "tag" }, one.severity), one.kernel && page.kernels.length > 1 ? el("b", {}, `${one.kernel}: `) : null, `${one.message}.`, one.remedy ? el("span", { class: "remedy" }, ` ${one.remedy}.`) : null),
    ),
  );
}

function splitter() {
  const bar = at("splitter"), root = document.documentElement;
  const set = (pixels) => {
    const width = Math.min(Math.max(300, pixels), innerWidth - 360);
    root.style.setProperty("--side", `${width}px`);
    bar.setAttribute("aria-valuenow", String(Math.round(width)));
  };
  bar.addEventListener("pointerdown", (event) => bar.setPointerCapture(event.pointerId));
  bar.addEventListener("pointermove", (event) => event.buttons && set(innerWidth - event.clientX));
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: 24, ArrowRight: -24 }[event.key];
    if (by) set(at("side").getBoundingClientRect().width + by);
  });
}

at("zoom-in").addEventListener("click", KEYS["+"]);
at("zoom-out").addEventListener("click", KEYS["-"]);
at("fit").addEventListener("click", KEYS[0]);
for (const level of [1, 2, 3]) at(`level-${level}`).addEventListener("click", () => timeline.setLevel(level));
at("theme").addEventListener("click", nextTheme);
at("open-help").addEventListener("click", () => at("help").showModal());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.readColors());
splitter();
showFindings();
setTheme(THEMES.includes(remembered()) ? remembered() : "auto");
if (page.launches.length) {
  fillChooser();
  openLaunch(page.first);
} else {
  document.body.classList.add("nothing");
  at("empty").hidden = false;
  at("tools").hidden = true;
}
requestAnimationFrame(() => setTimeout(() => performance.mark("iket-ready")));

/** For the console, and for tests: where things are drawn. */
window.iket = Object.freeze({
  page,
  get launch() { return state.launch; },
  get view() { return { from: timeline.from, until: timeline.until, top: timeline.scroller.scrollTop, frames: timeline.frames }; },
  get selected() { return timeline.selected; },
  boxOf(kind, row) {
    const box = timeline.boxOf({ kind, row }), canvas = at("timeline").getBoundingClientRect();
    return box && { x: box.x + canvas.x, y: box.y + canvas.y, width: box.width, height: box.height };
  },
  isBright: (kind, row) => timeline.filter === null || timeline.filter(kind, row),
  open: openLaunch,
});
