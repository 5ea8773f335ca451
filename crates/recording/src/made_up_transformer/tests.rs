//! What can be relied on in such a training.

use super::*;
use std::collections::BTreeMap;

fn small() -> Recording {
    recording(MadeUpTransformer {
        layers: 2,
        steps: 26,
        gpu_total_bytes: 12 << 30,
    })
}

#[test]
fn it_is_the_same_every_time() {
    assert_eq!(small(), small());
}

#[test]
fn blocks_never_overlap_and_lie_in_reserved_memory() {
    let card = &small().cards[0];
    let mut reserved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for segment in &card.reserved_before {
        reserved.insert(segment.address, segment.bytes);
    }
    for block in card
        .allocations
        .iter()
        .filter(|block| block.allocated_at.is_none())
    {
        live.insert(block.address, block.block_bytes);
    }
    for event in &card.events {
        match *event {
            Event::Reserve(id) => {
                let change = card.change(id);
                reserved.insert(change.address, change.bytes);
            }
            Event::Release(id) => {
                let change = card.change(id);
                assert_eq!(reserved.remove(&change.address), Some(change.bytes));
            }
            Event::Allocate(id) => {
                let block = card.allocations[id.0 as usize];
                let (segment, bytes) = reserved.range(..=block.address).next_back().unwrap();
                assert!(block.address + block.block_bytes <= segment + bytes);
                let before = live.range(..=block.address).next_back();
                assert!(before.is_none_or(|(address, bytes)| address + bytes <= block.address));
                live.insert(block.address, block.block_bytes);
            }
            Event::Free(id) => {
                let address = card.allocations[id.0 as usize].address;
                assert!(live.remove(&address).is_some());
            }
            Event::FreeRequested(_) | Event::OutOfMemory(_) | Event::Other => {}
        }
    }
    assert!(
        card.events
            .iter()
            .any(|event| matches!(event, Event::Release(_)))
    );
}
