// The tables with the data of the charts. Those in a closed fold are built when it is opened.

import { allocatedBytes, bands, cachedBytes } from "./timeline.js";
import { byId, make, swatch } from "./elements.js";
import { count, exactBytes, hexadecimal, percent, several, size } from "./format.js";
import { describeAllocation, phaseWords, placeWords, poolWords, stackWords, wholeStackWords } from "./moment.js";
import { fragmentation } from "./segments.js";
import { layerPattern } from "./layers.js";
import { sortableTable } from "./table.js";

function bytesColumn(title, value) {
  return { title, number: true, value, show: (row) => size(value(row)), exact: (row) => exactBytes(value(row)) };
}

function exactColumn(title, value) {
  return { title, number: true, value, show: (row) => count(value(row)) };
}

function textColumn(title, value) {
  return { title, value, show: value };
}

// The composition of the moment: the legend of the timeline, and its table.
export function compositionTable(page, values, segments) {
  const { card, overview, view } = page;
  const total = values[card.reservedAt] + card.besideBytes;
  const onCard = page.isSnapshot ? [] : [["on the card", total]];
  const row = (attributes, first, bytes) =>
    make(
      "tr",
      attributes,
      make("td", {}, ...first),
      make("td", { class: "number", title: exactBytes(bytes) }, size(bytes)),
      make("td", { class: "number" }, percent(bytes, total)),
    );
  const rows = [];
  // From the top of the picture down.
  for (const band of bands(overview).reverse()) {
    const bytes = band.of(card, values);
    const stuck = band.key === "cached" && segments ? Math.min(bytes, fragmentation(segments).stuck) : 0;
    const add = (key, title, each) =>
      rows.push(row({ "data-key": key, "data-bytes": String(each) }, [swatch(band.key), title], each));
    if (stuck > 0) add("cached_unusable", "cached, held by fragmentation", stuck);
    add(band.key, band.title, bytes - stuck);
  }
  if (view.moment === card.ran_out?.event) {
    const { requested_bytes: requested } = card.ran_out;
    const asked = row({ class: "refused" }, [swatch("bad"), "asked for"], requested);
    asked.lastElementChild.replaceChildren();
    rows.unshift(asked);
  }
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, page.isSnapshot ? "line" : "category"),
    make("th", { scope: "col", class: "number" }, "bytes"),
    make("th", { scope: "col", class: "number" }, "share"),
  );
  const sums = [
    ["allocated", allocatedBytes(card, values)],
    ["reserved", values[card.reservedAt]],
    ...onCard,
  ].map(([title, bytes]) => row({ class: "total", "data-key": title, "data-bytes": String(bytes) }, [title], bytes));
  return make(
    "table",
    {},
    make("caption", { class: "unseen" }, "What is on the card at the moment"),
    make("thead", {}, head),
    make("tbody", {}, ...rows, ...sums),
  );
}

// Fills a fold: now if it is open, else when it is opened.
export function fillWhenOpen(id, content) {
  const fold = byId(id);
  const fill = () => {
    if (!fold.open || fold.dataset.filled === "yes") return;
    fold.dataset.filled = "yes";
    fold.replaceChildren(fold.querySelector("summary"), ...content());
  };
  fold.dataset.filled = "no";
  fold.ontoggle = fill;
  fill();
}

export function stagesTable(page) {
  const { card, view, overview } = page;
  const { phases } = card;
  const { sums } = phases;
  const rows = Array.from(phases.firstEvent.keys());
  const columns = [
    { title: "stage", value: (at) => at, show: (at) => phaseWords(card, overview, at) },
    exactColumn("first event", (at) => phases.firstEvent[at]),
    exactColumn("events", (at) => phases.end[at] - phases.firstEvent[at]),
    bytesColumn("before", (at) => sums.before[at]),
    bytesColumn("came", (at) => sums.came[at]),
    bytesColumn("went", (at) => sums.went[at]),
    bytesColumn("stayed", (at) => sums.stayed[at]),
    bytesColumn("peak", (at) => sums.peak[at]),
  ];
  const choose = (at) => {
    view.show(phases.firstEvent[at], phases.end[at]);
    view.choose(sums.peak_event[at]);
  };
  const caption =
    "Allocated bytes; “stayed” is what came and was still there at the stage's end. A row shows its stage and its peak.";
  return [sortableTable(columns, rows, { caption, sortBy: 0, descending: false, choose })];
}

export function allocationsTable(page, live, zoomTo) {
  const { view, card } = page;
  const { details } = card;
  const words = new Map();
  const of = (i) => {
    if (!words.has(i)) words.set(i, describeAllocation(page, i));
    return words.get(i);
  };
  const owner = [textColumn("module", (i) => of(i).module), textColumn("operator", (i) => of(i).operator)];
  const columns = [
    bytesColumn("block", (i) => details.blockBytes(i)),
    exactColumn("requested bytes", (i) => details.requestedBytes(i)),
    ...(page.isSnapshot ? [] : [textColumn("category", (i) => of(i).category)]),
    ...(page.isSnapshot && !hasNames(page) ? [] : [textColumn("name", (i) => of(i).name)]),
    ...(page.isSnapshot ? [] : owner),
    textColumn("line", (i) => of(i).line),
    ...(page.isSnapshot ? [textColumn("pool", (i) => of(i).pool)] : []),
    { title: "since", value: (i) => details.begin[i], show: (i) => of(i).from },
    { title: "address", value: (i) => details.address(i), show: (i) => hexadecimal(of(i).address) },
  ];
  const choose = (i) => {
    view.select(i);
    zoomTo(i);
  };
  const caption = `${count(live.length)} allocations are live; a row shows its allocation on the map above.`;
  return [sortableTable(columns, live, { caption, choose })];
}

// Whether a recording has any names.
function hasNames(page) {
  return page.names.texts.length > 1;
}

// The groupings to choose from: those that the recording knows.
function groupings(page) {
  if (!page.isSnapshot) return GROUPINGS;
  const named = hasNames(page) ? [GROUP_BY_NAME] : [];
  return [GROUP_BY_LINE, GROUP_BY_STACK, ["pool", poolWords], ...named];
}

const GROUP_BY_LINE = ["line", placeWords];
// Frames of frameworks are shown below the user's own lines, and layers below their pattern.
const GROUP_BY_STACK = ["stack", wholeStackWords, stackWords];
const GROUP_BY_NAME = ["name", (page, origin) => page.names.texts[page.card.details.name[origin]] || "(no name)"];
const modulePath = (page, origin) => page.names.modulePath(page.card.details.module[origin]);
const GROUPINGS = [
  ["module", modulePath, (page, origin) => layerPattern(modulePath(page, origin))],
  GROUP_BY_LINE,
  GROUP_BY_STACK,
  ["operator", (page, origin) => page.names.operators[page.card.details.operator[origin]] || "(unknown)"],
  GROUP_BY_NAME,
  ["category", (page, origin) => page.overview.document.groups[page.card.details.originGroup[origin]]],
];

// The sum of a row, and the sums of what it stands for.
function newRow(key) {
  return { key, bytes: 0, requested: 0, blocks: 0, inside: new Map() };
}

// `layers.* ×32`; a row that stands for a single thing shows its name.
function foldedTitle(row) {
  if (row.inside.size > 1) return `${row.key} ×${count(row.inside.size)}`;
  return row.inside.keys().next().value ?? row.key;
}

// Who holds how much, by the selected grouping.
export function holdersTable(page, live) {
  const { details } = page.card;
  const box = make("div");
  const show = ([title, keyOf, foldedKeyOf]) => {
    const rows = new Map();
    const total = newRow("");
    for (const i of live) {
      const key = keyOf(page, details.origin[i]);
      const folded = foldedKeyOf ? foldedKeyOf(page, details.origin[i]) : key;
      if (!rows.has(folded)) rows.set(folded, newRow(folded));
      const row = rows.get(folded);
      if (!row.inside.has(key)) row.inside.set(key, newRow(key));
      for (const each of [row, row.inside.get(key), total]) {
        each.bytes += details.blockBytes(i);
        each.requested += details.requestedBytes(i);
        each.blocks += 1;
      }
    }
    const columns = [
      bytesColumn("blocks' size", (row) => row.bytes),
      exactColumn("requested bytes", (row) => row.requested),
      { title: "share", number: true, value: (row) => row.bytes, show: (row) => percent(row.bytes, total.bytes) },
      exactColumn("blocks", (row) => row.blocks),
      textColumn(title, foldedTitle),
    ];
    const inside = (row) => (row.inside.size > 1 ? [...row.inside.values()] : []);
    const options = { caption: "Live at the chosen moment.", inside };
    box.replaceChildren(sortableTable(columns, [...rows.values()], options));
  };
  const all = groupings(page);
  const options = all.map(([title], at) => make("option", { value: String(at) }, title));
  const choice = make("select", { on: { change: () => show(all[Number(choice.value)]) } }, ...options);
  show(all[0]);
  return [make("label", { class: "choose" }, "Grouped by ", choice), box];
}

export function segmentsTable(segments) {
  const bytes = (segment) => segment.to - segment.from;
  const columns = [
    { title: "segment", value: (row) => row.from, show: (row) => hexadecimal(row.from) },
    bytesColumn("size", bytes),
    bytesColumn("live", (row) => row.liveBytes),
    bytesColumn("free", (row) => bytes(row) - row.liveBytes),
    bytesColumn("largest free block", (row) => row.largestFree),
    exactColumn("live blocks", (row) => row.blocks),
  ];
  return [sortableTable(columns, segments, { caption: "Reserved at the chosen moment.", sortBy: 3 })];
}

// The figures at the top: the exact peaks.
export function figures(page) {
  const { card, overview } = page;
  const values = card.valuesAt(card.peak_event);
  const figure = (title, bytes, note) =>
    make(
      "div",
      {},
      make("dt", {}, title),
      make("dd", { title: exactBytes(bytes) }, size(bytes), make("small", {}, note)),
    );
  const cached = figure(
    "Cached at the peak",
    cachedBytes(card, values),
    `${percent(cachedBytes(card, values), values[card.reservedAt])} of reserved`,
  );
  if (page.isSnapshot) {
    const failed = card.out_of_memory.map(([, bytes]) => bytes);
    return [
      figure("Peak live", card.peak_requested_bytes, "as it was requested"),
      figure("Peak reserved", card.reserved_peak_bytes, exactBytes(card.reserved_peak_bytes)),
      cached,
      ...(failed.length > 0 ? [figure("Failed request", failed.at(-1), several(failed.length, "failure", "failures"))] : []),
    ];
  }
  const onCard = card.reserved_peak_bytes + card.besideBytes;
  return [
    figure("Peak allocated", card.peak_allocated_bytes, exactBytes(card.peak_allocated_bytes)),
    figure("Peak reserved", card.reserved_peak_bytes, exactBytes(card.reserved_peak_bytes)),
    figure("Peak on the card", onCard, "with CUDA context and libraries"),
    cached,
    figure("The card", card.totalBytes, overview.document.gpu),
  ];
}
