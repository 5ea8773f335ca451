//! Bytes that go to the card and straight back, with only copies and collectives in between.
//!
//! `DistributedDataParallel` agrees with the other ranks on shapes and buckets that way, in C++: a
//! copy to the card, a collective, and a copy back. With one rank the result is what was sent; with
//! several it follows from what all of them sent ([`Coming`]). The bytes are kept here until anything
//! runs that might write to the card, so that old content cannot be mistaken for new; all other reads
//! return zeros.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Larger copies are data, not agreements.
pub const MAX_BYTES: usize = 64 << 10;

/// How many copies are kept at a time. An agreement takes two plus one per rank, and there may be thousands of ranks.
const MAX_COPIES: usize = 1 << 13;

/// The result of a collective to which other ranks contribute.
pub trait Coming: Send + Sync {
    /// Waits for the result. `None` if a rank does not know what it sends.
    fn arrive(&self) -> Option<Vec<u8>>;
}

#[derive(Clone)]
enum Bytes {
    Here(Vec<u8>),
    /// The part of a collective's result that starts at this byte.
    Coming(Arc<dyn Coming>, usize),
}

/// The known content at an address of the card.
struct Content {
    address: u64,
    length: usize,
    bytes: Bytes,
}

impl Content {
    fn end(&self) -> u64 {
        self.address + self.length as u64
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.address < other.end() && other.address < self.end()
    }

    fn part(&self, address: u64, length: usize) -> Option<Bytes> {
        let start = usize::try_from(address.checked_sub(self.address)?).ok()?;
        let end = start.checked_add(length)?;
        match &self.bytes {
            Bytes::Here(bytes) => Some(Bytes::Here(bytes.get(start..end)?.to_vec())),
            Bytes::Coming(coming, offset) => {
                (end <= self.length).then(|| Bytes::Coming(Arc::clone(coming), offset + start))
            }
        }
    }
}

static CONTENTS: Mutex<VecDeque<Content>> = Mutex::new(VecDeque::new());

/// Whether `CONTENTS` is not empty. Checked at every kernel launch, thousands of times a second.
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
        length: bytes.len(),
        bytes: Bytes::Here(bytes.to_vec()),
    });
}

/// A collective of several ranks writes `length` bytes.
pub fn comes(address: u64, length: usize, coming: Arc<dyn Coming>) {
    insert(Content {
        address,
        length,
        bytes: Bytes::Coming(coming, 0),
    });
}

/// `length` bytes are copied on the card, by a copy or by a collective of one rank.
pub fn handed_on(source: u64, target: u64, length: usize) {
    if !HAS_CONTENTS.load(Ordering::Acquire) {
        return;
    }
    match find(source, length) {
        Some(bytes) => insert(Content {
            address: target,
            length,
            bytes,
        }),
        None => forget_all(),
    }
}

fn find(address: u64, length: usize) -> Option<Bytes> {
    if !HAS_CONTENTS.load(Ordering::Acquire) {
        return None;
    }
    let contents = CONTENTS.lock().ok()?;
    contents.iter().find_map(|each| each.part(address, length))
}

/// The host reads from the card: returns the known content, and waits for other ranks if it depends on them.
pub fn read(address: u64, length: usize) -> Option<Vec<u8>> {
    match find(address, length)? {
        Bytes::Here(bytes) => Some(bytes),
        Bytes::Coming(coming, start) => {
            let bytes = coming.arrive()?;
            Some(bytes.get(start..start.checked_add(length)?)?.to_vec())
        }
    }
}

/// The content at an address that is known without waiting for other ranks.
pub fn read_at_once(address: u64, length: usize) -> Option<Vec<u8>> {
    match find(address, length)? {
        Bytes::Here(bytes) => Some(bytes),
        Bytes::Coming(..) => None,
    }
}

/// Something runs on the card that may write anywhere.
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

    /// The contents are global: these tests run one at a time.
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
    fn contributions_of_other_ranks_are_fetched_when_they_are_read() {
        struct Gathered;
        impl Coming for Gathered {
            fn arrive(&self) -> Option<Vec<u8>> {
                Some(b"onetwo".to_vec())
            }
        }
        let _alone = ALONE.lock();
        forget_all();
        comes(0x1000, 6, Arc::new(Gathered));
        handed_on(0x1003, 0x2000, 3);
        assert_eq!(read(0x2000, 3).as_deref(), Some(&b"two"[..]));
        assert_eq!(read(0x1001, 4).as_deref(), Some(&b"netw"[..]));
        assert_eq!(read(0x1001, 6), None, "that is more than comes");
        assert_eq!(read_at_once(0x2000, 3), None);
        forget_all();
    }

    #[test]
    fn only_so_many_small_copies_are_kept() {
        let _alone = ALONE.lock();
        forget_all();
        for address in 0..MAX_COPIES as u64 + 10 {
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
