// SPDX-License-Identifier: Apache-2.0
// Beside the timeline: sortable tables, the histogram of durations, and details of what is selected.

/** How the cells of a kind of column are written; times of one scale share their unit, so that they can be compared. */
const CELLS = {
  count: { text: (value) => number(value), numeric: true },
  share: { text: percent, numeric: true },
  ratio: { text: (value) => `${number(value, 2, true)}×`, numeric: true },
  text: { text: String, numeric: false },
};

class Table {
  /** `told(row)` is called when a row is chosen or, with null, let go. */
  constructor(place, told) {
    this.place = place;
    this.told = told;
    this.sorted = new Map();
    this.chosen = null;
  }

  /** `table`: title, columns {key, title, kind, scale, help}, rows of values by key, `pick` for what a row stands for. */
  show(table, styleOf) {
    this.table = table;
    this.styleOf = styleOf;
    this.render();
  }

  render() {
    const { table } = this;
    const focused = document.activeElement?.closest?.("th, td")?.dataset.at;
    if (!table.rows.length) {
      this.place.replaceChildren(el("p", { class: "empty" }, table.none));
      return;
    }
    this.units = this.#units();
    const head = el("tr", {}, ...table.columns.map((column, at) => this.#header(column, at)));
    const body = this.#order().map((row) => this.#row(row));
    const made = el("table", { "aria-label": table.title }, el("thead", {}, head), el("tbody", {}, ...body));
    this.place.replaceChildren(made, ...(table.more ? [el("p", { class: "more" }, table.more)] : []));
    if (focused) made.querySelector(`[data-at="${CSS.escape(focused)}"] button`)?.focus();
  }

  /** One unit for each scale of times: that of its largest value. */
  #units() {
    const units = {};
    for (const { key, kind, scale } of this.table.columns) {
      if (kind !== "time") continue;
      for (const row of this.table.rows) {
        const value = row[key];
        if (value !== null && !(Math.abs(value) <= (units[scale]?.most ?? -1)))
          units[scale] = { most: Math.abs(value) };
      }
    }
    for (const found of Object.values(units)) [found.name, found.size] = unitFor(found.most);
    return units;
  }

  #header(column, at) {
    const sort = this.sorted.get(this.table.id);
    const now = sort?.key === column.key ? sort.down : null;
    const unit = column.kind === "time" ? (this.units[column.scale]?.name ?? "ns") : "";
    const label = el(
      "button",
      { type: "button", title: column.help || null, onclick: () => this.#sort(column) },
      column.title,
    );
    if (unit) label.append(el("span", { class: "unit" }, ` ${unit}`));
    label.append(el("span", { class: "arrow", "aria-hidden": "true" }, now === null ? "" : now ? "▼" : "▲"));
    const state = now === null ? "none" : now ? "descending" : "ascending";
    return el(
      "th",
      { scope: "col", class: column.kind === "text" ? "" : "number", "aria-sort": state, "data-at": `h${at}` },
      label,
    );
  }

  #sort(column) {
    const sort = this.sorted.get(this.table.id);
    const first = column.kind !== "text";
    this.sorted.set(this.table.id, { key: column.key, down: sort?.key === column.key ? !sort.down : first });
    this.render();
  }

  #order() {
    const sort = this.sorted.get(this.table.id);
    if (!sort) return this.table.rows;
    const sign = sort.down ? -1 : 1;
    const compare = (a, b) => {
      const [one, two] = [a[sort.key], b[sort.key]];
      if (one === null || two === null) return (one === null) - (two === null);
      return sign * (typeof one === "string" ? one.localeCompare(two, "en", { numeric: true }) : one - two);
    };
    return [...this.table.rows].sort(compare);
  }

  #row(row) {
    const active = row.pick && this.chosen === row.pick.key;
    const made = el("tr", { class: active ? "chosen" : "", "data-row": row.pick?.key });
    this.table.columns.forEach((column, at) => made.append(this.#cell(row, column, at)));
    if (row.pick) made.addEventListener("click", () => this.#choose(row));
    return made;
  }

  #cell(row, column, at) {
    const value = row[column.key];
    if (at === 0 && row.pick) {
      const style = this.styleOf(row.pick);
      const button = el("button", {
        type: "button",
        "aria-pressed": String(this.chosen === row.pick.key),
        title: value,
      });
      button.append(...(style ? [swatch(style)] : []), el("span", { class: "name" }, value));
      return el("th", { scope: "row", "data-at": `r${row.pick.key}` }, button);
    }
    const kind = CELLS[column.kind];
    const cell = el("td", { class: column.kind === "text" ? "" : "number", "data-key": column.key });
    if (value === null) cell.append("–");
    else if (column.kind === "time") {
      const { name, size } = this.units[column.scale];
      const digits = name === "ns" ? (column.whole ? 0 : 1) : 3;
      cell.append(number(value / size, digits, true));
      cell.title = `${number(value, 3)} ns`;
      cell.dataset.value = value;
    } else {
      cell.append(kind.text(value));
      cell.dataset.value = value;
      if (column.kind === "share") {
        cell.title = `${value * 100} %`;
        const bar = svg("svg", {
          class: "bar",
          viewBox: "0 0 100 1",
          preserveAspectRatio: "none",
          "aria-hidden": "true",
        });
        bar.append(svg("rect", { width: Math.max(0, Math.min(100, value * 100)), height: 1 }));
        cell.append(bar);
      }
    }
    return cell;
  }

  #choose(row) {
    this.chosen = this.chosen === row.pick.key ? null : row.pick.key;
    this.told(this.chosen === null ? null : row.pick);
    this.render();
  }

  clear() {
    this.chosen = null;
    if (this.table) this.render();
  }
}

/** Durations as bars.  `told(low, high)` is called when a bar is chosen, without arguments when it is let go. */
class Histogram {
  constructor(place, told) {
    this.place = place;
    this.told = told;
    this.logarithmic = false;
    new ResizeObserver(() => this.render()).observe(place);
  }

  /** `durations`: whole ns; `mark`: the selected range's own, or null. */
  show({ title, style, durations, note }, mark = null) {
    this.data = { title, style, durations: Float64Array.from(durations).sort(), note };
    this.mark = mark;
    this.chosen = null;
    this.render();
  }

  pointAt(mark) {
    this.mark = mark;
    this.render();
  }

  hide(message) {
    this.data = null;
    this.place.replaceChildren(el("p", { class: "empty" }, message));
  }

  #bins(most) {
    const sorted = this.data.durations,
      low = sorted[0],
      high = sorted.at(-1);
    // Stamps have ticks: a bin holds a whole number of them, else bars would differ for no reason.
    let step = 0;
    for (let at = 1; at < sorted.length; at++)
      if (sorted[at] !== sorted[at - 1]) step = divisor(step, sorted[at] - sorted[at - 1]);
    step ||= 1;
    let width = step;
    while ((high - low) / width + 1 > most) width *= 2;
    const first = Math.floor(low / width) * width;
    const bins = Array.from({ length: Math.floor((high - first) / width) + 1 }, (_, at) => ({
      low: first + at * width,
      count: 0,
    }));
    for (const value of sorted) bins[Math.floor((value - first) / width)].count++;
    return { bins, width, first };
  }

  render() {
    if (!this.data) return;
    const { durations, title, style, note } = this.data;
    const width = Math.max(220, this.place.clientWidth),
      height = 146,
      left = 40,
      right = 10,
      top = 20,
      bottom = 24;
    const { bins, width: size, first } = this.#bins(Math.min(64, Math.floor((width - left - right) / 7)));
    const most = Math.max(...bins.map((bin) => bin.count));
    const span = bins.length * size,
      room = width - left - right,
      low = height - bottom;
    const x = (ns) => left + ((ns - first) / span) * room;
    const tall = (count) => (this.logarithmic ? Math.log1p(count) / Math.log1p(most) : count / most) * (low - top);
    const drawing = svg("svg", {
      class: "histogram",
      width,
      height,
      role: "group",
      "aria-label": `durations of ${title}`,
    });
    drawing.append(svg("path", { class: "axis", d: `M${left} ${low + 0.5}H${width - right}` }));
    for (const count of this.#countTicks(most)) {
      drawing.append(
        svg("path", { class: "rule", d: `M${left} ${Math.round(low - tall(count)) + 0.5}H${width - right}` }),
      );
      drawing.append(svg("text", { x: left - 6, y: low - tall(count) + 4, "text-anchor": "end" }, number(count)));
    }
    for (const bin of bins) if (bin.count) drawing.append(this.#bar(bin, size, x, tall, low, style));
    this.#timeTicks(drawing, first, span, x, low, room);
    const middle = quantile(durations, 0.5),
      most95 = quantile(durations, 0.95);
    drawing.append(...this.#lines(x(middle + size / 2), x(most95 + size / 2), top, low));
    if (this.mark !== null && this.mark >= first && this.mark <= first + span)
      drawing.append(svg("path", { class: "mark", d: `M${x(this.mark + size / 2)} ${low + 1}l-4.5 7h9Z` }));
    const toggle = el(
      "label",
      { class: "option" },
      el("input", { type: "checkbox", id: "log", onchange: (event) => this.#scale(event) }),
      "log counts",
    );
    toggle.firstChild.checked = this.logarithmic;
    const facts = [
      `${number(durations.length)} × ${title}`,
      `median ${time(middle)}`,
      `p95 ${time(most95)}`,
      `bars of ${time(size)}`,
    ];
    const caption = el("p", { class: "caption" }, el("span", {}, facts.join(" · ")), toggle);
    this.place.replaceChildren(drawing, caption, ...(note ? [el("p", { class: "more" }, note)] : []));
  }

  #bar(bin, size, x, tall, low, style) {
    const high = bin.low + size,
      label = size === 1 ? time(bin.low) : `${time(bin.low)} to below ${time(high)}`;
    const height = Math.max(1.5, tall(bin.count));
    const wide = Math.max(1, x(high) - x(bin.low) - 1);
    const bar = svg("rect", {
      x: x(bin.low) + 0.5,
      y: low - height,
      width: wide,
      height,
      fill: style?.fill ?? "currentColor",
      class: this.chosen === bin.low ? "bar-on" : this.chosen == null ? "" : "bar-off",
      tabindex: 0,
      role: "button",
      "aria-pressed": String(this.chosen === bin.low),
      "aria-label": `${label}: ${number(bin.count)}`,
    });
    bar.dataset.low = bin.low;
    bar.dataset.count = bin.count;
    bar.append(svg("title", {}, `${label}: ${number(bin.count)}`));
    const choose = () => {
      this.chosen = this.chosen === bin.low ? null : bin.low;
      this.told(...(this.chosen === null ? [] : [bin.low, high]));
      this.render();
      this.place.querySelector(`rect[data-low="${bin.low}"]`)?.focus();
    };
    bar.addEventListener("click", choose);
    bar.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    return bar;
  }

  #scale(event) {
    this.logarithmic = event.target.checked;
    this.render();
    this.place.querySelector("#log").focus();
  }

  #lines(median, p95, top, low) {
    const near = p95 - median < 76;
    const line = (x, name, anchor) => [
      svg("path", { class: name, d: `M${Math.round(x) + 0.5} ${top - 6}V${low}` }),
      svg("text", { x: x + { end: -4, start: 4, middle: 0 }[anchor], y: top - 8, "text-anchor": anchor }, name),
    ];
    return [
      ...line(median, "median", near && median > 90 ? "end" : "middle"),
      ...line(p95, "p95", near ? "start" : "middle"),
    ];
  }

  #countTicks(most) {
    return most < 4 ? [most] : this.logarithmic ? [1, Math.round(Math.sqrt(most)), most] : [Math.round(most / 2), most];
  }

  #timeTicks(drawing, first, span, x, low, room) {
    const { step, text } = ruler(span, room / 70, first + span);
    for (let at = Math.ceil(first / step) * step; at < first + span; at += step) {
      drawing.append(svg("path", { class: "axis", d: `M${Math.round(x(at)) + 0.5} ${low}v4` }));
      const inside = x(at) < x(first + span) - 24;
      if (inside) drawing.append(svg("text", { x: x(at), y: low + 16, "text-anchor": "middle" }, text(at)));
    }
  }
}

function divisor(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

/** A quantile of sorted values, interpolated as the summary's are. */
function quantile(sorted, share) {
  const place = (sorted.length - 1) * share,
    low = Math.floor(place);
  return sorted[low] + ((sorted[Math.min(low + 1, sorted.length - 1)] ?? 0) - sorted[low]) * (place - low);
}

/** What is known of one range, marker or warp, as pairs of label and text; null lines are left out. */
function describe(launch, item, styles, places, tick) {
  const warp = launch.warpOf(item),
    style = styles[launch.styleOf(item)];
  const [from, until] = launch.timesOf(item);
  const payload = (number) => {
    const found = launch.payloadOf(number);
    return found && (found[0] === "pointer" ? `${found[1]} (pointer)` : `${found[1]} (${found[0]})`);
  };
  const source = places(style);
  const lines = [];
  const add = (label, text) => text !== null && text !== undefined && text !== "" && lines.push([label, String(text)]);
  const life = launch.until[warp] - launch.from[warp];
  if (item.kind === "range") {
    const { row } = item,
      duration = launch.duration[row];
    add("duration", exactTime(duration));
    if (launch.own[row] !== duration) add("own time", `${exactTime(launch.own[row])}, without the ranges inside it`);
    if (life > 0 && launch.isRecorded(warp)) add("of its warp's life", percent(duration / life));
    add("payload", payload(launch.payload[row]));
    add("payload at the end", payload(launch.endPayload[row]));
    add(
      "kind",
      { range: "range, pushed and popped", token_range: "range, started and ended" }[style.kind] ?? style.kind,
    );
    add("begins", exactTime(from));
    add("ends", exactTime(launch.start[row] + duration));
    if (duration < 0) add("beware", "it ends before it begins: the stamps went backwards");
    else if (duration <= tick)
      add("beware", `at or below one tick of the clock (${tick} ns): this single value says little`);
    if (launch.crossing.has(row)) add("beware", "it overlaps another range without nesting");
    if (launch.events[row] !== undefined) add("beware", `it was made from ${launch.events[row]} event(s), not two`);
    add("ends in", launch.endPlace[row]);
  } else if (item.kind === "marker") {
    add("at", exactTime(from));
    if (launch.isRecorded(warp)) add("since its warp's start", exactTime(from - launch.from[warp]));
    add("payload", payload(launch.markerPayload[item.row]));
    add("kind", "marker");
  } else {
    if (!launch.isRecorded(warp)) add("beware", "no lifetime was recorded: this is from its first event to its last");
    add("lifetime", exactTime(life));
    add("begins", exactTime(from));
    add("ends", exactTime(until));
    add("ranges", number(launch.laneFirst[launch.warpLanes[warp + 1]] - launch.laneFirst[launch.warpLanes[warp]]));
    add("markers", number(launch.warpMarkers[warp + 1] - launch.warpMarkers[warp]));
  }
  add("source", source.join(", "));
  add("warp", `${launch.warps.id[warp]} of CTA (${launch.cta(warp)})`);
  const cluster = launch.warps.cluster?.slice(3 * warp, 3 * warp + 3);
  if (cluster && cluster[0] >= 0) add("cluster", `(${cluster.join(",")})`);
  const { sm, tpc, gpc } = launch.warps;
  add("runs on", `SM ${known(sm[warp])}, TPC ${known(tpc[warp])}, GPC ${known(gpc[warp])}`);
  return lines;
}
