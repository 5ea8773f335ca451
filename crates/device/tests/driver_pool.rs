//! Replays what the real driver's stream-ordered pool did.

use std::cell::Cell;
use std::collections::HashMap;

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

const START: u64 = 1 << 40;
const STREAM: u64 = 0;
const GRANULE_BYTES: u64 = 32 << 20;

/// A pool that keeps everything, as PyTorch configures it.
fn empty_pool() -> StreamOrderedPool {
    let mut pool = StreamOrderedPool::new(START, 1 << 42);
    pool.release_threshold_bytes = u64::MAX;
    pool
}

fn roomy_card() -> Card {
    Card {
        free: Cell::new(1 << 37),
    }
}

const BUSY_RECORDING: &str = include_str!("../../../ground_truth/h200/driver_pool_busy.csv");
const RECORDING: &str = include_str!("../../../ground_truth/h200/driver_pool.csv");

#[test]
fn every_recorded_operation_leaves_the_pool_as_it_was_on_the_real_card() {
    let card = Card {
        free: Cell::new(149_557_477_376),
    };
    let mut pool = empty_pool();
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
                pool.allocate(bytes, STREAM, &card),
                Ok(START + offset),
                "line {index}"
            ),
            "!" => assert_eq!(
                pool.allocate(bytes, STREAM, &card),
                Err(MemoryError::OutOfMemory)
            ),
            "-" => pool.free(START + offset, STREAM).unwrap(),
            "sync" => pool.synchronize(None, &card),
            "trim" => pool.trim(0, &card),
            other => panic!("unknown operation {other}"),
        }
        let now = pool.statistics();
        // The real card hands out its last few megabytes in pieces smaller than a granule.
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

#[test]
fn while_the_card_is_busy_every_allocation_lies_where_it_did_on_the_real_card() {
    let card = roomy_card();
    let mut pool = empty_pool();
    let mut addresses: HashMap<&str, u64> = HashMap::new();
    let mut allocations = 0;
    for (index, line) in BUSY_RECORDING.lines().enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[..] {
            _ if line.starts_with('#') => {}
            ["begin", _] => {
                pool = empty_pool();
                addresses.clear();
            }
            ["+", name, bytes, offset, granules] => {
                let bytes: u64 = bytes.parse().unwrap();
                let address = pool.allocate(bytes, STREAM, &card).unwrap();
                let expected: (u64, u64) = (offset.parse().unwrap(), granules.parse().unwrap());
                let held = pool.statistics().reserved_bytes / GRANULE_BYTES;
                assert_eq!((address - START, held), expected, "line {}", index + 1);
                addresses.insert(name, address);
                allocations += 1;
            }
            ["-", name] => pool.free(addresses.remove(name).unwrap(), STREAM).unwrap(),
            ["sync"] => pool.synchronize(Some(STREAM), &card),
            _ => panic!("line {} is no operation: {line}", index + 1),
        }
    }
    assert!(allocations > 3000);
}

#[test]
fn another_stream_uses_pending_frees_rather_than_growing_the_pool() {
    let card = roomy_card();
    let mut pool = empty_pool();
    let first = pool.allocate(20 << 20, STREAM, &card).unwrap();
    pool.free(first, STREAM).unwrap();
    let other = STREAM + 1;
    let beside = pool.allocate(10 << 20, other, &card).unwrap();
    assert_eq!(beside, first + (20 << 20));
    assert_eq!(pool.allocate(15 << 20, other, &card), Ok(first));
    assert_eq!(pool.statistics().reserved_bytes, GRANULE_BYTES);
}

#[test]
fn a_full_card_waits_for_pending_frees_before_it_refuses() {
    let card = Card {
        free: Cell::new(2 * GRANULE_BYTES),
    };
    let mut pool = empty_pool();
    let first = pool.allocate(32 << 20, STREAM, &card).unwrap();
    pool.free(first, STREAM).unwrap();
    assert_eq!(pool.allocate(64 << 20, STREAM, &card), Ok(first));
    assert_eq!(
        pool.allocate(1 << 20, STREAM, &card),
        Err(MemoryError::OutOfMemory)
    );
}
