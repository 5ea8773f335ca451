// Every allocation as a rectangle: as wide as its lifetime, as high as its size, at its address.
//
// A block keeps its address for life, so its rectangle does too; the gaps between rectangles are fragmentation. Addresses
// that were never reserved are left out.

import { NEVER } from "./card.js";
import { ReservedRanges } from "./ranges.js";
import { announce, byId, make } from "./elements.js";
import { colour, inkOn } from "./theme.js";
import { count, hexadecimal, several, size } from "./format.js";
import { describeAllocation, shortWords } from "./moment.js";
import { fittingText, followPointer, hideTooltip, prepare, showTooltip } from "./canvas.js";
import { leftMargin } from "./timeline.js";
import { upperBound } from "./search.js";

// The smallest rectangle that gets a label, and the largest number of labels.
const LABELLED = [90, 15];
const MOST_LABELS = 150;

// A colour as the four bytes of a pixel, read as one little-endian number.
function pixelOf(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// All addresses that were ever reserved, without the gaps between them.
class PackedAddresses {
  constructor(details) {
    const { kind, address, bytes } = details.segmentChanges;
    const ranges = [];
    for (let i = 0; i < kind.length; i++) {
      if (kind[i] !== 2) ranges.push([address[i], address[i] + bytes[i]]);
    }
    const largest = new Float64Array(details.addresses.length);
    for (let i = 0; i < details.length; i++) {
      const place = details.addressPlace[i];
      largest[place] = Math.max(largest[place], details.blockBytes(i));
    }
    // A block outside every segment is impossible, but a damaged file may have one.
    details.addresses.forEach((from, place) => ranges.push([from, from + largest[place]]));
    ranges.sort((a, b) => a[0] - b[0]);
    this.begins = [];
    this.ends = [];
    for (const [from, to] of ranges) {
      const last = this.ends.length - 1;
      if (last >= 0 && from <= this.ends[last]) this.ends[last] = Math.max(this.ends[last], to);
      else {
        this.begins.push(from);
        this.ends.push(to);
      }
    }
    this.offsets = [];
    this.bytes = 0;
    for (let i = 0; i < this.begins.length; i++) {
      this.offsets.push(this.bytes);
      this.bytes += this.ends[i] - this.begins[i];
    }
    this.ofPlace = Float64Array.from(details.addresses, (each) => this.offset(each));
  }

  offset(address) {
    const range = upperBound(this.begins, address) - 1;
    return range < 0 ? 0 : this.offsets[range] + address - this.begins[range];
  }

  address(offset) {
    const range = Math.max(0, upperBound(this.offsets, offset) - 1);
    return this.begins[range] + offset - this.offsets[range];
  }
}

// Every range that was reserved, with the events that reserved and released it.
function reservedRectangles(card, packed) {
  const rectangles = [];
  const close = (from, to, begin, end) =>
    rectangles.push({ offset: packed.offset(from), bytes: to - from, begin, end });
  const ranges = new ReservedRanges(card.details.segmentChanges);
  ranges.follow(Infinity, close);
  ranges.each((from, to, since) => close(from, to, since, card.events));
  return rectangles;
}

export class AddressMap {
  constructor(page, canvas) {
    this.page = page;
    this.canvas = canvas;
    this.packed = null;
    followPointer(canvas, {
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => hideTooltip(),
      click: (x, y) => this.click(x, y),
      drag: (dx, dy) => {
        page.view.pan((-dx / this.plotWidth) * (page.view.to - page.view.from));
        this.showOffsets(this.from + (dy / this.height) * (this.to - this.from), this.to - this.from);
      },
      wheel: (x, y, steps, event) => {
        if (event.shiftKey) this.zoomOffsets(1.25 ** steps, this.offsetAt(y));
        else page.view.zoom(1.25 ** steps, this.eventAt(x));
      },
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // Called when the card's details have been read.
  load() {
    const { card } = this.page;
    this.packed = new PackedAddresses(card.details);
    this.reserved = reservedRectangles(card, this.packed);
    this.from = 0;
    this.to = Math.max(1, this.packed.bytes);
  }

  eventAt(x) {
    const { from, to, all } = this.page.view;
    const share = Math.min(1, Math.max(0, (x - this.left) / this.plotWidth));
    return Math.min(from + share * (to - from), all - 1e-6);
  }

  // Low addresses are at the bottom.
  offsetAt(y) {
    return this.to - (y / this.height) * (this.to - this.from);
  }

  showOffsets(from, width) {
    const all = Math.max(1, this.packed.bytes);
    const wide = Math.min(all, Math.max(4096, width));
    this.from = Math.min(Math.max(0, from), all - wide);
    this.to = this.from + wide;
    this.page.view.changed("addresses");
  }

  zoomOffsets(factor, offset = (this.from + this.to) / 2) {
    const share = (offset - this.from) / (this.to - this.from);
    const wide = (this.to - this.from) / factor;
    this.showOffsets(offset - share * wide, wide);
  }

  draw() {
    const { context, width, height } = prepare(this.canvas);
    this.left = leftMargin(width);
    this.plotWidth = width - this.left - 10;
    this.height = height;
    this.canvas.dataset.left = this.left;
    this.canvas.dataset.right = this.left + this.plotWidth;
    if (this.packed === null) return;
    const { view } = this.page;
    const perEvent = this.plotWidth / (view.to - view.from);
    const perByte = height / (this.to - this.from);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.plotWidth, height);
    context.clip();
    this.drawReserved(context, perEvent, perByte);
    const hidden = this.drawAllocations(context, perByte);
    this.drawMoment(context, perEvent);
    this.drawSelected(context, perEvent, perByte);
    context.restore();
    this.drawLabels(context, perByte);
    this.caption(hidden);
  }

  // Reserved addresses are light, others have the colour of the page.
  drawReserved(context, perEvent, perByte) {
    const { view } = this.page;
    context.fillStyle = colour("cached");
    context.globalAlpha = 0.55;
    for (const { offset, bytes, begin, end } of this.reserved) {
      if (end <= view.from || begin >= view.to || offset >= this.to || offset + bytes <= this.from) continue;
      const x = this.left + (Math.max(begin, view.from) - view.from) * perEvent;
      const x2 = this.left + (Math.min(end, view.to) - view.from) * perEvent;
      context.fillRect(x, (this.to - offset - bytes) * perByte, x2 - x, bytes * perByte);
    }
    context.globalAlpha = 1;
  }

  // Draws into an image with as many pixels as the screen has, because there may be millions of allocations. Every column
  // of pixels shows one moment; a block is drawn in the columns of the moments at which it is live. Returns how many
  // allocations of the window cannot be seen.
  drawAllocations(context, perByte) {
    const { view, card, overview } = this.page;
    const { begin, end, addressPlace, sizePlace, block, origin, originGroup } = card.details;
    const ratio = devicePixelRatio || 1;
    const [columns, rows] = [Math.round(this.plotWidth * ratio), Math.round(this.height * ratio)];
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = overview.document.group_colours.map((name) => pixelOf(colour(name ?? "unknown")));
    this.moments = this.momentsOfColumns(columns);
    const { moments } = this;
    const rowsPerByte = perByte * ratio;
    const until = upperBound(begin, Math.ceil(view.to));
    const labelled = [];
    let hidden = 0;
    let first = 0;
    for (let i = 0; i < until; i++) {
      if (end[i] - 1 <= view.from) continue;
      const offset = this.packed.ofPlace[addressPlace[i]];
      const bytes = block[sizePlace[i]];
      if (offset >= this.to || offset + bytes <= this.from) continue;
      while (first < columns && moments[first] < begin[i] - 1) first++;
      const top = Math.max(0, Math.ceil((this.to - offset - bytes) * rowsPerByte - 0.5));
      let bottom = Math.min(rows, Math.ceil((this.to - offset) * rowsPerByte - 0.5));
      if (first >= columns || moments[first] >= end[i] - 1 || bottom <= top) {
        hidden++;
        continue;
      }
      let last = upperBound(moments, end[i] - 2);
      // One pixel between neighbours, if there is room.
      if (bottom - top > 3 * ratio) bottom -= 1;
      if (last - first > 4 * ratio && end[i] !== NEVER) last -= 1;
      const room = [(last - first) / ratio, (bottom - top) / ratio];
      if (room[0] > LABELLED[0] && room[1] > LABELLED[1]) labelled.push([i, first / ratio, top / ratio, ...room]);
      const pixel = colours[originGroup[origin[i]]];
      for (let row = top; row < bottom; row++) pixels.fill(pixel, row * columns + first, row * columns + last);
    }
    const picture = new OffscreenCanvas(columns, rows);
    picture.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, this.left, 0, this.plotWidth, this.height);
    if (labelled.length <= MOST_LABELS) labelled.forEach((each) => this.drawLabel(context, ...each));
    return hidden;
  }

  drawLabel(context, i, x, y, wide, high) {
    const { overview } = this.page;
    const words = describeAllocation(this.page, i);
    const text = fittingText(context, `${size(words.block)} ${shortWords(this.page, i)}`, wide - 10);
    context.fillStyle = inkOn(overview.document.group_colours[this.page.card.details.group(i)]);
    context.fillText(text, this.left + x + 5, y + Math.min(high / 2, 12));
  }

  // The moment that each column shows: the event under it, or the highest moment of its events.
  momentsOfColumns(columns) {
    const { view, card } = this.page;
    const samples = card.samples(view.from, view.to, columns);
    const moments = new Float64Array(columns);
    let at = 0;
    for (let column = 0; column < columns; column++) {
      const event = view.from + ((column + 0.5) / columns) * (view.to - view.from);
      while (at + 1 < samples.length && samples.to[at] <= event) at++;
      moments[column] = samples.highestEvent[at];
    }
    return moments;
  }

  rectangle(i, perEvent, perByte) {
    const { view, card } = this.page;
    const { details } = card;
    const begin = Math.max(view.from, details.begin[i] === 0 ? 0 : details.begin[i] - 1);
    const end = Math.min(view.to, details.end[i] === NEVER ? card.events : details.end[i] - 1);
    const offset = this.packed.ofPlace[details.addressPlace[i]];
    const bytes = details.blockBytes(i);
    const x = this.left + (begin - view.from) * perEvent;
    return [x, (this.to - offset - bytes) * perByte, (end - begin) * perEvent, bytes * perByte];
  }

  drawMoment(context, perEvent) {
    const { view } = this.page;
    context.fillStyle = colour("ink");
    context.fillRect(this.left + (view.moment + 0.5 - view.from) * perEvent - 0.5, 0, 1, this.height);
  }

  drawSelected(context, perEvent, perByte) {
    const { allocation } = this.page.view;
    if (allocation === null) return;
    const [x, y, wide, high] = this.rectangle(allocation, perEvent, perByte);
    if (wide < 0) return;
    context.strokeStyle = colour("paper");
    context.lineWidth = 4;
    const frame = [x - 1, y - 1, Math.max(2, wide) + 2, Math.max(2, high) + 2];
    context.strokeRect(...frame);
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    context.strokeRect(...frame);
  }

  drawLabels(context, perByte) {
    context.textAlign = "right";
    context.fillStyle = colour("soft");
    // As many of the last digits as there is room for.
    const name = (offset, y) => {
      const digits = hexadecimal(this.packed.address(offset));
      let shown = digits;
      for (let at = 1; context.measureText(shown).width > this.left - 9; at++) shown = `…${digits.slice(at)}`;
      context.fillText(shown, this.left - 7, y);
    };
    name(this.to - 1, 8);
    name(this.from, this.height - 8);
    const scale = (this.to - this.from) / 5;
    const words = size(scale).split(" ");
    words.forEach((word, line) => context.fillText(word, this.left - 12, this.height / 2 + 14 * (line - 0.5)));
    context.strokeStyle = colour("strong-line");
    context.lineWidth = 1;
    const half = (scale * perByte) / 2;
    context.strokeRect(this.left - 6.5, this.height / 2 - half, 3, 2 * half);
    context.textAlign = "left";
  }

  caption(hidden) {
    const { view, card } = this.page;
    const most = card.details.length;
    const words =
      hidden > 0
        ? `Every column of pixels shows its highest moment; ${several(hidden, "allocation", "allocations")} of this window live between those, or are too small to be seen: zoom in.`
        : "Every allocation of this window is drawn.";
    byId("addresses-caption").textContent = `Width is lifetime, height is bytes, pale is reserved but unused. ${words}`;
    this.canvas.setAttribute(
      "aria-label",
      `${several(most, "allocation", "allocations")} by time and address, events ${count(Math.floor(view.from))} to ${count(Math.ceil(view.to) - 1)}`,
    );
  }

  // The moment at a position.
  momentAt(x) {
    const column = Math.floor(((x - this.left) / this.plotWidth) * this.moments.length);
    return this.moments[Math.min(this.moments.length - 1, Math.max(0, column))];
  }

  // The allocation at a position, if there is one.
  find(x, y) {
    const { details } = this.page.card;
    const time = this.momentAt(x) + 1;
    const offset = this.offsetAt(y);
    const until = upperBound(details.begin, time);
    for (let i = until - 1; i >= 0; i--) {
      if (details.end[i] <= time) continue;
      const from = this.packed.ofPlace[details.addressPlace[i]];
      if (from <= offset && offset < from + details.blockBytes(i)) return i;
    }
    return null;
  }

  hover(x, y, event) {
    if (this.packed === null || x < this.left || x > this.left + this.plotWidth) return hideTooltip();
    const found = this.find(x, y);
    this.canvas.style.cursor = found === null ? "crosshair" : "pointer";
    if (found === null) return hideTooltip();
    return showTooltip(event.clientX, event.clientY, ...allocationWords(this.page, found));
  }

  click(x, y) {
    if (this.packed === null) return;
    const found = this.find(x, y);
    this.page.view.select(found);
    this.page.view.choose(this.momentAt(x));
  }

  key(event) {
    const { view } = this.page;
    if (this.packed === null) return;
    if (event.key === "ArrowUp" || event.key === "ArrowDown") this.neighbour(event.key === "ArrowUp" ? 1 : -1);
    else if (event.key === "Enter" && view.allocation !== null) this.zoomTo(view.allocation);
    else if (event.key === "Escape") view.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Selects the next live block of the moment, by address.
  neighbour(direction) {
    const { view, card } = this.page;
    const { details } = card;
    const live = details.liveAt(view.moment).sort((a, b) => details.addressPlace[a] - details.addressPlace[b]);
    if (live.length === 0) return;
    const at = live.indexOf(view.allocation);
    const next =
      at < 0 ? (direction > 0 ? 0 : live.length - 1) : Math.min(live.length - 1, Math.max(0, at + direction));
    view.select(live[next]);
    const words = describeAllocation(this.page, live[next]);
    const owner = this.page.isSnapshot ? words.line : `${words.category}, ${words.name || words.module}`;
    announce(`${size(words.block)}, ${owner}`);
  }

  // Shows an allocation's lifetime, as much of it as possible, and its surroundings.
  zoomTo(i) {
    const { view, card } = this.page;
    const { details } = card;
    const begin = Math.max(0, details.begin[i] - 1);
    const end = details.end[i] === NEVER ? card.events : details.end[i];
    const around = Math.max(6, 0.25 * (end - begin));
    view.show(begin - around, end + around);
    const bytes = details.blockBytes(i);
    this.showOffsets(this.packed.ofPlace[details.addressPlace[i]] - 2 * bytes, 5 * bytes);
  }
}

// An allocation in the few lines of a tooltip.
export function allocationWords(page, i) {
  const words = describeAllocation(page, i);
  const name = words.name && words.name !== words.module ? `${words.name}` : "";
  return [
    make("p", {}, make("b", {}, size(words.block)), ` ${words.category}`),
    name ? make("p", {}, name) : null,
    page.isSnapshot ? null : make("p", {}, `${words.module} · ${words.operator}`),
    make("p", { class: "soft" }, words.line),
    make("p", { class: "soft" }, `from ${words.from} to ${words.until}`),
  ].filter((each) => each !== null);
}
