//! Bytes that go to the card and straight back, with nothing but copies in between.
//!
//! `DistributedDataParallel` agrees with the other ranks on shapes and buckets that way, in C++: a
//! copy to the card, a collective, which with one rank is a copy on it, and a copy back. The answer
//! is what was sent. It is kept here until anything runs that might write to the card, so that no
//! old content can be mistaken for new; all other reads are zeros, as ever.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Larger copies are data, not agreements.
const MAX_BYTES: usize = 64 << 10;

/// Copies kept at a time; an agreement takes two.
const MAX_COPIES: usize = 8;

/// What lies at an address of the card.
#[derive(Debug)]
struct Content {
    address: u64,
    bytes: Vec<u8>,
}

impl Content {
    fn end(&self) -> u64 {
        self.address + self.bytes.len() as u64
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.address < other.end() && other.address < self.end()
    }
}

static CONTENTS: Mutex<VecDeque<Content>> = Mutex::new(VecDeque::new());

/// Whether there is anything in `CONTENTS`: kernels are launched thousands of times a second.
static HAS_CONTENTS: AtomicBool = AtomicBool::new(false);

fn insert(content: Content) {
    if let Ok(mut contents) = CONTENTS.lock() {
        contents.retain(|each| !each.overlaps(&content));
        contents.truncate(MAX_COPIES - 1);
        contents.push_front(content);
        HAS_CONTENTS.store(true, Ordering::Release);
    }
}

/// The host copies `bytes` to the card.
pub fn sent(address: u64, bytes: &[u8]) {
    if bytes.len() > MAX_BYTES {
        return forget_all();
    }
    insert(Content {
        address,
        bytes: bytes.to_vec(),
    });
}

/// `length` bytes are copied on the card, by a copy or by a collective of one rank.
pub fn handed_on(source: u64, target: u64, length: usize) {
    if !HAS_CONTENTS.load(Ordering::Acquire) {
        return;
    }
    match read(source, length) {
        Some(bytes) => insert(Content {
            address: target,
            bytes,
        }),
        None => forget_all(),
    }
}

/// The host reads from the card: what is known to be there.
pub fn read(address: u64, length: usize) -> Option<Vec<u8>> {
    if !HAS_CONTENTS.load(Ordering::Acquire) {
        return None;
    }
    let contents = CONTENTS.lock().ok()?;
    contents.iter().find_map(|each| {
        let start = usize::try_from(address.checked_sub(each.address)?).ok()?;
        let part = each.bytes.get(start..start.checked_add(length)?)?;
        Some(part.to_vec())
    })
}

/// Something runs on the card, and may write anywhere.
pub fn forget_all() {
    if HAS_CONTENTS.swap(false, Ordering::AcqRel)
        && let Ok(mut contents) = CONTENTS.lock()
    {
        contents.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contents are those of the process: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn what_was_sent_is_read_back_until_something_runs() {
        let _alone = ALONE.lock();
        sent(0x1000, b"shapes");
        handed_on(0x1000, 0x2000, 6);
        assert_eq!(read(0x2000, 6).as_deref(), Some(&b"shapes"[..]));
        assert_eq!(read(0x2002, 2).as_deref(), Some(&b"ap"[..]));
        assert_eq!(read(0x2002, 6), None);
        forget_all();
        assert_eq!(read(0x2000, 6), None);
    }

    #[test]
    fn an_unknown_source_makes_its_target_unknown() {
        let _alone = ALONE.lock();
        sent(0x1000, b"shapes");
        handed_on(0x1000, 0x1000, 6);
        assert!(read(0x1000, 6).is_some());
        handed_on(0x9000, 0x1000, 6);
        assert_eq!(read(0x1000, 6), None);
    }

    #[test]
    fn only_a_few_small_copies_are_kept() {
        let _alone = ALONE.lock();
        forget_all();
        for address in 0..100 {
            sent(address, b"x");
        }
        assert_eq!(CONTENTS.lock().expect("lock").len(), MAX_COPIES);
        sent(0x1000, b"longer");
        sent(0x1004, b"new");
        handed_on(0x1000, 0x3000, 6);
        assert_eq!(read(0x3000, 6), None, "half of it is new");
        sent(0x1000, &[0; MAX_BYTES + 1]);
        assert!(CONTENTS.lock().expect("lock").is_empty());
    }
}
