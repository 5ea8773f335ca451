//! What every card of one compute capability has in common.
//!
//! The numbers are those of the table "Technical Specifications per Compute Capability" in the
//! CUDA C++ Programming Guide (release 13 for 7.5 and later, release 12 for what it dropped). The
//! guide has no columns for 10.3 and 12.1, which are assumed to be like 10.0 and 12.0.
//! The rows 7.5 and 9.0 were also read from cards through `cudaGetDeviceProperties`.

use crate::Capability;

const KIB: u32 = 1024;

/// 32-bit registers of a multiprocessor, and the most that one block can have. The same on every
/// capability in the table.
pub const REGISTERS_PER_MULTIPROCESSOR: u32 = 65_536;

/// Shared memory that a block gets without opting in to more. The same on every capability.
pub const SHARED_MEMORY_PER_BLOCK_BYTES: u32 = 48 * KIB;

/// The limits of one multiprocessor, which depend only on its compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Architecture {
    pub capability: Capability,
    /// The vendor's name for the generation ("Ampere").
    pub family: &'static str,
    pub max_threads_per_multiprocessor: u32,
    pub max_blocks_per_multiprocessor: u32,
    pub shared_memory_per_multiprocessor_bytes: u32,
    /// The most that one block gets if it opts in.
    pub shared_memory_per_block_optin_bytes: u32,
    /// What the system takes of each block's shared memory.
    pub reserved_shared_memory_per_block_bytes: u32,
}

impl Architecture {
    /// The limits of `capability`; none if no supported card has it.
    pub fn of(capability: Capability) -> Option<&'static Self> {
        ARCHITECTURES
            .iter()
            .find(|architecture| architecture.capability == capability)
    }

    /// All known architectures, oldest first.
    pub fn all() -> &'static [Self] {
        ARCHITECTURES
    }

    /// How much of a second-level cache of this size can be set aside for persisting accesses.
    ///
    /// Five eighths on the capabilities of HBM boards (an H200 answers 39,321,600 of 62,914,560)
    /// and eleven sixteenths on the others (an RTX 4090 answers 51,904,512 of 75,497,472). Cards
    /// before 8.0 cannot do it.
    pub fn persisting_l2_cache_max_bytes(&self, l2_cache_bytes: u32) -> u32 {
        match (self.capability.major, self.capability.minor) {
            (..=7, _) => 0,
            (8, 0) | (9, _) | (10, _) => l2_cache_bytes / 8 * 5,
            _ => l2_cache_bytes / 16 * 11,
        }
    }
}

/// One row of the table. Shared memory is in KiB, as in the guide.
const fn row(
    capability: (u32, u32),
    family: &'static str,
    threads: u32,
    blocks: u32,
    shared_kib: u32,
    optin_kib: u32,
) -> Architecture {
    Architecture {
        capability: Capability::new(capability.0, capability.1),
        family,
        max_threads_per_multiprocessor: threads,
        max_blocks_per_multiprocessor: blocks,
        shared_memory_per_multiprocessor_bytes: shared_kib * KIB,
        shared_memory_per_block_optin_bytes: optin_kib * KIB,
        // Since 8.0 the system keeps 1 KiB for itself: that is why 100 KiB give 99.
        reserved_shared_memory_per_block_bytes: if capability.0 >= 8 { KIB } else { 0 },
    }
}

#[rustfmt::skip]
const ARCHITECTURES: &[Architecture] = &[
    //  capability family     threads blocks shared opt-in
    row((5, 0), "Maxwell",      2048,  32,    64,    48),
    row((5, 2), "Maxwell",      2048,  32,    96,    48),
    row((6, 0), "Pascal",       2048,  32,    64,    48),
    row((6, 1), "Pascal",       2048,  32,    96,    48),
    row((7, 0), "Volta",        2048,  32,    96,    96),
    row((7, 5), "Turing",       1024,  16,    64,    64),
    row((8, 0), "Ampere",       2048,  32,   164,   163),
    row((8, 6), "Ampere",       1536,  16,   100,    99),
    row((8, 7), "Ampere",       1536,  16,   164,   163),
    row((8, 9), "Ada",          1536,  24,   100,    99),
    row((9, 0), "Hopper",       2048,  32,   228,   227),
    row((10, 0), "Blackwell",   2048,  32,   228,   227),
    row((10, 3), "Blackwell",   2048,  32,   228,   227),
    row((11, 0), "Blackwell",   1536,  24,   228,   227),
    row((12, 0), "Blackwell",   1536,  24,   100,    99),
    row((12, 1), "Blackwell",   1536,  24,   100,    99),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(major: u32, minor: u32) -> &'static Architecture {
        Architecture::of(Capability::new(major, minor)).expect("in the table")
    }

    #[test]
    fn capability_9_0_is_what_a_real_h200_answers() {
        let hopper = of(9, 0);
        assert_eq!(hopper.max_threads_per_multiprocessor, 2048);
        assert_eq!(hopper.max_blocks_per_multiprocessor, 32);
        assert_eq!(hopper.shared_memory_per_multiprocessor_bytes, 233_472);
        assert_eq!(hopper.shared_memory_per_block_optin_bytes, 232_448);
        assert_eq!(hopper.reserved_shared_memory_per_block_bytes, 1_024);
        assert_eq!(hopper.persisting_l2_cache_max_bytes(62_914_560), 39_321_600);
    }

    #[test]
    fn capability_7_5_is_what_a_real_rtx_2080_answers() {
        let turing = of(7, 5);
        assert_eq!(turing.max_threads_per_multiprocessor, 1024);
        assert_eq!(turing.max_blocks_per_multiprocessor, 16);
        assert_eq!(turing.shared_memory_per_multiprocessor_bytes, 65_536);
        assert_eq!(turing.shared_memory_per_block_optin_bytes, 65_536);
        assert_eq!(turing.reserved_shared_memory_per_block_bytes, 0);
        assert_eq!(turing.persisting_l2_cache_max_bytes(4 << 20), 0);
    }

    #[test]
    fn a_4090_can_set_aside_eleven_sixteenths_of_its_cache() {
        assert_eq!(
            of(8, 9).persisting_l2_cache_max_bytes(75_497_472),
            51_904_512
        );
    }

    #[test]
    fn a_block_never_gets_more_than_the_multiprocessor_has_left() {
        for architecture in Architecture::all() {
            assert!(
                architecture.shared_memory_per_block_optin_bytes
                    + architecture.reserved_shared_memory_per_block_bytes
                    <= architecture.shared_memory_per_multiprocessor_bytes,
                "{architecture:?}"
            );
            assert!(
                architecture.shared_memory_per_block_optin_bytes >= SHARED_MEMORY_PER_BLOCK_BYTES
            );
        }
    }

    #[test]
    fn resident_threads_come_in_whole_warps_and_a_block_of_1024_fits() {
        for architecture in Architecture::all() {
            assert_eq!(architecture.max_threads_per_multiprocessor % 32, 0);
            assert!(architecture.max_threads_per_multiprocessor >= 1024);
        }
    }

    #[test]
    fn every_capability_is_listed_once_and_in_order() {
        assert!(Architecture::all().is_sorted_by(|a, b| a.capability < b.capability));
    }

    #[test]
    fn kepler_is_not_in_the_table() {
        assert_eq!(Architecture::of(Capability::new(3, 7)), None);
    }
}
