// SPDX-License-Identifier: Apache-2.0
// Ranges as lines of pixels.  A lane looks the same over all its height, so it is worked out once, as one line of
// colours, and stretched: a frame costs as much as it has pixels, whatever the number of ranges.
//
// Ranges of a lane do not overlap, so the first visible one is found by bisection; where many fall into one pixel the
// rest of the pixel is skipped by bisection too.

const DIM = 0.14;

class Lines {
  constructor(styles) {
    this.styles = styles;
    this.sheet = new OffscreenCanvas(1, 1);
    this.pen = this.sheet.getContext("2d");
  }

  readColors(life) {
    this.life = packed(channels(life));
    this.bright = this.styles.map((style) => packed(channels(style.fill)));
    const ground = channels(life);
    const dimmed = (fill) => channels(fill).map((value, at) => Math.round(value * DIM + ground[at] * (1 - DIM)));
    this.dim = this.styles.map((style) => packed(dimmed(style.fill)));
  }

  /** Begin a picture of a part of a launch, `width` pixels wide. */
  begin({ launch, filter, from, until }, width) {
    Object.assign(this, { launch, filter, from, until, width, scale: width / (until - from), count: 0 });
    if (this.image?.width !== width) this.#grow(64);
  }

  #grow(lines) {
    const before = this.pixels,
      same = this.image?.width === this.width;
    this.image = new ImageData(this.width, lines);
    this.pixels = new Uint32Array(this.image.data.buffer);
    if (same) this.pixels.set(before);
  }

  /** Add empty lines; return the number of the first. */
  add(count) {
    const first = this.count;
    this.count += count;
    if (this.count > this.image.height) this.#grow(2 * this.count);
    this.pixels.fill(0, first * this.width, this.count * this.width);
    return first;
  }

  /** The pixel of a moment, within the line. */
  #pixel(moment) {
    return Math.min(this.width, Math.max(0, Math.floor((moment - this.from) * this.scale)));
  }

  /** Draw a warp's life into a line. */
  live(line, from, until) {
    if (until < this.from || from > this.until) return;
    const left = this.#pixel(from);
    this.pixels.fill(this.life, line * this.width + left, line * this.width + Math.max(left + 1, this.#pixel(until)));
  }

  /** Draw a lane into a line.  With `told`, gaps show where ranges end, and `told(row, left, right, bright)` hears of wide
   *  ones; where it returns true, it draws the range itself. */
  lane(line, lane, told = null) {
    const { launch, filter, pixels, scale, width, from } = this,
      { start, end, rangeStyle } = launch;
    const origin = line * width,
      limit = line * width + width,
      last = launch.laneFirst[lane + 1];
    let row = firstAbove(end, from - 1 / scale, launch.laneFirst[lane], last);
    while (row < last && start[row] <= this.until) {
      const left = Math.floor((start[row] - from) * scale),
        right = Math.floor((end[row] - from) * scale);
      let shown = row,
        bright = filter === null || filter("range", row);
      const wide = right - left;
      let next = row + 1;
      if (wide < 1) {
        // All of this pixel: the first range, or the first that is searched for.
        next = nextAbove(end, from + (left + 1) / scale, row + 1, last);
        while (!bright && shown + 1 < next) bright = filter("range", ++shown);
        if (!bright) shown = row;
      }
      if (wide < 24 || told === null || !told(row, left, right, bright)) {
        const color = (bright ? this.bright : this.dim)[rangeStyle[shown]];
        const first = Math.max(origin, origin + left),
          after = told !== null && wide >= 4 ? right - 1 : Math.max(right, left + 1);
        if (first < limit) pixels.fill(color, first, Math.min(limit, origin + after));
      }
      row = next;
    }
  }

  /** Hand the lines over to be drawn from. */
  finish() {
    const { image } = this;
    if (this.sheet.width !== image.width || this.sheet.height !== image.height)
      [this.sheet.width, this.sheet.height] = [image.width, image.height];
    if (this.count) this.pen.putImageData(image, 0, 0, 0, 0, this.width, this.count);
  }

  /** Stretch lines over a part of a canvas, in its own pixels. */
  draw(pen, first, count, x, y, height) {
    pen.drawImage(this.sheet, 0, first, this.width, count, x, y, this.width, height);
  }
}

/** A colour as it lies in the memory of an image. */
function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
