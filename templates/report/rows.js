// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline: SMs, CTAs and warps, which of them are open, and where each of them lies.
//
// An open group is a header over the rows of its warps.  A shut one is a single row with a strip for each warp that
// lives at a time, so that the whole launch can be seen at a glance.

const AXIS = 28;
const LANE = 18;
const MARKS = 12;
const HEADER = 22;
const PAD = 3;
/** All rows are open at first where they are not higher than this together. */
const OPEN_HEIGHT = 1400;
/** How high a strip is, by how many there are at most. */
const STRIPS = [
  [4, 7],
  [8, 5],
  [16, 4],
  [32, 2],
  [Infinity, 1],
];

class Rows {
  constructor(launch) {
    this.launch = launch;
    this.shut = new Set();
    this.known = new Map();
    // Where every SM has one CTA, as in a grid of one wave, a row for both is enough.
    this.single = launch.groups.every((group) => group.ctas.length === 1);
    this.layOut();
    if (this.height > OPEN_HEIGHT) this.setLevel(2, true);
  }

  /** Levels: 1 shows SMs, 2 CTAs, 3 warps.  With `example` the first CTA is open whatever the level. */
  setLevel(level, example = false) {
    this.shut.clear();
    for (const group of this.launch.groups) {
      if (level === 1 || (this.single && level === 2)) this.shut.add(group.key);
      if (level <= 2) for (const cta of group.ctas) this.shut.add(cta.key);
    }
    const first = this.launch.groups[0];
    if (example && first) {
      this.shut.delete(first.key);
      this.shut.delete(first.ctas[0].key);
    }
    this.layOut();
  }

  toggle(row) {
    if (!this.shut.delete(row.key)) this.shut.add(row.key);
    this.layOut();
  }

  /** Open what hides a warp; say whether anything did. */
  open(warp) {
    const holds = (group) => warp >= group.first && warp < group.last;
    const group = this.launch.groups.find(holds),
      cta = group.ctas.find(holds);
    const hidden = this.shut.delete(group.key);
    const closed = this.shut.delete(cta.key) && !this.single;
    if (hidden || closed) this.layOut();
    return hidden || closed;
  }

  layOut() {
    this.list = [];
    this.height = AXIS;
    this.rowOfWarp = new Int32Array(this.launch.warpCount);
    for (const group of this.launch.groups) {
      const extra = this.single ? `CTA ${group.ctas[0].cta}` : `${number(group.ctas.length)} CTAs`;
      if (!this.#addGroup(group, 0, `SM ${known(group.sm)}`, extra)) continue;
      if (this.single) this.#addWarps(group, 1);
      else for (const cta of group.ctas) if (this.#addGroup(cta, 1, `CTA ${cta.cta}`, "")) this.#addWarps(cta, 2);
    }
    this.tops = Float64Array.from(this.list, (row) => row.y);
    this.height += 8;
  }

  #add(row, height) {
    this.list.push({ ...row, y: this.height, height });
    this.height += height;
  }

  /** Add a group's row; say whether the group is open. */
  #addGroup({ key, first, last }, depth, label, extra) {
    const row = { type: "group", key, first, last, depth, label, extra, shut: this.shut.has(key) };
    if (row.shut) this.rowOfWarp.fill(this.list.length, first, last);
    this.#add(row, row.shut ? this.#shutHeight(row) : HEADER);
    return !row.shut;
  }

  #addWarps({ first, last }, depth) {
    for (let warp = first; warp < last; warp++) {
      this.rowOfWarp[warp] = this.list.length;
      const marks = this.launch.warpMarkers[warp + 1] > this.launch.warpMarkers[warp] ? MARKS : 0;
      this.#add({ type: "warp", warp, depth }, Math.max(1, this.launch.height[warp]) * LANE + marks + 2 * PAD);
    }
  }

  #shutHeight(row) {
    const { count, size } = this.strips(row);
    return Math.max(HEADER, count * size + 2 * PAD + 2);
  }

  /** The strips of a shut group: of each of its warps the strip, how many there are, how high one is. */
  strips(row) {
    let found = this.known.get(row.key);
    if (found) return found;
    const { from, until } = this.launch,
      { first, last } = row;
    const order = Array.from({ length: last - first }, (_, place) => first + place);
    order.sort((a, b) => from[a] - from[b] || a - b);
    const busy = [],
      of = new Int32Array(last - first);
    for (const warp of order) {
      // Warps that live one after the other share a strip.
      let strip = busy.findIndex((end) => end <= from[warp]);
      if (strip < 0) strip = busy.length;
      busy[strip] = until[warp];
      of[warp - first] = strip;
    }
    const size = STRIPS.find(([most]) => busy.length <= most)[1];
    found = { of, count: busy.length, size, height: size > 3 ? size - 1 : size };
    this.known.set(row.key, found);
    return found;
  }

  /** The row that shows a warp: its own, or the shut group around it. */
  of(warp) {
    return this.list[this.rowOfWarp[warp]];
  }

  /** The row at a height, counted from the top of all rows. */
  at(y) {
    const row = this.list[firstAbove(this.tops, y, 0, this.tops.length) - 1];
    return row && y < row.y + row.height ? row : null;
  }

  between(top, bottom) {
    const first = Math.max(0, firstAbove(this.tops, top, 0, this.tops.length) - 1);
    return this.list.slice(first, firstAbove(this.tops, bottom, first, this.tops.length));
  }
}
