//! Address space for the cards' memory: reserved from the kernel, never backed by anything.
//!
//! The reservation keeps the addresses from being used for host memory, and makes a program fault that
//! reads device memory from the host, as with a real card.

use ghostgpu_device::{DeviceSheet, PAGE_BYTES};

/// The addresses of one card.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub start: u64,
    pub bytes: u64,
}

/// All cards together stay well below the 128 TiB that a process has. A card needs many times its
/// size: when PyTorch's segments are expandable, it reserves 1⅛ times the card's memory for each
/// stream and each pool of a CUDA graph, and a program may have hundreds of these.
const ALL_WINDOWS_BYTES: u64 = 64 << 40;

pub fn reserve(cards: &[DeviceSheet]) -> Option<Vec<Window>> {
    let share = ALL_WINDOWS_BYTES / (cards.len() as u64).max(1);
    cards
        .iter()
        .map(|card| reserve_one(share, card.total_bytes))
        .collect()
}

/// Reserves as much as the system allows (it may cap a process's address space), down to twice the
/// card's memory.
fn reserve_one(wanted: u64, card_bytes: u64) -> Option<Window> {
    let least = (card_bytes * 2).next_multiple_of(PAGE_BYTES);
    let mut bytes = wanted.max(least).next_multiple_of(PAGE_BYTES);
    loop {
        if let Some(start) = map_nothing(bytes + PAGE_BYTES) {
            return Some(Window {
                start: start.next_multiple_of(PAGE_BYTES),
                bytes,
            });
        }
        if bytes == least {
            eprintln!(
                "ghostgpu: the system refuses {least} bytes of address space for a virtual card\n\n\
                 hint: raise the limit on virtual memory (`ulimit -v unlimited`)"
            );
            return None;
        }
        bytes = (bytes / 2).next_multiple_of(PAGE_BYTES).max(least);
    }
}

fn map_nothing(bytes: u64) -> Option<u64> {
    // SAFETY: a new anonymous mapping without access rights touches no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            usize::try_from(bytes).ok()?,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (start != libc::MAP_FAILED).then_some(start as u64)
}

#[cfg(test)]
mod tests {
    use ghostgpu_device::Catalogue;

    use super::*;

    #[test]
    fn a_card_has_addresses_for_hundreds_of_expandable_segments() {
        let card = Catalogue::builtin().find("h200").expect("a card").sheet();
        let windows = reserve(std::slice::from_ref(&card)).expect("address space");
        let segment = card.total_bytes / 8 * 9;
        assert!(windows[0].bytes / segment >= 300, "{windows:?}");
    }
}
