//! What writing, reading and counting a large recording costs: `recording_speed [MILLIONS OF EVENTS]`.

use std::time::Instant;

use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::file::{Limits, read, write};
use ghostgpu_recording::made_up::{EVENTS_PER_LAYER_AND_STEP, MadeUp, recording};

fn main() {
    let millions: u32 = std::env::args()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(10);
    let layers = 48;
    let training = MadeUp {
        layers,
        steps: millions * 1_000_000 / (layers * EVENTS_PER_LAYER_AND_STEP),
    };
    let made_up = timed("make it up", || recording(training));
    let events = made_up.cards[0].events.len();
    let mut file = Vec::new();
    timed("write", || write(&made_up, &mut file).expect("memory"));
    println!("{events} events in {} bytes", file.len());
    let again = timed("read", || {
        read(&file[..], Limits::default()).expect("our own")
    });
    assert_eq!(again.cards[0].events.len(), events);
    let card = &again.cards[0];
    let ledger = timed("one pass", || CardLedger::new(&again, card));
    let peak = ledger.peak().moment;
    timed("accounts at the peak", || ledger.accounts(peak));
    timed("stages", || ledger.stages());
    timed("holders", || ledger.holders(peak));
    timed("growth", || ledger.growth());
    timed("rule of thumb", || ledger.rule_of_thumb());
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = work();
    println!("{what:<22}{:>8.3} s", start.elapsed().as_secs_f64());
    value
}
