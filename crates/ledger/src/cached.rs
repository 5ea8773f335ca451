//! Cached memory at a moment: what could be returned to the driver, and what live blocks keep from it.

use ghostgpu_recording::{Allocation, ReservedRanges};

/// Bytes of reserved ranges without any live block, which could be returned to the driver.
pub(crate) fn releasable_bytes<'a>(
    reserved: &ReservedRanges,
    live: impl Iterator<Item = &'a Allocation>,
) -> u64 {
    let mut blocks: Vec<(u64, u64)> = live
        .filter(|one| one.block_bytes > 0)
        .map(|one| (one.address, one.address.saturating_add(one.block_bytes)))
        .collect();
    blocks.sort_unstable();
    let mut next = 0;
    let mut sum = 0_u64;
    for range in reserved.iter() {
        let (begin, end) = (range.address, range.end());
        while blocks.get(next).is_some_and(|block| block.1 <= begin) {
            next += 1;
        }
        let is_used = blocks.get(next).is_some_and(|block| block.0 < end);
        if !is_used {
            sum = sum.saturating_add(end - begin);
        }
    }
    sum
}
