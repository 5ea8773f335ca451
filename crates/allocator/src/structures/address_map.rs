//! Which block an address names: open addressing with linear probing, entries moved up on removal, so
//! that it neither fills with tombstones nor allocates once it is large enough.
//!
//! A slot has half of the address's hash and the block's number. The address itself is with the
//! block, which the caller reads anyway: so the slots of a thousand blocks take 16 kB.

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the hash: where the search begins, and mostly enough to tell addresses apart.
    hash: u32,
    /// [`EMPTY`] where there is none.
    block: u32,
}

const EMPTY: u32 = u32::MAX;
const VACANT: Slot = Slot {
    hash: 0,
    block: EMPTY,
};

#[derive(Clone, Debug)]
pub(crate) struct AddressMap {
    /// A power of two, at least twice as many as there are blocks.
    slots: Vec<Slot>,
    /// By how much a hash is shifted to become the slot where the search begins.
    shift: u32,
    len: usize,
}

impl Default for AddressMap {
    fn default() -> Self {
        Self::for_blocks(32)
    }
}

#[inline]
fn hash_of(address: u64) -> u32 {
    // Addresses are multiples of 512; the multiplication spreads what is left over the top bits.
    ((address >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Methods take a function that knows the address of a block, for the case that hashes agree.
impl AddressMap {
    /// A map that has room for this many blocks.
    pub(crate) fn for_blocks(blocks: usize) -> Self {
        let slots = (blocks.max(1) * 2).next_power_of_two();
        Self {
            slots: vec![VACANT; slots],
            shift: 32_u32.saturating_sub(slots.trailing_zeros()),
            len: 0,
        }
    }

    /// Reserves room for this many blocks in total.
    pub(crate) fn reserve(&mut self, blocks: usize) {
        while self.slots.len() < blocks * 2 {
            self.grow();
        }
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// The slot of an address, or the empty one where it would go.
    #[inline]
    fn slot_of(&self, address: u64, address_of: impl Fn(u32) -> u64) -> usize {
        let hash = hash_of(address);
        let mut slot = self.home(hash);
        loop {
            let found = self.slots[slot];
            let is_it = found.hash == hash && found.block != EMPTY;
            if found.block == EMPTY || (is_it && address_of(found.block) == address) {
                return slot;
            }
            slot = self.next(slot);
        }
    }

    #[inline]
    pub(crate) fn get(&self, address: u64, address_of: impl Fn(u32) -> u64) -> Option<u32> {
        let block = self.slots[self.slot_of(address, address_of)].block;
        (block != EMPTY).then_some(block)
    }

    /// Enters an address, in place of what it named before; whether it named nothing.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        address: u64,
        block: u32,
        address_of: impl Fn(u32) -> u64,
    ) -> bool {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot_of(address, address_of);
        let is_new = self.slots[slot].block == EMPTY;
        self.len += usize::from(is_new);
        let hash = hash_of(address);
        self.slots[slot] = Slot { hash, block };
        is_new
    }

    #[cold]
    fn grow(&mut self) {
        let larger = Self::for_blocks(self.slots.len());
        let old = std::mem::replace(self, larger);
        for entry in old.slots.into_iter().filter(|slot| slot.block != EMPTY) {
            let mut slot = self.home(entry.hash);
            while self.slots[slot].block != EMPTY {
                slot = self.next(slot);
            }
            self.slots[slot] = entry;
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, address: u64, address_of: impl Fn(u32) -> u64) -> Option<u32> {
        let mut hole = self.slot_of(address, address_of);
        let block = self.slots[hole].block;
        if block == EMPTY {
            return None;
        }
        self.len -= 1;
        let mut slot = self.next(hole);
        while self.slots[slot].block != EMPTY {
            let home = self.home(self.slots[slot].hash);
            // It may move into the hole if its home does not lie cyclically in (hole, slot].
            let mask = self.slots.len() - 1;
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole].block = EMPTY;
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_map(
            operations in prop::collection::vec((any::<bool>(), 0_u64..200), 1..2000)
        ) {
            let mut map = AddressMap::for_blocks(1);
            let mut model = HashMap::new();
            // Numbers of blocks are places in this.
            let mut addresses = Vec::new();
            for (number, (add, key)) in operations.into_iter().enumerate() {
                // Half of the keys have the hash of another.
                let address = (key / 2) * 512 + key % 2;
                addresses.push(address);
                let address_of = |block: u32| addresses[block as usize];
                if add {
                    map.insert(address, number as u32, address_of);
                    model.insert(address, number as u32);
                } else {
                    prop_assert_eq!(map.remove(address, address_of), model.remove(&address));
                }
                prop_assert_eq!(map.get(address, address_of), model.get(&address).copied());
            }
            for (address, block) in model {
                let found = map.get(address, |block| addresses[block as usize]);
                prop_assert_eq!(found, Some(block));
            }
        }
    }
}
