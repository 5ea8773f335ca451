//! The blocks that PyTorch's allocator has handed out, by address.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recorder;

static BLOCKS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn note_allocated(address: u64, bytes: u64) {
    if recorder::is_on() {
        blocks().insert(address, bytes);
    }
}

pub fn note_freed(address: u64) {
    if recorder::is_on() {
        blocks().remove(&address);
    }
}

/// For each value, the bytes from it to the end of its block; `None` if it is not an address in a block.
pub fn sizes_of(values: &[u64]) -> Vec<Option<u64>> {
    let blocks = blocks();
    let (Some((&first, _)), Some((&last, &last_bytes))) =
        (blocks.first_key_value(), blocks.last_key_value())
    else {
        return vec![None; values.len()];
    };
    let size = |value: u64| {
        if !(first..last + last_bytes).contains(&value) {
            return None;
        }
        let (&begin, &bytes) = blocks.range(..=value).next_back()?;
        (begin + bytes)
            .checked_sub(value)
            .filter(|&bytes| bytes > 0)
    };
    values.iter().map(|&value| size(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_with_its_block() {
        for (address, bytes) in [(0x7000, 512), (0x8000, 1024)] {
            note_allocated(address, bytes);
        }
        assert_eq!(
            sizes_of(&[0x8000, 0x8100, 0x7000]),
            [Some(1024), Some(768), Some(512)]
        );
        assert_eq!(sizes_of(&[0x7200, 0x6fff, 0x8400, 0, u64::MAX]), [None; 5]);
        note_freed(0x8000);
        assert_eq!(sizes_of(&[0x8000]), [None]);
    }
}
