//! The pass over a device's events: what was older than they are, and when most was live.

use std::collections::HashMap;
use std::sync::LazyLock;

use ghostgpu_pickle::SeededState;
use ghostgpu_trace::{EventKind, Events, NameId, Snapshot, StackId, Warning};

use crate::allocation::{Allocation, Origin};
use crate::rounding::Rounding;

/// A point between two events: the state after this many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub usize);

/// How much there was at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub moment: Moment,
    /// Bytes asked for by what is live.
    pub live_bytes: u64,
    /// Bytes of the blocks that hold it, at least.
    pub block_bytes: u64,
    /// Bytes that the allocator had from the driver.
    pub reserved_bytes: u64,
    /// Time of the last event before the moment; 0 if there is none.
    pub time_us: i64,
}

/// A device's memory through the events of a snapshot.
#[derive(Debug)]
pub struct Ledger<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) events: &'a Events,
    device: usize,
    pub(crate) rounding: Rounding,
    older: Vec<Allocation>,
    start: Level,
    peak: Level,
    peak_reserved: Level,
    end: Level,
    warnings: Vec<Warning>,
}

static NO_EVENTS: LazyLock<Events> = LazyLock::new(Events::default);

pub(crate) type ByAddress<T> = HashMap<u64, T, SeededState>;

impl<'a> Ledger<'a> {
    /// Goes through the events of one device.
    pub fn new(snapshot: &'a Snapshot, device: usize) -> Self {
        let events = snapshot
            .traces
            .iter()
            .find(|trace| trace.device == device)
            .map_or_else(|| &*NO_EVENTS, |trace| &trace.events);
        let rounding = Rounding::of(&snapshot.settings);
        let pass = Pass::over(events, &rounding);
        let (older, warnings) = pass.older_allocations(snapshot, device, events, &rounding);
        let base = Base {
            live_bytes: sum(older.iter().map(|block| block.bytes)),
            block_bytes: sum(older.iter().map(|block| block.block_bytes)),
            reserved_bytes: {
                let at_end = sum(snapshot
                    .segments_of(device)
                    .map(|segment| segment.total_bytes));
                clamp(at_end).saturating_sub(pass.end.reserved).max(0) as u64
            },
        };
        let level = |at: Relative| base.level(at, events);
        Self {
            snapshot,
            events,
            device,
            rounding,
            start: level(Relative::default()),
            peak: level(pass.peak),
            peak_reserved: level(pass.peak_reserved),
            end: level(pass.end),
            older,
            warnings,
        }
    }

    pub fn device(&self) -> usize {
        self.device
    }

    /// Before the first event.
    pub fn start(&self) -> Level {
        self.start
    }

    /// When most was live; the first such moment.
    pub fn peak(&self) -> Level {
        self.peak
    }

    /// When most was reserved; the first such moment.
    pub fn peak_reserved(&self) -> Level {
        self.peak_reserved
    }

    /// After the last event.
    pub fn end(&self) -> Level {
        self.end
    }

    /// What was allocated before the first event, in the order of addresses.
    pub fn older(&self) -> &[Allocation] {
        &self.older
    }

    /// What the pass found missing.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What is live at a moment, in the order of addresses. A moment after the last event is the end.
    pub fn live_at(&self, moment: Moment) -> Vec<Allocation> {
        let mut live: ByAddress<Allocation> = self
            .older
            .iter()
            .map(|block| (block.address, *block))
            .collect();
        let events = self.events;
        for at in 0..moment.0.min(events.len()) {
            let address = events.addresses()[at];
            match events.kinds()[at] {
                EventKind::Alloc => {
                    live.insert(address, self.allocation(at));
                }
                EventKind::FreeCompleted => {
                    live.remove(&address);
                }
                EventKind::Annotate => {
                    let label = events.context(events.contexts()[at]).user_metadata;
                    if let Some(block) = live.get_mut(&address) {
                        block.label = label;
                    }
                }
                _ => {}
            }
        }
        let mut live: Vec<Allocation> = live.into_values().collect();
        live.sort_unstable_by_key(|block| block.address);
        live
    }

    fn allocation(&self, at: usize) -> Allocation {
        let events = self.events;
        let context = events.context(events.contexts()[at]);
        let bytes = events.bytes()[at];
        Allocation {
            address: events.addresses()[at],
            bytes,
            block_bytes: self.rounding.block_bytes(bytes),
            origin: Origin::Event(at),
            stack: events.stacks()[at],
            stream: context.stream,
            time_us: events.times_us()[at],
            label: if context.category != NameId::EMPTY {
                context.category
            } else {
                context.user_metadata
            },
        }
    }
}

/// Bytes before the first event.
struct Base {
    live_bytes: u64,
    block_bytes: u64,
    reserved_bytes: u64,
}

impl Base {
    fn level(&self, at: Relative, events: &Events) -> Level {
        Level {
            moment: Moment(at.after),
            live_bytes: self.live_bytes.saturating_add_signed(at.live),
            block_bytes: self.block_bytes.saturating_add_signed(at.blocks),
            reserved_bytes: self.reserved_bytes.saturating_add_signed(at.reserved),
            time_us: at
                .after
                .checked_sub(1)
                .map_or(0, |last| events.times_us()[last]),
        }
    }
}

/// Bytes more than before the first event, after some of them.
#[derive(Debug, Clone, Copy, Default)]
struct Relative {
    after: usize,
    live: i64,
    blocks: i64,
    reserved: i64,
}

impl Relative {
    fn change(&mut self, bytes: u64, block_bytes: u64, sign: i64) {
        self.live = self.live.saturating_add(sign * clamp(bytes));
        self.blocks = self.blocks.saturating_add(sign * clamp(block_bytes));
    }
}

/// A size of the file as a signed number. None of a real card comes near the limit.
fn clamp(bytes: u64) -> i64 {
    bytes.min(i64::MAX as u64) as i64
}

/// A sum of sizes that a hostile file may have chosen to overflow.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// What one pass over the events finds.
struct Pass {
    peak: Relative,
    peak_reserved: Relative,
    end: Relative,
    /// By address: the event that allocated what is live there after the last event.
    live: ByAddress<usize>,
    /// Events that freed what no event allocated.
    unmatched_frees: Vec<usize>,
    /// Whether every free has the stack of its allocation, as recordings without stacks of frees have.
    frees_have_stack_of_allocation: bool,
}

impl Pass {
    fn over(events: &Events, rounding: &Rounding) -> Self {
        let mut pass = Self {
            peak: Relative::default(),
            peak_reserved: Relative::default(),
            end: Relative::default(),
            live: HashMap::default(),
            unmatched_frees: Vec::new(),
            frees_have_stack_of_allocation: true,
        };
        let mut now = Relative::default();
        let columns = events
            .kinds()
            .iter()
            .zip(events.addresses())
            .zip(events.bytes());
        for (at, ((kind, address), bytes)) in columns.enumerate() {
            now.after = at + 1;
            match kind {
                EventKind::Alloc => {
                    now.change(*bytes, rounding.block_bytes(*bytes), 1);
                    if let Some(earlier) = pass.live.insert(*address, at) {
                        // Its free is not in the trace: whatever was there is gone.
                        let bytes = events.bytes()[earlier];
                        now.change(bytes, rounding.block_bytes(bytes), -1);
                    }
                    if now.live > pass.peak.live {
                        pass.peak = now;
                    }
                }
                EventKind::FreeCompleted => {
                    now.change(*bytes, rounding.block_bytes(*bytes), -1);
                    match pass.live.remove(address) {
                        Some(allocated) => {
                            pass.frees_have_stack_of_allocation &=
                                events.stacks()[allocated] == events.stacks()[at];
                        }
                        None => pass.unmatched_frees.push(at),
                    }
                }
                EventKind::SegmentAlloc | EventKind::SegmentMap => {
                    now.reserved = now.reserved.saturating_add(clamp(*bytes));
                    if now.reserved > pass.peak_reserved.reserved {
                        pass.peak_reserved = now;
                    }
                }
                EventKind::SegmentFree | EventKind::SegmentUnmap => {
                    now.reserved = now.reserved.saturating_sub(clamp(*bytes));
                }
                _ => {}
            }
        }
        pass.end = now;
        pass
    }

    /// What was live before the first event: freed without having been allocated, or live at the end
    /// without having been allocated.
    fn older_allocations(
        &self,
        snapshot: &Snapshot,
        device: usize,
        events: &Events,
        rounding: &Rounding,
    ) -> (Vec<Allocation>, Vec<Warning>) {
        let mut older = Vec::new();
        for at in &self.unmatched_frees {
            let bytes = events.bytes()[*at];
            let has_own_stack = self.frees_have_stack_of_allocation;
            older.push(Allocation {
                address: events.addresses()[*at],
                bytes,
                block_bytes: rounding.block_bytes(bytes),
                origin: Origin::OlderFreedBy(*at),
                stack: if has_own_stack {
                    events.stacks()[*at]
                } else {
                    StackId::NONE
                },
                stream: events.context(events.contexts()[*at]).stream,
                time_us: 0,
                label: NameId::EMPTY,
            });
        }
        let (mut still_live, mut still_live_bytes) = (0, 0u64);
        for segment in snapshot.segments_of(device) {
            for block in segment
                .blocks
                .iter()
                .filter(|block| block.state.is_active())
            {
                if self.live.contains_key(&block.address) {
                    continue;
                }
                still_live += 1;
                still_live_bytes = still_live_bytes.saturating_add(block.live_bytes());
                older.push(Allocation {
                    address: block.address,
                    bytes: block.live_bytes(),
                    block_bytes: block.bytes,
                    origin: Origin::OlderStillLive,
                    stack: block.stack,
                    stream: segment.stream,
                    time_us: 0,
                    label: NameId::EMPTY,
                });
            }
        }
        // Two blocks of one address cannot both be older: a damaged trace has the later one.
        older.sort_by_key(|block| (block.address, block.origin));
        older.dedup_by_key(|block| block.address);
        let mut warnings = Vec::new();
        if !self.unmatched_frees.is_empty() {
            warnings.push(Warning::FreesWithoutAlloc {
                device,
                count: self.unmatched_frees.len() as u64,
            });
        }
        if still_live > 0 && !events.is_empty() {
            warnings.push(Warning::BlocksOlderThanTrace {
                device,
                count: still_live,
                bytes: still_live_bytes,
            });
        }
        (older, warnings)
    }
}
