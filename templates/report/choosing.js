// SPDX-License-Identifier: Apache-2.0
// What follows from choosing a range or a row of a table, and from searching: what is bright, the histogram, details.

// --- What is bright ------------------------------------------------------------------------------------------

/** A function that says whether a range or marker belongs to a row of a table. */
function filterOfPick(pick) {
  const { launch } = state,
    styles = new Set(stylesOfPick(pick));
  const role = pick.role === undefined ? null : pick.role;
  return (kind, row) => {
    if (kind === "marker") return pick.kind === "mark" && styles.has(launch.markerStyle[row]);
    if (!styles.has(launch.rangeStyle[row])) return false;
    if (role !== null && launch.warps.role[launch.warpOf({ kind: "range", row })] !== role) return false;
    return pick.payload === undefined || (launch.payloadOf(launch.payload[row])?.[1] ?? "no payload") === pick.payload;
  };
}

function filterOfSearch(query) {
  const { launch } = state,
    wanted = query.toLowerCase();
  const styles = new Set(page.styles.flatMap((style, row) => (style.name.toLowerCase().includes(wanted) ? [row] : [])));
  return (kind, row) => styles.has(kind === "range" ? launch.rangeStyle[row] : launch.markerStyle[row]);
}

function updateFilter() {
  const parts = [];
  if (state.pick) parts.push(filterOfPick(state.pick));
  if (state.query) parts.push(filterOfSearch(state.query));
  if (state.bar) {
    const subject = histogramSubject(),
      [low, high] = state.bar;
    if (subject) parts.push(filterOfPick(subject));
    parts.push(
      (kind, row) => kind === "range" && state.launch.duration[row] >= low && state.launch.duration[row] < high,
    );
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
  const subject = histogramSubject(),
    { launch } = state;
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
  const bright = filterOfPick(subject),
    durations = [];
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
  const { launch } = state,
    style = page.styles[launch.styleOf(item)];
  const title = style ? style.name : `warp ${launch.warps.id[launch.warpOf(item)]}`;
  const lines = describe(launch, item, page.styles, placesOf, page.tick);
  place.replaceChildren(
    el("h3", {}, ...(style ? [swatch(style)] : []), title),
    el(
      "dl",
      {},
      ...lines.flatMap(([label, text]) => [
        el("dt", { class: label === "beware" ? "beware" : "" }, label),
        el("dd", {}, text),
      ]),
    ),
  );
  at("said").textContent = [title, ...lines.slice(0, 4).map(([label, text]) => `${label} ${text}`)].join(", ");
}

/** Details while nothing is selected: the launch. */
function launchDetails() {
  const { about } = state.launch,
    process = page.processes[about.process];
  const kernel = page.kernels[about.kernel];
  const lines = [
    ["kernel", kernel.name],
    ["grid", `${about.grid.join(" × ")} CTAs of ${about.block.join(" × ")} threads`],
    ["launch", `grid id ${about.gridId} of context ${about.context}`],
    about.graph ? ["graph", about.graph] : null,
    about.cluster ? ["recorded", about.cluster] : null,
    about.span ? ["begins", `${time(about.start)} after the first launch of its process`] : null,
    ["file", process.path],
    page.alignment ? ["clocks", page.alignment] : null,
  ].filter(Boolean);
  return el(
    "div",
    {},
    el("h3", {}, "This launch"),
    el("dl", {}, ...lines.flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)])),
  );
}

function showTip(item, x, y) {
  const tip = at("tip");
  if (!item) {
    tip.hidden = true;
    return;
  }
  const { launch } = state,
    style = page.styles[launch.styleOf(item)];
  const lines = [];
  const payload =
    item.kind === "range" ? launch.payload[item.row] : item.kind === "marker" ? launch.markerPayload[item.row] : 0;
  const end = item.kind === "range" ? launch.payloadOf(launch.endPayload[item.row]) : null;
  const [from, until] = launch.timesOf(item);
  if (item.kind === "range") lines.push(exactTime(launch.duration[item.row]));
  else lines.push(item.kind === "marker" ? `at ${exactTime(from)}` : `lives ${exactTime(until - from)}`);
  const first = launch.payloadOf(payload);
  if (first || end)
    lines.push(
      `payload ${[first, end]
        .map((one) => (one ? `${one[1]} (${one[0]})` : "–"))
        .slice(0, end ? 2 : 1)
        .join(" → ")}`,
    );
  const source = placesOf(style);
  if (source.length) lines.push(source.join(", "));
  const others = item.kind === "marker" ? timeline.alike(item.row).filter((row) => row !== item.row) : [];
  const names = others.slice(0, 8).map((row) => page.styles[launch.markerStyle[row]].name);
  if (names.length)
    lines.push(`here too: ${names.join(", ")}${others.length > 8 ? ", …" : ""}; click again for the next`);
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
  at("span").textContent =
    `${time(Math.max(0, Math.round(from)))} – ${time(Math.round(Math.min(until, timeline.launch.span)))}`;
}

// --- Search --------------------------------------------------------------------------------------------------

/** Everything of this launch whose name has the text, in the order of time. */
function search(query, go) {
  state.query = query.trim();
  state.match = -1;
  state.matches = null;
  if (state.query) {
    const { launch } = state,
      found = filterOfSearch(state.query);
    state.matches = [];
    for (let row = 0; row < launch.rangeCount; row++)
      if (found("range", row)) state.matches.push({ kind: "range", row, at: launch.start[row] });
    for (let row = 0; row < launch.markerCount; row++)
      if (found("marker", row)) state.matches.push({ kind: "marker", row, at: launch.markerTime[row] });
    state.matches.sort((a, b) => a.at - b.at);
  }
  updateFilter();
  if (go) step(1);
  else showMatches();
}

function step(by) {
  const { matches } = state;
  if (matches?.length) {
    state.match =
      state.match < 0 ? (by > 0 ? 0 : matches.length - 1) : (state.match + by + matches.length) % matches.length;
    const { kind, row } = matches[state.match];
    choose({ kind, row });
    timeline.focus({ kind, row });
  }
  showMatches();
}

function showMatches() {
  const { matches, match, query } = state;
  const text = !query
    ? ""
    : !matches.length
      ? "none"
      : match < 0
        ? number(matches.length)
        : `${number(match + 1)} of ${number(matches.length)}`;
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
