// An HTML table that can be sorted by any column, and shows a limited number of rows until more are requested.

import { make } from "./elements.js";
import { several } from "./format.js";

const ROWS_AT_ONCE = 20;

// `columns`: [{ title, value(row), show(row), number, title }]; `show` gives text or an element.
// `options`: { caption, sortBy (index), descending, choose(row), inside(row) }; `inside` gives the rows that a row stands
// for, which are shown below it when its last cell is opened.
export function sortableTable(columns, rows, options) {
  const state = {
    sortBy: options.sortBy ?? 0,
    descending: options.descending ?? true,
    shown: ROWS_AT_ONCE,
    open: new Set(),
  };
  const box = make("div", { class: "scroll" });
  const draw = () => {
    const sorted = sortedRows(columns, rows, state);
    const head = make("tr", {}, ...columns.map((column, at) => headCell(column, at, state, draw)));
    const body = sorted.slice(0, state.shown).flatMap((row) => {
      const inside = options.inside?.(row) ?? [];
      if (inside.length === 0) return [bodyRow(columns, row, options)];
      const isOpen = state.open.has(row);
      const below = isOpen ? sortedRows(columns, inside, state).map((each) => bodyRow(columns, each, {}, "part")) : [];
      return [foldedRow(columns, row, isOpen, () => turn(row)), ...below];
    });
    const table = make(
      "table",
      {},
      make("caption", {}, options.caption),
      make("thead", {}, head),
      make("tbody", {}, ...body),
    );
    const left = rows.length - state.shown;
    box.replaceChildren(table, ...(left > 0 ? [moreButton(left, state, draw)] : []));
  };
  const turn = (row) => {
    if (!state.open.delete(row)) state.open.add(row);
    const at = [...box.querySelectorAll("button.fold")].indexOf(document.activeElement);
    draw();
    box.querySelectorAll("button.fold")[at]?.focus();
  };
  draw();
  return box;
}

// A row that stands for others, which its last cell opens.
function foldedRow(columns, row, isOpen, turn) {
  const line = bodyRow(columns, row, {});
  const last = line.lastElementChild;
  const attributes = { type: "button", class: "fold", "aria-expanded": String(isOpen), on: { click: turn } };
  last.replaceChildren(make("button", attributes, last.textContent));
  return line;
}

function sortedRows(columns, rows, { sortBy, descending }) {
  const { value } = columns[sortBy];
  const sign = descending ? -1 : 1;
  const keyed = rows.map((row, at) => [value(row), at, row]);
  keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] - b[1]));
  return keyed.map((each) => each[2]);
}

function headCell(column, at, state, draw) {
  const sorted = state.sortBy === at;
  const direction = state.descending ? "descending" : "ascending";
  const sort = () => {
    state.descending = sorted ? !state.descending : Boolean(column.number);
    state.sortBy = at;
    const table = button.closest("div");
    draw();
    table.querySelectorAll("th button")[at].focus();
  };
  const button = make("button", { type: "button", on: { click: sort } }, column.title);
  return make(
    "th",
    { scope: "col", class: column.number ? "number" : undefined, "aria-sort": sorted ? direction : "none" },
    button,
  );
}

function bodyRow(columns, row, options, kind) {
  const cells = columns.map((column) =>
    make("td", { class: column.number ? "number" : "text", title: column.exact?.(row) }, column.show(row)),
  );
  const choose = options.choose;
  if (!choose) return make("tr", { class: kind }, ...cells);
  // The button in the first cell is for the keyboard, the row for the pointer.
  const text = cells[0].textContent;
  cells[0].replaceChildren(make("button", { type: "button" }, text));
  return make("tr", { class: "link", on: { click: () => choose(row) } }, ...cells);
}

function moreButton(left, state, draw) {
  const show = () => {
    state.shown = Math.min(state.shown * 4, state.shown + left);
    draw();
  };
  return make(
    "button",
    { type: "button", class: "more", on: { click: show } },
    `Show more (${several(left, "row", "rows")} left)`,
  );
}
