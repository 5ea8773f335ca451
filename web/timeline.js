// The timeline: what was held after every event, stacked by category, with stages and steps along its axis.

import { colour, inkOn } from "./theme.js";
import { count, percent, roundBytesAtLeast, shortSize, size } from "./format.js";
import { followPointer, hideTooltip, prepare, showTooltip } from "./canvas.js";
import { make, swatch } from "./elements.js";
import { STAGE_STRIP, drawPhases } from "./phases.js";
import { phaseWords, stageWords } from "./moment.js";

const MARGIN_BOTTOM = 2 * STAGE_STRIP + 6;
const MARGIN_TOP = 20;
const MARGIN_RIGHT = 10;

// Wide enough for "1,000 MiB". The address map uses the same width, so that the events of both are aligned.
export function leftMargin(width) {
  return width < 500 ? 52 : 66;
}

// The bands from the bottom up, each with its index in a moment's values, its colour and its title. What a recording
// cannot know has no band.
export function bands(overview) {
  const { groups, group_colours: colours, source } = overview.document;
  const outside = { key: "outside", title: "CUDA context and libraries", of: (card) => card.outside_bytes - card.nccl_bytes };
  const nccl = { key: "nccl", title: "NCCL", of: (card) => card.nccl_bytes };
  const others = { key: "others", title: "other processes", of: (card) => card.other_processes_bytes };
  const hasNccl = overview.document.cards.some((card) => card.nccl_bytes > 0);
  const hasOthers = overview.document.cards.some((card) => card.other_processes_bytes > 0);
  return [
    ...(hasOthers ? [others] : []),
    ...(source === "snapshot" ? [] : [outside]),
    ...(hasNccl ? [nccl] : []),
    ...groups
      .map((title, at) => ({ key: colours[at], title, of: (card, values) => values[at] }))
      .filter((band) => band.key !== null),
    { key: "rounding", title: "rounding of blocks", of: (card, values) => values[card.roundingAt] },
    { key: "cached", title: "cached, unused", of: (card, values) => cachedBytes(card, values) },
  ];
}

export function allocatedBytes(card, values) {
  let sum = 0;
  for (let v = 0; v < card.reservedAt; v++) sum += values[v];
  return sum;
}

export function cachedBytes(card, values) {
  return Math.max(0, values[card.reservedAt] - allocatedBytes(card, values));
}

// What is special about a moment, in one or two words.
export function momentName(card, moment) {
  if (moment === card.ran_out?.event) return "ran out of memory";
  return moment === card.peak_event ? "peak" : "moment";
}

export class Timeline {
  constructor(page, canvas, minimap) {
    this.page = page;
    this.canvas = canvas;
    this.minimap = minimap;
    followPointer(canvas, {
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => hideTooltip(),
      click: (x) => page.view.choose(Math.floor(this.eventAt(x))),
      drag: (dx) => page.view.pan((-dx / this.plotWidth) * (page.view.to - page.view.from)),
      wheel: (x, y, steps) => page.view.zoom(1.25 ** steps, this.eventAt(x)),
    });
    const centre = (x) => {
      const { view } = page;
      const half = (view.to - view.from) / 2;
      const event = ((x - this.left) / this.plotWidth) * view.all;
      view.show(event - half, event + half);
    };
    followPointer(minimap, {
      hover: () => {},
      leave: () => {},
      click: centre,
      drag: (dx) => page.view.pan((dx / this.plotWidth) * page.view.all),
    });
  }

  eventAt(x) {
    const { from, to } = this.page.view;
    const share = Math.min(1, Math.max(0, (x - this.left) / this.plotWidth));
    return Math.min(from + share * (to - from), this.page.view.all - 1e-6);
  }

  x(event) {
    const { from, to } = this.page.view;
    return this.left + ((event - from) / (to - from)) * this.plotWidth;
  }

  y(bytes) {
    return this.bottom - (bytes / this.highest) * (this.bottom - MARGIN_TOP);
  }

  draw() {
    const { card, overview } = this.page;
    const { context, width, height } = prepare(this.canvas);
    this.context = context;
    this.left = leftMargin(width);
    this.plotWidth = width - this.left - MARGIN_RIGHT;
    this.bottom = height - (card.phases.firstEvent.length > 0 ? MARGIN_BOTTOM : 6);
    // In a snapshot without segments, more is live than reserved.
    const recorded = Math.max(card.reserved_peak_bytes, card.peak_allocated_bytes) + card.besideBytes;
    const needed = Math.max(recorded, this.failedHeight());
    // If the card is much larger than the job, its line is not shown, because it would flatten the chart.
    this.showsCapacity = card.totalBytes > 0 && card.totalBytes <= 1.6 * needed;
    this.highest = 1.04 * Math.max(needed, this.showsCapacity ? card.totalBytes : 0, 1);
    this.bands = bands(overview);
    this.canvas.dataset.left = this.left;
    this.canvas.dataset.right = this.left + this.plotWidth;

    this.drawGrid();
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.plotWidth, height);
    context.clip();
    const samples = card.samples(this.page.view.from, this.page.view.to, this.plotWidth);
    this.drawBands(samples);
    this.drawReserved(samples);
    drawPhases(this);
    this.drawFailures();
    this.drawMoment();
    context.restore();
    this.drawCapacity();
    this.drawMinimap();
  }

  // Information that the chart does not show.
  caption() {
    const { card, view } = this.page;
    const [from, to] = [Math.floor(view.from), Math.max(0, Math.ceil(view.to) - 1)];
    const words = [
      `Events ${count(from)} to ${count(to)} of ${count(card.events)}; the line on top is what PyTorch had reserved.`,
    ];
    if (card.totalBytes > 0 && !this.showsCapacity)
      words.push(`The card's ${size(card.totalBytes)} are above this chart.`);
    const [event, bytes] = card.out_of_memory.at(-1) ?? [];
    if (event !== undefined) words.push(`▼ A request for ${size(bytes)} failed at event ${count(event)}.`);
    return words.join(" ");
  }

  // The height that the failed request would have reached; a request larger than any card is not drawn to scale.
  failedHeight() {
    const { card } = this.page;
    if (!card.ran_out) return 0;
    const values = card.valuesAt(card.ran_out.event);
    const before = values[card.reservedAt] + card.besideBytes;
    return before + Math.min(card.ran_out.requested_bytes, before);
  }

  drawGrid() {
    const { context } = this;
    const step = roundBytesAtLeast(this.highest / 6);
    context.textAlign = "right";
    context.lineWidth = 1;
    for (let bytes = 0; bytes <= this.highest; bytes += step) {
      const y = Math.round(this.y(bytes)) + 0.5;
      context.strokeStyle = colour("line");
      context.beginPath();
      context.moveTo(this.left, y);
      context.lineTo(this.left + this.plotWidth, y);
      context.stroke();
      context.fillStyle = colour("soft");
      context.fillText(bytes === 0 ? "0" : shortSize(bytes), this.left - 7, y);
    }
    context.textAlign = "left";
  }

  // One path per band: along the tops of its samples, and back along the tops of the band below.
  drawBands(samples) {
    const { context, page } = this;
    const { card } = page;
    let below = new Float64Array(samples.length);
    const values = new Float64Array(card.valueCount);
    for (const band of this.bands) {
      const tops = new Float64Array(samples.length);
      let anything = false;
      for (let i = 0; i < samples.length; i++) {
        for (let v = 0; v < values.length; v++) values[v] = samples.values[v][i];
        const bytes = band.of(card, values);
        anything ||= bytes > 0;
        tops[i] = below[i] + bytes;
      }
      if (anything) {
        context.beginPath();
        for (let i = 0; i < samples.length; i++) {
          const y = this.y(tops[i]);
          context.lineTo(this.x(samples.from[i]), y);
          context.lineTo(this.x(samples.to[i]), y);
        }
        for (let i = samples.length - 1; i >= 0; i--) {
          const y = this.y(below[i]);
          context.lineTo(this.x(samples.to[i]), y);
          context.lineTo(this.x(samples.from[i]), y);
        }
        context.closePath();
        context.fillStyle = colour(band.key);
        context.fill();
      }
      below = tops;
    }
  }

  drawReserved(samples) {
    const { context, page } = this;
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.25;
    context.beginPath();
    for (let i = 0; i < samples.length; i++) {
      const y = this.y(samples.reserved[i] + page.card.besideBytes);
      context.lineTo(this.x(samples.from[i]), y);
      context.lineTo(this.x(samples.to[i]), y);
    }
    context.stroke();
  }

  drawCapacity() {
    const { context, page } = this;
    const { totalBytes } = page.card;
    if (!this.showsCapacity) return;
    const right = this.left + this.plotWidth;
    const y = Math.round(this.y(totalBytes)) + 0.5;
    context.strokeStyle = colour("bad");
    context.lineWidth = 1.5;
    context.setLineDash([7, 4]);
    context.beginPath();
    context.moveTo(this.left, y);
    context.lineTo(right, y);
    context.stroke();
    context.setLineDash([]);
    // On the side opposite to the label of the moment.
    const isLate = this.x(page.view.moment) > (this.left + right) / 2;
    context.textAlign = isLate ? "left" : "right";
    context.fillStyle = colour("bad");
    this.outlinedText(`the card: ${size(totalBytes)}`, isLate ? this.left + 4 : right - 4, y - 10);
    context.textAlign = "left";
  }

  // Readable on any background.
  outlinedText(text, x, y) {
    const { context } = this;
    context.strokeStyle = colour("paper");
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }

  drawFailures() {
    const { context, page } = this;
    let last = -Infinity;
    for (const [event] of page.card.out_of_memory) {
      const x = this.x(event + 0.5);
      // A script may retry many times, so there is only one mark per position.
      if (x - last < 1 || x > this.left + this.plotWidth + 6) continue;
      last = x;
      context.fillStyle = colour("bad");
      context.beginPath();
      context.moveTo(x - 6, MARGIN_TOP - 12);
      context.lineTo(x + 6, MARGIN_TOP - 12);
      context.lineTo(x, MARGIN_TOP - 2);
      context.fill();
      context.fillRect(x - 0.5, MARGIN_TOP - 2, 1, this.bottom - MARGIN_TOP + 2);
    }
    this.drawFailedRequest();
  }

  // The failed request, on top of what was allocated.
  drawFailedRequest() {
    const { context, page } = this;
    const { ran_out: ranOut } = page.card;
    if (!ranOut) return;
    const values = page.card.valuesAt(ranOut.event);
    const bottom = this.y(values[page.card.reservedAt] + page.card.besideBytes);
    const top = this.y(this.failedHeight());
    const x = this.x(ranOut.event + 0.5);
    context.fillStyle = colour("bad");
    // To the left, because it usually is the last event.
    context.fillRect(x - 8, top, 8, Math.max(3, bottom - top));
  }

  drawMoment() {
    const { context, page } = this;
    const { moment } = page.view;
    const x = this.x(moment + 0.5);
    if (x < this.left - 1 || x > this.left + this.plotWidth + 1) return;
    context.fillStyle = colour("ink");
    context.fillRect(x - 0.75, MARGIN_TOP - 4, 1.5, this.bottom - MARGIN_TOP + 4);
    const words = momentName(page.card, moment);
    const width = context.measureText(words).width + 12;
    const from = Math.min(Math.max(x - width / 2, this.left), this.left + this.plotWidth - width);
    context.beginPath();
    context.roundRect(from, 1, width, 16, 4);
    context.fill();
    context.fillStyle = inkOn("ink");
    context.fillText(words, from + 6, 9.5);
  }

  drawMinimap() {
    const { card, view } = this.page;
    const { context, height } = prepare(this.minimap);
    const samples = card.samples(0, view.all, this.plotWidth);
    const x = (event) => this.left + (event / view.all) * this.plotWidth;
    context.fillStyle = colour("ground");
    context.fillRect(this.left, 0, this.plotWidth, height);
    context.beginPath();
    context.moveTo(this.left, height);
    for (let i = 0; i < samples.length; i++) {
      let bytes = card.besideBytes;
      for (let v = 0; v < card.reservedAt; v++) bytes += samples.values[v][i];
      const y = height - (bytes / this.highest) * height;
      context.lineTo(x(samples.from[i]), y);
      context.lineTo(x(samples.to[i]), y);
    }
    context.lineTo(this.left + this.plotWidth, height);
    context.fillStyle = colour("strong-line");
    context.fill();
    const [from, to] = [x(view.from), x(view.to)];
    context.fillStyle = colour("ground");
    context.globalAlpha = 0.72;
    context.fillRect(this.left, 0, from - this.left, height);
    context.fillRect(to, 0, this.left + this.plotWidth - to, height);
    context.globalAlpha = 1;
    context.strokeStyle = colour("accent");
    context.lineWidth = 2;
    context.strokeRect(from + 1, 1, Math.max(2, to - from - 2), height - 2);
  }

  hover(x, y, event) {
    if (x < this.left || x > this.left + this.plotWidth) return hideTooltip();
    const { card, overview } = this.page;
    const at = Math.floor(this.eventAt(x));
    if (y > this.bottom) {
      const phase = card.phaseIndexAt(at);
      if (phase < 0) return hideTooltip();
      return showTooltip(event.clientX, event.clientY, ...this.phaseWords(phase));
    }
    const values = card.valuesAt(at);
    const total = values[card.reservedAt] + card.besideBytes;
    const rows = [];
    let below = 0;
    for (const band of this.bands) {
      const bytes = band.of(card, values);
      const pointed = y <= this.y(below) && y > this.y(below + bytes);
      below += bytes;
      if (bytes > 0) rows.push(this.tooltipRow(band, bytes, total, pointed));
    }
    showTooltip(
      event.clientX,
      event.clientY,
      make("p", {}, make("b", {}, `event ${count(at)}`), ` ${stageWords(card, overview, at)}`),
      make("table", {}, make("tbody", {}, ...rows.reverse(), this.tooltipTotal(total))),
    );
    return undefined;
  }

  tooltipRow(band, bytes, total, pointed) {
    const title = pointed ? make("b", {}, band.title) : band.title;
    return make(
      "tr",
      {},
      make("td", {}, swatch(band.key), title),
      make("td", { class: "number" }, size(bytes)),
      make("td", { class: "number" }, percent(bytes, total)),
    );
  }

  tooltipTotal(total) {
    return make(
      "tr",
      {},
      make("td", {}, make("b", {}, this.page.isSnapshot ? "reserved" : "on the card")),
      make("td", { class: "number" }, make("b", {}, size(total))),
    );
  }

  phaseWords(phase) {
    const { card, overview } = this.page;
    const { firstEvent, end, sums } = card.phases;
    const words = [
      make("p", {}, make("b", {}, phaseWords(card, overview, phase))),
      make("p", { class: "soft" }, `events ${count(firstEvent[phase])} to ${count(end[phase] - 1)}`),
    ];
    if (sums === null) return words;
    const { came, went, stayed, peak } = sums;
    return [
      ...words,
      make("p", {}, `came ${size(came[phase])}, of which ${size(stayed[phase])} stayed; went ${size(went[phase])}`),
      make("p", {}, `peak ${size(peak[phase])} allocated`),
    ];
  }
}
