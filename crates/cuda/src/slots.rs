//! Storage for objects behind handles: lookups take constant time, and a handle is never issued twice.
//!
//! PyTorch creates and destroys thousands of descriptors per step. Slots are reused, so that nothing is
//! allocated after the first step; the number of times a slot was used is part of the handle, so that
//! a stale handle finds nothing.

/// Handles look like addresses of pages that are never mapped.
const FIRST: usize = 0x1000;
const STEP: usize = 16;

/// The lower bits of a handle are its slot, the upper bits how often the slot was used before.
const USES_SHIFT: u32 = 48;
const PLACE_MASK: usize = (1 << USES_SHIFT) - 1;

/// A slot that was used this often is retired. Handles stay positive as signed numbers, like those of
/// real objects.
const MOST_USES: usize = 0x7fff;

pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    uses: usize,
    object: Option<T>,
}

impl<T> Slots<T> {
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub fn insert(&mut self, object: T) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                uses: 0,
                object: None,
            });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[place];
        slot.object = Some(object);
        (slot.uses << USES_SHIFT) | (FIRST + place * STEP)
    }

    fn place(handle: usize) -> Option<usize> {
        let offset = (handle & PLACE_MASK).checked_sub(FIRST)?;
        (offset % STEP == 0).then_some(offset / STEP)
    }

    pub fn get(&self, handle: usize) -> Option<&T> {
        let slot = self.slots.get(Self::place(handle)?)?;
        (slot.uses == handle >> USES_SHIFT)
            .then_some(slot.object.as_ref())
            .flatten()
    }

    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let place = Self::place(handle)?;
        let slot = self.slots.get_mut(place)?;
        if slot.uses != handle >> USES_SHIFT {
            return None;
        }
        let object = slot.object.take()?;
        slot.uses += 1;
        if slot.uses <= MOST_USES {
            self.free.push(place);
        }
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn objects_are_found_by_their_handles_and_by_no_others() {
        let mut slots = Slots::new();
        let one = slots.insert(1);
        let two = slots.insert(2);
        assert_eq!(slots.get(one), Some(&1));
        assert_eq!(slots.get(two), Some(&2));
        for stranger in [0, 1, FIRST - STEP, one + 1, two + STEP, usize::MAX] {
            assert_eq!(slots.get(stranger), None);
            assert_eq!(slots.remove(stranger), None);
        }
    }

    #[test]
    fn a_handle_is_never_issued_twice_but_its_slot_is_reused() {
        let mut slots = Slots::new();
        let mut seen = HashSet::new();
        for number in 0..3 * MOST_USES {
            let handle = slots.insert(number);
            assert!(seen.insert(handle), "{handle:#x} was given out before");
            assert!(isize::try_from(handle).is_ok());
            assert_eq!(slots.remove(handle), Some(number));
            assert_eq!(slots.get(handle), None);
            assert_eq!(slots.remove(handle), None);
        }
        assert!(slots.slots.len() <= 3);
    }
}
