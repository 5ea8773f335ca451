// What is shown: a window of events, a moment, an allocation. The parts of the page listen for changes.

export class View {
  constructor(card) {
    this.card = card;
    this.from = 0;
    this.to = Math.max(1, card.events);
    this.moment = card.firstMoment;
    this.allocation = null;
    this.listeners = [];
    this.pending = new Set();
  }

  // Calls `listener(changes)` once per frame, with the names of what has changed.
  listen(listener) {
    this.listeners.push(listener);
  }

  changed(...what) {
    if (this.pending.size === 0) {
      requestAnimationFrame(() => {
        const changes = new Set(this.pending);
        this.pending.clear();
        for (const listener of this.listeners) listener(changes);
      });
    }
    what.forEach((each) => this.pending.add(each));
  }

  get all() {
    return Math.max(1, this.card.events);
  }

  // At least a few events wide, and never outside the recording.
  show(from, to) {
    const width = Math.min(this.all, Math.max(Math.min(this.all, 8), to - from));
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(0, middle - width / 2), this.all - width);
    this.to = this.from + width;
    this.changed("window");
  }

  // Zooms so that `event` stays where it is; a factor above 1 shows less.
  zoom(factor, event = this.moment + 0.5) {
    const width = Math.min(this.all, Math.max(Math.min(this.all, 8), (this.to - this.from) / factor));
    const share = (event - this.from) / (this.to - this.from);
    const inside = share >= 0 && share <= 1 ? share : 0.5;
    this.show(event - inside * width, event + (1 - inside) * width);
  }

  pan(events) {
    const width = this.to - this.from;
    const from = Math.min(Math.max(0, this.from + events), this.all - width);
    this.show(from, from + width);
  }

  choose(event) {
    this.moment = Math.min(this.card.lastEvent, Math.max(0, Math.round(event)));
    this.changed("moment");
  }

  // Moves the window if the moment is outside it.
  reveal() {
    if (this.moment < this.from || this.moment >= this.to) {
      const width = this.to - this.from;
      this.show(this.moment - width / 2, this.moment + width / 2);
    }
  }

  select(allocation) {
    this.allocation = allocation;
    this.changed("allocation");
  }

  // The optimizer step around the moment, from its first phase to its last.
  showStep() {
    const { firstEvent, end, step } = this.card.phases;
    const at = this.card.phaseIndexAt(this.moment);
    if (at < 0) return;
    let [first, last] = [at, at];
    while (first > 0 && step[first - 1] === step[at]) first--;
    while (last + 1 < step.length && step[last + 1] === step[at]) last++;
    this.show(firstEvent[first], end[last]);
  }
}
