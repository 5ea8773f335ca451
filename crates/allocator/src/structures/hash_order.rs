//! The iteration order of PyTorch's hash tables.
//!
//! Its tables have power-of-two sizes, Fibonacci hashing and linear probing. Their order decides which
//! private pool a flush releases first, and with it where the driver puts the next segments; and which
//! stream's blocks come back first, and with it how free blocks grow together.

const FEWEST_SLOTS: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct HashOrder<K> {
    /// Hash and key, in the order of the table.
    entries: Vec<(u64, K)>,
    /// Never shrinks.
    slots: usize,
}

impl<K> Default for HashOrder<K> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            slots: 0,
        }
    }
}

impl<K: Copy + PartialEq> HashOrder<K> {
    fn slot(&self, hash: u64) -> u64 {
        hash.wrapping_mul(11_400_714_819_323_198_485) >> (64 - self.slots.trailing_zeros())
    }

    /// Enters a key, if it is not there.
    pub(crate) fn insert(&mut self, hash: u64, key: K) {
        if self.contains(key) {
            return;
        }
        if self.slots == 0 || (self.entries.len() + 1) * 2 > self.slots {
            self.slots = FEWEST_SLOTS.max(self.slots * 2);
            let slots = self.slots.trailing_zeros();
            // A stable sort: of keys for the same slot, the older comes first.
            let slot = |hash: u64| hash.wrapping_mul(11_400_714_819_323_198_485) >> (64 - slots);
            self.entries.sort_by_key(|&(hash, _)| slot(hash));
        }
        let slot = self.slot(hash);
        let place = self
            .entries
            .partition_point(|&(other, _)| self.slot(other) <= slot);
        self.entries.insert(place, (hash, key));
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.entries.iter().any(|&(_, other)| other == key)
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&mut self, key: K) {
        self.entries.retain(|&(_, other)| other != key);
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.entries.retain(|&(_, key)| keep(key));
    }

    /// As if it were a new table.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
        self.slots = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<K> {
        self.entries.get(index).map(|&(_, key)| key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = K> {
        self.entries.iter().map(|&(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_the_order_of_their_hashes() {
        let mut order = HashOrder::default();
        order.insert(1, 'a');
        order.insert(2, 'b');
        // With four slots the hash 1 goes to the third and 2 to the first.
        assert_eq!(order.iter().collect::<String>(), "ba");
        order.insert(3, 'c');
        // With eight slots 1 goes to the fifth, 2 to the second, 3 to the seventh.
        assert_eq!(order.iter().collect::<String>(), "bac");
        order.remove('b');
        assert_eq!(order.iter().collect::<String>(), "ac");
    }
}
