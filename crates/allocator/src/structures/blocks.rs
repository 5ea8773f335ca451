//! The arena of blocks. A block is an index; freed ones are reused.

use std::ops::{Index, IndexMut};

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// The last requested size; stale while the block is free.
    pub(crate) requested: u64,
    /// The pool's search counter when the block became free.
    pub(crate) age_base: u64,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The set of its pool and stream.
    pub(crate) set: u32,
    /// What decides between equal sizes before the address does.
    pub(crate) rank: u32,
    /// The expandable segment it is part of.
    pub(crate) expandable: u32,
    /// The list of other streams that use it.
    pub(crate) uses: u32,
    pub(crate) event_count: u32,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A place in the arena without a block.
    Vacant,
    Allocated,
    /// Freed by the caller, still in use by other streams.
    Pending,
    Free,
    /// A hole in an expandable segment.
    Unmapped,
}

impl Block {
    pub(crate) fn is_mapped(&self) -> bool {
        self.state != State::Unmapped
    }

    /// Has a neighbour in its segment.
    #[inline]
    pub(crate) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    #[inline]
    pub(crate) fn is_expandable(&self) -> bool {
        self.expandable != NONE
    }

    /// Allocated, or freed and still in use by other streams.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.state, State::Allocated | State::Pending)
    }

    /// It is not in use, whether memory is mapped to it or not.
    pub(crate) fn is_allocatable(&self) -> bool {
        matches!(self.state, State::Free | State::Unmapped)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// First of the vacant places, which are chained by `next`.
    vacant: u32,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            vacant: NONE,
        }
    }
}

impl Blocks {
    /// Reserves room for this many blocks in total.
    pub(crate) fn reserve(&mut self, blocks: usize) {
        let more = blocks.saturating_sub(self.blocks.len());
        self.blocks.reserve(more);
    }

    #[inline]
    pub(crate) fn add(&mut self, block: Block) -> u32 {
        let number = self.vacant;
        if number == NONE {
            self.blocks.push(block);
            return self.blocks.len() as u32 - 1;
        }
        let place = &mut self.blocks[number as usize];
        self.vacant = place.next;
        *place = block;
        number
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let place = &mut self.blocks[number as usize];
        place.state = State::Vacant;
        place.next = self.vacant;
        self.vacant = number;
    }

    /// Every block there is, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        (0..)
            .zip(&self.blocks)
            .filter(|(_, block)| block.state != State::Vacant)
    }

    /// What an address map asks.
    #[inline]
    pub(crate) fn address_of(&self, number: u32) -> u64 {
        self[number].address
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Block> {
        self.blocks
            .get(number as usize)
            .filter(|block| block.state != State::Vacant)
    }
}

impl Index<u32> for Blocks {
    type Output = Block;

    #[inline]
    fn index(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }
}

impl IndexMut<u32> for Blocks {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Block {
        &mut self.blocks[number as usize]
    }
}
