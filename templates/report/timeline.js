// SPDX-License-Identifier: Apache-2.0
// The timeline: rows of SMs, CTAs and warps on a canvas, and what mouse, fingers and keys do to them.
//
// Only what is visible is drawn.  Ranges of a lane do not overlap, so the first visible one is found by bisection, and
// where many fall into one pixel the rest of the pixel is skipped by bisection too: a frame costs as much as it has
// pixels, whatever the number of ranges.

const GUTTER = 148;
const AXIS = 28;
const LANE = 18;
const MARKS = 11;
const HEADER = 22;
const PAD = 3;
const NEAR = 4;
/** Rows are all open at first where they are not higher than this together. */
const OPEN_HEIGHT = 1400;

class Timeline {
  constructor(parts, styles, told) {
    this.canvas = parts.canvas;
    this.scroller = parts.scroller;
    this.content = parts.content;
    this.overview = parts.overview;
    this.styles = styles;
    this.told = told;
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.rows = [];
    this.shut = new Map();
    this.from = 0;
    this.until = 1;
    this.selected = null;
    this.hovered = null;
    this.pointer = null;
    this.measure = null;
    this.filter = null;
    this.batches = styles.map(() => ({ bright: [], dim: [] }));
    this.widths = new Map();
    this.frames = 0;
    this.readColors();
    this.#listen();
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    new ResizeObserver(() => this.drawOverview()).observe(this.overview);
  }

  // --- What is shown ---------------------------------------------------------------------------------------

  show(launch) {
    this.launch = launch;
    this.selected = this.hovered = this.measure = null;
    this.slots = new Map();
    this.shut.clear();
    this.single = launch.groups.every((group) => group.ctas.length === 1);
    this.layOut();
    if (this.height > OPEN_HEIGHT) this.setLevel(2, true);
    this.scroller.scrollTop = 0;
    this.fit();
    this.resize();
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    const names = ["canvas", "gutter", "line", "grid", "text", "muted", "life", "life-edge", "accent", "shade", "row"];
    this.colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.font = style.getPropertyValue("--font");
    this.hatches = new Map();
    this.invalidate();
    this.drawOverview();
  }

  /** Levels: 1 shows SMs, 2 CTAs, 3 warps.  With `first` the first CTA stays open as an example. */
  setLevel(level, first = false) {
    this.shut.clear();
    const anchor = this.selected ? this.launch.warpOf(this.selected) : null;
    for (const group of this.launch.groups) {
      this.shut.set(group.key, level === 1 || (this.single && level === 2));
      for (const cta of group.ctas) this.shut.set(cta.key, level <= 2);
    }
    if (first && this.launch.groups.length) {
      const group = this.launch.groups[0];
      this.shut.set(group.key, false);
      this.shut.set(group.ctas[0].key, false);
    }
    this.layOut();
    if (anchor !== null) this.reveal(anchor, false);
  }

  toggle(row) {
    this.shut.set(row.key, !this.isShut(row.key));
    this.layOut();
  }

  isShut(key) {
    return this.shut.get(key) ?? false;
  }

  layOut() {
    this.rows = [];
    this.height = AXIS;
    const { launch } = this;
    const add = (row, height) => {
      this.rows.push({ ...row, y: this.height, height });
      this.height += height;
    };
    const warps = (first, last, depth) => {
      for (let warp = first; warp < last; warp++) add({ type: "warp", warp, depth }, this.#warpHeight(warp));
    };
    for (const group of launch.groups) {
      const label = `SM ${known(group.sm)}`;
      const shut = this.isShut(group.key);
      const about = { type: "group", key: group.key, first: group.first, last: group.last, shut, depth: 0 };
      if (this.single) add({ ...about, label, extra: `CTA ${group.ctas[0].cta}` }, this.#groupHeight(about));
      else add({ ...about, label, extra: `${number(group.ctas.length)} CTAs` }, this.#groupHeight(about));
      if (shut) continue;
      if (this.single) {
        warps(group.first, group.last, 1);
        continue;
      }
      for (const cta of group.ctas) {
        const closed = this.isShut(cta.key);
        const row = { type: "group", key: cta.key, first: cta.first, last: cta.last, shut: closed, depth: 1 };
        add({ ...row, label: `CTA ${cta.cta}`, extra: "" }, this.#groupHeight(row));
        if (!closed) warps(cta.first, cta.last, 2);
      }
    }
    this.height += 8;
    this.content.style.height = `${this.height}px`;
    this.invalidate();
  }

  #warpHeight(warp) {
    return Math.max(1, this.launch.height[warp]) * LANE + (this.#hasMarkers(warp) ? MARKS : 0) + 2 * PAD;
  }

  #groupHeight(row) {
    if (!row.shut) return HEADER;
    const { count, size } = this.#strips(row);
    return Math.max(HEADER, count * size + 2 * PAD + 2);
  }

  #hasMarkers(warp) {
    return this.launch.warpMarkers[warp + 1] > this.launch.warpMarkers[warp];
  }

  /** The strips of a shut group: warps that live one after the other share one. */
  #strips(row) {
    let found = this.slots.get(row.key);
    if (found) return found;
    const order = Array.from({ length: row.last - row.first }, (_, place) => row.first + place);
    order.sort((a, b) => this.launch.from[a] - this.launch.from[b] || a - b);
    const busy = [], of = new Int32Array(row.last - row.first);
    // Warps that start together are put beside each other; those of one CTA stay together in most cases.
    for (const warp of order) {
      let slot = busy.findIndex((until) => until <= this.launch.from[warp]);
      if (slot < 0) slot = busy.length;
      busy[slot] = this.launch.until[warp];
      of[warp - row.first] = slot;
    }
    const count = busy.length;
    found = { of, count, size: count <= 4 ? 7 : count <= 8 ? 5 : count <= 16 ? 4 : count <= 32 ? 2 : 1 };
    this.slots.set(row.key, found);
    return found;
  }

  // --- The view --------------------------------------------------------------------------------------------

  get width() {
    return Math.max(10, this.canvas.clientWidth - GUTTER);
  }

  get scale() {
    return this.width / (this.until - this.from);
  }

  x(moment) {
    return GUTTER + (moment - this.from) * this.scale;
  }

  moment(x) {
    return this.from + (x - GUTTER) / this.scale;
  }

  fit() {
    const margin = this.launch.span * 0.02;
    this.view(-margin, this.launch.span + margin);
  }

  view(from, until) {
    const margin = this.launch.span * 0.02;
    const widest = this.launch.span + 2 * margin;
    const length = Math.min(widest, Math.max(until - from, Math.min(16, widest)));
    const middle = (from + until) / 2;
    this.from = Math.min(Math.max(middle - length / 2, -margin), this.launch.span + margin - length);
    this.until = this.from + length;
    this.invalidate();
    this.told.viewed();
  }

  zoom(factor, x = GUTTER + this.width / 2) {
    const fixed = this.moment(Math.max(x, GUTTER));
    // At an end of the launch the limit would move what is under the pointer.
    const from = fixed - (fixed - this.from) * factor, until = fixed + (this.until - fixed) * factor;
    this.view(from, until);
  }

  pan(pixels) {
    const by = pixels / this.scale;
    this.view(this.from + by, this.until + by);
  }

  scrollBy(pixels) {
    this.scroller.scrollTop += pixels;
  }

  zoomTo(item) {
    const [from, until] = this.launch.timesOf(item);
    const length = Math.max(until - from, 32);
    this.view(from - length * 0.6, until + length * 0.6);
    this.reveal(this.launch.warpOf(item), true);
  }

  /** Bring a warp's row into view, opening what hides it. */
  reveal(warp, open) {
    for (const group of this.launch.groups) {
      if (warp < group.first || warp >= group.last) continue;
      const cta = group.ctas.find((part) => warp >= part.first && warp < part.last);
      if (open && (this.isShut(group.key) || (!this.single && this.isShut(cta.key)))) {
        this.shut.set(group.key, false);
        this.shut.set(cta.key, false);
        this.layOut();
      }
    }
    const row = this.rowOf(warp);
    const top = this.scroller.scrollTop, room = this.scroller.clientHeight;
    if (row.y - AXIS < top || row.y + row.height > top + room)
      this.scroller.scrollTop = Math.max(0, row.y - room / 2);
    this.invalidate();
  }

  /** The row that shows a warp: its own, or the shut group around it. */
  rowOf(warp) {
    return this.rows.find((row) => (row.type === "warp" ? row.warp === warp : row.shut && warp >= row.first && warp < row.last));
  }

  /** Show an item whole, at a size that can be seen, moving as little as possible. */
  focus(item) {
    const [from, until] = this.launch.timesOf(item);
    const pixels = (until - from) * this.scale;
    if (item.kind === "range" && pixels < 8) {
      const length = Math.max(until - from, 32) * 12;
      this.view((from + until) / 2 - length, (from + until) / 2 + length);
    } else if (from < this.from || until > this.until) {
      const length = Math.max(this.until - this.from, (until - from) * 1.2);
      this.view((from + until) / 2 - length / 2, (from + until) / 2 + length / 2);
    }
    this.reveal(this.launch.warpOf(item), true);
  }

  select(item) {
    this.selected = item;
    this.invalidate();
  }

  /** Dim everything for which `filter` is false; null shows all alike. */
  highlight(filter) {
    this.filter = filter;
    this.invalidate();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.draw();
  }

  invalidate() {
    if (this.waiting || !this.launch) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // --- Drawing ---------------------------------------------------------------------------------------------

  draw() {
    if (!this.launch) return;
    const { context, colors } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.top = this.scroller.scrollTop;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.canvas;
    context.fillRect(0, 0, width, height);
    if (this.launch.empty) return;
    const ticks = this.#ticks();
    this.#drawGrid(ticks, height);
    const first = Math.max(0, firstAbove(this.rows.map((row) => row.y), this.top + AXIS, 0, this.rows.length) - 1);
    let last = first;
    while (last < this.rows.length && this.rows[last].y < this.top + height) last++;
    const visible = this.rows.slice(first, last);
    this.#drawLifetimes(visible, width);
    for (const batch of this.batches) batch.bright.length = batch.dim.length = 0;
    this.texts = [];
    for (const row of visible) this.#collect(row);
    this.#drawBatches();
    this.#drawTexts();
    for (const row of visible) if (row.type === "warp") this.#drawMarkers(row);
    this.#drawOutlines();
    this.#drawMeasure(height);
    this.#drawGutter(visible, height);
    this.#drawAxis(ticks, width, height);
    this.drawOverview();
    this.frames++;
  }

  #ticks() {
    const length = this.until - this.from;
    const least = (length / this.width) * 96;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = Math.max(1, power * [1, 2, 5, 10].find((factor) => factor * power >= least));
    const reach = Math.max(Math.abs(this.from), Math.abs(this.until));
    const [unit, scale] = reach < 2e3 ? UNITS[0] : reach < 2e6 ? UNITS[1] : reach < 2e9 ? UNITS[2] : UNITS[3];
    const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
    const found = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.until; at += step)
      found.push({ x: this.x(at), text: `${number(at / scale || 0, digits, true)} ${unit}` });
    return found;
  }

  #drawGrid(ticks, height) {
    const { context, colors } = this;
    context.fillStyle = colors.grid;
    for (const { x } of ticks) context.fillRect(Math.round(x), AXIS, 1, height);
    // The end of the launch.
    context.fillStyle = colors.line;
    for (const moment of [0, this.launch.span]) context.fillRect(Math.round(this.x(moment)), AXIS, 1, height);
  }

  #drawLifetimes(visible, width) {
    const { context, colors, launch } = this;
    for (const row of visible) {
      const y = row.y - this.top;
      if (row.type === "group" && !row.shut) {
        context.fillStyle = colors.row;
        context.fillRect(0, y, width, row.height);
      }
      context.fillStyle = colors.grid;
      context.fillRect(0, y + row.height - 1, width, 1);
    }
    for (const row of visible) {
      const y = row.y - this.top;
      if (row.type === "warp") this.#life(row.warp, y + PAD, row.height - 2 * PAD);
      else if (row.shut) {
        const { of, size } = this.#strips(row);
        for (let warp = row.first; warp < row.last; warp++)
          this.#life(warp, y + PAD + of[warp - row.first] * size, size > 3 ? size - 1 : size);
      } else {
        let from = Infinity, until = -Infinity;
        for (let warp = row.first; warp < row.last; warp++) {
          from = Math.min(from, launch.from[warp]);
          until = Math.max(until, launch.until[warp]);
        }
        const left = Math.max(GUTTER, this.x(from)), right = Math.min(width, this.x(until));
        context.fillStyle = colors["life-edge"];
        if (right > left) context.fillRect(left, y + row.height / 2 - 1.5, right - left, 3);
      }
    }
  }

  #life(warp, y, height) {
    const { context, colors, launch } = this;
    const left = Math.max(GUTTER - 2, this.x(launch.from[warp]));
    const right = Math.min(GUTTER + this.width + 2, this.x(launch.until[warp]));
    if (right < left) return;
    context.fillStyle = colors.life;
    context.fillRect(left, y, Math.max(1, right - left), height);
    if (height < 10 || !launch.isRecorded(warp)) return;
    context.fillStyle = colors["life-edge"];
    context.fillRect(left, y, 1, height);
    context.fillRect(right - 1, y, 1, height);
  }

  /** Put the visible ranges of a row into the batches of their styles. */
  #collect(row) {
    const y = row.y - this.top;
    if (row.type === "warp") this.#collectWarp(row.warp, y + PAD, LANE, LANE - 1, true);
    else if (row.shut) {
      const { of, size } = this.#strips(row);
      for (let warp = row.first; warp < row.last; warp++)
        this.#collectWarp(warp, y + PAD + of[warp - row.first] * size, 0, size > 3 ? size - 1 : size, false);
    }
  }

  #collectWarp(warp, y, step, height, open) {
    const { launch, from, until, filter } = this;
    const { start, end, rangeStyle, laneFirst, laneNumber } = launch;
    const scale = this.scale, offset = GUTTER - from * scale, pixel = 1 / scale;
    const right = GUTTER + this.width;
    for (let lane = launch.warpLanes[warp]; lane < launch.warpLanes[warp + 1]; lane++) {
      const last = laneFirst[lane + 1], top = y + laneNumber[lane] * step;
      let row = firstAbove(end, from - pixel, laneFirst[lane], last);
      while (row < last && start[row] <= until) {
        const x0 = Math.max(GUTTER - 8, offset + start[row] * scale);
        const x1 = Math.min(right + 8, offset + end[row] * scale);
        const width = x1 - x0;
        const batch = this.batches[rangeStyle[row]];
        const bright = filter === null || filter("range", row);
        // Beside a neighbour of its colour a range must show its end.
        const drawn = width >= 4 && open ? width - 1 : Math.max(width, 1);
        (bright ? batch.bright : batch.dim).push(x0, top, drawn, height);
        if (open && width > 26) this.texts.push(row, x0, top, x1, bright ? 1 : 0);
        if (width >= 1) row++;
        else if (filter === null) row = firstAbove(end, end[row] + (1 - width) * pixel, row + 1, last);
        else row = this.#skip(row, last, x0 + 1, offset, scale, bright, top, height);
      }
    }
  }

  /** Within one pixel a highlighted range must not be lost behind a dimmed one. */
  #skip(row, last, edge, offset, scale, bright, top, height) {
    const { start, end, rangeStyle } = this.launch;
    for (row++; row < last && offset + end[row] * scale < edge; row++) {
      if (bright || !this.filter("range", row)) continue;
      bright = true;
      this.batches[rangeStyle[row]].bright.push(offset + start[row] * scale, top, 1, height);
    }
    return row;
  }

  #drawBatches() {
    const { context } = this;
    for (const part of ["dim", "bright"]) {
      context.globalAlpha = part === "dim" ? 0.14 : 1;
      this.batches.forEach((batch, number) => {
        const rects = batch[part], style = this.styles[number];
        if (!rects.length) return;
        context.fillStyle = style.fill;
        if (style.token) this.#fillRounded(rects);
        else for (let at = 0; at < rects.length; at += 4) context.fillRect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
        if (style.pattern) this.#fillPattern(rects, style);
      });
    }
    context.globalAlpha = 1;
  }

  #fillRounded(rects) {
    const { context } = this;
    context.beginPath();
    for (let at = 0; at < rects.length; at += 4) {
      const radius = Math.min(6, rects[at + 2] / 2, rects[at + 3] / 2);
      if (radius < 1.5) context.rect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
      else context.roundRect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3], radius);
    }
    context.fill();
  }

  #fillPattern(rects, style) {
    const { context } = this;
    const key = `${style.pattern} ${style.text}`;
    if (!this.hatches.has(key)) {
      const tile = new OffscreenCanvas(8, 8), pen = tile.getContext("2d");
      pen.strokeStyle = style.text;
      pen.globalAlpha = 0.3;
      pen.lineWidth = 1.6;
      pen.stroke(new Path2D(style.pattern === 1 ? "M-2 10 10 -2M-6 6 6 -6M2 14 14 2" : "M2 -2V10M6 -2V10"));
      this.hatches.set(key, context.createPattern(tile, "repeat"));
    }
    context.fillStyle = this.hatches.get(key);
    for (let at = 0; at < rects.length; at += 4)
      if (rects[at + 2] >= 5 && rects[at + 3] >= 6) context.fillRect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
  }

  #drawTexts() {
    const { context, texts, launch } = this;
    context.font = `500 11px ${this.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (let at = 0; at < texts.length; at += 5) {
      const [row, x0, y, x1, bright] = [texts[at], texts[at + 1], texts[at + 2], texts[at + 3], texts[at + 4]];
      const style = this.styles[launch.rangeStyle[row]];
      const left = Math.max(x0, GUTTER) + 5, room = Math.min(x1, GUTTER + this.width) - left - 5;
      const text = this.#fitted(style.name, room);
      if (!text) continue;
      context.globalAlpha = bright ? 1 : 0.25;
      context.fillStyle = bright ? style.text : this.colors.text;
      if (style.pattern && bright) {
        // Letters stand on the plain colour.
        context.fillStyle = style.fill;
        context.fillRect(left - 3, y + 2, this.#measure(text) + 6, LANE - 5);
        context.fillStyle = style.text;
      }
      const middle = y + (LANE - 1) / 2 + 0.5;
      context.fillText(text, left, middle);
      const payload = launch.payloadOf(launch.payload[row]);
      if (!payload || text !== style.name) continue;
      const after = this.#measure(text) + 7;
      if (this.#measure(payload[1]) > room - after) continue;
      context.globalAlpha *= 0.72;
      context.fillText(payload[1], left + after, middle);
    }
    context.globalAlpha = 1;
  }

  #measure(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  #fitted(text, room) {
    const width = this.#measure(text);
    if (width <= room) return text;
    const letters = Math.floor((room / width) * text.length) - 1;
    return letters >= 3 ? `${text.slice(0, letters)}…` : "";
  }

  #drawMarkers(row) {
    const { context, launch, filter } = this;
    const first = launch.warpMarkers[row.warp], last = launch.warpMarkers[row.warp + 1];
    const y = row.y - this.top + row.height - PAD - MARKS / 2 + 0.5;
    const pixel = 1 / this.scale;
    let mark = firstAbove(launch.markerTime, this.from - 8 * pixel, first, last);
    let drawn = -Infinity;
    while (mark < last && launch.markerTime[mark] <= this.until + 8 * pixel) {
      const x = this.x(launch.markerTime[mark]), style = this.styles[launch.markerStyle[mark]];
      const bright = filter === null || filter("marker", mark);
      if (x - drawn >= 0.75 || (filter && bright)) {
        context.globalAlpha = bright ? 1 : 0.2;
        context.fillStyle = style.fill;
        context.fillRect(x - 0.5, row.y - this.top + PAD, 1, row.height - 2 * PAD - MARKS / 2);
        context.fill(new Path2D(shapePath(style.shape, x, y, 4.5)));
        drawn = x;
      }
      mark = filter ? mark + 1 : firstAbove(launch.markerTime, launch.markerTime[mark] + 0.75 * pixel, mark + 1, last);
    }
    context.globalAlpha = 1;
  }

  /** Where an item is drawn, or null where its row is hidden. */
  boxOf(item) {
    const warp = this.launch.warpOf(item), row = this.rowOf(warp);
    if (!row) return null;
    const [from, until] = this.launch.timesOf(item);
    const x = this.x(from), width = Math.max(2, (until - from) * this.scale);
    const top = row.y - this.scroller.scrollTop;
    if (row.type === "group") {
      const { of, size } = this.#strips(row);
      return { x, y: top + PAD + of[warp - row.first] * size, width, height: Math.max(2, size - 1) };
    }
    if (item.kind === "warp") return { x, y: top + PAD, width, height: row.height - 2 * PAD };
    if (item.kind === "range") {
      const lane = this.launch.laneNumber[this.launch.laneOf(item.row)];
      return { x, y: top + PAD + lane * LANE, width: width >= 4 ? width - 1 : width, height: LANE - 1 };
    }
    return { x: x - 5, y: top + row.height - PAD - MARKS, width: 10, height: MARKS };
  }

  #drawOutlines() {
    const { context, colors } = this;
    for (const [item, line] of [[this.hovered, 1.5], [this.selected, 2.5]]) {
      const box = item && this.boxOf(item);
      if (!box) continue;
      const x = Math.max(box.x, GUTTER - 4), right = Math.min(box.x + box.width, GUTTER + this.width + 4);
      if (right < x) continue;
      context.lineWidth = line;
      context.strokeStyle = colors.canvas;
      context.strokeRect(x - line - 0.5, box.y - line - 0.5, right - x + 2 * line + 1, box.height + 2 * line + 1);
      context.strokeStyle = item === this.selected ? colors.accent : colors.text;
      context.strokeRect(x - line / 2, box.y - line / 2, right - x + line, box.height + line);
    }
  }

  #drawMeasure(height) {
    const { context, colors, measure } = this;
    if (!measure) return;
    const [left, right] = [Math.min(measure.x0, measure.x1), Math.max(measure.x0, measure.x1)];
    context.fillStyle = colors.shade;
    context.fillRect(left, AXIS, right - left, height);
    context.fillStyle = colors.accent;
    context.fillRect(left, AXIS, 1, height);
    context.fillRect(right - 1, AXIS, 1, height);
    const text = time(Math.round((right - left) / this.scale));
    context.font = `600 12px ${this.font}`;
    context.textAlign = "center";
    const wide = context.measureText(text).width + 14, middle = (left + right) / 2;
    context.fillRect(middle - wide / 2, AXIS + 8, wide, 22);
    context.fillStyle = colors.canvas;
    context.fillText(text, middle, AXIS + 19.5);
  }

  #drawGutter(visible, height) {
    const { context, colors, launch } = this;
    context.fillStyle = colors.gutter;
    context.fillRect(0, 0, GUTTER, height);
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const row of visible) {
      const y = row.y - this.top;
      const hot = this.pointer && this.pointer.y >= y && this.pointer.y < y + row.height && this.pointer.y > AXIS;
      if (row.type === "group") {
        if (!row.shut || hot) {
          context.fillStyle = hot ? colors.shade : colors.row;
          context.fillRect(0, y, GUTTER, row.height - 1);
        }
        const left = 10 + 12 * row.depth, middle = y + Math.min(row.height / 2, 18);
        context.fillStyle = colors.muted;
        context.fill(new Path2D(row.shut ? `M${left} ${middle - 4}l5 4l-5 4Z` : `M${left - 1} ${middle - 2.5}h8l-4 5Z`));
        context.font = `600 11px ${this.font}`;
        context.fillStyle = colors.text;
        context.fillText(row.label, left + 12, middle + 0.5);
        const after = left + 12 + context.measureText(row.label).width + 8;
        context.font = `400 11px ${this.font}`;
        context.fillStyle = colors.muted;
        if (row.extra) context.fillText(this.#fitted(row.extra, GUTTER - after - 6), after, middle + 0.5);
      } else {
        context.font = `400 11px ${this.font}`;
        context.fillStyle = hot ? colors.text : colors.muted;
        context.fillText(`warp ${launch.warps.id[row.warp]}`, 22 + 12 * row.depth, y + PAD + LANE / 2);
      }
      context.fillStyle = colors.grid;
      context.fillRect(0, y + row.height - 1, GUTTER, 1);
    }
    context.fillStyle = colors.line;
    context.fillRect(GUTTER - 1, 0, 1, height);
  }

  #drawAxis(ticks, width, height) {
    const { context, colors } = this;
    context.fillStyle = colors.gutter;
    context.fillRect(0, 0, width, AXIS);
    context.font = `400 11px ${this.font}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { x, text } of ticks) {
      if (x < GUTTER) continue;
      context.fillStyle = colors.line;
      context.fillRect(Math.round(x), AXIS - 7, 1, 7);
      context.fillStyle = colors.muted;
      context.fillText(text, Math.round(x) + 5, AXIS / 2);
    }
    context.fillStyle = colors.gutter;
    context.fillRect(0, 0, GUTTER - 1, AXIS);
    context.fillStyle = colors.muted;
    context.fillText("time in launch", 10, AXIS / 2);
    context.fillStyle = colors.line;
    context.fillRect(0, AXIS - 1, width, 1);
    context.fillRect(GUTTER - 1, 0, 1, AXIS);
    if (!this.pointer || this.pointer.x < GUTTER) return;
    const x = Math.round(this.pointer.x), label = time(Math.round(this.moment(x)));
    context.fillStyle = colors.accent;
    context.globalAlpha = 0.55;
    context.fillRect(x, AXIS, 1, height);
    context.globalAlpha = 1;
    const wide = context.measureText(label).width + 12, left = Math.min(Math.max(x - wide / 2, GUTTER), width - wide);
    context.fillRect(left, 4, wide, AXIS - 9);
    context.fillStyle = colors.canvas;
    context.fillText(label, left + 6, AXIS / 2 - 0.5);
  }

  // --- The overview: how many warps live, and which part is in view ---------------------------------------

  drawOverview() {
    if (!this.launch) return;
    const ratio = window.devicePixelRatio || 1;
    const width = this.overview.clientWidth, height = this.overview.clientHeight;
    if (this.overview.width !== Math.round(width * ratio) || this.overview.height !== Math.round(height * ratio)) {
      this.overview.width = Math.round(width * ratio);
      this.overview.height = Math.round(height * ratio);
    }
    const context = this.overview.getContext("2d"), { colors } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.gutter;
    context.fillRect(0, 0, width, height);
    if (this.launch.empty) return;
    const room = width - GUTTER, top = 4, low = height - 1;
    const { steps, most } = this.#alive(room);
    context.beginPath();
    context.moveTo(GUTTER, low);
    steps.forEach((count, at) => {
      const y = low - ((low - top) * count) / most;
      context.lineTo(GUTTER + at, y);
      context.lineTo(GUTTER + at + 1, y);
    });
    context.lineTo(GUTTER + room, low);
    context.fillStyle = colors["life-edge"];
    context.fill();
    context.font = `400 11px ${this.font}`;
    context.textBaseline = "middle";
    context.fillStyle = colors.muted;
    context.fillText(`warps alive, of ${number(most)}`, 10, height / 2);
    const left = GUTTER + this.#whole(this.from) * room, right = GUTTER + this.#whole(this.until) * room;
    context.fillStyle = colors.gutter;
    context.globalAlpha = 0.7;
    context.fillRect(GUTTER, 0, left - GUTTER, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(3, right - left - 1.5), height - 1.5);
    context.fillStyle = colors.line;
    context.fillRect(GUTTER - 1, 0, 1, height);
  }

  /** A moment's place in the overview, 0 to 1. */
  #whole(moment) {
    const margin = this.launch.span * 0.02;
    return (moment + margin) / (this.launch.span + 2 * margin);
  }

  #alive(pixels) {
    if (this.known?.launch === this.launch && this.known.pixels === pixels) return this.known;
    const change = new Int32Array(pixels + 2);
    for (let warp = 0; warp < this.launch.warpCount; warp++) {
      change[Math.floor(this.#whole(this.launch.from[warp]) * pixels)]++;
      change[Math.min(pixels, Math.floor(this.#whole(this.launch.until[warp]) * pixels) + 1)]--;
    }
    let now = 0;
    const steps = Array.from(change.subarray(0, pixels), (by) => (now += by));
    this.known = { launch: this.launch, pixels, steps, most: Math.max(1, steps.reduce((a, b) => Math.max(a, b), 0)) };
    return this.known;
  }

  // --- Finding things --------------------------------------------------------------------------------------

  rowAt(y) {
    if (y < AXIS) return null;
    const at = y + this.scroller.scrollTop;
    return this.rows.find((row) => at >= row.y && at < row.y + row.height) ?? null;
  }

  /** What is drawn at a point of the canvas. */
  itemAt(x, y) {
    const row = this.rowAt(y);
    if (!row || x < GUTTER || (row.type === "group" && !row.shut)) return null;
    const inside = y + this.scroller.scrollTop - row.y - PAD;
    if (row.type === "group") {
      const { of, size } = this.#strips(row), slot = Math.floor(inside / size), moment = this.moment(x);
      for (let warp = row.first; warp < row.last; warp++) {
        if (of[warp - row.first] !== slot || moment < this.launch.from[warp] || moment > this.launch.until[warp]) continue;
        for (let lane = this.launch.height[warp] - 1; lane >= 0; lane--) {
          const range = this.rangeAt(warp, lane, x);
          if (range !== null) return { kind: "range", row: range };
        }
        return { kind: "warp", row: warp };
      }
      return null;
    }
    const lanes = Math.max(1, this.launch.height[row.warp]) * LANE;
    if (inside >= lanes - 2) {
      const mark = this.markerAt(row.warp, x);
      if (mark !== null) return { kind: "marker", row: mark };
    }
    const range = this.rangeAt(row.warp, Math.min(Math.floor(inside / LANE), this.launch.height[row.warp] - 1), x);
    if (range !== null) return { kind: "range", row: range };
    const moment = this.moment(x);
    return moment >= this.launch.from[row.warp] && moment <= this.launch.until[row.warp] ? { kind: "warp", row: row.warp } : null;
  }

  rangeAt(warp, number, x) {
    const { launch } = this;
    for (let lane = launch.warpLanes[warp]; lane < launch.warpLanes[warp + 1]; lane++) {
      if (launch.laneNumber[lane] !== number) continue;
      const first = launch.laneFirst[lane], last = launch.laneFirst[lane + 1], moment = this.moment(x);
      const after = firstAbove(launch.end, moment, first, last);
      let best = null, least = NEAR;
      for (const row of [after - 1, after]) {
        if (row < first || row >= last) continue;
        const away = Math.max(launch.start[row] - moment, moment - launch.end[row], 0) * this.scale;
        if (away < least) [best, least] = [row, away || -1];
      }
      return best;
    }
    return null;
  }

  markerAt(warp, x) {
    const { launch } = this;
    const first = launch.warpMarkers[warp], last = launch.warpMarkers[warp + 1];
    const after = firstAbove(launch.markerTime, this.moment(x), first, last);
    let best = null, least = NEAR + 2;
    for (const row of [after - 1, after]) {
      if (row < first || row >= last) continue;
      const away = Math.abs(launch.markerTime[row] - this.moment(x)) * this.scale;
      if (away < least) [best, least] = [row, away];
    }
    return best;
  }

  /** The range beside the selected one: "next" and "previous" on its lane, "up" and "down" on the lanes around it. */
  neighbour(direction) {
    const { launch } = this;
    if (!launch.rangeCount) return null;
    if (this.selected?.kind !== "range") {
      const row = this.rows.find((one) => one.type === "warp" && one.y >= this.scroller.scrollTop && launch.height[one.warp]);
      const warp = row ? row.warp : launch.laneWarp[0];
      const first = launch.laneFirst[launch.warpLanes[warp]], last = launch.laneFirst[launch.warpLanes[warp] + 1];
      return { kind: "range", row: Math.min(firstAbove(launch.end, this.from, first, last), last - 1) };
    }
    const lane = launch.laneOf(this.selected.row);
    if (direction === "next" || direction === "previous") {
      const row = this.selected.row + (direction === "next" ? 1 : -1);
      return row >= launch.laneFirst[lane] && row < launch.laneFirst[lane + 1] ? { kind: "range", row } : null;
    }
    const beside = lane + (direction === "down" ? 1 : -1);
    if (beside < 0 || beside >= launch.laneNumber.length) return null;
    const first = launch.laneFirst[beside], last = launch.laneFirst[beside + 1];
    const [from, until] = launch.timesOf(this.selected);
    const after = Math.min(firstAbove(launch.end, from, first, last), last - 1);
    const away = (row) => Math.max(launch.start[row] - until, from - launch.end[row], 0);
    return { kind: "range", row: after > first && away(after - 1) < away(after) ? after - 1 : after };
  }

  // --- Mouse and fingers -----------------------------------------------------------------------------------

  #listen() {
    const { canvas, scroller } = this;
    this.fingers = new Map();
    scroller.addEventListener("scroll", () => this.invalidate(), { passive: true });
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event, true));
    canvas.addEventListener("pointercancel", (event) => this.#up(event, false));
    canvas.addEventListener("pointerleave", () => this.#leave());
    canvas.addEventListener("dblclick", (event) => {
      const item = this.itemAt(event.offsetX, event.offsetY);
      if (item) this.zoomTo(item);
    });
    const drag = (event) => {
      if (!event.buttons || !this.launch || this.launch.empty) return;
      const margin = this.launch.span * 0.02, room = this.overview.clientWidth - GUTTER;
      const middle = ((event.offsetX - GUTTER) / room) * (this.launch.span + 2 * margin) - margin;
      const half = (this.until - this.from) / 2;
      this.view(middle - half, middle + half);
    };
    this.overview.addEventListener("pointerdown", (event) => {
      this.overview.setPointerCapture(event.pointerId);
      drag(event);
    });
    this.overview.addEventListener("pointermove", drag);
  }

  #wheel(event) {
    if (!this.launch || this.launch.empty) return;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const down = event.deltaY * unit, right = event.deltaX * unit;
    // Over the labels the wheel scrolls, as it does with shift.
    if (event.offsetX < GUTTER && !event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey) this.scrollBy(down || right);
    else if (Math.abs(right) > Math.abs(down) && !event.ctrlKey) this.pan(right);
    else this.zoom(Math.exp(Math.max(-240, Math.min(240, down)) * (event.ctrlKey ? 0.01 : 0.0022)), event.offsetX);
  }

  #down(event) {
    if (!this.launch || this.launch.empty || event.button > 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = this.fingers.size > 1;
    if (event.shiftKey && event.offsetX >= GUTTER) this.measure = { x0: event.offsetX, x1: event.offsetX };
  }

  #move(event) {
    if (!this.launch || this.launch.empty) return;
    const held = this.fingers.get(event.pointerId);
    this.pointer = { x: event.offsetX, y: event.offsetY };
    if (held) this.#drag(event, held);
    else {
      this.hovered = this.itemAt(event.offsetX, event.offsetY);
      const row = this.rowAt(event.offsetY);
      this.canvas.style.cursor = event.offsetX < GUTTER ? (row?.type === "group" ? "pointer" : "default") : "";
      this.told.hovered(this.hovered, event.clientX, event.clientY);
    }
    this.invalidate();
  }

  #drag(event, held) {
    const by = { x: event.offsetX - held.x, y: event.offsetY - held.y };
    if (!this.moved && Math.hypot(by.x, by.y) < 4) return;
    this.moved = true;
    this.hovered = null;
    this.told.hovered(null);
    if (this.measure) {
      this.measure.x1 = Math.max(GUTTER, event.offsetX);
      return;
    }
    if (this.fingers.size === 2) {
      const other = [...this.fingers].find(([pointer]) => pointer !== event.pointerId)[1];
      const before = Math.max(20, Math.abs(held.x - other.x)), after = Math.max(20, Math.abs(event.offsetX - other.x));
      this.zoom(before / after, (event.offsetX + other.x) / 2);
      this.pan(-by.x / 2);
    } else {
      this.canvas.style.cursor = "grabbing";
      this.pan(-by.x);
      this.scrollBy(-by.y);
    }
    held.x = event.offsetX;
    held.y = event.offsetY;
  }

  #up(event, clicked) {
    const held = this.fingers.get(event.pointerId);
    this.fingers.delete(event.pointerId);
    this.canvas.style.cursor = "";
    if (!held) return;
    const { measure } = this;
    this.measure = null;
    this.invalidate();
    if (measure && Math.abs(measure.x1 - measure.x0) > 4) {
      const [left, right] = [Math.min(measure.x0, measure.x1), Math.max(measure.x0, measure.x1)];
      this.view(this.moment(left), this.moment(right));
    } else if (clicked && !this.moved) {
      const row = this.rowAt(event.offsetY);
      if (event.offsetX < GUTTER && row?.type === "group") this.toggle(row);
      else if (event.offsetY > AXIS && event.offsetX >= GUTTER) this.told.clicked(this.itemAt(event.offsetX, event.offsetY));
    }
  }

  #leave() {
    this.pointer = this.hovered = null;
    this.told.hovered(null);
    this.invalidate();
  }
}
