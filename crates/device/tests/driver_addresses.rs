//! Replays what the real driver did with thousands of allocations.

use ghostgpu_device::{Budget, CardMemory};
use std::collections::BTreeMap;

struct Endless;

impl Budget for Endless {
    fn charge(&self, _bytes: u64) -> bool {
        true
    }

    fn release(&self, _bytes: u64) {}
}

const H200_CONTEXT_BYTES: u64 = 552_402_944;

const RECORDING: &str = include_str!("../../../ground_truth/h200/driver_addresses.csv");

#[test]
fn every_recorded_allocation_gets_the_address_it_got_on_the_real_card() {
    let mut series: BTreeMap<&str, Vec<(bool, u64, i64)>> = BTreeMap::new();
    for line in RECORDING.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, operation, bytes, offset] = fields[..] else {
            panic!("not a recorded operation: {line}");
        };
        series.entry(name).or_default().push((
            operation == "+",
            bytes.parse().unwrap(),
            offset.parse().unwrap(),
        ));
    }
    assert_eq!(series.len(), 7);
    for (name, operations) in series {
        replay(name, &operations);
    }
}

fn replay(name: &str, operations: &[(bool, u64, i64)]) {
    let mut memory = CardMemory::new(1 << 40, 4 << 40, H200_CONTEXT_BYTES);
    // The first allocation shows where the recorded range lies in ours.
    let mut shift = None;
    let mut ours: BTreeMap<i64, u64> = BTreeMap::new();
    for (index, &(is_allocation, bytes, offset)) in operations.iter().enumerate() {
        if !is_allocation {
            let address = ours.remove(&offset).unwrap();
            memory.free(address, &Endless).unwrap();
            continue;
        }
        let address = memory.allocate(bytes, &Endless).unwrap();
        let shift = *shift.get_or_insert(address as i64 - offset);
        assert_eq!(
            address as i64 - shift,
            offset,
            "{name}: operation {index}, {bytes} bytes"
        );
        ours.insert(offset, address);
    }
}
