//! The host's and the cards' clocks: when work on streams finishes, and what events measure.
//!
//! [`Timeline`] has the rules; this file has the durations, and what each thread has seen.
//!
//! Programs that time kernels act on the result: Inductor's decisions (whether to pad a matrix
//! product, how often to repeat a measurement) change how much memory is used. So every kernel takes
//! the same time, except that a half-precision product that the card's matrix units cannot read in
//! whole vectors takes several times as long, which is what makes padding worth it on a real card.
//!
//! The host is fast and the card is slow: until it waits, the host is as far ahead of the card as it
//! ever gets on a real machine. Where timing decides how much memory is held, this is the case that
//! holds the most.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ghostgpu_device::{Order, StreamKey, Time, Timeline};

const MICROSECOND: Time = 1000;

/// How long one kernel takes.
pub const KERNEL: Time = 10 * MICROSECOND;

/// How long a product takes that cannot use the matrix units well.
pub const UNALIGNED_PRODUCT: Time = 8 * KERNEL;

/// How long it takes the host to submit work.
const SUBMISSION: Time = 2 * MICROSECOND;

/// How long it takes the host to get memory from the driver.
const ALLOCATION: Time = 100 * MICROSECOND;

/// How long an unsuccessful poll takes the host.
const POLL: Time = MICROSECOND;

/// Copies between host and card, and within a card.
const HOST_LINK_BYTES_PER_MICROSECOND: u64 = 25_000;
const CARD_BYTES_PER_MICROSECOND: u64 = 1_000_000;
/// Collectives between cards of one machine, without NVLink: the slow case.
const CARDS_LINK_BYTES_PER_MICROSECOND: u64 = 20_000;

static TIMELINE: Mutex<Timeline> = Mutex::new(Timeline::new());

fn timeline() -> MutexGuard<'static, Timeline> {
    TIMELINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a thread that polls for the end of work.
#[derive(Clone, Copy)]
struct Polling {
    /// The time that the thread has reached by polling alone.
    seen: Time,
    /// The host's clock at its last poll, and how many polls in a row found work unfinished.
    host_clock: Time,
    refusals: u32,
    has_submitted: bool,
}

thread_local! {
    static POLLING: Cell<Polling> = const {
        Cell::new(Polling { seen: 0, host_clock: 0, refusals: 0, has_submitted: false })
    };
}

/// After this many polls in a row, a thread's time passes faster and faster: a thread that only polls
/// sleeps in between, which is not visible here. PyTorch's allocator polls at each request, with work
/// in between, and must not advance time by that.
const PATIENCE: u32 = 200;
/// The same for a thread that only watches, such as the watchdog of NCCL's process group, which sleeps
/// between all its polls.
const PATIENCE_OF_WATCHERS: u32 = 3;

/// How far an unsuccessful poll advances its thread's time.
fn step_after(refusals: u32, has_submitted: bool) -> Time {
    let patience = if has_submitted {
        PATIENCE
    } else {
        PATIENCE_OF_WATCHERS
    };
    POLL << refusals.saturating_sub(patience).min(40)
}

/// Whether the calling thread sees that what ends at `time` is finished.
///
/// Polls advance only their own thread's time: a watchdog polls as often as the machine lets it, and
/// must not decide what other threads see.
pub fn is_past(time: Time) -> bool {
    let host_clock = timeline().now();
    let mut polling = POLLING.get();
    if polling.host_clock != host_clock {
        polling.host_clock = host_clock;
        polling.refusals = 0;
    }
    let seen = polling.seen.max(host_clock);
    let is_past = time <= seen;
    if is_past {
        polling.refusals = 0;
    } else {
        polling.refusals = polling.refusals.saturating_add(1);
        polling.seen = seen + step_after(polling.refusals, polling.has_submitted);
    }
    POLLING.set(polling);
    is_past
}

/// The timeline, with the host's clock advanced to what the calling thread has seen, unless that
/// thread only watches.
fn acting() -> MutexGuard<'static, Timeline> {
    let mut timeline = timeline();
    let polling = POLLING.get();
    if polling.has_submitted {
        timeline.host_waits_until(polling.seen);
    }
    timeline
}

/// Submits work of this duration to a stream.
pub fn submit(stream: StreamKey, order: Order, duration: Time) {
    let mut timeline = acting();
    timeline.submit(stream, order, duration);
    timeline.host_works(SUBMISSION);
    let mut polling = POLLING.get();
    polling.has_submitted = true;
    POLLING.set(polling);
}

/// When everything submitted to a stream finishes; now, if it already has.
pub fn end_of(stream: StreamKey, order: Order) -> Time {
    let timeline = acting();
    timeline.end_of(stream, order).max(timeline.now())
}

pub fn stream_waits_until(stream: StreamKey, order: Order, time: Time) {
    acting().stream_waits_until(stream, order, time);
}

/// The host waits until this time.
pub fn wait_until(time: Time) {
    acting().host_waits_until(time);
}

/// The host waits for everything on a card.
pub fn wait_for_device(device: i32) {
    let mut timeline = acting();
    let end = timeline.end_of_device(device);
    timeline.host_waits_until(end);
}

/// The host allocates memory from the driver, or frees it.
pub fn allocate() {
    acting().host_works(ALLOCATION);
}

pub fn forget(stream: StreamKey) {
    timeline().forget(stream);
}

pub fn copy_to_or_from_host(bytes: usize) -> Time {
    bytes as u64 * MICROSECOND / HOST_LINK_BYTES_PER_MICROSECOND + MICROSECOND
}

pub fn copy_on_card(bytes: usize) -> Time {
    bytes as u64 * MICROSECOND / CARD_BYTES_PER_MICROSECOND + MICROSECOND
}

pub fn copy_between_cards(bytes: usize) -> Time {
    bytes as u64 * MICROSECOND / CARDS_LINK_BYTES_PER_MICROSECOND + 5 * MICROSECOND
}

/// How long a kernel takes that waits for this many cycles of a card's clock.
pub fn cycles(count: i64, clock_khz: u32) -> Time {
    const NANOSECONDS_PER_SECOND: u128 = 1_000_000_000;
    let hertz = u128::from(clock_khz.max(1)) * 1000;
    let nanoseconds = count.max(0) as u128 * NANOSECONDS_PER_SECOND / hertz;
    Time::try_from(nanoseconds).unwrap_or(Time::MAX / 4)
}

/// Milliseconds between two times. Never zero: programs divide by it.
pub fn elapsed_ms(start: Time, end: Time) -> f32 {
    let microseconds = (end.saturating_sub(start) / MICROSECOND).max(1);
    // An `f32` holds whole microseconds of some seconds exactly, which is precise enough.
    #[allow(clippy::cast_precision_loss)]
    let milliseconds = microseconds as f32 / 1000.0;
    milliseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_zero_or_negative() {
        assert!(elapsed_ms(5, 5) > 0.0);
        assert!(elapsed_ms(9, 5) > 0.0);
        assert!((elapsed_ms(0, 3 * KERNEL) - 0.03).abs() < 1e-6);
    }

    #[test]
    fn a_spinning_kernel_takes_its_cycles() {
        assert_eq!(cycles(1_980_000, 1_980_000), 1000 * MICROSECOND);
        assert_eq!(cycles(-1, 1_980_000), 0);
        assert!(cycles(i64::MAX, 1) < Time::MAX / 2);
    }

    #[test]
    fn time_passes_for_a_thread_that_only_polls_but_not_for_one_that_works_in_between() {
        let polls_until = |end: Time, has_submitted: bool| {
            let mut seen = 0;
            (1..)
                .find(|&refusals| {
                    seen += step_after(refusals, has_submitted);
                    seen >= end
                })
                .unwrap_or(0)
        };
        let second = 1_000_000 * MICROSECOND;
        assert!(polls_until(second, false) < 30);
        assert!(polls_until(second, true) < 230);
        assert_eq!(polls_until(100 * MICROSECOND, true), 100);
    }
}
