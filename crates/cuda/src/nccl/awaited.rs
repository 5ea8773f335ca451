//! Which calls of other ranks a stream has to wait for.
//!
//! A collective is handed to a stream and needs others. Whatever is handed to that stream behind it needs them
//! too, and so does a stream that waits for an event of this one. The host has to wait for them only when it
//! waits for such a stream: only then does a real program notice that somebody is missing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ghostgpu_device::{Order, StreamKey};
use ghostgpu_rendezvous::{Channel, Ticket};

/// Calls that others must have made, as the newest in every channel of every communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    newest: BTreeMap<(usize, Channel), u64>,
}

impl Awaited {
    pub const fn new() -> Self {
        Self {
            newest: BTreeMap::new(),
        }
    }

    fn add(&mut self, key: (usize, Channel), number: u64) {
        let newest = self.newest.entry(key).or_insert(number);
        *newest = number.max(*newest);
    }

    pub fn join(&mut self, other: &Self) {
        for (&key, &number) in &other.newest {
            self.add(key, number);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Communicators and what to wait for in them.
    pub fn tickets(&self) -> impl Iterator<Item = (usize, Ticket)> {
        self.newest
            .iter()
            .map(|(&(communicator, channel), &number)| (communicator, Ticket::at(channel, number)))
    }
}

#[derive(Debug, Default)]
struct Streams {
    awaited: BTreeMap<StreamKey, (Order, Awaited)>,
}

impl Streams {
    fn of(&self, stream: StreamKey, order: Order) -> Awaited {
        let mut awaited = Awaited::default();
        for (key, (other_order, other)) in &self.awaited {
            // The default stream and the blocking ones wait for each other.
            let is_tied = key.device == stream.device
                && order != Order::Independent
                && *other_order != Order::Independent;
            if *key == stream || is_tied {
                awaited.join(other);
            }
        }
        awaited
    }

    fn of_device(&self, device: i32) -> Awaited {
        let mut awaited = Awaited::default();
        let of_device = self.awaited.iter().filter(|(key, _)| key.device == device);
        of_device.for_each(|(_, (_, other))| awaited.join(other));
        awaited
    }

    fn join(&mut self, stream: StreamKey, order: Order, other: &Awaited) {
        let (_, own) = self
            .awaited
            .entry(stream)
            .or_insert_with(|| (order, Awaited::default()));
        own.join(other);
    }

    /// Everybody has made these calls.
    fn settle(&mut self, settled: &Awaited) {
        for (_, awaited) in self.awaited.values_mut() {
            awaited
                .newest
                .retain(|key, number| settled.newest.get(key).is_none_or(|done| done < number));
        }
    }
}

static STREAMS: Mutex<Streams> = Mutex::new(Streams {
    awaited: BTreeMap::new(),
});

/// Whether anything was ever handed in: nearly always not, and streams are asked thousands of times a second.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

fn streams() -> Option<MutexGuard<'static, Streams>> {
    let has_any = HAS_ANY.load(Ordering::Acquire);
    has_any.then(|| STREAMS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A call that needs others is handed to a stream.
pub fn hand_in(stream: StreamKey, order: Order, communicator: usize, ticket: Ticket) {
    let (channel, number) = ticket.place();
    let mut awaited = Awaited::default();
    awaited.add((communicator, channel), number);
    HAS_ANY.store(true, Ordering::Release);
    if let Some(mut streams) = streams() {
        streams.join(stream, order, &awaited);
    }
}

/// What everything that was handed to a stream waits for.
pub fn of_stream(stream: StreamKey, order: Order) -> Awaited {
    streams().map_or_else(Awaited::default, |streams| streams.of(stream, order))
}

pub fn of_device(device: i32) -> Awaited {
    streams().map_or_else(Awaited::default, |streams| streams.of_device(device))
}

/// What is handed to the stream from now on waits for these too.
pub fn stream_waits(stream: StreamKey, order: Order, awaited: &Awaited) {
    if !awaited.is_empty()
        && let Some(mut streams) = streams()
    {
        streams.join(stream, order, awaited);
    }
}

pub fn settle(settled: &Awaited) {
    if let Some(mut streams) = streams() {
        streams.settle(settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(handle: usize) -> StreamKey {
        StreamKey { device: 0, handle }
    }

    fn awaiting(number: u64) -> Awaited {
        let mut awaited = Awaited::default();
        awaited.add((1, Channel::Collectives), number);
        awaited
    }

    #[test]
    fn a_stream_that_waits_for_another_waits_for_its_collectives() {
        let mut streams = Streams::default();
        streams.join(key(16), Order::Independent, &awaiting(3));
        assert!(streams.of(key(32), Order::Independent).is_empty());
        let event = streams.of(key(16), Order::Independent);
        streams.join(key(32), Order::Independent, &event);
        assert_eq!(streams.of(key(32), Order::Independent), awaiting(3));
        streams.join(key(16), Order::Independent, &awaiting(5));
        assert_eq!(streams.of(key(32), Order::Independent), awaiting(3));
        assert_eq!(streams.of_device(0), awaiting(5));
        streams.settle(&awaiting(3));
        assert!(streams.of(key(32), Order::Independent).is_empty());
        assert_eq!(streams.of(key(16), Order::Independent), awaiting(5));
    }

    #[test]
    fn the_default_stream_is_tied_to_blocking_streams_only() {
        for (order, expected) in [(Order::Blocking, false), (Order::Independent, true)] {
            let mut streams = Streams::default();
            streams.join(key(16), order, &awaiting(1));
            assert_eq!(
                streams.of(key(0), Order::Legacy).is_empty(),
                expected,
                "{order:?}"
            );
        }
    }
}
