// The segments at the moment, laid end to end in lines like a page of text, with live and free blocks. Free memory in a
// segment that also has a live block cannot be returned to the driver and is hatched.

import { allocationWords } from "./addresses.js";
import { announce, byId, make, swatch } from "./elements.js";
import { colour } from "./theme.js";
import { describeAllocation } from "./moment.js";
import { exactBytes, hexadecimal, percent, several, size } from "./format.js";
import { followPointer, hideTooltip, prepare, showTooltip } from "./canvas.js";

const LINE = 22;
const BAR = 17;
const MOST_LINES = 26;
// Space between segments; less if there are very many, so that it takes only a small share.
const GAP = 2;
const GAPS_SHARE = 0.1;

// Each segment with its blocks, including free ones, in the order of addresses.
export function segmentsOf(card, live, event) {
  const { details } = card;
  const segments = details.segmentsAt(event);
  const blocks = live.map((i) => ({ i, from: details.address(i), to: details.address(i) + details.blockBytes(i) }));
  blocks.sort((a, b) => a.from - b.from);
  let first = 0;
  for (const segment of segments) {
    Object.assign(segment, { cells: [], liveBytes: 0, blocks: 0, largestFree: 0 });
    while (first < blocks.length && blocks[first].to <= segment.from) first++;
    let at = segment.from;
    const free = (to) => {
      if (to <= at) return;
      segment.cells.push({ segment, from: at, to, i: null });
      segment.largestFree = Math.max(segment.largestFree, to - at);
    };
    for (let next = first; next < blocks.length && blocks[next].from < segment.to; next++) {
      const from = Math.max(at, blocks[next].from);
      const to = Math.min(segment.to, blocks[next].to);
      if (to <= from) continue;
      free(from);
      segment.cells.push({ segment, from, to, i: blocks[next].i });
      segment.liveBytes += to - from;
      segment.blocks++;
      at = to;
    }
    free(segment.to);
  }
  return segments;
}

// How much cached memory is in segments with live blocks, and how much could be returned to the driver.
export function fragmentation(segments) {
  const sums = { stuck: 0, returnable: 0, largestFree: 0 };
  for (const segment of segments) {
    const free = segment.to - segment.from - segment.liveBytes;
    if (segment.liveBytes > 0) sums.stuck += free;
    else sums.returnable += free;
    sums.largestFree = Math.max(sums.largestFree, segment.largestFree);
  }
  return sums;
}

export class SegmentMap {
  constructor(page, canvas) {
    this.page = page;
    this.canvas = canvas;
    this.segments = [];
    this.cells = [];
    this.focused = -1;
    followPointer(canvas, {
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => hideTooltip(),
      click: (x, y) => {
        const cell = this.find(x, y);
        if (cell?.i !== undefined) page.view.select(cell.i);
      },
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => hideTooltip());
  }

  update(segments) {
    this.segments = segments;
    this.cells = segments.flatMap((segment) => segment.cells);
    this.focused = -1;
    this.draw();
  }

  draw() {
    const width = this.canvas.getBoundingClientRect().width;
    const total = this.segments.reduce((sum, segment) => sum + segment.to - segment.from, 0);
    // As few lines as needed for a block of 1 MiB to be a pixel or two wide, within limits.
    const lines = Math.min(MOST_LINES, Math.max(1, Math.ceil(total / (width * 0.5 * 2 ** 20))));
    this.gap = Math.min(GAP, (GAPS_SHARE * lines * width) / Math.max(1, this.segments.length));
    this.perPixel = Math.max(1, total / (lines * width - this.segments.length * this.gap));
    this.lay(width);
    const last = this.pieces.length > 0 ? this.pieces[this.pieces.length - 1].line + 1 : 1;
    const { context } = prepare(this.canvas, last * LINE);
    const hatch = this.hatching(context);
    const { overview, card } = this.page;
    for (const { cell, x, line, wide } of this.pieces) {
      const y = line * LINE;
      if (cell.i !== null) {
        context.fillStyle = colour(overview.document.group_colours[card.details.group(cell.i)]);
        context.fillRect(x, y, wide > 2.5 ? wide - 0.5 : wide, BAR);
        continue;
      }
      context.fillStyle = colour("cached");
      context.fillRect(x, y, wide, BAR);
      if (cell.segment.liveBytes > 0) {
        context.fillStyle = hatch;
        context.fillRect(x, y, wide, BAR);
      }
    }
    this.drawMarks(context);
    this.caption();
  }

  // Splits the segments at the ends of lines.
  lay(width) {
    this.pieces = [];
    let [x, line] = [0, 0];
    for (const segment of this.segments) {
      for (const cell of segment.cells) {
        let left = (cell.to - cell.from) / this.perPixel;
        while (left > 0) {
          const wide = Math.min(left, width - x);
          if (wide > 0) this.pieces.push({ cell, x, line, wide });
          x += wide;
          left -= wide;
          if (x >= width - 0.01) [x, line] = [0, line + 1];
        }
      }
      x += this.gap;
      if (x >= width) [x, line] = [0, line + 1];
    }
  }

  hatching(context) {
    const tile = document.createElement("canvas");
    [tile.width, tile.height] = [6, 6];
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour("strong-line");
    pen.lineWidth = 1;
    pen.beginPath();
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift, 6);
      pen.lineTo(shift + 6, 0);
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  drawMarks(context) {
    const chosen = this.cells[this.focused];
    const { allocation } = this.page.view;
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    for (const { cell, x, line, wide } of this.pieces) {
      const marked = cell === chosen || (cell.i !== null && cell.i === allocation);
      if (marked) context.strokeRect(x + 1, line * LINE + 1, Math.max(2, wide - 2), BAR - 2);
    }
  }

  caption() {
    const { stuck, returnable, largestFree } = fragmentation(this.segments);
    const reserved = this.segments.reduce((sum, segment) => sum + segment.to - segment.from, 0);
    byId("segments-caption").textContent =
      `${size(reserved)} reserved in ${several(this.segments.length, "segment", "segments")}. ` +
      `Cached: ${size(stuck + returnable)} (${percent(stuck + returnable, reserved)}), of which ${size(stuck)} lie beside live blocks ` +
      `and cannot go back to the driver; the largest free block has ${size(largestFree)}.`;
    byId("segments-key").replaceChildren(
      make("span", {}, swatch("cached"), "a free segment"),
      make("span", {}, "hatched: free beside live blocks"),
      make("span", {}, "colours as in the timeline"),
    );
  }

  find(x, y) {
    const line = Math.floor(y / LINE);
    if (y - line * LINE > BAR) return null;
    const piece = this.pieces.find((each) => each.line === line && x >= each.x && x < each.x + each.wide);
    return piece ? piece.cell : null;
  }

  words(cell) {
    const { segment } = cell;
    const where = `segment ${hexadecimal(segment.from)}, ${size(segment.to - segment.from)}`;
    if (cell.i !== null) return [...allocationWords(this.page, cell.i), make("p", { class: "soft" }, where)];
    const why = segment.liveBytes > 0 ? "free, beside live blocks" : "free, the whole segment";
    return [
      make("p", {}, make("b", {}, size(cell.to - cell.from)), ` ${why}`),
      make("p", { class: "soft" }, exactBytes(cell.to - cell.from)),
      make("p", { class: "soft" }, where),
    ];
  }

  hover(x, y, event) {
    const cell = this.find(x, y);
    if (cell === null) return hideTooltip();
    return showTooltip(event.clientX, event.clientY, ...this.words(cell));
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (steps !== undefined && this.cells.length > 0) this.focus(this.focused + steps);
    else if (event.key === "Enter" && this.cells[this.focused]) this.page.view.select(this.cells[this.focused].i);
    else if (event.key === "Escape") hideTooltip();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focus(at) {
    this.focused = Math.min(this.cells.length - 1, Math.max(0, at));
    const cell = this.cells[this.focused];
    this.draw();
    const piece = this.pieces.find((each) => each.cell === cell);
    const box = this.canvas.getBoundingClientRect();
    if (piece) showTooltip(box.left + piece.x, box.top + piece.line * LINE + BAR, ...this.words(cell));
    const what = cell.i === null ? "free" : blockWords(this.page, cell.i);
    announce(`${size(cell.to - cell.from)}, ${what}`);
  }
}

// What is in a block: its category or, if unknown, the line that made it.
function blockWords(page, i) {
  const words = describeAllocation(page, i);
  return page.isSnapshot ? words.line : words.category;
}
