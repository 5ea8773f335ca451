// Which ranges of addresses are reserved, while the changes of a recording are iterated in their order.
//
// A release may cover only a part of a range, because unmapping works in pieces. There may be hundreds of thousands of
// changes, so no change may take a search of all ranges.

import { upperBound } from "./search.js";

export class ReservedRanges {
  constructor(changes) {
    this.changes = changes;
    const { kind, address, bytes } = changes;
    // All addresses at which a range may begin: where one was reserved, and after a released part.
    const begins = Float64Array.from(address, (each, i) => (kind[i] === 2 ? each + bytes[i] : each)).sort();
    this.begins = begins.filter((each, i) => i === 0 || each !== begins[i - 1]);
    // For the range that begins there: its end (0 if there is none), and the event that reserved it.
    this.ends = new Float64Array(this.begins.length);
    this.since = new Float64Array(this.begins.length);
  }

  // Applies the changes up to an event; `closed(from, to, since, event)` is called for every released range.
  follow(lastEvent, closed) {
    const { kind, event, address, bytes } = this.changes;
    for (let i = 0; i < kind.length && (kind[i] === 0 || event[i] <= lastEvent); i++) {
      const [from, to] = [address[i], address[i] + bytes[i]];
      if (kind[i] === 2) this.release(from, to, event[i], closed);
      else this.open(from, to, kind[i] === 0 ? 0 : event[i]);
    }
  }

  open(from, to, since) {
    const at = upperBound(this.begins, from) - 1;
    this.ends[at] = to;
    this.since[at] = since;
  }

  release(from, to, event, closed) {
    let at = upperBound(this.begins, from) - 1;
    // Ranges do not overlap, so only the next one below can reach into this one.
    while (at >= 0 && this.ends[at] === 0) at--;
    for (at = Math.max(0, at); at < this.begins.length && this.begins[at] < to; at++) {
      const [begin, end, since] = [this.begins[at], this.ends[at], this.since[at]];
      if (end <= from) continue;
      this.ends[at] = begin < from ? from : 0;
      closed?.(Math.max(begin, from), Math.min(end, to), since, event);
      if (end > to) this.open(to, end, since);
    }
  }

  // Calls `visit(from, to, since)` for every range that is reserved, by address.
  each(visit) {
    for (let at = 0; at < this.begins.length; at++) {
      if (this.ends[at] > 0) visit(this.begins[at], this.ends[at], this.since[at]);
    }
  }
}
