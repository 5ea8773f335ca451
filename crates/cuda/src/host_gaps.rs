//! Gaps that tensors leave in the host's address space when they move to the card.
//!
//! Card and host share one address space, and the real driver takes addresses from the top. A model
//! that was built on the host before CUDA started lies above everything that the driver has taken;
//! each of its tensors that moves to the card and is freed leaves a gap there, and the next segments go
//! into it, above their elders (`ground_truth/harness/segment_addresses.py` shows it). PyTorch prefers
//! blocks at low addresses, so this decides which block is reused.
//!
//! The host part of the script is the real thing here, so the gaps are there too: they are found by
//! looking at what the process has mapped. Only gaps in which a copy to the card began count. Positions
//! are told relative to the first such copy, so that they do not depend on where the system has put
//! the process this time.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::state::VirtualDevice;

/// The C library maps what is larger than this separately, and unmaps it when it is freed.
const SMALLEST_MAPPED_BYTES: u64 = 128 << 10;
/// Copies of batches would otherwise pile up in a long run.
const MOST_COPIES: usize = 4096;
const HOST_PAGE_BYTES: u64 = 4096;

struct HostMemory {
    /// What was mapped when the first context was made, in ascending order.
    before_cuda: Vec<Range<u64>>,
    /// Where copies to the card began, among what was mapped then.
    copied: Vec<Range<u64>>,
    /// Gaps that a card has filled: its number and where. They are mapped, so that the host leaves them alone.
    filled: Vec<(usize, Range<u64>)>,
}

static HOST_MEMORY: Mutex<Option<HostMemory>> = Mutex::new(None);

fn host_memory() -> MutexGuard<'static, Option<HostMemory>> {
    HOST_MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A context was made: what the process maps from now on lies below it.
pub fn note_context() {
    let mut known = host_memory();
    if known.is_none() {
        *known = Some(HostMemory {
            before_cuda: mapped_now(),
            copied: Vec::new(),
            filled: Vec::new(),
        });
    }
}

/// A copy to the card: its source may be freed soon.
pub fn note_copy(source: u64, bytes: u64) {
    if bytes < SMALLEST_MAPPED_BYTES {
        return;
    }
    let mut known = host_memory();
    let Some(host) = known.as_mut() else { return };
    let is_old = holds(&host.before_cuda, source);
    let is_known = host.copied.iter().any(|copy| copy.contains(&source));
    if is_old && !is_known && host.copied.len() < MOST_COPIES {
        host.copied.push(source..source + bytes);
    }
}

/// Tells the card's memory which gaps there are, if it needs addresses for `bytes` more.
pub fn look_before_taking(card: &VirtualDevice, bytes: u64) {
    let mut known = host_memory();
    let Some(host) = known.as_mut() else { return };
    let Some(first) = host.copied.first() else {
        return;
    };
    let reference = first.end.next_multiple_of(HOST_PAGE_BYTES);
    let mut memory = card.memory();
    if !memory.needs_new_addresses(bytes) {
        return;
    }
    for (offset, bytes) in memory.taken_from_host_gaps() {
        let Some(start) = reference.checked_add_signed(offset) else {
            continue;
        };
        let taken = (card.ordinal, start..start + bytes);
        if !host.filled.contains(&taken) {
            fill(&taken.1);
            host.filled.push(taken);
        }
    }
    let own: Vec<Range<u64>> = host
        .filled
        .iter()
        .filter(|(ordinal, _)| *ordinal == card.ordinal)
        .map(|(_, range)| range.clone())
        .collect();
    let gaps = gaps(&host.before_cuda, &host.copied, &mapped_now(), &own);
    let relative = |address: u64| address.wrapping_sub(reference) as i64;
    memory.set_host_gaps(
        gaps.iter()
            .map(|gap| relative(gap.start)..relative(gap.end)),
    );
}

/// The gaps among what was mapped before CUDA started that hold the source of a copy, without the
/// space that lay empty before. What the card itself has filled counts as empty.
fn gaps(
    before_cuda: &[Range<u64>],
    copied: &[Range<u64>],
    now: &[Range<u64>],
    own: &[Range<u64>],
) -> Vec<Range<u64>> {
    let mut empty = Vec::new();
    let mut end_of_last = 0;
    for mapping in now {
        for part in without(mapping, own) {
            if part.start > end_of_last {
                empty.push(end_of_last..part.start);
            }
            end_of_last = end_of_last.max(part.end);
        }
    }
    empty.retain(|gap| copied.iter().any(|copy| gap.contains(&copy.start)));
    for gap in &mut empty {
        let inside = |old: &&Range<u64>| old.start < gap.end && gap.start < old.end;
        let lowest = before_cuda.iter().find(inside);
        let highest = before_cuda.iter().rfind(inside);
        if let (Some(lowest), Some(highest)) = (lowest, highest) {
            *gap = gap.start.max(lowest.start)..gap.end.min(highest.end);
        }
    }
    empty
}

/// The parts of `range` that are in none of `others`.
fn without(range: &Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = vec![range.clone()];
    for other in others {
        parts = parts
            .into_iter()
            .flat_map(|part| {
                let below = part.start..part.end.min(other.start).max(part.start);
                let above = part.start.max(other.end).min(part.end)..part.end;
                [below, above]
            })
            .filter(|part| !part.is_empty())
            .collect();
    }
    parts.sort_unstable_by_key(|part| part.start);
    parts.dedup();
    parts
}

fn holds(ranges: &[Range<u64>], address: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= address);
    after > 0 && ranges[after - 1].contains(&address)
}

/// Everything that the process has mapped, in ascending order.
fn mapped_now() -> Vec<Range<u64>> {
    parse(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

fn parse(maps: &str) -> Vec<Range<u64>> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines()
        .filter_map(|line| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            Some(number(start)?..number(end)?)
        })
        .collect()
}

/// Maps nothing at `range`, if it is still empty. If the host was faster it keeps it: the card's
/// addresses are not these but their images, so nothing collides.
fn fill(range: &Range<u64>) {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let Ok(bytes) = usize::try_from(range.end - range.start) else {
        return;
    };
    // SAFETY: the mapping is without access rights and replaces none.
    unsafe { libc::mmap(range.start as *mut _, bytes, libc::PROT_NONE, flags, -1, 0) };
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are compared"
)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_from_the_systems_list() {
        let list = "7f00-7f80 rw-p 00000000 00:00 0 \n7f80-8000 r--p 00000000 08:01 7 /lib/x.so\n";
        assert_eq!(parse(list), [0x7f00..0x7f80, 0x7f80..0x8000]);
        assert!(!mapped_now().is_empty());
    }

    #[test]
    fn a_freed_tensor_leaves_a_gap_and_empty_space_beside_it_does_not_count() {
        let before = [100..200, 200..300, 500..600];
        let copied = [210..290, 110..190];
        let still_there = [100..200, 500..600];
        assert_eq!(gaps(&before, &copied, &still_there, &[]), [200..300]);
        assert_eq!(gaps(&before, &copied, &before, &[]), []);
        assert_eq!(gaps(&before, &copied, &[500..600], &[]), [100..300]);
    }

    #[test]
    fn a_gap_without_a_copy_is_no_gap() {
        let before = [100..200, 300..400];
        assert_eq!(gaps(&before, &[310..390], &before[1..], &[]), []);
    }

    #[test]
    fn what_the_card_itself_fills_is_still_a_gap() {
        let before = [100..300, 500..600];
        let now = [150..200, 500..600];
        let copied = [110..290, 510..520];
        let own = [150..200, 170..180];
        assert_eq!(gaps(&before, &copied, &now, &own), [100..300]);
        assert_eq!(gaps(&before, &copied, &now, &[]), [100..150]);
    }
}
