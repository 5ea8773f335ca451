//! The layout of `card.usage`: how much of each virtual card is used, shared by all processes of a run.
//!
//! The library maps the file and updates it with atomic operations; the command line creates it and
//! reads it when the script has ended. All numbers are 64-bit little-endian.
//!
//! ```text
//! 0      magic
//! 8      number of devices
//! 16     number of slots that were ever claimed
//! 24     what others use of every device from the start; not part of the job's own use
//! 64     per device: bytes in use now, peak bytes in use
//! 1088   per process: process id with its start time in the upper half (0 = free slot), then for each device: bytes in
//!        use, the peak of this process, what it used when the card's use was highest
//! ```

use std::path::{Path, PathBuf};

pub const USAGE_FILE: &str = "card.usage";
pub const MAX_DEVICES: usize = 64;
pub const MAX_PROCESSES: usize = 256;
/// "GHOSTUS1", read as a little-endian number.
pub const USAGE_MAGIC: u64 = u64::from_le_bytes(*b"GHOSTUS1");
/// Set in the process number of a slot whose process has ended. The slot is reused only when no other is free, because
/// what its process used is read at the end of the run.
pub const ENDED: u64 = 1 << 63;

/// The lower bits of a slot's process number that are the process id. The bits above them are its start time.
pub const PROCESS_ID_BITS: u32 = 32;

/// The id in a slot's process number.
pub const fn process_id(number: u64) -> u32 {
    number as u32
}

const WORD: usize = 8;
const HEADER_BYTES: usize = 64;
const SLOTS_OFFSET: usize = HEADER_BYTES + MAX_DEVICES * 2 * WORD;
const SLOT_BYTES: usize = WORD + MAX_DEVICES * 3 * WORD;
pub const USAGE_BYTES: usize = SLOTS_OFFSET + MAX_PROCESSES * SLOT_BYTES;

/// Byte offsets of the fields of the usage file.
pub mod offset {
    use super::{HEADER_BYTES, SLOT_BYTES, SLOTS_OFFSET, WORD};

    pub const fn device_used(device: usize) -> usize {
        HEADER_BYTES + device * 2 * WORD
    }

    pub const fn device_peak(device: usize) -> usize {
        device_used(device) + WORD
    }

    pub const fn slot_process(slot: usize) -> usize {
        SLOTS_OFFSET + slot * SLOT_BYTES
    }

    pub const SLOTS_CLAIMED: usize = 2 * WORD;

    pub const HELD_BY_OTHERS: usize = 3 * WORD;

    pub const fn slot_used(slot: usize, device: usize) -> usize {
        slot_process(slot) + WORD + device * 3 * WORD
    }

    pub const fn slot_peak(slot: usize, device: usize) -> usize {
        slot_used(slot, device) + WORD
    }

    pub const fn slot_at_card_peak(slot: usize, device: usize) -> usize {
        slot_peak(slot, device) + WORD
    }
}

/// What the job uses of one card, without what others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardUse {
    pub used_bytes: u64,
    pub peak_bytes: u64,
}

/// What a process has used on one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUse {
    pub process: u32,
    pub device: usize,
    /// What it uses now, if it is still running.
    pub used_bytes: u64,
    pub peak_bytes: u64,
    /// What it used when the use of the card by all processes was highest.
    pub at_card_peak_bytes: u64,
}

/// Why a usage file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    #[error("cannot access the usage file {path}: {source}")]
    Access {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the usage file {path} is damaged")]
    Damaged { path: PathBuf },
}

/// Creates an empty usage file in the run folder.
pub fn create_usage_file(run_dir: &Path, devices: usize) -> Result<(), UsageError> {
    let mut bytes = vec![0; USAGE_BYTES];
    bytes[..WORD].copy_from_slice(&USAGE_MAGIC.to_le_bytes());
    bytes[WORD..2 * WORD].copy_from_slice(&(devices as u64).to_le_bytes());
    let path = run_dir.join(USAGE_FILE);
    std::fs::write(&path, bytes).map_err(|source| UsageError::Access { path, source })
}

/// Marks this much of every card as used by others (a desktop, another job) from the start. The script finds it in use;
/// [`read_card_use`] does not count it.
pub fn hold_for_others(run_dir: &Path, held_bytes: u64) -> Result<(), UsageError> {
    let words = Words::read(run_dir)?;
    let mut bytes = words.bytes;
    let mut put = |offset: usize| {
        bytes[offset..offset + WORD].copy_from_slice(&held_bytes.to_le_bytes());
    };
    put(offset::HELD_BY_OTHERS);
    for device in 0..words.devices {
        put(offset::device_used(device));
        put(offset::device_peak(device));
    }
    let path = run_dir.join(USAGE_FILE);
    std::fs::write(&path, bytes).map_err(|source| UsageError::Access { path, source })
}

/// Reads what the job uses of every card and its peak, in device order.
pub fn read_card_use(run_dir: &Path) -> Result<Vec<CardUse>, UsageError> {
    let words = Words::read(run_dir)?;
    let others = words.at(offset::HELD_BY_OTHERS);
    let own = |offset: usize| words.at(offset).saturating_sub(others);
    let cards = (0..words.devices).map(|device| CardUse {
        used_bytes: own(offset::device_used(device)),
        peak_bytes: own(offset::device_peak(device)),
    });
    Ok(cards.collect())
}

/// Reads what each process has used on each card, including processes that have ended.
pub fn read_process_use(run_dir: &Path) -> Result<Vec<ProcessUse>, UsageError> {
    let words = Words::read(run_dir)?;
    let slots = (0..MAX_PROCESSES).filter(|&slot| words.at(offset::slot_process(slot)) != 0);
    let uses = slots.flat_map(|slot| {
        let words = &words;
        (0..words.devices).map(move |device| ProcessUse {
            process: process_id(words.at(offset::slot_process(slot))),
            device,
            used_bytes: words.at(offset::slot_used(slot, device)),
            peak_bytes: words.at(offset::slot_peak(slot, device)),
            at_card_peak_bytes: words.at(offset::slot_at_card_peak(slot, device)),
        })
    });
    Ok(uses.filter(|each| each.peak_bytes > 0).collect())
}

/// A usage file with a valid length and header.
struct Words {
    bytes: Vec<u8>,
    devices: usize,
}

impl Words {
    fn read(run_dir: &Path) -> Result<Self, UsageError> {
        let path = run_dir.join(USAGE_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(UsageError::Access { path, source }),
        };
        let mut words = Self { bytes, devices: 0 };
        let is_usage_file = words.bytes.len() == USAGE_BYTES && words.at(0) == USAGE_MAGIC;
        words.devices = match usize::try_from(words.at(WORD)) {
            Ok(devices) if is_usage_file && devices <= MAX_DEVICES => devices,
            _ => return Err(UsageError::Damaged { path }),
        };
        Ok(words)
    }

    /// The number at an offset; 0 beyond the end.
    fn at(&self, offset: usize) -> u64 {
        let field = self.bytes.get(offset..offset + WORD);
        field
            .and_then(|field| field.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], offset: usize, value: u64) {
        bytes[offset..offset + WORD].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn a_fresh_file_reads_as_unused_cards() {
        let folder = tempfile::tempdir().expect("folder");
        create_usage_file(folder.path(), 2).expect("written");
        let unused = CardUse {
            used_bytes: 0,
            peak_bytes: 0,
        };
        assert_eq!(
            read_card_use(folder.path()).expect("valid"),
            [unused, unused]
        );
    }

    #[test]
    fn counters_are_read_from_the_offsets_they_were_written_to() {
        let folder = tempfile::tempdir().expect("folder");
        create_usage_file(folder.path(), 2).expect("written");
        let path = folder.path().join(USAGE_FILE);
        let mut bytes = std::fs::read(&path).expect("file");
        put(&mut bytes, offset::device_used(0), 10);
        put(&mut bytes, offset::device_peak(1), 1 << 40);
        put(&mut bytes, offset::slot_process(0), 4321);
        put(&mut bytes, offset::slot_process(7), 4322 | ENDED);
        put(&mut bytes, offset::slot_used(7, 1), 15);
        put(&mut bytes, offset::slot_peak(7, 1), 30);
        put(&mut bytes, offset::slot_at_card_peak(7, 1), 20);
        std::fs::write(&path, bytes).expect("file");
        let cards = read_card_use(folder.path()).expect("valid");
        assert_eq!(cards[0].used_bytes, 10);
        assert_eq!(cards[1].peak_bytes, 1 << 40);
        let ended = ProcessUse {
            process: 4322,
            device: 1,
            used_bytes: 15,
            peak_bytes: 30,
            at_card_peak_bytes: 20,
        };
        assert_eq!(read_process_use(folder.path()).expect("valid"), [ended]);
    }

    #[test]
    fn what_others_hold_is_in_use_but_is_not_the_jobs() {
        let folder = tempfile::tempdir().expect("folder");
        create_usage_file(folder.path(), 2).expect("written");
        hold_for_others(folder.path(), 1 << 30).expect("written");
        let path = folder.path().join(USAGE_FILE);
        let mut bytes = std::fs::read(&path).expect("file");
        let used = |bytes: &[u8], device| {
            let at = offset::device_used(device);
            u64::from_le_bytes(bytes[at..at + WORD].try_into().expect("a word"))
        };
        assert_eq!((used(&bytes, 0), used(&bytes, 1)), (1 << 30, 1 << 30));
        put(&mut bytes, offset::device_peak(1), (1 << 30) + 70);
        std::fs::write(&path, bytes).expect("file");
        let peaks: Vec<u64> = read_card_use(folder.path())
            .expect("valid")
            .iter()
            .map(|card| card.peak_bytes)
            .collect();
        assert_eq!(peaks, [0, 70]);
        assert_eq!(read_process_use(folder.path()).expect("valid"), []);
    }

    #[test]
    fn regions_follow_each_other_without_overlap() {
        assert_eq!(offset::device_used(0), HEADER_BYTES);
        assert_eq!(
            offset::device_peak(MAX_DEVICES - 1) + WORD,
            offset::slot_process(0)
        );
        assert_eq!(
            offset::slot_at_card_peak(0, MAX_DEVICES - 1) + WORD,
            offset::slot_process(1)
        );
        assert_eq!(
            offset::slot_at_card_peak(MAX_PROCESSES - 1, MAX_DEVICES - 1) + WORD,
            USAGE_BYTES
        );
    }

    #[test]
    fn missing_and_damaged_files_are_distinguished() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join(USAGE_FILE);
        assert!(matches!(
            read_card_use(folder.path()),
            Err(UsageError::Access { .. })
        ));
        create_usage_file(folder.path(), MAX_DEVICES + 1).expect("written");
        assert!(matches!(
            read_card_use(folder.path()),
            Err(UsageError::Damaged { .. })
        ));
        std::fs::write(&path, "short").expect("file");
        assert!(matches!(
            read_card_use(folder.path()),
            Err(UsageError::Damaged { .. })
        ));
    }
}
