//! A small allocator like PyTorch's: segments from the driver, best fit, splitting, merging.

use std::collections::{BTreeMap, BTreeSet};

use crate::SegmentChange;

const MIB: u64 = 1 << 20;
const CHUNK_BYTES: u64 = 32 * MIB;
const FIRST_ADDRESS: u64 = 0x7f40_0000_0000;

#[derive(Clone, Copy)]
struct Block {
    bytes: u64,
    segment: u64,
    is_free: bool,
    is_small: bool,
}

#[derive(Default)]
pub(super) struct SplittingAllocator {
    blocks: BTreeMap<u64, Block>,
    /// Small or not, size, address.
    free: BTreeSet<(bool, u64, u64)>,
    segments: BTreeMap<u64, u64>,
    reserved_bytes: u64,
    /// Address space that was released, by address, in whole chunks of the driver.
    holes: BTreeMap<u64, u64>,
    used_to: u64,
}

impl SplittingAllocator {
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// An address, and the segment that had to be reserved for it.
    pub(super) fn allocate(&mut self, bytes: u64) -> (u64, Option<SegmentChange>) {
        let is_small = bytes <= MIB;
        let fitting = self
            .free
            .range((is_small, bytes, 0)..=(is_small, u64::MAX, u64::MAX))
            .next()
            .copied();
        let (address, change) = match fitting {
            Some((_, _, address)) => (address, None),
            None => {
                let change = self.reserve(bytes, is_small);
                (change.address, Some(change))
            }
        };
        self.take(address, bytes);
        (address, change)
    }

    fn reserve(&mut self, bytes: u64, is_small: bool) -> SegmentChange {
        let segment_bytes = match bytes {
            _ if is_small => 2 * MIB,
            _ if bytes < 10 * MIB => 20 * MIB,
            _ => bytes.next_multiple_of(2 * MIB),
        };
        let address = self.address_space(segment_bytes.next_multiple_of(CHUNK_BYTES));
        self.segments.insert(address, segment_bytes);
        self.reserved_bytes += segment_bytes;
        self.insert_free(address, segment_bytes, address, is_small);
        SegmentChange {
            address,
            bytes: segment_bytes,
            is_small,
            ..SegmentChange::default()
        }
    }

    /// Address space for a segment: the first hole that is large enough, else at the end.
    fn address_space(&mut self, bytes: u64) -> u64 {
        let hole = self.holes.iter().find(|(_, room)| **room >= bytes);
        if let Some((&address, &room)) = hole {
            self.holes.remove(&address);
            if room > bytes {
                self.holes.insert(address + bytes, room - bytes);
            }
            return address;
        }
        let address = FIRST_ADDRESS + self.used_to;
        self.used_to += bytes;
        address
    }

    fn insert_free(&mut self, address: u64, bytes: u64, segment: u64, is_small: bool) {
        self.free.insert((is_small, bytes, address));
        self.blocks.insert(
            address,
            Block {
                bytes,
                segment,
                is_free: true,
                is_small,
            },
        );
    }

    fn take(&mut self, address: u64, bytes: u64) {
        let block = self.blocks[&address];
        self.free.remove(&(block.is_small, block.bytes, address));
        let rest = block.bytes - bytes;
        let smallest_rest = if block.is_small { 512 } else { MIB + 1 };
        let taken = if rest >= smallest_rest {
            self.insert_free(address + bytes, rest, block.segment, block.is_small);
            bytes
        } else {
            block.bytes
        };
        self.blocks.insert(
            address,
            Block {
                bytes: taken,
                is_free: false,
                ..block
            },
        );
    }

    pub(super) fn free(&mut self, address: u64) {
        let mut block = self.blocks[&address];
        let mut begin = address;
        if let Some((&before, &neighbour)) = self.blocks.range(..address).next_back()
            && neighbour.is_free
            && neighbour.segment == block.segment
        {
            self.forget_free(before, neighbour);
            self.blocks.remove(&address);
            begin = before;
            block.bytes += neighbour.bytes;
        }
        let end = begin + block.bytes;
        if let Some(&neighbour) = self.blocks.get(&end)
            && neighbour.is_free
            && neighbour.segment == block.segment
        {
            self.forget_free(end, neighbour);
            block.bytes += neighbour.bytes;
        }
        self.insert_free(begin, block.bytes, block.segment, block.is_small);
    }

    fn forget_free(&mut self, address: u64, block: Block) {
        self.free.remove(&(block.is_small, block.bytes, address));
        self.blocks.remove(&address);
    }

    /// Returns every segment without a live block to the driver.
    pub(super) fn give_back(&mut self) -> Vec<SegmentChange> {
        let empty: Vec<_> = self
            .segments
            .iter()
            .filter(|&(address, bytes)| {
                let block = self.blocks[address];
                block.is_free && block.bytes == *bytes
            })
            .map(|(&address, &bytes)| SegmentChange {
                address,
                bytes,
                ..SegmentChange::default()
            })
            .collect();
        for change in &empty {
            let block = self.blocks[&change.address];
            self.forget_free(change.address, block);
            self.segments.remove(&change.address);
            self.reserved_bytes -= change.bytes;
            let chunks = change.bytes.next_multiple_of(CHUNK_BYTES);
            self.holes.insert(change.address, chunks);
        }
        empty
    }
}
