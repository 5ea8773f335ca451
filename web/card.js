// One card of the recording: its overview is available at once, its allocations when the rest of the page has been read.
//
// Events are counted from 0. A moment is what is held after its event. `begin` and `end` of allocations are
// events plus one, so that 0 can mean "older than the recording" and NEVER "lived to its end": an allocation
// is live after event e if begin <= e + 1 < end.

import { ReservedRanges } from "./ranges.js";
import { readColumn, readSection } from "./data.js";
import { upperBound } from "./search.js";

export const NEVER = 0xffffffff;

const RECENT_SAMPLES = 4;

export class Card {
  constructor(overview, place) {
    const about = overview.document;
    Object.assign(this, about.cards[place]);
    this.place = place;
    this.groupCount = about.groups.length;
    this.totalBytes = about.gpu_total_bytes;
    // Memory on the card outside PyTorch's allocator of this process.
    this.besideBytes = this.outside_bytes + this.other_processes_bytes;
    this.lastEvent = Math.max(0, this.events - 1);
    const column = (name) => readColumn(overview, `card${place}.${name}`);
    this.stretches = {
      event: column("event"),
      values: [...about.groups.keys()].map((each) => column(`group${each}`)),
      reservedHighest: column("reserved_highest"),
    };
    this.stretches.values.push(column("rounding"), column("reserved"));
    this.phases = readPhases(column, this.events);
    this.details = null;
    this.recentSamples = new Map();
  }

  // The moment that is shown first: where memory ran out, else the peak.
  get firstMoment() {
    return this.ran_out?.event ?? this.peak_event;
  }

  // After the groups: rounding, and reserved bytes.
  get roundingAt() {
    return this.groupCount;
  }

  get reservedAt() {
    return this.groupCount + 1;
  }

  get valueCount() {
    return this.groupCount + 2;
  }

  loadDetails() {
    this.loading ??= readSection(`card${this.place}`).then((section) => {
      readPhaseSums(section, this.phases);
      this.details = new Details(section, this);
    });
    return this.loading;
  }

  phaseIndexAt(event) {
    const { firstEvent } = this.phases;
    return upperBound(firstEvent, event) - 1;
  }

  // Everything that is held after an event: requested bytes of each group, rounding, reserved.
  valuesAt(event) {
    if (this.details) return this.details.valuesAt(event);
    const at = Math.min(this.stretches.event.length - 1, Math.floor(event / this.events_per_stretch));
    return Float64Array.from(this.stretches.values, (values) => values[at]);
  }

  // The timeline between two events in at most about `most` samples; each shows the highest moment of its
  // stretch of events, so that no peak is lost however far one zooms out.
  samples(from, to, most) {
    const perSample = (to - from) / most;
    const exact = this.details !== null && perSample < this.events_per_stretch;
    // The timeline, its small map and the address map ask for the same samples repeatedly.
    const key = `${from} ${to} ${most} ${exact}`;
    let samples = this.recentSamples.get(key);
    if (samples === undefined) {
      samples = exact
        ? this.details.exactSamples(from, to, Math.max(1, perSample))
        : this.coarseSamples(from, to, Math.max(1, Math.floor(perSample / this.events_per_stretch)));
    }
    this.recentSamples.delete(key);
    this.recentSamples.set(key, samples);
    if (this.recentSamples.size > RECENT_SAMPLES) this.recentSamples.delete(this.recentSamples.keys().next().value);
    return samples;
  }

  coarseSamples(from, to, stretchesPerSample) {
    const { stretches, events_per_stretch: width } = this;
    const first = Math.max(0, Math.floor(from / width));
    const last = Math.min(stretches.event.length, Math.ceil(to / width) + 1);
    const samples = new Samples(this.valueCount, Math.ceil((last - first) / stretchesPerSample));
    for (let at = first; at < last; at += stretchesPerSample) {
      const until = Math.min(last, at + stretchesPerSample);
      let highest = at;
      let [most, reserved] = [-1, 0];
      for (let each = at; each < until; each++) {
        let allocated = 0;
        for (let v = 0; v < this.reservedAt; v++) allocated += stretches.values[v][each];
        if (allocated > most) [most, highest] = [allocated, each];
        reserved = Math.max(reserved, stretches.reservedHighest[each]);
      }
      const values = stretches.values.map((column) => column[highest]);
      samples.push(at * width, Math.min(this.events, until * width), stretches.event[highest], values, reserved);
    }
    return samples;
  }
}

// Samples of a timeline as columns: their range of events, the highest moment in it, what was held then, and the most
// that was reserved.
class Samples {
  constructor(valueCount, capacity) {
    this.length = 0;
    this.from = new Float64Array(capacity);
    this.to = new Float64Array(capacity);
    this.highestEvent = new Float64Array(capacity);
    this.reserved = new Float64Array(capacity);
    this.values = Array.from({ length: valueCount }, () => new Float64Array(capacity));
  }

  push(from, to, highestEvent, values, reserved) {
    const at = this.length++;
    this.from[at] = from;
    this.to[at] = to;
    this.highestEvent[at] = highestEvent;
    this.reserved[at] = reserved;
    for (let v = 0; v < values.length; v++) this.values[v][at] = values[v];
  }
}

function readPhases(column, events) {
  const firstEvent = column("phase_first_event");
  const end = firstEvent.map((_, i) => firstEvent[i + 1] ?? events);
  return { firstEvent, end, stage: column("phase_stage"), step: column("phase_step"), sums: null };
}

// What was allocated, freed and kept in each stage comes with the allocations.
function readPhaseSums(section, phases) {
  phases.sums = {};
  for (const name of ["before", "came", "went", "stayed", "peak", "peak_event"]) {
    phases.sums[name] = readColumn(section, `phase_${name}`);
  }
}

// Every allocation and segment, as columns.
class Details {
  constructor(section, card) {
    this.card = card;
    this.begin = readColumn(section, "begin", Uint32Array);
    this.end = readColumn(section, "lifetime", Uint32Array);
    for (let i = 0; i < this.end.length; i++) {
      this.end[i] = this.end[i] === 0 ? NEVER : this.begin[i] + this.end[i];
    }
    this.addressPlace = readColumn(section, "address", Uint32Array);
    this.sizePlace = readColumn(section, "size", Uint32Array);
    this.origin = readColumn(section, "origin", Uint32Array);
    this.addresses = readColumn(section, "addresses");
    this.requested = readColumn(section, "requested_bytes");
    this.block = readColumn(section, "block_bytes");
    this.originGroup = readColumn(section, "origin_group", Uint8Array);
    this.pools = {
      stream: readColumn(section, "pool_stream"),
      number: readColumn(section, "pool_number"),
    };
    for (const name of ["name", "module", "operator", "stack", "pool", "place"]) {
      this[name] = readColumn(section, `origin_${name}`, Uint32Array);
    }
    this.segmentChanges = {
      kind: readColumn(section, "segment_kind", Uint8Array),
      event: readColumn(section, "segment_event"),
      address: readColumn(section, "segment_address"),
      bytes: readColumn(section, "segment_bytes"),
    };
    this.allocationAt = this.allocationOfEvents();
    this.checkpoints = this.sweepOnce();
  }

  get length() {
    return this.begin.length;
  }

  address(i) {
    return this.addresses[this.addressPlace[i]];
  }

  blockBytes(i) {
    return this.block[this.sizePlace[i]];
  }

  requestedBytes(i) {
    return this.requested[this.sizePlace[i]];
  }

  group(i) {
    return this.originGroup[this.origin[i]];
  }

  // For each event, the allocation that began (its number plus one) or ended (the same, negated); 0 for other events.
  allocationOfEvents() {
    const at = new Int32Array(this.card.events);
    for (let i = 0; i < this.length; i++) {
      if (this.begin[i] > 0) at[this.begin[i] - 1] = i + 1;
      if (this.end[i] !== NEVER) at[this.end[i] - 1] = -(i + 1);
    }
    return at;
  }

  // Iterates all events once, and stores what was held before each stretch of them. `add` and `apply` compute the ledger's
  // sums again, so that any moment is exact; tests/page compares the two.
  sweepOnce() {
    const { card } = this;
    const { valueCount, events_per_stretch: width } = card;
    const checkpoints = new Float64Array(valueCount * (Math.floor(card.lastEvent / width) + 1));
    const values = new Float64Array(valueCount);
    for (let i = 0; i < this.length && this.begin[i] === 0; i++) this.add(values, i, 1);
    const { kind, bytes } = this.segmentChanges;
    let nextChange = 0;
    while (kind[nextChange] === 0) values[card.reservedAt] += bytes[nextChange++];
    this.changesBefore = new Uint32Array(checkpoints.length / valueCount);
    const cursor = { nextChange };
    for (let event = 0; event < card.events; event++) {
      if (event % width === 0) {
        checkpoints.set(values, (event / width) * valueCount);
        this.changesBefore[event / width] = cursor.nextChange;
      }
      this.apply(values, event, cursor);
    }
    if (card.events === 0) checkpoints.set(values);
    return checkpoints;
  }

  add(values, i, sign) {
    const requested = this.requestedBytes(i) * sign;
    values[this.group(i)] += requested;
    values[this.card.roundingAt] += this.blockBytes(i) * sign - requested;
  }

  apply(values, event, cursor) {
    const which = this.allocationAt[event];
    if (which > 0) {
      this.add(values, which - 1, 1);
    } else if (which < 0) {
      this.add(values, -which - 1, -1);
    } else if (this.segmentChanges.event[cursor.nextChange] === event) {
      const sign = this.segmentChanges.kind[cursor.nextChange] === 1 ? 1 : -1;
      values[this.card.reservedAt] += sign * this.segmentChanges.bytes[cursor.nextChange++];
    }
  }

  // Calls `visit(event, values)` for every event from the first up to, not including, the last.
  replay(from, to, visit) {
    const { valueCount, events_per_stretch: width } = this.card;
    const stretch = Math.floor(from / width);
    const values = this.checkpoints.slice(stretch * valueCount, (stretch + 1) * valueCount);
    const cursor = { nextChange: this.changesBefore[stretch] };
    for (let event = stretch * width; event < to; event++) {
      this.apply(values, event, cursor);
      if (event >= from) visit(event, values);
    }
  }

  valuesAt(event) {
    let found = this.checkpoints.slice(0, this.card.valueCount);
    if (this.card.events > 0) this.replay(event, event + 1, (_, values) => (found = values.slice()));
    return found;
  }

  exactSamples(from, to, perSample) {
    const first = Math.max(0, Math.floor(from));
    const last = Math.min(this.card.events, Math.ceil(to) + 1);
    const step = Math.max(1, Math.floor(perSample));
    const samples = new Samples(this.card.valueCount, Math.ceil((last - first) / step) + 1);
    const { reservedAt } = this.card;
    const highest = new Float64Array(this.card.valueCount);
    let [begun, most, highestEvent, reserved] = [first, -1, first, 0];
    this.replay(first, last, (event, values) => {
      let allocated = 0;
      for (let v = 0; v < reservedAt; v++) allocated += values[v];
      if (allocated > most) {
        [most, highestEvent] = [allocated, event];
        highest.set(values);
      }
      reserved = Math.max(reserved, values[reservedAt]);
      if (event - begun + 1 === step || event === last - 1) {
        samples.push(begun, event + 1, highestEvent, highest, reserved);
        [begun, most, reserved] = [event + 1, -1, 0];
      }
    });
    return samples;
  }

  isLive(i, event) {
    return this.begin[i] <= event + 1 && event + 1 < this.end[i];
  }

  // The allocations that are live after an event, in the order in which they began.
  liveAt(event) {
    const live = [];
    const until = upperBound(this.begin, event + 1);
    for (let i = 0; i < until; i++) {
      if (this.end[i] > event + 1) live.push(i);
    }
    return live;
  }

  // The ranges that are reserved after an event, by address.
  segmentsAt(event) {
    const segments = [];
    const ranges = new ReservedRanges(this.segmentChanges);
    ranges.follow(event);
    ranges.each((from, to) => segments.push({ from, to }));
    return segments;
  }
}
