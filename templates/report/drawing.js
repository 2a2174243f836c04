// SPDX-License-Identifier: Apache-2.0
// What the timeline looks like: a picture of its state, drawn anew for every frame.  Only visible rows are looked at.

const GUTTER = 148;
/** From this width on a range has round corners or stripes, in pixels. */
const WIDE = 16;
const COLORS = "canvas gutter row line grid text muted life life-edge accent shade".split(" ");

class Drawing {
  constructor(canvas, styles) {
    this.canvas = canvas;
    this.styles = styles;
    this.pen = canvas.getContext("2d", { alpha: false });
    this.lines = new Lines(styles);
    this.widths = new Map();
    this.frames = 0;
    this.readColors();
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    this.colors = Object.fromEntries(COLORS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.font = style.getPropertyValue("--font");
    this.lines.readColors(this.colors.life);
  }

  /** Make the canvas as large as it is shown, in the pixels of the screen. */
  fit(width, height) {
    sized(this.canvas, width, height);
  }

  draw(state) {
    const { pen, colors } = this;
    const { width, height } = sizeOf(this.canvas);
    this.state = state;
    this.launch = state.launch;
    this.top = state.top;
    this.right = width;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    this.#box(colors.canvas, 0, 0, width, height);
    pen.textBaseline = "middle";
    if (this.launch.empty) return;
    const ticks = this.#ticks();
    const visible = state.rows.between(this.top + AXIS, this.top + height);
    this.#drawGrid(ticks, height);
    for (const row of visible) this.#drawGround(row);
    this.#drawRanges(visible);
    for (const row of visible) if (row.type === "warp") this.#drawMarkers(row);
    this.#drawOutlines();
    this.#drawMeasure(height);
    this.#drawLabels(visible, height);
    this.#drawAxis(ticks, width);
    this.#drawPointer(width, height);
    this.frames++;
  }

  #box(color, x, y, width, height) {
    this.pen.fillStyle = color;
    this.pen.fillRect(x, y, width, height);
  }

  #write(text, x, y, color, weight = 400) {
    this.pen.font = `${weight} 11px ${this.font}`;
    this.pen.textAlign = "left";
    this.pen.fillStyle = color;
    this.pen.fillText(text, x, y);
  }

  // --- Ground ----------------------------------------------------------------------------------------------

  #ticks() {
    const { from, until } = this.state;
    const { step, text } = ruler(until - from, (this.right - GUTTER) / 96, Math.max(Math.abs(from), Math.abs(until)));
    const found = [];
    for (let at = Math.ceil(from / step); at * step <= until; at++)
      found.push({ x: Math.round(this.state.x(at * step)), text: text(at * step) });
    return found;
  }

  #drawGrid(ticks, height) {
    for (const { x } of ticks) this.#box(this.colors.grid, x, AXIS, 1, height);
    for (const edge of [0, this.launch.span])
      this.#box(this.colors.line, Math.round(this.state.x(edge)), AXIS, 1, height);
  }

  /** The lifetimes of a row's warps. */
  #drawGround(row) {
    const y = row.y - this.top;
    if (row.type === "warp") this.#drawLife(row.warp, y + PAD, row.height - 2 * PAD);
    else if (!row.shut) {
      this.#box(this.colors.row, GUTTER, y, this.right, row.height);
      let from = Infinity,
        until = -Infinity;
      for (let warp = row.first; warp < row.last; warp++) {
        from = Math.min(from, this.launch.from[warp]);
        until = Math.max(until, this.launch.until[warp]);
      }
      const left = this.state.x(from);
      this.#box(this.colors["life-edge"], left, y + row.height / 2 - 1.5, this.state.x(until) - left, 3);
    }
    this.#box(this.colors.grid, GUTTER, y + row.height - 1, this.right, 1);
  }

  #drawLife(warp, y, height) {
    const left = Math.max(GUTTER - 2, this.state.x(this.launch.from[warp]));
    const right = Math.min(this.right + 2, this.state.x(this.launch.until[warp]));
    if (right < left) return;
    this.#box(this.colors.life, left, y, Math.max(1, right - left), height);
    if (height < 10 || !this.launch.isRecorded(warp)) return;
    this.#box(this.colors["life-edge"], left, y, 1, height);
    this.#box(this.colors["life-edge"], right - 1, y, 1, height);
  }

  // --- Ranges ----------------------------------------------------------------------------------------------

  #drawRanges(visible) {
    const { lines, launch, pen } = this,
      ratio = devicePixelRatio;
    this.texts = [];
    this.shapes = [];
    lines.begin(this.state, Math.max(1, this.canvas.width - Math.round(GUTTER * ratio)));
    const pictures = visible.map((row) => (row.type === "warp" ? this.#open(row) : row.shut ? this.#shut(row) : []));
    lines.finish();
    // Whole pixels of the screen: nothing is smoothed.
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.imageSmoothingEnabled = false;
    for (const { first, count, y, height } of pictures.flat()) {
      const top = Math.round(y * ratio);
      lines.draw(pen, first, count, Math.round(GUTTER * ratio), top, Math.round((y + height) * ratio) - top);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const shape of this.shapes) this.#drawShape(shape);
    for (const text of this.texts) this.#drawText(text);
    pen.globalAlpha = 1;
  }

  /** Lines for the lanes of a warp. */
  #open(row) {
    const { launch, lines } = this,
      first = launch.warpLanes[row.warp],
      last = launch.warpLanes[row.warp + 1];
    const line = lines.add(last - first),
      found = [];
    for (let lane = first; lane < last; lane++) {
      const y = row.y - this.top + PAD + launch.laneNumber[lane] * LANE;
      lines.lane(line + lane - first, lane, (range, left, right, bright) =>
        this.#wideRange(range, left, right, bright, y),
      );
      found.push({ first: line + lane - first, count: 1, y, height: LANE - 1 });
    }
    return found;
  }

  /** Lines for the strips of a shut group; in each the lanes of a warp lie over each other, inner ones last. */
  #shut(row) {
    const { launch, lines } = this,
      { of, count, size } = this.state.rows.strips(row);
    const first = lines.add(count);
    for (let warp = row.first; warp < row.last; warp++) {
      const line = first + of[warp - row.first];
      lines.live(line, launch.from[warp], launch.until[warp]);
      for (let lane = launch.warpLanes[warp]; lane < launch.warpLanes[warp + 1]; lane++) lines.lane(line, lane);
    }
    const y = row.y - this.top + PAD,
      height = this.state.rows.strips(row).height;
    if (height === size) return [{ first, count, y, height: count * size }];
    return Array.from({ length: count }, (_, at) => ({ first: first + at, count: 1, y: y + at * size, height }));
  }

  /** Take note of a range that is wide enough to be more than a part of a line; say whether it is drawn later. */
  #wideRange(row, left, right, bright, y) {
    const { launch } = this,
      style = this.styles[launch.rangeStyle[row]];
    const x0 = GUTTER + left / devicePixelRatio,
      x1 = GUTTER + right / devicePixelRatio;
    if (x1 - x0 > 26) this.texts.push({ row, left: x0, y, right: x1, bright });
    if (x1 - x0 < WIDE || !(style.token || style.pattern)) return false;
    this.shapes.push({ style, x: Math.max(x0, GUTTER - 20), y, right: Math.min(x1 - 1, this.right + 20), bright });
    return true;
  }

  /** A range with round corners or stripes. */
  #drawShape({ style, x, y, right, bright }) {
    const { pen } = this;
    pen.globalAlpha = bright ? 1 : DIM;
    pen.beginPath();
    pen.roundRect(x, y, right - x, LANE - 1, style.token ? 6 : 0);
    pen.fillStyle = style.fill;
    pen.fill();
    if (!style.pattern) return;
    pen.fillStyle = style.hatch ??= this.#hatch(style);
    pen.fill();
  }

  #hatch(style) {
    const tile = new OffscreenCanvas(8, 8),
      pen = tile.getContext("2d");
    pen.strokeStyle = style.text;
    pen.globalAlpha = 0.35;
    pen.lineWidth = 1.6;
    pen.stroke(new Path2D(style.pattern === 1 ? "M-2 10 10 -2M-6 6 6 -6M2 14 14 2" : "M2 -2V10M6 -2V10"));
    return this.pen.createPattern(tile, "repeat");
  }

  /** A range's name, and its payload where there is room for both. */
  #drawText({ row, left, y, right, bright }) {
    const { launch, pen } = this,
      style = this.styles[launch.rangeStyle[row]];
    const x = Math.max(left, GUTTER) + 5,
      room = Math.min(right, this.right) - x - 5;
    pen.font = `500 11px ${this.font}`;
    const text = this.#fitted(style.name, room),
      middle = y + LANE / 2;
    if (!text) return;
    const color = bright ? style.text : this.colors.text;
    pen.globalAlpha = bright ? 1 : 0.25;
    // Letters stand on the plain colour.
    if (style.pattern && bright) this.#box(style.fill, x - 3, y + 2, this.#wide(text) + 6, LANE - 5);
    this.#write(text, x, middle, color, 500);
    const payload = launch.payloadOf(launch.payload[row]),
      after = this.#wide(text) + 7;
    if (!payload || text !== style.name || this.#wide(payload[1]) > room - after) return;
    if (style.pattern && bright) this.#box(style.fill, x + after - 3, y + 2, this.#wide(payload[1]) + 6, LANE - 5);
    pen.globalAlpha *= 0.75;
    this.#write(payload[1], x + after, middle, color, 500);
  }

  #wide(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, (width = this.pen.measureText(text).width));
    }
    return width;
  }

  /** As much of a text as there is room for. */
  #fitted(text, room) {
    const width = this.#wide(text);
    if (width <= room) return text;
    const letters = Math.floor((room / width) * text.length) - 1;
    return letters >= 3 ? `${text.slice(0, letters)}…` : "";
  }

  // --- Markers, and what is chosen -------------------------------------------------------------------------

  #drawMarkers(row) {
    const { launch, pen } = this,
      { filter, from, until, scale } = this.state,
      times = launch.markerTime;
    const last = launch.warpMarkers[row.warp + 1],
      pixel = 1 / scale;
    const top = row.y - this.top + PAD,
      y = row.y - this.top + row.height - PAD - MARKS / 2 + 0.5;
    let mark = firstAbove(times, from - 100 * pixel, launch.warpMarkers[row.warp], last);
    while (mark < last && times[mark] <= until + 8 * pixel) {
      // Those of one place are drawn as one: the first, or the first that is searched for.
      const next = firstAbove(times, times[mark] + 0.75 * pixel, mark + 1, last);
      let shown = mark;
      if (filter) while (shown < next && !filter("marker", shown)) shown++;
      const bright = shown < next,
        style = this.styles[launch.markerStyle[bright ? shown : mark]];
      const x = this.state.x(times[bright ? shown : mark]);
      pen.globalAlpha = bright ? 0.7 : 0.1;
      this.#box(style.fill, x - 0.5, top, 1, y - top);
      pen.globalAlpha = bright ? 1 : 0.2;
      pen.fill(new Path2D(shapePath(style.shape, x, y, 4.5)));
      this.#drawMarkerName(style.name, next - mark - 1, x, y, next < last ? this.state.x(times[next]) : this.right);
      mark = next;
    }
    pen.globalAlpha = 1;
  }

  /** The name beside a marker, with how many more are at its place, where there is room before the next one. */
  #drawMarkerName(name, more, x, y, next) {
    const room = next - x - 14,
      also = more ? ` +${number(more)}` : "";
    if (room < 12) return;
    this.pen.font = `400 10px ${this.font}`;
    const text = [name + also, also.trim()].find((one) => one && this.pen.measureText(one).width <= room);
    if (!text) return;
    this.pen.fillStyle = this.colors.muted;
    this.pen.textAlign = "left";
    this.pen.fillText(text, x + 8, y + 0.5);
  }

  #drawOutlines() {
    const { pen, colors, state } = this;
    for (const [item, line, color] of [
      [state.hovered, 1.5, colors.text],
      [state.selected, 2.5, colors.accent],
    ]) {
      const box = item && state.boxOf(item);
      if (!box) continue;
      const x = Math.max(box.x, GUTTER - 4),
        width = Math.min(box.x + box.width, this.right + 4) - x;
      if (width < 0) continue;
      pen.lineWidth = line;
      pen.strokeStyle = colors.canvas;
      pen.strokeRect(x - 1.5 * line, box.y - 1.5 * line, width + 3 * line, box.height + 3 * line);
      pen.strokeStyle = color;
      pen.strokeRect(x - line / 2, box.y - line / 2, width + line, box.height + line);
    }
  }

  /** The span between two points, while it is drawn out. */
  #drawMeasure(height) {
    const { pen, colors, state } = this;
    if (!state.measure) return;
    const left = Math.min(...state.measure),
      right = Math.max(...state.measure),
      middle = (left + right) / 2;
    this.#box(colors.shade, left, AXIS, right - left, height);
    for (const x of [left, right - 1]) this.#box(colors.accent, x, AXIS, 1, height);
    const text = time(Math.round((right - left) / state.scale));
    pen.font = `600 11px ${this.font}`;
    const wide = pen.measureText(text).width;
    this.#box(colors.accent, middle - wide / 2 - 7, AXIS + 8, wide + 14, 22);
    this.#write(text, middle - wide / 2, AXIS + 19.5, colors.canvas, 600);
  }

  // --- Labels and axis -------------------------------------------------------------------------------------

  #drawLabels(visible, height) {
    const { colors, state } = this;
    this.#box(colors.gutter, 0, 0, GUTTER, height);
    for (const row of visible) {
      const y = row.y - this.top;
      const hot =
        state.pointer !== null && state.pointer.y > AXIS && state.pointer.y >= y && state.pointer.y < y + row.height;
      if (row.type === "group") this.#drawGroupLabel(row, y, hot);
      else {
        const color = hot ? colors.text : colors.muted;
        this.#write(`warp ${this.launch.warps.id[row.warp]}`, 22 + 12 * row.depth, y + PAD + LANE / 2, color);
      }
      this.#box(colors.grid, 0, y + row.height - 1, GUTTER, 1);
    }
    this.#box(colors.line, GUTTER - 1, 0, 1, height);
  }

  #drawGroupLabel(row, y, hot) {
    const { colors, pen } = this;
    if (!row.shut || hot) this.#box(hot ? colors.shade : colors.row, 0, y, GUTTER, row.height - 1);
    const left = 10 + 12 * row.depth,
      middle = y + Math.min(row.height / 2, 18);
    pen.fillStyle = colors.muted;
    pen.fill(new Path2D(row.shut ? `M${left} ${middle - 4}l5 4l-5 4Z` : `M${left - 1} ${middle - 2.5}h8l-4 5Z`));
    this.#write(row.label, left + 12, middle + 0.5, colors.text, 600);
    const after = left + 20 + pen.measureText(row.label).width;
    pen.font = `400 11px ${this.font}`;
    this.#write(this.#fitted(row.extra, GUTTER - after - 6), after, middle + 0.5, colors.muted);
  }

  #drawAxis(ticks, width) {
    const { colors } = this;
    this.#box(colors.gutter, 0, 0, width, AXIS);
    for (const { x, text } of ticks) {
      if (x < GUTTER) continue;
      this.#box(colors.line, x, AXIS - 7, 1, 7);
      if (x + 5 + this.#wide(text) < width) this.#write(text, x + 5, AXIS / 2, colors.muted);
    }
    this.#write("time in launch", 10, AXIS / 2, colors.muted);
    this.#box(colors.line, 0, AXIS - 1, width, 1);
    this.#box(colors.line, GUTTER - 1, 0, 1, AXIS);
  }

  #drawPointer(width, height) {
    const { pen, colors, state } = this;
    if (state.pointer === null || state.pointer.x < GUTTER || state.measure) return;
    const x = Math.round(state.pointer.x),
      text = time(Math.round(state.moment(x)));
    pen.globalAlpha = 0.55;
    this.#box(colors.accent, x, AXIS, 1, height);
    pen.globalAlpha = 1;
    const wide = pen.measureText(text).width + 12,
      left = Math.min(Math.max(x - wide / 2, GUTTER), width - wide);
    this.#box(colors.accent, left, 4, wide, AXIS - 9);
    this.#write(text, left + 6, AXIS / 2 - 0.5, colors.canvas);
  }
}

function sizeOf(canvas) {
  return { width: canvas.width / devicePixelRatio, height: canvas.height / devicePixelRatio };
}

/** Give a canvas as many pixels as it covers on the screen. */
function sized(canvas, width, height) {
  const [wide, high] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
}
