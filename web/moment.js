// Words for moments, allocations and where they come from.

import { NEVER } from "./card.js";
import { readColumn } from "./data.js";
import { count, hexadecimal, several } from "./format.js";
import { frameWords, ownFrames } from "./stack.js";

export const OUTSIDE_MODULES = "outside any module";

// The names that the numbers of origins refer to.
export class Names {
  constructor(section) {
    Object.assign(this, section.document);
    this.stacks = [];
    const lengths = readColumn(section, "stack_lengths", Uint32Array);
    const frames = readColumn(section, "stack_frames", Uint32Array);
    let at = 0;
    for (const length of lengths) this.stacks.push(frames.subarray(at, (at += length)));
  }

  frame(id) {
    const [file, line, functionName, owner, packageName] = this.frames[id] ?? ["?", 0, "?", 2, ""];
    return { file, line, functionName, owner: ["user", "package", "torch", "native"][owner], packageName };
  }

  stackFrames(stack) {
    return [...(this.stacks[stack] ?? [])].map((id) => this.frame(id));
  }

  // The line that stands for a stack: the innermost of the user's own code, else of a package, else any.
  userFrame(stack) {
    const frames = this.stackFrames(stack);
    const of = (owner) => frames.find((frame) => frame.owner === owner);
    return of("user") ?? of("package") ?? of("torch") ?? frames[0];
  }

  modulePath(module) {
    return this.modules[module]?.[0] || OUTSIDE_MODULES;
  }
}

// The line of an origin, as in the terminal. Backward has no Python stack, so its operator and module are used instead.
export function placeWords(page, origin) {
  return page.names.places[page.card.details.place[origin]] ?? "(unknown)";
}

// The position of an origin in the treemap: in its module, by group; without modules, in its file, by line.
export function holderPath(page, origin) {
  const { names } = page;
  const { details } = page.card;
  if (!page.isSnapshot) {
    const group = page.overview.document.groups[details.originGroup[origin]];
    return [...names.modulePath(details.module[origin]).split("."), group];
  }
  const frame = names.userFrame(details.stack[origin]);
  if (!frame) return ["no stack recorded"];
  return [shortFile(frame.file), `${frame.line} ${frame.functionName}`];
}

function shortFile(file) {
  return file.split(/[/\\]/).pop() || "(no file)";
}

// The label of a block if there is little room.
export function shortWords(page, i) {
  const { names } = page;
  const { details } = page.card;
  const origin = details.origin[i];
  if (!page.isSnapshot) return names.texts[details.name[origin]] || names.operators[details.operator[origin]] || "(unknown)";
  const frame = names.userFrame(details.stack[origin]);
  return frame ? `${shortFile(frame.file)}:${frame.line}` : "";
}

// Stream and pool of an origin; empty if both are the default.
export function poolWords(page, origin) {
  const { details } = page.card;
  const pool = details.pool[origin];
  const [stream, number] = [details.pools.stream[pool], details.pools.number[pool]];
  return `${stream === 0 ? "default stream" : `stream ${hexadecimal(stream)}`}${number === 0 ? "" : `, private pool ${number}`}`;
}

// The user's own lines of an origin's stack, innermost first.
export function stackWords(page, origin) {
  const frames = page.names.stackFrames(page.card.details.stack[origin]);
  return frames.length === 0 ? placeWords(page, origin) : ownFrames(frames).map(frameWords).join(" ← ");
}

// All of its lines.
export function wholeStackWords(page, origin) {
  const frames = page.names.stackFrames(page.card.details.stack[origin]);
  return frames.length === 0 ? placeWords(page, origin) : frames.map(frameWords).join(" ← ");
}

// "step 1, backward", for an event; empty if stages were not recorded.
export function stageWords(card, overview, event) {
  const at = card.phaseIndexAt(event);
  if (card.phases.firstEvent.length === 0) return "";
  if (at < 0) return "before the first stage";
  return phaseWords(card, overview, at);
}

export function phaseWords(card, overview, at) {
  const { stage, step } = card.phases;
  const { stages, stage_names: names } = overview.document;
  const title = stages[stage[at]];
  // A model is moved before its first step.
  return names[stage[at]] === "moving" ? title : `step ${count(step[at] + 1)}, ${title}`;
}

// "event 7, step 1, backward"
export function eventWords(card, overview, event) {
  const stage = stageWords(card, overview, event);
  return `event ${count(event)}${stage === "" ? "" : `, ${stage}`}`;
}

// Everything about one allocation, as text.
export function describeAllocation(page, i) {
  const { card, overview, names } = page;
  const details = card.details;
  const origin = details.origin[i];
  const [begin, end] = [details.begin[i], details.end[i]];
  return {
    // In a snapshot the group is a line, which is shown separately.
    category: page.isSnapshot ? "" : overview.document.groups[details.originGroup[origin]],
    colourName: overview.document.group_colours[details.originGroup[origin]],
    name: names.texts[details.name[origin]] || "",
    module: names.modulePath(details.module[origin]),
    moduleClass: names.modules[details.module[origin]]?.[1] || "",
    operator: names.operators[details.operator[origin]] || "(unknown)",
    line: placeWords(page, origin),
    frames: names.stackFrames(details.stack[origin]),
    requested: details.requestedBytes(i),
    block: details.blockBytes(i),
    address: details.address(i),
    from: begin === 0 ? "before the recording" : eventWords(card, overview, begin - 1),
    until: end === NEVER ? "the recording's end" : eventWords(card, overview, end - 1),
    pool: poolWords(page, origin),
    lifetime: lifetimeWords(begin, end, card.events),
  };
}

function lifetimeWords(begin, end, events) {
  const last = end === NEVER ? events + 1 : end;
  const length = several(last - Math.max(1, begin), "event", "events");
  if (begin === 0 && end === NEVER) return "the whole recording, and longer";
  if (begin === 0) return `at least ${length}`;
  return end === NEVER ? `${length}, and longer` : length;
}
