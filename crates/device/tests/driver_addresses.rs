//! Replays what the real driver did with thousands of allocations.

use ghostgpu_device::{Budget, CardMemory, DriverAddresses, HostLayout};
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
    let mut memory = CardMemory::new(1 << 40, 4 << 40, H200_CONTEXT_BYTES, HostLayout::Packed);
    // The first allocation shows the offset between the recorded range and ours.
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

/// Segments of a ResNet that flushed its cache again and again, and what the context and libraries took.
const LIMITED_RESNET: &str = include_str!("../../../ground_truth/h200/limited_resnet_segments.csv");

/// In a real process, host memory is between the chunks, so addresses differ but not their order, by which PyTorch
/// distinguishes equal blocks. Without the pages that were taken for code in between, the order would be different.
#[test]
fn segments_of_a_limited_training_lie_in_the_order_of_the_real_card_beside_pages_of_code() {
    assert_eq!(misplaced(LIMITED_RESNET.lines()), 0);
    let is_code = |line: &&str| *line == "l,2097152,";
    assert!(misplaced(LIMITED_RESNET.lines().filter(|line| !is_code(line))) > 0);
}

/// How many pairs of live segments are in another order than on the real card.
fn misplaced<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let mut addresses =
        DriverAddresses::on_card(1 << 40, 4 << 40, H200_CONTEXT_BYTES, HostLayout::Packed);
    let mut live: BTreeMap<i64, u64> = BTreeMap::new();
    let mut count = 0;
    for line in lines.filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, bytes, real] = fields[..] else {
            panic!("not a recorded operation: {line}");
        };
        let bytes = bytes.parse().unwrap();
        match operation {
            "l" => _ = addresses.take(bytes).unwrap(),
            "k" => addresses.grow_context(bytes),
            "+" => {
                let (real, ours) = (real.parse().unwrap(), addresses.take(bytes).unwrap());
                let differs = |(other, place): (&i64, &u64)| (*other < real) != (*place < ours);
                count += live.iter().filter(|each| differs(*each)).count();
                live.insert(real, ours);
            }
            _ => addresses.give_back(live.remove(&real.parse().unwrap()).unwrap(), bytes),
        }
    }
    count
}

mod layouts {
    use ghostgpu_device::{DriverAddresses, HostLayout};

    const MIB: u64 = 1 << 20;

    fn addresses(layout: HostLayout) -> DriverAddresses {
        DriverAddresses::on_card(1 << 40, 4 << 40, super::H200_CONTEXT_BYTES, layout)
    }

    /// The distance of each segment of these sizes from the one before it.
    fn distances(layout: HostLayout, mebibytes: &[u64]) -> Vec<i64> {
        let mut addresses = addresses(layout);
        // The hole in the context's upper chunk is filled first, whatever the layout.
        let mut before = addresses.take(24 * MIB).unwrap() as i64;
        let distances = mebibytes.iter().map(|size| {
            let address = addresses.take(size * MIB).unwrap() as i64;
            let distance = (address - before) / MIB as i64;
            before = address;
            distance
        });
        distances.collect()
    }

    #[test]
    fn threads_leave_room_for_one_small_chunk_each_and_large_ones_go_below() {
        let distances = distances(HostLayout::ThreadHeaps, &[20, 20, 20, 100]);
        assert!(distances[0] > 0, "above the context: {distances:?}");
        assert_eq!(distances[1..3], [-128, -128]);
        assert!(distances[3] < -1000, "below the context: {distances:?}");
    }

    #[test]
    fn a_wide_gap_has_room_for_several_chunks_side_by_side() {
        let distances = distances(HostLayout::WideGap, &[20, 20, 100, 500]);
        assert!(distances[0] > 0, "above the context: {distances:?}");
        assert_eq!(distances[1..3], [-32, -128]);
        assert!(distances[3] < -500, "below the context: {distances:?}");
    }

    #[test]
    fn in_a_packed_layout_nothing_lies_above_the_context() {
        let distances = distances(HostLayout::Packed, &[20, 20, 100]);
        assert!(
            distances.iter().all(|distance| *distance < 0),
            "{distances:?}"
        );
    }

    #[test]
    fn a_gap_is_used_again_when_its_chunk_was_freed() {
        let mut addresses = addresses(HostLayout::ThreadHeaps);
        addresses.take(24 * MIB).unwrap();
        let first = addresses.take(20 * MIB).unwrap();
        addresses.take(20 * MIB).unwrap();
        addresses.give_back(first, 20 * MIB);
        assert_eq!(addresses.take(20 * MIB), Some(first));
    }
}
