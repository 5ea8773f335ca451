//! When work on streams finishes, on a clock that only the program's own calls advance.
//!
//! Nothing runs on a virtual card, but programs ask whether work has finished: PyTorch reuses a block
//! that another stream has used only after that stream has passed an event. So work has durations,
//! which are roughly right, and the host has a clock, which advances a little at each call and jumps
//! ahead when the host waits. The same calls always give the same times.

use std::collections::{BTreeMap, VecDeque};

/// Nanoseconds since the program began.
pub type Time = u64;

/// How many pieces of work a stream queues before the host has to wait for the oldest.
const QUEUE_LENGTH: usize = 1024;

/// How a stream is ordered with respect to the other streams of its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The legacy default stream: waits for all blocking streams, and they for it.
    Legacy,
    Blocking,
    Independent,
}

/// A stream of one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    pub device: i32,
    pub handle: usize,
}

#[derive(Debug)]
struct Track {
    order: Order,
    /// When everything submitted so far finishes.
    end: Time,
    /// When each piece of work ends that the host has not seen finish, oldest first.
    queue: VecDeque<Time>,
}

/// All streams of a process, and its host's clock.
#[derive(Debug, Default)]
pub struct Timeline {
    now: Time,
    tracks: BTreeMap<StreamKey, Track>,
}

impl Timeline {
    pub const fn new() -> Self {
        Self {
            now: 0,
            tracks: BTreeMap::new(),
        }
    }

    /// The host's clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The host works for this long.
    pub fn host_works(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// The host waits until this time.
    pub fn host_waits_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    /// Submits work of this duration, after everything that its stream has to wait for.
    pub fn submit(&mut self, stream: StreamKey, order: Order, nanoseconds: u64) {
        let begin = self.now.max(self.end_of(stream, order));
        let track = self.track(stream, order);
        track.end = begin + nanoseconds;
        let end = track.end;
        if nanoseconds == 0 {
            return;
        }
        track.queue.push_back(end);
        let oldest = (track.queue.len() > QUEUE_LENGTH)
            .then(|| track.queue.pop_front())
            .flatten();
        self.now = self.now.max(oldest.unwrap_or(0));
    }

    /// Work submitted to the stream from now on begins at this time at the earliest.
    pub fn stream_waits_until(&mut self, stream: StreamKey, order: Order, time: Time) {
        let track = self.track(stream, order);
        track.end = track.end.max(time);
    }

    /// When everything submitted to the stream finishes.
    pub fn end_of(&self, stream: StreamKey, order: Order) -> Time {
        let own = self.tracks.get(&stream).map_or(0, |track| track.end);
        let others = self.tracks_of(stream.device).filter(|track| match order {
            Order::Legacy => track.order == Order::Blocking,
            Order::Blocking => track.order == Order::Legacy,
            Order::Independent => false,
        });
        others.map(|track| track.end).fold(own, Time::max)
    }

    /// When everything submitted to the card finishes.
    pub fn end_of_device(&self, device: i32) -> Time {
        self.tracks_of(device)
            .map(|track| track.end)
            .max()
            .unwrap_or(0)
    }

    /// Forgets a destroyed stream. Its work still finishes when it would have.
    pub fn forget(&mut self, stream: StreamKey) {
        self.tracks.remove(&stream);
    }

    fn tracks_of(&self, device: i32) -> impl Iterator<Item = &Track> {
        let first = StreamKey { device, handle: 0 };
        let last = StreamKey {
            device,
            handle: usize::MAX,
        };
        self.tracks.range(first..=last).map(|(_, track)| track)
    }

    fn track(&mut self, stream: StreamKey, order: Order) -> &mut Track {
        let now = self.now;
        let track = self.tracks.entry(stream).or_insert_with(|| Track {
            order,
            end: 0,
            queue: VecDeque::new(),
        });
        while track.queue.front().is_some_and(|&end| end <= now) {
            track.queue.pop_front();
        }
        track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: StreamKey = StreamKey {
        device: 0,
        handle: 0,
    };
    const SIDE: StreamKey = StreamKey {
        device: 0,
        handle: 16,
    };

    #[test]
    fn work_is_finished_after_what_was_handed_in_before_it() {
        let mut timeline = Timeline::new();
        timeline.submit(MAIN, Order::Legacy, 10);
        timeline.submit(MAIN, Order::Legacy, 5);
        assert_eq!(timeline.end_of(MAIN, Order::Legacy), 15);
        assert_eq!(timeline.now(), 0, "the host does not wait");
        timeline.host_works(40);
        timeline.submit(MAIN, Order::Legacy, 5);
        assert_eq!(timeline.end_of(MAIN, Order::Legacy), 45);
        timeline.host_waits_until(45);
        assert_eq!(timeline.now(), 45);
        timeline.host_waits_until(20);
        assert_eq!(timeline.now(), 45, "the clock never goes back");
    }

    #[test]
    fn streams_wait_for_others_only_where_cuda_says_so() {
        for (order, expected) in [(Order::Blocking, 110), (Order::Independent, 10)] {
            let mut timeline = Timeline::new();
            timeline.submit(MAIN, Order::Legacy, 100);
            timeline.submit(SIDE, order, 10);
            assert_eq!(timeline.end_of(SIDE, order), expected, "{order:?}");
        }
        let mut timeline = Timeline::new();
        timeline.submit(SIDE, Order::Independent, 10);
        timeline.stream_waits_until(SIDE, Order::Independent, 70);
        timeline.submit(SIDE, Order::Independent, 10);
        assert_eq!(timeline.end_of(SIDE, Order::Independent), 80);
        let elsewhere = StreamKey {
            device: 1,
            handle: 0,
        };
        timeline.submit(elsewhere, Order::Legacy, 10);
        assert_eq!(timeline.end_of_device(0), 80);
        assert_eq!(timeline.end_of_device(1), 10);
        assert_eq!(timeline.end_of_device(2), 0);
    }

    #[test]
    fn the_host_waits_when_a_queue_is_full() {
        let mut timeline = Timeline::new();
        for _ in 0..QUEUE_LENGTH {
            timeline.submit(MAIN, Order::Legacy, 10);
        }
        assert_eq!(timeline.now(), 0);
        timeline.submit(MAIN, Order::Legacy, 10);
        assert_eq!(timeline.now(), 10, "until the oldest is finished");
        timeline.host_waits_until(10 * QUEUE_LENGTH as u64);
        timeline.submit(MAIN, Order::Legacy, 10);
        assert_eq!(timeline.now(), 10 * QUEUE_LENGTH as u64);
    }
}
