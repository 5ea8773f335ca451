// What is live at the moment, as a treemap by module, or by file and line: area is bytes, colour is the group.

import { byId, make } from "./elements.js";
import { colour, inkOn } from "./theme.js";
import { exactBytes, percent, several, size } from "./format.js";
import { hideTooltip, showTooltip } from "./canvas.js";
import { foldLayers } from "./layers.js";
import { holderPath } from "./moment.js";

const HEADER = 17;
// A smaller module is drawn as one cell, because its parts could not be distinguished.
const SMALLEST_GROUP = [54, 40];
const SMALLEST_CELL = 3;

const BY_MODULE =
  "by module: what belongs to a parameter is its module's, the rest is of the module that was running.";
const BY_LINE = "by file and line: the innermost of the user's own code, else of a package, else of PyTorch.";

// Layer 2 comes before layer 10.
const inOrder = new Intl.Collator("en", { numeric: true });

// The tree of modules with their bytes. A module's own allocations are leaves, one per group.
export function moduleTree(page, live) {
  const { details } = page.card;
  const root = node("everything", []);
  const perOrigin = new Map();
  for (const i of live) {
    const origin = details.origin[i];
    const entry = perOrigin.get(origin) ?? { bytes: 0, blocks: 0 };
    entry.bytes += details.blockBytes(i);
    entry.blocks += 1;
    perOrigin.set(origin, entry);
  }
  for (const [origin, { bytes, blocks }] of perOrigin) {
    const parts = holderPath(page, origin);
    const label = parts.pop();
    let at = root;
    grow(at, bytes, blocks);
    parts.forEach((part, depth) => {
      if (!at.children.has(part)) at.children.set(part, node(part, parts.slice(0, depth + 1)));
      at = at.children.get(part);
      grow(at, bytes, blocks);
    });
    const category = details.originGroup[origin];
    // It begins with a space, so it cannot be the name of a module.
    const key = ` ${label}`;
    if (!at.children.has(key)) {
      const leaf = node(label, [...at.path, key]);
      leaf.category = category;
      at.children.set(key, leaf);
    }
    grow(at.children.get(key), bytes, blocks);
  }
  return root;
}

function node(label, path) {
  // `modules`: how many it stands for, once repeated layers are folded.
  return { label, path, bytes: 0, blocks: 0, modules: 1, category: null, children: new Map() };
}

function grow(at, bytes, blocks) {
  at.bytes += bytes;
  at.blocks += blocks;
}

// A module that contains a single module is not a level of its own, but part of a path: `bert.encoder.layer`.
function skipChain(start) {
  let at = start;
  let { label } = at;
  while (at.children.size === 1) {
    const [only] = at.children.values();
    if (only.category !== null) break;
    at = only;
    label += `.${at.label}`;
  }
  return { at, label: label.includes("*") ? `${label} ×${at.modules}` : label };
}

// The category with the most bytes below a node, which gives the colour of nodes that are too small to divide.
function mainCategory(at) {
  const sums = new Map();
  const visit = (each) => {
    if (each.category !== null) sums.set(each.category, (sums.get(each.category) ?? 0) + each.bytes);
    each.children.forEach(visit);
  };
  visit(at);
  return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

// Rectangles for sizes (largest first) that fill a box, each as close to a square as possible.
function squarify(items, x, y, width, height) {
  const total = items.reduce((sum, item) => sum + item.bytes, 0);
  const placed = [];
  let rest = items.filter((item) => item.bytes > 0);
  let remaining = total;
  while (rest.length > 0 && width > 0 && height > 0) {
    const scale = (width * height) / remaining;
    const side = Math.min(width, height);
    let row = [];
    let sum = 0;
    let worst = Infinity;
    for (const item of rest) {
      const nextSum = sum + item.bytes;
      const thick = (nextSum * scale) / side;
      const thinnest = Math.min(item.bytes, row[0]?.bytes ?? item.bytes);
      const widest = Math.max(item.bytes, row[0]?.bytes ?? item.bytes);
      const ratio = (bytes) => Math.max(thick / ((bytes * scale) / thick), (bytes * scale) / thick / thick);
      const next = Math.max(ratio(thinnest), ratio(widest));
      if (next > worst) break;
      row.push(item);
      [sum, worst] = [nextSum, next];
    }
    const thick = (sum * scale) / side;
    let along = 0;
    for (const item of row) {
      const length = (item.bytes / sum) * side;
      placed.push(width >= height ? [item, x, y + along, thick, length] : [item, x + along, y, length, thick]);
      along += length;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    rest = rest.slice(row.length);
    remaining -= sum;
  }
  return placed;
}

export class Treemap {
  constructor(page, box) {
    this.page = page;
    this.box = box;
    this.path = [];
    // Layers that differ only in their number are one cell, until the reader unfolds them.
    this.folds = true;
    box.addEventListener("pointerleave", () => hideTooltip());
  }

  update(live) {
    this.live = live;
    const tree = moduleTree(this.page, live);
    this.tree = this.folds ? foldLayers(tree) : tree;
    this.draw();
  }

  turnFolding() {
    if (!this.tree) return;
    this.folds = !this.folds;
    this.path = [];
    this.update(this.live);
  }

  // The module that is shown. If it holds nothing at another moment, its nearest parent is shown.
  shown() {
    let at = this.tree;
    for (const part of this.path) {
      if (!at.children.has(part)) break;
      at = at.children.get(part);
    }
    return at;
  }

  draw() {
    if (!this.tree) return;
    const shown = this.shown();
    this.path = shown.path;
    this.drawPath();
    const { width, height } = this.box.getBoundingClientRect();
    const cells = [];
    this.place(shown, 0, 0, Math.floor(width), Math.floor(height), cells);
    this.box.replaceChildren(...cells);
    byId("modules-caption").textContent =
      `${size(shown.bytes)} in ${several(shown.blocks, "block", "blocks")}, ${this.page.isSnapshot ? BY_LINE : BY_MODULE} Rounding is counted with its block.`;
  }

  drawPath() {
    const go = (path) => ({
      click: () => {
        this.path = path;
        this.draw();
      },
    });
    const buttons = [make("button", { type: "button", on: go([]) }, "everything")];
    this.path.forEach((part, depth) => {
      buttons.push("›", make("button", { type: "button", on: go(this.path.slice(0, depth + 1)) }, part));
    });
    byId("path").replaceChildren(...(this.path.length > 0 ? buttons : []));
  }

  place(parent, x, y, width, height, cells) {
    const children = [...parent.children.values()].sort(
      (a, b) => b.bytes - a.bytes || inOrder.compare(a.label, b.label),
    );
    for (const [child, left, top, wide, high] of squarify(children, x, y, width, height)) {
      if (wide < SMALLEST_CELL || high < SMALLEST_CELL) continue;
      if (child.category !== null) {
        cells.push(this.cell(child, child.label, child.category, left, top, wide, high, null));
        continue;
      }
      const { at, label } = skipChain(child);
      if (wide < SMALLEST_GROUP[0] || high < SMALLEST_GROUP[1]) {
        cells.push(this.cell(at, label, mainCategory(at), left, top, wide, high, at.path));
        continue;
      }
      cells.push(this.cell(at, label, null, left, top, wide, high, at.path));
      this.place(at, left + 2, top + HEADER, wide - 4, high - HEADER - 2, cells);
    }
  }

  cell(at, label, category, left, top, wide, high, path) {
    const { overview } = this.page;
    const name = category === null ? null : overview.document.group_colours[category];
    const text = wide > 30 && high > 13 ? label : "";
    const second = name !== null && wide > 60 && high > 32 ? size(at.bytes) : "";
    const words = `${at.path.filter((part) => !part.startsWith(" ")).join(".") || at.label}`;
    const full = at.category === null ? words : `${words}: ${at.label}`;
    const style = { left: `${left}px`, top: `${top}px`, width: `${wide - 1}px`, height: `${high - 1}px` };
    if (name !== null) Object.assign(style, { background: colour(name), color: inkOn(name) });
    const content =
      name === null ? [label, make("small", {}, ` ${size(at.bytes)}`)] : [text, second ? make("br") : null, second];
    const open = () => {
      hideTooltip();
      this.path = path;
      this.draw();
      byId("path").querySelector("button:last-of-type")?.focus();
    };
    const hover = (event) => {
      const share = percent(at.bytes, this.tree.bytes);
      showTooltip(
        event.clientX,
        event.clientY,
        make("p", {}, make("b", {}, full)),
        make("p", {}, `${size(at.bytes)}, ${share}`),
        make("p", { class: "soft" }, `${exactBytes(at.bytes)} in ${several(at.blocks, "block", "blocks")}`),
      );
    };
    return make(
      path === null ? "div" : "button",
      {
        class: name === null ? "cell group" : "cell leaf",
        type: path === null ? undefined : "button",
        role: path === null ? "img" : undefined,
        "aria-label": `${full}, ${size(at.bytes)}`,
        style,
        on: { pointermove: hover, ...(path === null ? {} : { click: open }) },
      },
      make("span", {}, ...content),
    );
  }
}
