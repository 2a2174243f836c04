// SPDX-License-Identifier: Apache-2.0
// The timeline's state: which part of the launch is in view, what lies where, what is chosen; and what mouse and
// fingers do to it.

/** How near to a thing one must point, in pixels. */
const NEAR = 4;
/** Free space beside the launch, as a share of it. */
const MARGIN = 0.02;
/** The shortest time that fills the view, in ns. */
const CLOSEST = 16;

class Timeline {
  /** `told`: `hovered(item, x, y)`, `clicked(item)` and `viewed()`, an item being {kind, row} or null. */
  constructor({ canvas, scroller, content, overview }, styles, told) {
    Object.assign(this, { canvas, scroller, content, told });
    this.drawing = new Drawing(canvas, styles);
    this.overview = new Overview(overview, (moment) => {
      const half = (this.until - this.from) / 2;
      this.view(moment - half, moment + half);
    });
    this.from = 0;
    this.until = 1;
    this.selected = this.hovered = this.pointer = this.measure = this.filter = null;
    this.fingers = new Map();
    this.#listen();
    new ResizeObserver(() => this.resize()).observe(scroller);
  }

  show(launch) {
    this.launch = launch;
    this.rows = new Rows(launch);
    this.selected = this.hovered = this.measure = this.filter = null;
    this.laidOut();
    this.scroller.scrollTop = 0;
    this.fit();
    this.resize();
  }

  laidOut() {
    this.content.style.height = `${this.rows.height}px`;
    this.invalidate();
  }

  readColors() {
    this.drawing.readColors();
    this.invalidate();
  }

  resize() {
    const width = this.scroller.clientWidth,
      height = this.scroller.clientHeight;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.drawing.fit(width, height);
    if (this.launch) this.draw();
  }

  invalidate() {
    if (this.waiting || !this.launch) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    this.drawing.draw(this);
    this.overview.draw(this, this.drawing.colors, this.drawing.font);
  }

  // --- The view --------------------------------------------------------------------------------------------

  get width() {
    return Math.max(10, this.canvas.clientWidth - GUTTER);
  }

  get scale() {
    return this.width / (this.until - this.from);
  }

  get top() {
    return this.scroller.scrollTop;
  }

  x(moment) {
    return GUTTER + (moment - this.from) * this.scale;
  }

  moment(x) {
    return this.from + (x - GUTTER) / this.scale;
  }

  view(from, until) {
    const { span } = this.launch,
      low = -span * MARGIN,
      high = span * (1 + MARGIN);
    const length = Math.min(high - low, Math.max(until - from, Math.min(CLOSEST, high - low)));
    const middle = (from + until) / 2;
    this.from = Math.min(Math.max(middle - length / 2, low), high - length);
    this.until = this.from + length;
    this.invalidate();
    this.told.viewed();
  }

  fit() {
    this.view(-this.launch.span, 2 * this.launch.span);
  }

  /** Make what is in view longer by a factor; what lies at `x` stays there. */
  zoom(factor, x = GUTTER + this.width / 2) {
    const fixed = this.moment(Math.max(x, GUTTER));
    this.view(fixed - (fixed - this.from) * factor, fixed + (this.until - fixed) * factor);
  }

  pan(pixels) {
    const by = pixels / this.scale;
    this.view(this.from + by, this.until + by);
  }

  scrollBy(pixels) {
    this.scroller.scrollTop += pixels;
  }

  setLevel(level) {
    this.rows.setLevel(level);
    this.laidOut();
    if (this.selected) this.#reveal(this.launch.warpOf(this.selected));
  }

  zoomTo(item) {
    const [from, until] = this.launch.timesOf(item),
      length = Math.max(until - from, 32);
    this.view(from - length * 0.6, until + length * 0.6);
    this.#open(item);
  }

  /** Show an item at a size that can be seen, moving as little as possible. */
  focus(item) {
    const [from, until] = this.launch.timesOf(item),
      middle = (from + until) / 2;
    if (item.kind === "range" && (until - from) * this.scale < 8) {
      const half = Math.min(Math.max(until - from, 32) * 12, (this.until - this.from) / 2);
      this.view(middle - half, middle + half);
    } else if (from < this.from || until > this.until) {
      const half = Math.max(this.until - this.from, (until - from) * 1.2) / 2;
      this.view(middle - half, middle + half);
    }
    this.#open(item);
  }

  #open(item) {
    const warp = this.launch.warpOf(item);
    if (this.rows.open(warp)) this.laidOut();
    this.#reveal(warp);
  }

  /** Scroll a warp's row into view. */
  #reveal(warp) {
    const row = this.rows.of(warp),
      room = this.scroller.clientHeight;
    if (row.y - AXIS < this.top || row.y + row.height > this.top + room)
      this.scroller.scrollTop = Math.max(0, row.y - room / 2);
    this.invalidate();
  }

  select(item) {
    this.selected = item;
    this.invalidate();
  }

  /** Dim everything for which `filter(kind, row)` is false; null shows all alike. */
  highlight(filter) {
    this.filter = filter;
    this.invalidate();
  }

  // --- What lies where -------------------------------------------------------------------------------------

  /** The box on the canvas in which an item is drawn. */
  boxOf(item) {
    const { launch } = this,
      warp = launch.warpOf(item),
      row = this.rows.of(warp);
    const [from, until] = launch.timesOf(item);
    const x = this.x(from),
      width = Math.max(2, (until - from) * this.scale),
      y = row.y - this.top + PAD;
    if (row.type === "group") {
      const strips = this.rows.strips(row);
      return { x, y: y + strips.of[warp - row.first] * strips.size, width, height: Math.max(2, strips.height) };
    }
    if (item.kind === "warp") return { x, y, width, height: row.height - 2 * PAD };
    if (item.kind === "marker") return { x: x - 5, y: y + row.height - 2 * PAD - MARKS, width: 10, height: MARKS };
    const lane = launch.laneNumber[launch.laneOf(item.row)];
    return { x, y: y + lane * LANE, width: width >= 4 ? width - 1 : width, height: LANE - 1 };
  }

  #rowAt(y) {
    return y < AXIS ? null : this.rows.at(y + this.top);
  }

  /** What is drawn at a point of the canvas, or null. */
  itemAt(x, y) {
    const row = this.#rowAt(y);
    if (!row || x < GUTTER) return null;
    const inside = y + this.top - row.y - PAD;
    if (row.type === "group") return row.shut ? this.#stripAt(row, x, inside) : null;
    const height = this.launch.height[row.warp];
    const mark = inside >= Math.max(1, height) * LANE - 2 ? this.#markerAt(row.warp, x) : null;
    if (mark !== null) return { kind: "marker", row: mark };
    const range = this.#rangeAt(row.warp, Math.min(Math.floor(inside / LANE), height - 1), x);
    return range === null ? this.#warpAt(row.warp, x, NEAR) : { kind: "range", row: range };
  }

  #stripAt(row, x, inside) {
    const strips = this.rows.strips(row),
      strip = Math.floor(inside / strips.size);
    for (let warp = row.first; warp < row.last; warp++) {
      if (strips.of[warp - row.first] !== strip || !this.#warpAt(warp, x)) continue;
      // The innermost is drawn last.
      for (let lane = this.launch.height[warp] - 1; lane >= 0; lane--) {
        const range = this.#rangeAt(warp, lane, x);
        if (range !== null) return { kind: "range", row: range };
      }
      return { kind: "warp", row: warp };
    }
    return null;
  }

  #warpAt(warp, x, near = 0) {
    const left = this.x(this.launch.from[warp]) - near,
      right = this.x(this.launch.until[warp]) + near;
    return x >= left && x <= right ? { kind: "warp", row: warp } : null;
  }

  #rangeAt(warp, lane, x) {
    const { launch } = this,
      moment = this.moment(x);
    for (let one = launch.warpLanes[warp]; one < launch.warpLanes[warp + 1]; one++) {
      if (launch.laneNumber[one] !== lane) continue;
      const away = (row) => Math.max(launch.start[row] - moment, moment - launch.end[row], 0);
      return this.#nearest(launch.end, moment, launch.laneFirst[one], launch.laneFirst[one + 1], away, NEAR);
    }
    return null;
  }

  #markerAt(warp, x) {
    const { launch } = this,
      moment = this.moment(x),
      times = launch.markerTime;
    const away = (row) => Math.abs(times[row] - moment);
    return this.#nearest(times, moment, launch.warpMarkers[warp], launch.warpMarkers[warp + 1], away, NEAR + 2);
  }

  /** The markers that are drawn at the place of one, itself among them. */
  alike(row) {
    const { launch } = this,
      warp = launch.warpOf({ kind: "marker", row }),
      last = launch.warpMarkers[warp + 1];
    const moment = launch.markerTime[row],
      pixel = 0.75 / this.scale,
      found = [];
    let mark = firstAbove(launch.markerTime, moment - pixel, launch.warpMarkers[warp], last);
    while (mark < last && launch.markerTime[mark] < moment + pixel) found.push(mark++);
    return found;
  }

  /** Of markers at one place each click chooses another. */
  #next(item) {
    if (item?.kind !== "marker" || this.selected?.kind !== "marker") return item;
    const found = this.alike(item.row),
      now = found.indexOf(this.selected.row);
    return now < 0 ? item : { kind: "marker", row: found[(now + 1) % found.length] };
  }

  #nearest(sorted, moment, first, last, away, most) {
    const after = firstAbove(sorted, moment, first, last);
    const found = [after, after - 1].filter((row) => row >= first && row < last && away(row) * this.scale <= most);
    return found.length ? found.reduce((one, two) => (away(two) < away(one) ? two : one)) : null;
  }

  /** The range beside the selected one: "next" and "previous" on its lane, "up" and "down" on the lanes around it. */
  neighbour(direction) {
    const { launch } = this;
    if (!launch.rangeCount) return null;
    if (this.selected?.kind !== "range") return this.#firstInView();
    const { row } = this.selected,
      lane = launch.laneOf(row);
    const by = direction === "next" || direction === "down" ? 1 : -1;
    if (direction === "next" || direction === "previous") {
      const inside = row + by >= launch.laneFirst[lane] && row + by < launch.laneFirst[lane + 1];
      return inside ? { kind: "range", row: row + by } : null;
    }
    if (lane + by < 0 || lane + by >= launch.laneNumber.length) return null;
    const first = launch.laneFirst[lane + by],
      last = launch.laneFirst[lane + by + 1];
    const after = Math.min(firstAbove(launch.end, launch.start[row], first, last), last - 1);
    const away = (one) => Math.max(launch.start[one] - launch.end[row], launch.start[row] - launch.end[one], 0);
    return { kind: "range", row: after > first && away(after - 1) < away(after) ? after - 1 : after };
  }

  #firstInView() {
    const { launch } = this;
    const shown = this.rows.list.find((row) => row.type === "warp" && row.y >= this.top && launch.height[row.warp]);
    const lane = shown ? launch.warpLanes[shown.warp] : 0,
      last = launch.laneFirst[lane + 1];
    return { kind: "range", row: Math.min(firstAbove(launch.end, this.from, launch.laneFirst[lane], last), last - 1) };
  }

  // --- Mouse and fingers -----------------------------------------------------------------------------------

  #listen() {
    const { canvas } = this;
    this.scroller.addEventListener("scroll", () => this.invalidate(), { passive: true });
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
  }

  #wheel(event) {
    // Over the labels the wheel scrolls, as it does with shift.
    if (event.offsetX < GUTTER && !event.ctrlKey) return;
    event.preventDefault();
    const unit = [1, 16, 400][event.deltaMode],
      down = event.deltaY * unit,
      right = event.deltaX * unit;
    if (event.shiftKey) this.scrollBy(down || right);
    else if (Math.abs(right) > Math.abs(down) && !event.ctrlKey) this.pan(right);
    // Two fingers on a touchpad that come together arrive as a wheel with the control key, in small steps.
    else this.zoom(Math.exp(Math.max(-240, Math.min(240, down)) * (event.ctrlKey ? 0.01 : 0.0022)), event.offsetX);
  }

  #down(event) {
    if (event.button > 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = this.fingers.size > 1;
    if (event.shiftKey && event.offsetX >= GUTTER) this.measure = [event.offsetX, event.offsetX];
  }

  #move(event) {
    const held = this.fingers.get(event.pointerId);
    this.pointer = { x: event.offsetX, y: event.offsetY };
    if (held) this.#drag(event, held);
    else {
      this.hovered = this.itemAt(event.offsetX, event.offsetY);
      const label = event.offsetX < GUTTER && this.#rowAt(event.offsetY)?.type === "group";
      this.canvas.style.cursor = label || this.hovered ? "pointer" : "";
      this.told.hovered(this.hovered, event.clientX, event.clientY);
    }
    this.invalidate();
  }

  #drag(event, held) {
    const x = event.offsetX - held.x,
      y = event.offsetY - held.y;
    if (!this.moved && Math.hypot(x, y) < 4) return;
    if (!this.moved) this.told.hovered((this.hovered = null));
    this.moved = true;
    if (this.measure) this.measure[1] = Math.max(GUTTER, event.offsetX);
    else if (this.fingers.size > 1) this.#pinch(event, held);
    else {
      this.canvas.style.cursor = "grabbing";
      this.pan(-x);
      this.scrollBy(-y);
    }
    if (!this.measure) Object.assign(held, { x: event.offsetX, y: event.offsetY });
  }

  #pinch(event, held) {
    const [, other] = [...this.fingers].find(([pointer]) => pointer !== event.pointerId);
    const before = Math.max(20, Math.abs(held.x - other.x)),
      after = Math.max(20, Math.abs(event.offsetX - other.x));
    this.zoom(before / after, (held.x + other.x) / 2);
    this.pan((held.x - event.offsetX) / 2);
  }

  #up(event, clicked) {
    if (!this.fingers.delete(event.pointerId)) return;
    const measured = this.measure;
    this.measure = null;
    this.canvas.style.cursor = "";
    this.invalidate();
    if (measured && this.moved) {
      const [left, right] = measured.map((x) => this.moment(x)).sort((one, two) => one - two);
      this.view(left, right);
    } else if (clicked && !this.moved) this.#click(event.offsetX, event.offsetY);
  }

  #click(x, y) {
    const row = this.#rowAt(y);
    if (x < GUTTER && row?.type === "group") {
      this.rows.toggle(row);
      this.laidOut();
    } else if (x >= GUTTER && y > AXIS) this.told.clicked(this.#next(this.itemAt(x, y)));
  }

  #leave() {
    this.pointer = this.hovered = null;
    this.told.hovered(null);
    this.invalidate();
  }
}
