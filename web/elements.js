// Creates elements. Everything from a recording becomes text, never markup, because its names are untrusted.

// `attributes` may have `class`, `on` (listeners by event) and `style` (properties); the rest are set as they are.
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, each] of Object.entries(value)) element.style.setProperty(property, each);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

export function swatch(colourName) {
  return make("span", { class: "swatch", style: { background: `var(--${colourName})` }, "aria-hidden": "true" });
}

// Announces something to screen readers.
export function announce(text) {
  byId("live").textContent = text;
}
