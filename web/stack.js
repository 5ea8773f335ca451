// A stack: the user's own lines, and the frames of frameworks folded between them.

import { make } from "./elements.js";
import { several } from "./format.js";

// `train.py:58 in main`, as the terminal writes it.
export function frameWords({ file, line, functionName }) {
  if (file === "") return functionName;
  const named = functionName !== "" && functionName !== "<module>";
  return named ? `${file}:${line} in ${functionName}` : `${file}:${line}`;
}

// The frames that are shown unfolded: the user's own, or all if there are none.
export function ownFrames(frames) {
  const own = frames.filter((frame) => frame.owner === "user");
  return own.length > 0 ? own : frames;
}

// The stack as a list, innermost first.
export function foldedStack(frames) {
  const own = new Set(ownFrames(frames));
  const items = [];
  for (let at = 0; at < frames.length; ) {
    const inside = [];
    while (at < frames.length && !own.has(frames[at])) inside.push(frames[at++]);
    if (inside.length > 0) items.push(make("li", {}, fold(inside)));
    if (at < frames.length) items.push(frameItem(frames[at++]));
  }
  return make("ol", { class: "stack" }, ...items);
}

function fold(frames) {
  const packages = [...new Set(frames.map((frame) => frame.packageName || "C++"))];
  return make(
    "details",
    { class: "framework" },
    make("summary", {}, `${several(frames.length, "frame", "frames")} of ${packages.join(", ")}`),
    make("ol", { class: "stack" }, ...frames.map(frameItem)),
  );
}

function frameItem(frame) {
  const { file, line, functionName } = frame;
  const place = file === "" ? functionName : `${file}:${line}`;
  const named = file !== "" && functionName !== "" && functionName !== "<module>";
  return make("li", { class: frame.owner }, make("code", {}, place), named ? ` in ${functionName}` : null);
}
