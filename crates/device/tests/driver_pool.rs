//! Replays what the real driver's stream-ordered pool did.

use std::cell::Cell;

use ghostgpu_device::{Budget, MemoryError, StreamOrderedPool};

struct Card {
    free: Cell<u64>,
}

impl Budget for Card {
    fn charge(&self, bytes: u64) -> bool {
        let left = self.free.get();
        if bytes <= left {
            self.free.set(left - bytes);
        }
        bytes <= left
    }

    fn release(&self, bytes: u64) {
        self.free.set(self.free.get() + bytes);
    }
}

const RECORDING: &str = include_str!("../../../ground_truth/h200/driver_pool.csv");

#[test]
fn every_recorded_operation_leaves_the_pool_as_it_was_on_the_real_card() {
    let card = Card {
        free: Cell::new(149_557_477_376),
    };
    const START: u64 = 1 << 40;
    let mut pool = StreamOrderedPool::new(START, 1 << 42);
    pool.release_threshold_bytes = u64::MAX;
    let mut operations = 0;
    for (index, line) in RECORDING.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let (operation, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
        let [bytes, offset, reserved, _, used, used_high, free] = numbers[..] else {
            panic!("not a recorded operation: {line}");
        };
        match operation {
            "start" => {}
            "+" => assert_eq!(
                pool.allocate(bytes, &card),
                Ok(START + offset),
                "line {index}"
            ),
            "!" => assert_eq!(pool.allocate(bytes, &card), Err(MemoryError::OutOfMemory)),
            "-" => pool.free(START + offset).unwrap(),
            "sync" => pool.synchronize(&card),
            "trim" => pool.trim(0, &card),
            other => panic!("unknown operation {other}"),
        }
        let now = pool.statistics();
        // The real card gives its last few megabytes away in smaller pieces than a granule.
        let is_full = operation == "!" || free < 64 << 20;
        if !is_full {
            assert_eq!(
                (now.reserved_bytes, card.free.get()),
                (reserved, free),
                "line {index}"
            );
        }
        assert_eq!(
            (now.used_bytes, now.used_high_bytes),
            (used, used_high),
            "line {index}"
        );
        operations += 1;
    }
    assert!(operations > 100);
}
