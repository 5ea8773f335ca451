//! A fast seeded hash, for millions of short keys from files that may be hostile.
//!
//! Each table draws its own seed, so that nobody can craft a file whose keys all collide. No output depends on the
//! order of such a table.

use std::hash::{BuildHasher, Hasher, RandomState};

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds the hashers of one table, all with the same seed.
#[derive(Debug, Clone)]
pub struct SeededState {
    seed: u64,
    second_seed: u64,
}

impl Default for SeededState {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            seed: random.hash_one(1),
            second_seed: random.hash_one(2),
        }
    }
}

impl BuildHasher for SeededState {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        SeededHasher {
            state: self.seed,
            second_seed: self.second_seed,
        }
    }
}

/// Multiplies every sixteen bytes into the state and folds the upper half of the product back.
#[derive(Debug)]
pub struct SeededHasher {
    state: u64,
    second_seed: u64,
}

impl SeededHasher {
    #[inline]
    fn mix(&mut self, first: u64, second: u64) {
        let product = u128::from(self.state ^ first) * u128::from(self.second_seed ^ second);
        self.state = ((product as u64) ^ ((product >> 64) as u64)).rotate_left(23);
    }
}

impl Hasher for SeededHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let pair = u128::from_le_bytes(*pair);
            self.mix(pair as u64, (pair >> 64) as u64);
        }
        let mut last = [0u8; 16];
        last[..rest.len()].copy_from_slice(rest);
        let last = u128::from_le_bytes(last);
        self.mix(
            last as u64,
            (last >> 64) as u64 ^ ((bytes.len() as u64) << 56),
        );
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value), ODD);
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value), ODD);
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value, ODD);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64, ODD);
    }

    fn finish(&self) -> u64 {
        // The state's upper bits pick the group and the lower bits the slot in std's table: mix once
        // more, so that both depend on the whole key and on the seed.
        let product = u128::from(self.state) * u128::from(ODD.rotate_left(17) | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}
