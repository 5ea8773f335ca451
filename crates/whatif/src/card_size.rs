//! The memory size of the recorded card, inferred from its addresses.
//!
//! An expandable segment reserves address space for nine eighths of the card's memory, and a snapshot
//! does not say how much that is. Two such segments lie at least that far apart.

use ghostgpu_allocator::Action;
use ghostgpu_allocator::replay::Recording;

/// Mapped parts of one segment lie closer together than this, segments of any card further apart.
const APART_BYTES: u64 = 2 << 30;
/// Reservations are rounded up to a segment's pages.
const ROUNDING_BYTES: u64 = 512 << 20;

/// A card size that accommodates every recorded segment; `None` if unknown.
pub fn largest_total_bytes(recording: &Recording) -> Option<u64> {
    let operations = &recording.operations;
    let mapped = operations.actions().iter().zip(operations.addresses());
    let mapped = mapped.filter(|(action, _)| **action == Action::SegmentMap);
    let live = recording
        .segments
        .iter()
        .filter(|segment| segment.is_expandable);
    let mut addresses: Vec<u64> = mapped
        .map(|(_, &address)| address)
        .chain(live.map(|segment| segment.address.0))
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut starts: Vec<u64> = Vec::new();
    let mut before = None;
    for address in addresses {
        if before.is_none_or(|before| address - before > APART_BYTES) {
            starts.push(address);
        }
        before = Some(address);
    }
    let nearest = starts.windows(2).map(|pair| pair[1] - pair[0]).min()?;
    Some(nearest.saturating_sub(ROUNDING_BYTES) / 9 * 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_allocator::Address;
    use ghostgpu_allocator::replay::{Context, Operation, Operations};

    fn mapping(addresses: &[u64]) -> Recording {
        let operation = |&address: &u64| Operation {
            action: Action::SegmentMap,
            address: Address(address),
            bytes: 2 << 20,
            context: Context::default(),
        };
        Recording {
            operations: addresses.iter().map(operation).collect::<Operations>(),
            segments: Vec::new(),
        }
    }

    #[test]
    fn two_segments_lie_nine_eighths_of_a_card_apart() {
        // As on an H200, whose total is 150,109,880,320 bytes.
        let found = largest_total_bytes(&mapping(&[
            0x3_0200_0000,
            0x3_0220_0000,
            0x2a_5600_0000,
            0x2a_5740_0000,
        ]));
        let found = found.expect("two segments");
        assert!(found <= 150_109_880_320, "{found}");
        assert!(found > 149_000_000_000, "{found}");
    }

    #[test]
    fn one_segment_tells_nothing() {
        assert_eq!(largest_total_bytes(&mapping(&[])), None);
        assert_eq!(
            largest_total_bytes(&mapping(&[1 << 34, (1 << 34) + (40 << 20)])),
            None
        );
    }
}
