// SPDX-License-Identifier: Apache-2.0
// What the page shows: the data that stands in it, decoded; numbers as text; colours.

const UNITS = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
];

/** The unit in which numbers up to this many ns read best beside each other. */
function unitFor(ns, least = 1e4) {
  return UNITS.findLast(([, size]) => size === 1 || Math.abs(ns) >= (size / 1e3) * least);
}

/** A number with thousands apart; at most `digits` decimals, and exactly that many where `fixed`. */
function number(value, digits = 0, fixed = false) {
  return value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: fixed ? digits : 0 });
}

/** A time on its own, with at most three decimals. */
function time(ns) {
  const [unit, size] = unitFor(ns, 1e3);
  return `${number(ns / size, size === 1 ? 1 : 3)} ${unit}`;
}

/** A time to the nanosecond. */
function exactTime(ns) {
  return Math.abs(ns) < 1e3 ? time(ns) : `${time(ns)} (${number(ns, 1)} ns)`;
}

/** Round steps for an axis: at most `count` in `length` ns, written in the unit that suits times up to `reach`. */
function ruler(length, count, reach) {
  const least = length / Math.max(1, count),
    power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * [1, 2, 5, 10].find((factor) => factor * power >= least));
  const [unit, size] = unitFor(reach, 2e3);
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return { step, text: (ns) => `${number(ns / size || 0, digits, true)} ${unit}` };
}

function percent(share) {
  return `${number(share * 100, 1, true)} %`;
}

/** Undo the differences of each lane. */
function decodeTimes(steps, segments) {
  const times = new Float64Array(steps.length);
  let row = 0;
  for (let part = 2; part < segments.length; part += 3) {
    let now = 0;
    for (let left = segments[part]; left > 0; left--, row++) times[row] = now += steps[row];
  }
  return times;
}

function column(values, length, otherwise) {
  return values ?? (otherwise instanceof Float64Array ? otherwise : new Int32Array(length).fill(otherwise));
}

/** Number of the first of `sorted[low..high)` for which `sorted[i] > limit`, else `high`. */
function firstAbove(sorted, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The same where the answer is likely to be near `low`. */
function nextAbove(sorted, limit, low, high) {
  let step = 1;
  while (low + step < high && sorted[low + step - 1] <= limit) {
    low += step;
    step *= 2;
  }
  return firstAbove(sorted, limit, low, Math.min(high, low + step));
}

/** One launch, ready to be drawn.  Ranges and markers keep the numbers that they have in the file. */
class Launch {
  constructor(number, about, raw) {
    this.number = number;
    this.about = about;
    this.payloads = raw.payloads;
    this.tables = raw.tables;
    this.warps = raw.warps;
    this.warpCount = raw.warps.id.length;
    const count = raw.ranges.duration.length;
    this.rangeCount = count;
    this.start = decodeTimes(raw.ranges.start, raw.lanes);
    this.duration = Float64Array.from(raw.ranges.duration);
    this.own = column(raw.ranges.own, count, this.duration);
    this.end = this.start.map((start, row) => start + Math.max(0, this.duration[row]));
    this.rangeStyle = Uint16Array.from(raw.ranges.style);
    this.payload = column(raw.ranges.payload, count, 0);
    this.endPayload = column(raw.ranges.endPayload, count, 0);
    this.endPlace = raw.ranges.endPlace;
    this.crossing = new Set(raw.ranges.crossing);
    this.events = raw.ranges.events;
    this.#lanes(raw.lanes);
    this.#markers(raw);
    this.#lifetimes();
    this.groups = this.#groups();
    const last = Math.max(
      this.about.span,
      this.end.reduce((a, b) => Math.max(a, b), 0),
    );
    this.span = Math.max(last, 1);
    this.styles = new Set([...this.rangeStyle, ...this.markerStyle]);
  }

  get empty() {
    return !this.warpCount;
  }

  #lanes(segments) {
    const lanes = segments.length / 3;
    this.laneNumber = new Int32Array(lanes);
    this.laneFirst = new Int32Array(lanes + 1);
    this.laneWarp = new Int32Array(lanes);
    // The lanes of warp w are those from warpLanes[w] to warpLanes[w + 1].
    this.warpLanes = new Int32Array(this.warpCount + 1);
    this.height = new Int32Array(this.warpCount);
    for (let lane = 0; lane < lanes; lane++) {
      const [warp, number, count] = segments.slice(3 * lane, 3 * lane + 3);
      this.laneWarp[lane] = warp;
      this.laneNumber[lane] = number;
      this.laneFirst[lane + 1] = this.laneFirst[lane] + count;
      this.warpLanes[warp + 1] = lane + 1;
      this.height[warp] = Math.max(this.height[warp], number + 1);
    }
    for (let warp = 0; warp < this.warpCount; warp++)
      this.warpLanes[warp + 1] = Math.max(this.warpLanes[warp + 1], this.warpLanes[warp]);
  }

  #markers(raw) {
    const count = raw.markers.style.length;
    this.markerCount = count;
    this.markerTime = decodeTimes(raw.markers.time, raw.markerLanes);
    this.markerStyle = Uint16Array.from(raw.markers.style);
    this.markerPayload = column(raw.markers.payload, count, 0);
    this.warpMarkers = new Int32Array(this.warpCount + 1);
    for (let part = 0; part < raw.markerLanes.length; part += 3)
      this.warpMarkers[raw.markerLanes[part] + 1] = raw.markerLanes[part + 2];
    for (let warp = 0; warp < this.warpCount; warp++) this.warpMarkers[warp + 1] += this.warpMarkers[warp];
  }

  /** First and last moment of each warp: its lifetime, or what its events tell. */
  #lifetimes() {
    this.from = Float64Array.from(this.warps.start);
    this.until = Float64Array.from(this.warps.end);
    for (let warp = 0; warp < this.warpCount; warp++) {
      if (this.isRecorded(warp)) continue;
      let from = Infinity,
        until = -Infinity;
      for (let lane = this.warpLanes[warp]; lane < this.warpLanes[warp + 1]; lane++) {
        from = Math.min(from, this.start[this.laneFirst[lane]]);
        until = Math.max(until, this.end[this.laneFirst[lane + 1] - 1]);
      }
      for (let mark = this.warpMarkers[warp]; mark < this.warpMarkers[warp + 1]; mark++) {
        from = Math.min(from, this.markerTime[mark]);
        until = Math.max(until, this.markerTime[mark]);
      }
      this.from[warp] = Number.isFinite(from) ? from : 0;
      this.until[warp] = Number.isFinite(until) ? until : 0;
    }
  }

  isRecorded(warp) {
    return !this.warps.recorded || this.warps.recorded[warp] === 1;
  }

  /** SMs with their CTAs; warps are sorted by SM, CTA and number. */
  #groups() {
    const found = [];
    for (let warp = 0; warp < this.warpCount; warp++) {
      const sm = this.warps.sm[warp],
        cta = this.cta(warp);
      let group = found.at(-1);
      if (!group || group.sm !== sm) found.push((group = { key: `s${warp}`, sm, first: warp, last: warp, ctas: [] }));
      let part = group.ctas.at(-1);
      if (!part || part.cta !== cta) group.ctas.push((part = { key: `c${warp}`, sm, cta, first: warp, last: warp }));
      group.last = part.last = warp + 1;
    }
    return found;
  }

  cta(warp) {
    return this.warps.cta.slice(3 * warp, 3 * warp + 3).join(",");
  }

  place(warp) {
    return `SM ${known(this.warps.sm[warp])}, CTA ${this.cta(warp)}, warp ${this.warps.id[warp]}`;
  }

  laneOf(range) {
    return firstAbove(this.laneFirst, range, 0, this.laneFirst.length) - 1;
  }

  warpOf(item) {
    if (item.kind === "warp") return item.row;
    if (item.kind === "range") return this.laneWarp[this.laneOf(item.row)];
    return firstAbove(this.warpMarkers, item.row, 0, this.warpMarkers.length) - 1;
  }

  styleOf(item) {
    return item.kind === "range" ? this.rangeStyle[item.row] : item.kind === "marker" ? this.markerStyle[item.row] : -1;
  }

  timesOf(item) {
    if (item.kind === "range") return [this.start[item.row], this.end[item.row]];
    if (item.kind === "marker") return [this.markerTime[item.row], this.markerTime[item.row]];
    return [this.from[item.row], this.until[item.row]];
  }

  /** [type, text, bits] of a payload, or null. */
  payloadOf(number) {
    return number ? this.payloads[number - 1] : null;
  }
}

function known(number) {
  return number < 0 ? "?" : String(number);
}

// Okabe and Ito's colours, without black; distinct in all common kinds of colour blindness.
const PALETTE = ["#56b4e9", "#e69f00", "#009e73", "#0072b2", "#f0e442", "#d55e00", "#cc79a7"];
const PATTERNS = 3;
const SHAPES = ["diamond", "triangle", "circle", "square", "cross"];

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Relative luminance as WCAG defines it. */
function luminance(hex) {
  const [red, green, blue] = channels(hex).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Give every style its colour: the declared one, else one by name, after seven with stripes. */
function paint(styles) {
  const given = new Map();
  for (const style of [
    ...styles.filter((one) => one.kind !== "mark"),
    ...styles.filter((one) => one.kind === "mark"),
  ]) {
    const key = `${style.kind === "mark"} ${style.name}`;
    if (!style.declared && !given.has(key)) given.set(key, given.size);
    const place = given.get(key) ?? 0;
    style.fill = style.declared ?? PALETTE[place % PALETTE.length];
    style.pattern = style.declared ? 0 : Math.floor(place / PALETTE.length) % PATTERNS;
    style.shape = SHAPES[Math.floor(place / PALETTE.length) % SHAPES.length];
    style.text = luminance(style.fill) > 0.18 ? "#101418" : "#ffffff";
    style.token = style.kind !== "range" && style.kind !== "mark";
  }
}

/** An element with text, never markup. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The small picture that stands for a style in tables and details. */
function swatch(style) {
  const picture = svg("svg", { class: "swatch", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" });
  if (style.kind === "mark") picture.append(svg("path", { d: shapePath(style.shape, 6, 6, 5), fill: style.fill }));
  else {
    picture.append(svg("rect", { width: 12, height: 12, rx: style.token ? 6 : 2, fill: style.fill }));
    const lines = { 1: "M-2 8 8 -2M2 14 14 2", 2: "M4 -2V14M8.5 -2V14" }[style.pattern];
    if (lines) picture.append(svg("path", { d: lines, stroke: style.text, "stroke-width": 1.5, opacity: 0.55 }));
  }
  return picture;
}

/** A marker's outline as a path, around a centre. */
function shapePath(shape, x, y, size) {
  const small = size * 0.82;
  switch (shape) {
    case "triangle":
      return `M${x - size} ${y - small}H${x + size}L${x} ${y + size}Z`;
    case "circle":
      return `M${x - small} ${y}a${small} ${small} 0 1 0 ${2 * small} 0a${small} ${small} 0 1 0 ${-2 * small} 0Z`;
    case "square":
      return `M${x - small} ${y - small}h${2 * small}v${2 * small}h${-2 * small}Z`;
    case "cross": {
      const arm = size * 0.38,
        leg = size - arm;
      return `M${x - arm} ${y - size}h${2 * arm}v${leg}h${leg}v${2 * arm}h${-leg}v${leg}h${-2 * arm}v${-leg}h${-leg}v${-2 * arm}h${leg}Z`;
    }
    default:
      return `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
  }
}
