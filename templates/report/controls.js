// SPDX-License-Identifier: Apache-2.0
// Keys, buttons and themes; and the start of it all.

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
  const target = event.target,
    typing = target.matches("input[type=search], select");
  const scrolls = /^(Arrow|Page|Home)/.test(event.key);
  // Arrows belong to whatever has the focus: to the timeline only where that has it, or nothing.
  if (typing || (scrolls && target !== document.body && target !== at("timeline"))) return;
  if (!state.launch && !"d?".includes(event.key)) return;
  if (event.shiftKey && SHIFTED[event.key]) go(SHIFTED[event.key]);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

// --- Light and dark ------------------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"],
  DARK = { auto: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };

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
  at("dark").media = DARK[theme];
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
  const counts = [
    warnings ? `${warnings} warning${warnings > 1 ? "s" : ""}` : "",
    notes ? `${notes} note${notes > 1 ? "s" : ""}` : "",
  ];
  at("findings").hidden = !page.findings.length;
  at("findings").className = warnings ? "warned" : "";
  at("findings-title").textContent = counts.filter(Boolean).join(", ");
  at("findings-list").replaceChildren(
    ...page.findings.map((one) =>
      el(
        "li",
        { class: one.severity },
        el("span", { class: "tag" }, one.severity),
        one.kernel && page.kernels.length > 1 ? el("b", {}, `${one.kernel}: `) : null,
        `${one.message}.`,
        one.remedy ? el("span", { class: "remedy" }, ` Fix: ${one.remedy}.`) : null,
      ),
    ),
  );
}

function splitter() {
  const bar = at("splitter"),
    root = document.documentElement;
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
  at("view").hidden = true;
  at("tools").hidden = true;
}
requestAnimationFrame(() => setTimeout(() => performance.mark("iket-ready")));

/** For the console, and for tests: where things are drawn. */
window.iket = Object.freeze({
  page,
  get launch() {
    return state.launch;
  },
  get view() {
    return { from: timeline.from, until: timeline.until, top: timeline.top, frames: timeline.drawing.frames };
  },
  get selected() {
    return timeline.selected;
  },
  boxOf(kind, row) {
    const box = timeline.boxOf({ kind, row }),
      canvas = at("timeline").getBoundingClientRect();
    return box && { x: box.x + canvas.x, y: box.y + canvas.y, width: box.width, height: box.height };
  },
  isBright: (kind, row) => timeline.filter === null || timeline.filter(kind, row),
  open: openLaunch,
});
