//! Which block an address names: open addressing with linear probing, entries moved up on removal, so
//! that it neither fills with tombstones nor allocates once it is large enough.

#[derive(Clone, Copy, Debug)]
struct Slot {
    address: u64,
    /// [`EMPTY`] where there is none.
    block: u32,
}

const EMPTY: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct AddressMap {
    slots: Vec<Slot>,
    len: usize,
}

impl Default for AddressMap {
    fn default() -> Self {
        Self {
            slots: vec![
                Slot {
                    address: 0,
                    block: EMPTY
                };
                64
            ],
            len: 0,
        }
    }
}

impl AddressMap {
    #[inline]
    fn home(&self, address: u64) -> usize {
        // Addresses are multiples of 512; the multiplication spreads what is left over the top bits.
        let mixed = (address >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// The slot of an address, or the empty one where it would go.
    #[inline]
    fn slot_of(&self, address: u64) -> usize {
        let mut slot = self.home(address);
        while self.slots[slot].block != EMPTY && self.slots[slot].address != address {
            slot = self.next(slot);
        }
        slot
    }

    #[inline]
    pub(crate) fn get(&self, address: u64) -> Option<u32> {
        let block = self.slots[self.slot_of(address)].block;
        (block != EMPTY).then_some(block)
    }

    #[inline]
    pub(crate) fn insert(&mut self, address: u64, block: u32) {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot_of(address);
        self.len += usize::from(self.slots[slot].block == EMPTY);
        self.slots[slot] = Slot { address, block };
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![
            Slot {
                address: 0,
                block: EMPTY
            };
            self.slots.len() * 2
        ];
        for old in std::mem::replace(&mut self.slots, larger) {
            if old.block != EMPTY {
                let slot = self.slot_of(old.address);
                self.slots[slot] = old;
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, address: u64) -> Option<u32> {
        let mut hole = self.slot_of(address);
        let block = self.slots[hole].block;
        if block == EMPTY {
            return None;
        }
        self.len -= 1;
        let mut slot = self.next(hole);
        while self.slots[slot].block != EMPTY {
            let home = self.home(self.slots[slot].address);
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
            let mut map = AddressMap::default();
            let mut model = HashMap::new();
            for (number, (add, key)) in operations.into_iter().enumerate() {
                let address = key * 512;
                if add {
                    map.insert(address, number as u32);
                    model.insert(address, number as u32);
                } else {
                    prop_assert_eq!(map.remove(address), model.remove(&address));
                }
                prop_assert_eq!(map.get(address), model.get(&address).copied());
            }
            for (address, block) in model {
                prop_assert_eq!(map.get(address), Some(block));
            }
        }
    }
}
