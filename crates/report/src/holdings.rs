//! Who holds what at the moment that an export shows.

use std::collections::BTreeMap;

use ghostgpu_ledger::{Allocation, Ledger, Moment, Origin as Known};
use ghostgpu_trace::{Event, EventKind, Events, NameId, PoolId, Segment, Snapshot, StackId};

use crate::error::ReportError;

/// When to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// When most was live, on each device for itself.
    #[default]
    Peak,
    /// When the snapshot was taken.
    End,
    /// After one event of one device; other devices are left out.
    Event { device: usize, event: usize },
}

/// Which devices, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    pub at: At,
    /// Only this device.
    pub device: Option<usize>,
}

/// What a snapshot says about who holds an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) origin: Origin,
    pub(crate) stream: u64,
    pub(crate) pool: Option<PoolId>,
    /// What the file calls it.
    pub(crate) category: NameId,
}

/// Where an allocation was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Origin {
    Stack(StackId),
    /// In the trace, and no stack was recorded.
    NoStack,
    /// Before the trace begins, and no stack is known.
    BeforeTrace,
}

/// What one owner holds at a moment, and what it allocated over the whole trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Held {
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) made_blocks: u64,
    pub(crate) made_bytes: u64,
}

/// Everything that one device holds at a moment, by owner.
#[derive(Debug)]
pub(crate) struct DeviceHoldings {
    pub(crate) device: usize,
    /// Of the last event before the moment, if the events have times.
    pub(crate) time_us: Option<i64>,
    pub(crate) by_owner: BTreeMap<Owner, Held>,
}

/// The devices that are exported, in order.
pub(crate) fn devices(snapshot: &Snapshot, only: Option<usize>) -> Result<Vec<usize>, ReportError> {
    let known = snapshot.active_devices();
    match only {
        None => Ok(known),
        Some(device) if known.contains(&device) => Ok(vec![device]),
        Some(device) => Err(ReportError::NoSuchDevice { device, known }),
    }
}

/// Who holds what at the moment asked for, device by device.
pub(crate) fn holdings(
    snapshot: &Snapshot,
    selection: Selection,
) -> Result<Vec<DeviceHoldings>, ReportError> {
    let only = match selection.at {
        At::Event { device, .. } => Some(device),
        At::Peak | At::End => selection.device,
    };
    devices(snapshot, only)?
        .into_iter()
        .map(|device| {
            let ledger = Ledger::new(snapshot, device);
            let events = events_of(snapshot, device);
            let moment = moment(&ledger, events, selection.at)?;
            let last = moment.0.checked_sub(1);
            let time_us = last.and_then(|last| events?.times_us().get(last).copied());
            Ok(DeviceHoldings {
                device,
                time_us: time_us.filter(|us| *us != 0),
                by_owner: held_by_owner(snapshot, &ledger, moment),
            })
        })
        .collect()
}

/// The events of a device, if it has any.
pub(crate) fn events_of(snapshot: &Snapshot, device: usize) -> Option<&Events> {
    let trace = snapshot.traces.iter().find(|trace| trace.device == device);
    trace
        .map(|trace| &trace.events)
        .filter(|all| !all.is_empty())
}

fn moment(ledger: &Ledger, events: Option<&Events>, at: At) -> Result<Moment, ReportError> {
    let events = events.map_or(0, Events::len);
    match at {
        At::Peak => Ok(ledger.peak().moment),
        At::End => Ok(ledger.end().moment),
        At::Event { event, .. } if event < events => Ok(Moment(event + 1)),
        At::Event { device, event } => Err(ReportError::NoSuchEvent {
            device,
            event,
            events,
        }),
    }
}

/// What each owner holds at a moment, and what it made over the whole trace.
pub(crate) fn held_by_owner(
    snapshot: &Snapshot,
    ledger: &Ledger,
    moment: Moment,
) -> BTreeMap<Owner, Held> {
    let pools = Pools::of(snapshot, ledger.device());
    let mut by_owner: BTreeMap<Owner, Held> = BTreeMap::new();
    for allocation in ledger.live_at(moment) {
        let owner = Owner {
            origin: origin(allocation.stack, allocation.origin.is_older()),
            stream: allocation.stream,
            pool: pools.pool(&allocation),
            category: allocation.label,
        };
        let held = by_owner.entry(owner).or_default();
        held.live_blocks += 1;
        held.live_bytes = held.live_bytes.saturating_add(allocation.bytes);
    }
    let Some(events) = pools.events else {
        return by_owner;
    };
    for event in events.iter().filter(|event| event.kind == EventKind::Alloc) {
        let held = by_owner.entry(owner_of(events, event)).or_default();
        held.made_blocks += 1;
        held.made_bytes = held.made_bytes.saturating_add(event.bytes);
    }
    by_owner
}

/// Who makes an allocation, as its event says; the ledger's rule for the name.
fn owner_of(events: &Events, event: Event) -> Owner {
    let context = events.context(event.context);
    Owner {
        origin: origin(event.stack, false),
        stream: context.stream,
        pool: context.pool,
        category: match context.category {
            NameId::EMPTY => context.user_metadata,
            category => category,
        },
    }
}

fn origin(stack: StackId, is_older: bool) -> Origin {
    match (stack, is_older) {
        (StackId::NONE, true) => Origin::BeforeTrace,
        (StackId::NONE, false) => Origin::NoStack,
        (stack, _) => Origin::Stack(stack),
    }
}

/// Pools of what is live: events name theirs from torch 2.12 on; for what is live in the end and older
/// than the trace, the segment does.
struct Pools<'a> {
    events: Option<&'a Events>,
    /// In the order of their addresses.
    segments: Vec<&'a Segment>,
}

impl<'a> Pools<'a> {
    fn of(snapshot: &'a Snapshot, device: usize) -> Self {
        let mut segments: Vec<&Segment> = snapshot.segments_of(device).collect();
        segments.sort_by_key(|segment| segment.address);
        Self {
            events: events_of(snapshot, device),
            segments,
        }
    }

    fn pool(&self, allocation: &Allocation) -> Option<PoolId> {
        match allocation.origin {
            Known::Event(at) | Known::OlderFreedBy(at) => {
                let events = self.events?;
                events.context(events.get(at)?.context).pool
            }
            Known::OlderStillLive => {
                let address = allocation.address;
                let after = self.segments.partition_point(|one| one.address <= address);
                self.segments.get(after.checked_sub(1)?)?.pool
            }
        }
    }
}
