// SPDX-License-Identifier: Apache-2.0
// The strip above the timeline: how many warps live at each time, and which part of the launch is in view.

class Overview {
  /** `told(moment)` is called with the moment that is pointed at. */
  constructor(canvas, told) {
    this.canvas = canvas;
    const point = (event) => {
      if (!event.buttons || !this.state || this.state.launch.empty) return;
      const share = (event.offsetX - GUTTER) / (canvas.clientWidth - GUTTER);
      const { span } = this.state.launch;
      told(share * span * (1 + 2 * MARGIN) - span * MARGIN);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      point(event);
    });
    canvas.addEventListener("pointermove", point);
  }

  draw(state, colors, font) {
    this.state = state;
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight;
    sized(this.canvas, width, height);
    const pen = this.canvas.getContext("2d", { alpha: false });
    const box = (color, x, y, wide, high) => {
      pen.fillStyle = color;
      pen.fillRect(x, y, wide, high);
    };
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    box(colors.gutter, 0, 0, width, height);
    if (state.launch.empty || width <= GUTTER) return;
    const room = width - GUTTER,
      { shape, most } = this.#alive(room, height);
    pen.fillStyle = colors["life-edge"];
    pen.fill(shape);
    pen.font = `400 11px ${font}`;
    pen.textBaseline = "middle";
    pen.fillStyle = colors.muted;
    pen.fillText(`${state.launch.about.left ? "drawn warps" : "warps alive"}, of ${number(most)}`, 10, height / 2);
    const left = GUTTER + this.#share(state.from) * room,
      right = GUTTER + this.#share(state.until) * room;
    pen.globalAlpha = 0.7;
    box(colors.gutter, GUTTER, 0, left - GUTTER, height);
    box(colors.gutter, right, 0, width - right, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.75, 0.75, Math.max(3, right - left - 1.5), height - 1.5);
    box(colors.line, GUTTER - 1, 0, 1, height);
  }

  /** A moment's place in the strip, 0 to 1. */
  #share(moment) {
    const { span } = this.state.launch;
    return (moment + span * MARGIN) / (span * (1 + 2 * MARGIN));
  }

  /** The outline of how many warps live in each pixel, and their largest number. */
  #alive(pixels, height) {
    const { launch } = this.state;
    if (this.known?.launch === launch && this.known.pixels === pixels && this.known.height === height)
      return this.known;
    const change = new Int32Array(pixels + 1);
    const at = (moment) => Math.min(pixels - 1, Math.max(0, Math.floor(this.#share(moment) * pixels)));
    for (let warp = 0; warp < launch.warpCount; warp++) {
      change[at(launch.from[warp])]++;
      change[at(launch.until[warp]) + 1]--;
    }
    let now = 0;
    const counts = Array.from(change.subarray(0, pixels), (by) => (now += by));
    const most = Math.max(
        1,
        counts.reduce((a, b) => Math.max(a, b), 0),
      ),
      shape = new Path2D();
    shape.moveTo(GUTTER, height);
    const y = (count) => height - Math.round(((height - 5) * count) / most);
    [...counts, 0].forEach((count, x) => {
      const before = counts[x - 1] ?? 0;
      if (count === before) return;
      shape.lineTo(GUTTER + x, y(before));
      shape.lineTo(GUTTER + x, y(count));
    });
    this.known = { launch, pixels, height, shape, most };
    return this.known;
  }
}
