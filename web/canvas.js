// What every chart on a canvas needs: sharp pixels, a tooltip, pointers.

import { byId } from "./elements.js";

// Adapts the canvas to the screen's resolution, and returns its context and its size in CSS pixels.
export function prepare(canvas, height) {
  if (height !== undefined) canvas.style.height = `${height}px`;
  const ratio = devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const [width, tall] = [Math.max(1, Math.floor(box.width)), Math.max(1, Math.floor(box.height))];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(tall * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  return { context, width, height: tall };
}

// Draws text cut to a width, or nothing if not even a few letters fit.
export function fittingText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low >= 3 ? `${text.slice(0, low)}…` : "";
}

export function showTooltip(x, y, ...content) {
  const tooltip = byId("tooltip");
  tooltip.replaceChildren(...content);
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const beside = x + 16 + box.width < innerWidth ? x + 16 : x - 16 - box.width;
  tooltip.style.left = `${Math.max(8, Math.min(beside, innerWidth - box.width - 8))}px`;
  tooltip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - box.height - 8))}px`;
}

export function hideTooltip() {
  byId("tooltip").hidden = true;
}

// A pointer that moves less than this is clicking, not dragging.
const DRAG_PIXELS = 4;

// Distinguishes hovering, clicking and dragging. `on` has `hover(x, y, event)`, `leave()`, `click(x, y)`,
// `drag(dx, dy)`, `wheel(x, y, steps, event)`; places are in CSS pixels from the canvas's corner. A plain wheel scrolls
// the page, and Ctrl (or a pinch, which browsers report as that) zooms the chart.
export function followPointer(canvas, on) {
  let last = null;
  let dragged = false;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    last = [event.clientX, event.clientY];
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (last === null) {
      on.hover(...place(event), event);
      return;
    }
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    if (!dragged && Math.hypot(dx, dy) < DRAG_PIXELS) return;
    dragged = true;
    last = [event.clientX, event.clientY];
    on.leave();
    on.drag?.(dx, dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (last !== null && !dragged) on.click(...place(event), event);
    last = null;
  });
  canvas.addEventListener("pointercancel", () => (last = null));
  canvas.addEventListener("pointerleave", () => on.leave());
  if (on.wheel) {
    canvas.addEventListener(
      "wheel",
      (event) => {
        const zooms = event.ctrlKey || event.metaKey;
        const sideways = !zooms && Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (!zooms && !(sideways && on.drag)) return;
        event.preventDefault();
        if (sideways) {
          on.drag(-event.deltaX * (event.deltaMode === 1 ? 30 : 1), 0);
          return;
        }
        // Shift turns the wheel sideways in some browsers; the direction is what counts.
        const steps = -(event.deltaY || event.deltaX) / (event.deltaMode === 1 ? 3 : 100);
        on.wheel(...place(event), Math.max(-3, Math.min(3, steps)), event);
      },
      { passive: false },
    );
  }
}
