// Stages and steps along the timeline's axis.

import { colour } from "./theme.js";
import { count, roundCountAtLeast } from "./format.js";
import { fittingText } from "./canvas.js";

export const STAGE_STRIP = 17;

// Stages as a strip below the axis, and steps below that, as far as they can be distinguished.
export function drawPhases(timeline) {
  const { card, view } = timeline.page;
  const first = Math.max(0, card.phaseIndexAt(view.from));
  const last = card.phaseIndexAt(view.to) + 1;
  const roomForStages = timeline.plotWidth / Math.max(1, last - first) >= 3;
  if (roomForStages) drawStages(timeline, first, last);
  drawSteps(timeline, first, last, roomForStages);
}

function drawStages(timeline, first, last) {
  const { context, page } = timeline;
  const { firstEvent, end, stage } = page.card.phases;
  const { stage_names: names, stages: titles } = page.overview.document;
  const top = timeline.bottom + 2;
  for (let at = first; at < last; at++) {
    const [from, to] = [timeline.x(firstEvent[at]), timeline.x(end[at])];
    context.fillStyle = colour(`stage-${names[stage[at]]}`);
    context.fillRect(from, top, Math.max(0.5, to - from - 1), STAGE_STRIP);
    const visible = Math.max(from, timeline.left);
    const room = Math.min(to, timeline.left + timeline.plotWidth) - visible - 8;
    context.fillStyle = colour("ink");
    if (room > 18) {
      const text = fittingText(context, titles[stage[at]], room);
      context.fillText(text, visible + 4, top + STAGE_STRIP / 2 + 0.5);
    }
  }
}

// There may be a hundred thousand stages, so they are counted first, and only those that are shown are computed.
function drawSteps(timeline, first, last, hasStages) {
  const { context } = timeline;
  const { firstEvent, end, step } = timeline.page.card.phases;
  const top = timeline.bottom + 2 + STAGE_STRIP + 2;
  let steps = 0;
  for (let at = first; at < last; at++) if (at + 1 === last || step[at + 1] !== step[at]) steps++;
  const every = roundCountAtLeast((steps * 62) / timeline.plotWidth);
  context.strokeStyle = colour("strong-line");
  context.lineWidth = 1;
  let lastX = -Infinity;
  let begun = first;
  for (let at = first; at < last; at++) {
    if (at + 1 !== last && step[at + 1] === step[at]) continue;
    const [number, from] = [step[at], firstEvent[begun]];
    begun = at + 1;
    if (every > 1 && (number + 1) % every !== 0) continue;
    const x = Math.round(timeline.x(from)) + 0.5;
    // A recording may have the same step in many places.
    if (every > 1 && x - lastX < 60) continue;
    lastX = x;
    context.beginPath();
    context.moveTo(x, hasStages ? timeline.bottom + 2 : timeline.bottom);
    context.lineTo(x, top + STAGE_STRIP - 2);
    context.stroke();
    const visible = Math.max(x, timeline.left);
    const room = every > 1 ? 60 : Math.min(timeline.x(end[at]), timeline.left + timeline.plotWidth) - visible - 8;
    context.fillStyle = colour("soft");
    context.fillText(fittingText(context, `step ${count(number + 1)}`, room), visible + 4, top + STAGE_STRIP / 2);
  }
}
