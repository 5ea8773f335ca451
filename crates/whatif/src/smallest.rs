//! The least memory at which a recorded program ends.

use ghostgpu_allocator::replay::WhatIf;
use ghostgpu_device::HostLayout;

use crate::history::{History, Question};

/// PyTorch gets its memory in multiples of this.
const GRANULE_BYTES: u64 = 2 << 20;

/// How many granules above the smallest memory must be enough as well. With a little more memory, segments lie
/// elsewhere, and a program that completes with less may fail: the smallest memory is above such a gap.
const ENOUGH_FROM_HERE: u64 = 4;

/// What is added to a memory below what the program allocates, as one part of so many. It ends there because it
/// replaces workspaces, and of 65 trainings on an H200 one needed 4 MiB of 1,216 more than it does here.
const ADDED_PART: u64 = 200;

/// A ResNet on an H200 took its first pages of code before its 8th, 16th and 24th segment.
const CODE_RHYTHMS: [u64; 3] = [4, 8, 16];

impl History {
    /// What the program does where the allocator can get this much from the driver.
    pub fn with_memory(&self, bytes: u64) -> WhatIf {
        self.with_memory_in(bytes, HostLayout::default())
    }

    fn with_memory_in(&self, bytes: u64, layout: HostLayout) -> WhatIf {
        self.ask(&Question {
            capacity_bytes: Some(bytes),
            layout,
            ..self.question()
        })
    }

    /// Whether the program also ends with this much where the host's own memory lies differently, and segments
    /// with it.
    pub fn ends_in_other_layouts(&self, bytes: u64) -> bool {
        HostLayout::ALL
            .into_iter()
            .filter(|layout| *layout != HostLayout::default())
            .all(|layout| self.with_memory_in(bytes, layout).failure.is_none())
    }

    /// Whether the program also ends with this much where the code of kernels lies between its segments. When the
    /// driver takes memory for code is not known, so several rhythms are tried.
    pub fn ends_beside_code(&self, bytes: u64) -> bool {
        CODE_RHYTHMS.into_iter().all(|segments| {
            let answer = self.ask(&Question {
                capacity_bytes: Some(bytes),
                code_before_every: Some(segments),
                ..self.question()
            });
            answer.failure.is_none()
        })
    }

    /// Whether the program requests other workspaces with this much memory, all of them of known sizes.
    fn spares_what_is_known(&self, bytes: u64) -> bool {
        let tight = self.with_memory(bytes);
        tight.largest_replaced_bytes > 0 && tight.largest_unknown_replaced_bytes == 0
    }

    /// The least memory from which on the program ends, a multiple of 2 MiB, wherever the driver puts its
    /// segments; none if it does not even end with unlimited memory. Less than what it allocates is looked for only
    /// if it ends with exactly that, by requesting other workspaces whose sizes are known.
    pub fn smallest_memory(&self) -> Option<u64> {
        let unlimited = self.ask(&self.question());
        if unlimited.failure.is_some() {
            return None;
        }
        let enough = unlimited.peak_reserved_bytes().div_ceil(GRANULE_BYTES);
        let allocated = unlimited.peak_allocated_bytes() / GRANULE_BYTES;
        let mut too_little = allocated.checked_sub(1);
        let mut smallest = 0;
        for layout in HostLayout::ALL {
            let ends = |granules: u64| {
                let bytes = granules * GRANULE_BYTES;
                granules >= enough || self.with_memory_in(bytes, layout).failure.is_none()
            };
            // Of the other layouts only matters whether they take more.
            if smallest == 0 || !ends(smallest) {
                smallest = least(too_little, enough, ends);
                if smallest == allocated && self.spares_what_is_known(smallest * GRANULE_BYTES) {
                    smallest = least(None, smallest, ends);
                }
                too_little = smallest.checked_sub(1);
            }
        }
        Some(with_addition(smallest, allocated) * GRANULE_BYTES)
    }

    /// A memory with which the program ends in every layout although it does not with some that are larger but below
    /// `smallest`, its smallest memory. Such a gap above what is allocated may be the replay's own: a rehearsal has to
    /// decide.
    pub fn memory_below_gap(&self, smallest_bytes: u64) -> Option<u64> {
        let unlimited = self.ask(&self.question());
        let allocated = unlimited.peak_allocated_bytes() / GRANULE_BYTES;
        let ends = |granules: u64| {
            let bytes = granules * GRANULE_BYTES;
            let mut layouts = HostLayout::ALL.into_iter();
            layouts.all(|layout| self.with_memory_in(bytes, layout).failure.is_none())
        };
        if allocated * GRANULE_BYTES >= smallest_bytes || !ends(allocated) {
            return None;
        }
        let below = match self.spares_what_is_known(allocated * GRANULE_BYTES) {
            true => least(None, allocated, ends),
            false => allocated,
        };
        Some(with_addition(below, allocated) * GRANULE_BYTES)
    }
}

/// What is asked for, if this is the least with which a program ends that allocates so much.
fn with_addition(smallest: u64, allocated: u64) -> u64 {
    match smallest < allocated {
        true => allocated.min(smallest + smallest.div_ceil(ADDED_PART)),
        false => smallest,
    }
}

/// The least number above `too_little` from which on `completes` holds, as far as the next numbers tell; it holds from
/// `enough` on. Where gaps lie further above, the middles decide which edge is found, so they are rounded as in
/// `ground_truth/verdicts/smallest_limits.py`.
fn least(mut too_little: Option<u64>, enough: u64, completes: impl Fn(u64) -> bool) -> u64 {
    loop {
        let (mut fails, mut found) = (too_little, enough);
        loop {
            let lowest = fails.map_or(0, |fails| fails + 1);
            if lowest >= found {
                break;
            }
            let middle = lowest + (found - lowest - 1) / 2;
            match completes(middle) {
                true => found = middle,
                false => fails = Some(middle),
            }
        }
        let mut above = (found + 1..=found + ENOUGH_FROM_HERE).rev();
        match above.find(|&above| above < enough && !completes(above)) {
            None => return found,
            gap => too_little = gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_by_bisection() {
        for wanted in [0, 1, 2, 17, 499, 500] {
            assert_eq!(least(None, 500, |number| number >= wanted), wanted);
        }
    }

    #[test]
    fn what_fails_a_little_above_is_not_enough() {
        let gaps = |number: u64| number >= 100 && ![103, 107].contains(&number);
        assert_eq!(least(None, 500, gaps), 108);
        // A success far below all others is not looked for.
        assert_eq!(least(None, 500, |number| number >= 100 || number == 7), 100);
    }

    #[test]
    fn what_is_known_to_be_too_little_is_not_looked_at() {
        let ends = |number: u64| {
            assert!(number > 70);
            true
        };
        assert_eq!(least(Some(70), 500, ends), 71);
    }
}
