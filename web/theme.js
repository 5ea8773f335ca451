// Light or dark: as the system prefers, until the reader chooses; and the colours for canvases, which cannot read CSS
// variables.

import { byId } from "./elements.js";

const STORED_THEME = "ghostgpu-theme";

let palette = new Map();

// Private windows refuse storage; then a choice lasts only as long as the page.
function storedTheme() {
  try {
    return localStorage.getItem(STORED_THEME);
  } catch {
    return null;
  }
}

function storeTheme(theme) {
  try {
    localStorage.setItem(STORED_THEME, theme);
  } catch {
    // The choice is not stored.
  }
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  palette = new Map();
}

export function colour(name) {
  let value = palette.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    palette.set(name, value);
  }
  return value;
}

// Black or white, whichever has the higher contrast (as defined by WCAG) on a colour of the palette.
export function inkOn(name) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour(name).slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#111111" : "#ffffff";
}

// Calls `changed` when the theme has changed.
export function startTheme(changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => storedTheme() ?? (system.matches ? "dark" : "light");
  const show = (theme) => {
    applyTheme(theme);
    changed();
  };
  applyTheme(chosen());
  system.addEventListener("change", () => show(chosen()));
  byId("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    storeTheme(theme);
    show(theme);
  });
  // Paper is white.
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", () => show(chosen()));
}
