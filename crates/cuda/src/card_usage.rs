//! The run's usage file, mapped into this process: all processes of a run share the cards.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use ghostgpu_session::card_usage::{
    ENDED, MAX_DEVICES, MAX_PROCESSES, USAGE_BYTES, USAGE_FILE, USAGE_MAGIC, offset,
};

/// The mapped usage file and this process's place in it.
///
/// Both change once, in a forked copy of the script that goes on in a run of its own (see
/// [`CardUsage::continue_in`]); whatever was mapped stays mapped for the life of the process.
pub struct CardUsage {
    base: AtomicPtr<u8>,
    slot: AtomicUsize,
    process: AtomicU64,
}

impl CardUsage {
    /// Maps the usage file of the run in `run_dir` and claims a slot for this process.
    pub fn open(run_dir: &Path) -> Option<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(run_dir.join(USAGE_FILE))
            .ok()?;
        if file.metadata().ok()?.len() != USAGE_BYTES as u64 {
            return None;
        }
        // SAFETY: a fresh shared mapping of a file that is at least as long as the mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                USAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let usage = Self {
            base: AtomicPtr::new(base.cast()),
            slot: AtomicUsize::new(0),
            process: AtomicU64::new(u64::from(std::process::id())),
        };
        if usage.word(0).load(Ordering::Relaxed) != USAGE_MAGIC {
            return None;
        }
        let slot = usage.claim_slot()?;
        usage.slot.store(slot, Ordering::Relaxed);
        Some(usage)
    }

    /// Goes on in the usage file of another run, which shows from then on what this process holds and
    /// has held, as if it had been there from the start. False if that file cannot be used.
    ///
    /// For a forked copy of a process that was alone on its cards, before it has started a thread.
    pub fn continue_in(&self, run_dir: &Path) -> bool {
        let Some(other) = Self::open(run_dir) else {
            return false;
        };
        for device in 0..MAX_DEVICES {
            let held = self
                .word(offset::slot_used(self.slot(), device))
                .load(Ordering::Acquire);
            if other.charge(device, held, None) {
                other.take_over_peaks(self, device);
            }
        }
        self.base
            .store(other.base.load(Ordering::Acquire), Ordering::Release);
        self.slot.store(other.slot(), Ordering::Release);
        self.process.store(other.process(), Ordering::Release);
        true
    }

    /// Has this process's slot, in which nothing has happened yet, tell of the peaks of another.
    fn take_over_peaks(&self, from: &Self, device: usize) {
        for (target, source) in [
            (offset::device_peak(device), offset::device_peak(device)),
            (
                offset::slot_peak(self.slot(), device),
                offset::slot_peak(from.slot(), device),
            ),
            (
                offset::slot_at_card_peak(self.slot(), device),
                offset::slot_at_card_peak(from.slot(), device),
            ),
        ] {
            let value = from.word(source).load(Ordering::Acquire);
            self.word(target).store(value, Ordering::Release);
        }
    }

    fn slot(&self) -> usize {
        self.slot.load(Ordering::Acquire)
    }

    fn process(&self) -> u64 {
        self.process.load(Ordering::Acquire)
    }

    fn word(&self, byte_offset: usize) -> &AtomicU64 {
        debug_assert!(byte_offset.is_multiple_of(8) && byte_offset + 8 <= USAGE_BYTES);
        // SAFETY: inside the mapping, aligned, and only ever accessed as an atomic.
        unsafe { AtomicU64::from_ptr(self.base.load(Ordering::Acquire).add(byte_offset).cast()) }
    }

    fn claim_slot(&self) -> Option<usize> {
        let is_claimed = |slot: usize, from: u64| {
            self.word(offset::slot_process(slot))
                .compare_exchange(from, self.process(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let fresh = (0..MAX_PROCESSES).find(|&slot| is_claimed(slot, 0));
        let slot = fresh.or_else(|| {
            self.sweep_dead_processes();
            (0..MAX_PROCESSES).find(|&slot| {
                let owner = self
                    .word(offset::slot_process(slot))
                    .load(Ordering::Acquire);
                is_ended(owner) && owner != u64::MAX && is_claimed(slot, owner)
            })
        })?;
        for device in 0..MAX_DEVICES {
            for field in [
                offset::slot_peak(slot, device),
                offset::slot_at_card_peak(slot, device),
            ] {
                self.word(field).store(0, Ordering::Release);
            }
        }
        self.word(offset::SLOTS_CLAIMED)
            .fetch_max(slot as u64 + 1, Ordering::AcqRel);
        Some(slot)
    }

    fn slots_claimed(&self) -> usize {
        let claimed = self.word(offset::SLOTS_CLAIMED).load(Ordering::Acquire);
        (claimed as usize).min(MAX_PROCESSES)
    }

    /// What is in use on a card now. What ended processes held is free again.
    pub fn used_bytes(&self, device: usize) -> u64 {
        self.sweep_dead_processes();
        self.word(offset::device_used(device))
            .load(Ordering::Acquire)
    }

    pub fn peak_bytes(&self, device: usize) -> u64 {
        self.word(offset::device_peak(device))
            .load(Ordering::Acquire)
    }

    /// What each process of the run uses on a card: (process number, bytes).
    pub fn used_by_process(&self, device: usize) -> Vec<(u32, u64)> {
        self.sweep_dead_processes();
        (0..self.slots_claimed())
            .filter_map(|slot| {
                let process = self
                    .word(offset::slot_process(slot))
                    .load(Ordering::Acquire);
                let used = self
                    .word(offset::slot_used(slot, device))
                    .load(Ordering::Acquire);
                (process != 0 && used != 0).then_some((process as u32, used))
            })
            .collect()
    }

    /// Takes `bytes` of a card, unless that would bring its use above `limit`.
    pub fn charge(&self, device: usize, bytes: u64, limit: Option<u64>) -> bool {
        if self.try_charge(device, bytes, limit) {
            return true;
        }
        // The card looks full. On a real one, what a killed process held is free again.
        self.sweep_dead_processes() && self.try_charge(device, bytes, limit)
    }

    fn try_charge(&self, device: usize, bytes: u64, limit: Option<u64>) -> bool {
        let used = self.word(offset::device_used(device));
        let charged = used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            let after = now.checked_add(bytes)?;
            limit.is_none_or(|limit| after <= limit).then_some(after)
        });
        let Ok(before) = charged else { return false };
        let own_before = self
            .word(offset::slot_used(self.slot(), device))
            .fetch_add(bytes, Ordering::AcqRel);
        self.word(offset::slot_peak(self.slot(), device))
            .fetch_max(own_before + bytes, Ordering::AcqRel);
        let peak_before = self
            .word(offset::device_peak(device))
            .fetch_max(before + bytes, Ordering::AcqRel);
        if before + bytes > peak_before {
            self.note_shares_of_peak(device);
        }
        true
    }

    /// Writes down what each process uses now that the card's use is higher than ever.
    fn note_shares_of_peak(&self, device: usize) {
        for slot in 0..self.slots_claimed() {
            let used = self
                .word(offset::slot_used(slot, device))
                .load(Ordering::Acquire);
            self.word(offset::slot_at_card_peak(slot, device))
                .store(used, Ordering::Release);
        }
    }

    /// Gives back what this process had charged.
    pub fn release(&self, device: usize, bytes: u64) {
        self.word(offset::device_used(device))
            .fetch_sub(bytes, Ordering::AcqRel);
        self.word(offset::slot_used(self.slot(), device))
            .fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns the memory of processes that ended without giving it back. True if there were any.
    fn sweep_dead_processes(&self) -> bool {
        let mut swept = false;
        for slot in 0..self.slots_claimed() {
            let owner = self.word(offset::slot_process(slot));
            let process = owner.load(Ordering::Acquire);
            if process == 0 || process == self.process() || is_ended(process) || is_alive(process) {
                continue;
            }
            // Only the one that clears the owner may return the slot's memory.
            let mine =
                owner.compare_exchange(process, u64::MAX, Ordering::AcqRel, Ordering::Relaxed);
            if mine.is_err() {
                continue;
            }
            for device in 0..MAX_DEVICES {
                let held = self
                    .word(offset::slot_used(slot, device))
                    .swap(0, Ordering::AcqRel);
                if held > 0 {
                    self.word(offset::device_used(device))
                        .fetch_sub(held, Ordering::AcqRel);
                    swept = true;
                }
            }
            owner.store(process | ENDED, Ordering::Release);
        }
        swept
    }
}

/// Whether the number in a slot says that its process has ended, or is being swept for that.
fn is_ended(owner: u64) -> bool {
    owner & ENDED != 0
}

/// Whether the process still runs. One that has ended but was not yet waited for by its parent no longer
/// holds anything on a card.
fn is_alive(process: u64) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        // The state follows the name, which is in parentheses and may contain any character.
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_none_or(|(_, rest)| !rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
