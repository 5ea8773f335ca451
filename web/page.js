// Builds the page: first the timeline from the overview, then everything else.

import { AddressMap } from "./addresses.js";
import { Card } from "./card.js";
import { Names, describeAllocation, eventWords } from "./moment.js";
import { SegmentMap, segmentsOf } from "./segments.js";
import { Timeline, allocatedBytes, momentName } from "./timeline.js";
import { Treemap } from "./treemap.js";
import { View } from "./view.js";
import { allocationsTable, compositionTable, figures, fillWhenOpen } from "./tables.js";
import { holdersTable, segmentsTable, stagesTable } from "./tables.js";
import { announce, byId, make, swatch } from "./elements.js";
import { count, exactBytes, hexadecimal, size } from "./format.js";
import { foldedStack } from "./stack.js";
import { readSection } from "./data.js";
import { startTheme } from "./theme.js";

class Page {
  constructor(overview) {
    this.overview = overview;
    this.isSnapshot = overview.document.source === "snapshot";
    this.names = null;
    this.timeline = new Timeline(this, byId("timeline"), byId("minimap"));
    this.addresses = new AddressMap(this, byId("addresses"));
    this.treemap = new Treemap(this, byId("treemap"));
    this.segmentMap = new SegmentMap(this, byId("segments"));
    this.cards = [];
  }

  // Shows what is already known about a card, then the rest.
  async open(place) {
    this.cards[place] ??= new Card(this.overview, place);
    const card = this.cards[place];
    this.card = card;
    this.view = new View(this.card);
    this.view.listen((changes) => this.update(changes));
    byId("figures").replaceChildren(...figures(this));
    document.body.dataset.ranOut = card.ran_out ? "yes" : "no";
    this.addresses.packed = null;
    this.drawTimeline();
    this.showComposition(null);
    await whenRead();
    this.namesRead ??= readSection("names").then((section) => new Names(section));
    this.names = await this.namesRead;
    await card.loadDetails();
    // Another card may have been selected in the meantime.
    if (this.card !== card) return;
    fillWhenOpen("stages", () => stagesTable(this));
    this.addresses.load();
    this.drawTimeline();
    this.showMoment();
    this.showSelection();
    this.addresses.draw();
  }

  update(changes) {
    const moved = changes.has("moment");
    if (changes.has("window") || moved) this.drawTimeline();
    if (this.addresses.packed === null) {
      if (moved) this.showComposition(null);
      return;
    }
    if (moved) this.showMoment();
    if (changes.has("allocation")) this.showSelection();
    if (changes.has("allocation") && !moved) this.segmentMap.draw();
    this.addresses.draw();
  }

  // Draws again after a change of size or colours, with the same contents.
  redraw() {
    this.drawTimeline();
    if (this.addresses.packed === null) return;
    this.addresses.draw();
    this.treemap.draw();
    this.segmentMap.draw();
  }

  drawTimeline() {
    this.timeline.draw();
    const caption = byId("window");
    caption.textContent = this.timeline.caption();
    Object.assign(caption.dataset, { from: this.view.from, to: this.view.to });
  }

  // Segments are known only after all allocations have been read.
  showComposition(segments) {
    const { view, card, overview } = this;
    const values = card.valuesAt(view.moment);
    const kinds = { "ran out of memory": "When memory ran out", peak: "At the peak", moment: "At the moment" };
    const kind = kinds[momentName(card, view.moment)];
    const words = eventWords(card, overview, view.moment);
    byId("moment-title").textContent = card.events === 0 ? "The state" : `${kind}: ${words}`;
    byId("composition").replaceChildren(compositionTable(this, values, segments));
    const slider = byId("timeline");
    slider.setAttribute("aria-valuemax", String(card.lastEvent));
    slider.setAttribute("aria-valuenow", String(view.moment));
    slider.setAttribute(
      "aria-valuetext",
      `${words}, ${size(allocatedBytes(card, values))} allocated`,
    );
  }

  showMoment() {
    const { card, view } = this;
    const live = card.details.liveAt(view.moment);
    const segments = segmentsOf(card, live, view.moment);
    this.showComposition(segments);
    this.treemap.update(live);
    this.segmentMap.update(segments);
    fillWhenOpen("allocations", () => allocationsTable(this, live, (i) => this.addresses.zoomTo(i)));
    fillWhenOpen("holders", () => holdersTable(this, live));
    fillWhenOpen("segment-table", () => segmentsTable(segments));
  }

  showSelection() {
    const { allocation } = this.view;
    byId("selection").replaceChildren(...(allocation === null ? [] : selectionWords(this, allocation)));
  }

  act(what) {
    const { view } = this;
    const quarter = (view.to - view.from) / 4;
    const acts = {
      earlier: () => view.pan(-quarter),
      later: () => view.pan(quarter),
      in: () => view.zoom(2),
      out: () => view.zoom(0.5),
      whole: () => view.show(0, view.all),
      step: () => view.showStep(),
      peak: () => {
        view.choose(this.card.peak_event);
        view.reveal();
      },
      failure: () => {
        if (!this.card.ran_out) return;
        view.choose(this.card.ran_out.event);
        view.reveal();
      },
      "fold-layers": () => {
        this.treemap.turnFolding();
        byId("fold-layers").setAttribute("aria-pressed", String(this.treemap.folds));
      },
      "addresses-in": () => this.addresses.packed && this.addresses.zoomOffsets(2),
      "addresses-out": () => this.addresses.packed && this.addresses.zoomOffsets(0.5),
      "addresses-whole": () => this.addresses.packed && this.addresses.showOffsets(0, Infinity),
    };
    acts[what]();
  }

  // Keys of the timeline and of the map of addresses.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { view } = this;
    const pixel = Math.max(1, (view.to - view.from) / this.timeline.plotWidth);
    const step = event.shiftKey ? 1 : Math.ceil(pixel);
    const move = (to) => () => {
      view.choose(to);
      view.reveal();
    };
    const keys = {
      ArrowLeft: move(view.moment - step),
      ArrowRight: move(view.moment + step),
      Home: move(0),
      End: move(this.card.lastEvent),
      PageUp: () => this.act("earlier"),
      PageDown: () => this.act("later"),
      "+": () => this.act("in"),
      "=": () => this.act("in"),
      "-": () => this.act("out"),
      0: () => this.act("whole"),
      p: () => this.act("peak"),
      P: () => this.act("peak"),
      f: () => this.act("failure"),
      F: () => this.act("failure"),
      s: () => this.act("step"),
      S: () => this.act("step"),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  }
}

// Everything about the chosen allocation, with its stack.
function selectionWords(page, i) {
  const words = describeAllocation(page, i);
  const close = { click: () => page.view.select(null) };
  const zoom = { click: () => page.addresses.zoomTo(i) };
  const fact = (title, ...content) => [make("dt", {}, title), make("dd", {}, ...content)];
  const owner = [
    ...fact("module", words.moduleClass ? `${words.module} (${words.moduleClass})` : words.module),
    ...fact("operator", words.operator),
  ];
  return [
    make(
      "div",
      { class: "selected-title" },
      make("h3", {}, swatch(words.colourName), `${size(words.block)} ${words.category}`),
      make("button", { type: "button", on: zoom }, "Zoom to it"),
      make("button", { type: "button", "aria-label": "Close", on: close }, "×"),
    ),
    make(
      "dl",
      {},
      ...fact("size", `${exactBytes(words.block)}, of which ${exactBytes(words.requested)} were requested`),
      ...(words.name ? fact("name", words.name) : []),
      ...(page.isSnapshot ? fact("line", words.line) : owner),
      ...fact("address", `${hexadecimal(words.address)}${segmentWords(page, words.address)}`),
      ...fact("pool", words.pool),
      ...fact("lifetime", `${words.lifetime}: from ${words.from} to ${words.until}`),
      ...fact("stack", words.frames.length > 0 ? foldedStack(words.frames) : "none was recorded"),
    ),
  ];
}

// The segment around an address at the moment.
function segmentWords(page, address) {
  const segments = page.card.details.segmentsAt(page.view.moment);
  const around = segments.find(({ from, to }) => from <= address && address < to);
  return around ? `, in the segment of ${size(around.to - around.from)} at ${hexadecimal(around.from)}` : "";
}

// The rest of the document comes after this script.
function whenRead() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => addEventListener("DOMContentLoaded", resolve, { once: true }));
}

// Shows what went wrong on the page, and logs it to the console.
function reportTrouble(error) {
  const trouble = byId("trouble");
  const tooOld = typeof DecompressionStream === "undefined";
  trouble.textContent = tooOld
    ? "This browser cannot unpack the data in this file: it has no DecompressionStream. Browsers since 2023 have."
    : `The data in this file could not be shown: ${error.message}`;
  trouble.hidden = false;
  document.documentElement.dataset.state = "failed";
  console.error(error);
}

function connect(page) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-act]");
    if (button) page.act(button.dataset.act);
  });
  for (const id of ["timeline", "addresses"]) byId(id).addEventListener("keydown", (event) => page.key(event));
  const resized = new ResizeObserver(() => requestAnimationFrame(() => page.card && page.redraw()));
  resized.observe(byId("timeline"));
  resized.observe(byId("treemap"));
  connectChoices(page);
}

// A recording may have two runs, and several cards in each.
function connectChoices(page) {
  const { cards } = page.overview.document;
  const choice = byId("card");
  const buttons = [...document.querySelectorAll("button[data-run]")];
  const ranks = [...document.querySelectorAll("button[data-card]")];
  const offer = (place) => {
    const { run } = cards[place];
    const options = [...cards.keys()].filter((at) => cards[at].run === run);
    choice.replaceChildren(...options.map((at) => make("option", { value: String(at) }, cards[at].title.split(" ")[1])));
    choice.value = String(place);
    choice.closest("label").hidden = options.length < 2;
    byId("card-word").textContent = cards[place].title.startsWith("rank") ? "Rank" : "Card";
    for (const button of ranks) button.setAttribute("aria-pressed", String(Number(button.dataset.card) === place));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.run === run));
  };
  const open = (place, words) => {
    announce(words);
    offer(place);
    page.open(place).catch(reportTrouble);
  };
  choice.addEventListener("change", () => {
    const place = Number(choice.value);
    open(place, cards[place].title);
  });
  for (const button of ranks) {
    button.addEventListener("click", () => open(Number(button.dataset.card), button.textContent));
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const { run } = button.dataset;
      const sameCard = cards.findIndex((card) => card.run === run && card.title === page.card.title);
      const place = sameCard >= 0 ? sameCard : cards.findIndex((card) => card.run === run);
      if (place >= 0 && place !== page.card.place) open(place, button.textContent);
    });
  }
  offer(fullestCard(page));
}

// What is shown first: the run that failed and, of several ranks, the one with the highest peak.
function fullestCard(page) {
  const { cards } = page.overview.document;
  if (!cards[0].title.startsWith("rank")) return 0;
  const first = [...cards.keys()].filter((at) => cards[at].run === cards[0].run);
  const most = Math.max(...first.map((at) => cards[at].peak_allocated_bytes));
  const failed = first.find((at) => cards[at].ran_out);
  return failed ?? first.find((at) => cards[at].peak_allocated_bytes === most);
}

async function main() {
  let page = null;
  startTheme(() => page?.card && page.redraw());
  const overview = await readSection("overview");
  page = new Page(overview);
  if (overview.document.cards.length === 0) {
    document.querySelector("main").hidden = true;
    byId("figures").hidden = true;
    document.documentElement.dataset.state = "ready";
    return;
  }
  connect(page);
  const opened = page.open(fullestCard(page));
  performance.mark("ghostgpu-first-draw");
  document.documentElement.dataset.state = "drawn";
  await opened;
  performance.mark("ghostgpu-ready");
  document.documentElement.dataset.state = "ready";
}

main().catch(reportTrouble);
