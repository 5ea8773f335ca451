//! The run's usage file, mapped into this process: all processes of a run share the cards.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use ghostgpu_session::card_usage::{
    ENDED, MAX_DEVICES, MAX_PROCESSES, PROCESS_ID_BITS, USAGE_BYTES, USAGE_FILE, USAGE_MAGIC,
    offset, process_id,
};

/// The mapped usage file and this process's place in it.
///
/// Both change once, in a fork of the script that continues in its own run (see
/// [`CardUsage::continue_in`]); a mapped file stays mapped for the life of the process.
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
            process: AtomicU64::new(own_number()),
        };
        if usage.word(0).load(Ordering::Relaxed) != USAGE_MAGIC {
            return None;
        }
        let slot = usage.claim_slot()?;
        usage.slot.store(slot, Ordering::Relaxed);
        Some(usage)
    }

    /// Continues in the usage file of another run, which from then on shows what this process holds and
    /// has held, as if it had been there from the start. False if that file cannot be used.
    ///
    /// For a fork of a process that was alone on its cards, before the fork has started a thread.
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

    /// Copies the peaks of another slot into this process's slot, which must be unused so far.
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

    /// The bytes in use on a card now, without those of ended processes.
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
                (process != 0 && used != 0).then_some((process_id(process), used))
            })
            .collect()
    }

    /// Takes `bytes` of a card, unless its use would then exceed `limit`.
    ///
    /// Memory of a process that has ended is free again, as on a real card. Ended processes are looked for only
    /// where it matters: a charge that stays below the highest use so far changes no answer.
    pub fn charge(&self, device: usize, bytes: u64, limit: Option<u64>) -> bool {
        let used = self.word(offset::device_used(device));
        let after = used.load(Ordering::Acquire).saturating_add(bytes);
        if after > self.peak_bytes(device) || limit.is_some_and(|limit| after > limit) {
            self.sweep_dead_processes();
        }
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

    /// Records what each process uses now that the card's use is at a new maximum.
    fn note_shares_of_peak(&self, device: usize) {
        for slot in 0..self.slots_claimed() {
            let used = self
                .word(offset::slot_used(slot, device))
                .load(Ordering::Acquire);
            self.word(offset::slot_at_card_peak(slot, device))
                .store(used, Ordering::Release);
        }
    }

    /// Returns bytes that this process had charged.
    pub fn release(&self, device: usize, bytes: u64) {
        self.word(offset::device_used(device))
            .fetch_sub(bytes, Ordering::AcqRel);
        self.word(offset::slot_used(self.slot(), device))
            .fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns the memory of processes that ended without giving it back.
    fn sweep_dead_processes(&self) {
        for slot in 0..self.slots_claimed() {
            let owner = self.word(offset::slot_process(slot));
            let process = owner.load(Ordering::Acquire);
            if process == 0 || process == self.process() || is_ended(process) || is_alive(process) {
                continue;
            }
            // Only the process that clears the owner may return the slot's memory.
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
                }
            }
            owner.store(process | ENDED, Ordering::Release);
        }
    }
}

/// Whether the owner in a slot is a process that has ended, or the slot is being swept.
fn is_ended(owner: u64) -> bool {
    owner & ENDED != 0
}

/// The number of this process in a slot: its id in the low bits and its start time above them, so that a later
/// process with the same id is told apart.
fn own_number() -> u64 {
    let id = std::process::id();
    let started = stat_of(id).ok().and_then(|stat| started_ticks(&stat));
    numbered(id, started.unwrap_or(0))
}

fn numbered(id: u32, started_ticks: u64) -> u64 {
    ((started_ticks << PROCESS_ID_BITS) | u64::from(id)) & !ENDED
}

fn stat_of(id: u32) -> std::io::Result<String> {
    let bytes = std::fs::read(format!("/proc/{id}/stat"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The fields of a `stat` line from the state on. The name before it is in parentheses and may contain any
/// character.
fn fields_from_state(stat: &str) -> Option<std::str::SplitWhitespace<'_>> {
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_whitespace())
}

/// When a process started, in ticks since boot.
fn started_ticks(stat: &str) -> Option<u64> {
    fields_from_state(stat)?.nth(19)?.parse().ok()
}

/// Whether the process still runs. A zombie does not: it no longer holds anything on a card.
fn is_alive(process: u64) -> bool {
    let id = process_id(process);
    let stat = match stat_of(id) {
        Ok(stat) => stat,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    is_alive_by(&stat, process)
}

/// Whether the `stat` line found under a process's id belongs to that process and says that it runs.
fn is_alive_by(stat: &str, process: u64) -> bool {
    let state = fields_from_state(stat).and_then(|mut fields| fields.next());
    let has_ended = state.is_some_and(|state| matches!(state, "Z" | "X"));
    let is_another = started_ticks(stat).is_some_and(|started| {
        let number = numbered(process_id(process), started);
        // Without a recorded start time, only the id can be compared.
        process >> PROCESS_ID_BITS != 0 && number != process
    });
    !has_ended && !is_another
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::card_usage::{
        CardUse, create_usage_file, read_card_use, read_process_use,
    };
    use std::process::{Child, Command, Stdio};

    /// A process that holds this much of the first card until it is killed.
    fn holding(run_dir: &Path, bytes: u64) -> Child {
        let child = Command::new("sleep")
            .arg("600")
            .stdout(Stdio::null())
            .spawn()
            .expect("`sleep` starts");
        let usage = CardUsage::open(run_dir).expect("a usage file");
        let started = stat_of(child.id())
            .ok()
            .and_then(|stat| started_ticks(&stat));
        let number = numbered(child.id(), started.expect("the child runs"));
        let slot = usage.slot();
        usage.process.store(number, Ordering::Release);
        usage
            .word(offset::slot_process(slot))
            .store(number, Ordering::Release);
        assert!(usage.charge(0, bytes, None));
        child
    }

    fn end(mut child: Child) {
        child.kill().expect("it runs");
        child.wait().expect("it was ours");
    }

    fn run_dir() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        create_usage_file(folder.path(), 1).expect("written");
        folder
    }

    fn first_card(run_dir: &Path) -> CardUse {
        read_card_use(run_dir).expect("valid")[0]
    }

    #[test]
    fn processes_at_the_same_time_add_up() {
        let folder = run_dir();
        let first = holding(folder.path(), 100);
        let second = holding(folder.path(), 30);
        assert_eq!(first_card(folder.path()).peak_bytes, 130);
        end(first);
        end(second);
    }

    #[test]
    fn consecutive_processes_each_find_the_card_free_even_after_a_kill() {
        let folder = run_dir();
        for bytes in [100, 300, 200] {
            end(holding(folder.path(), bytes));
        }
        let own = CardUsage::open(folder.path()).expect("a usage file");
        assert!(own.charge(0, 250, Some(300)), "the card is empty again");
        assert_eq!(first_card(folder.path()).peak_bytes, 300);
        let uses = read_process_use(folder.path()).expect("valid");
        let shares: Vec<(u64, u64)> = uses
            .iter()
            .map(|each| (each.peak_bytes, each.at_card_peak_bytes))
            .collect();
        assert_eq!(shares, [(100, 0), (300, 300), (200, 0), (250, 0)]);
    }

    #[test]
    fn memory_of_an_ended_process_does_not_raise_the_peak_of_a_running_one() {
        let folder = run_dir();
        let own = CardUsage::open(folder.path()).expect("a usage file");
        assert!(own.charge(0, 50, None));
        end(holding(folder.path(), 100));
        assert!(own.charge(0, 90, None));
        assert_eq!(first_card(folder.path()).peak_bytes, 150);
        assert_eq!(own.used_bytes(0), 140);
    }

    #[test]
    fn a_later_process_of_the_same_id_is_another_one() {
        let line = |state: &str, started: u64| {
            let fields = ["0"; 18].join(" ");
            format!("7 (a) b) {state} {fields} {started} 1 2")
        };
        let process = numbered(7, 5_000);
        for (stat, expected) in [
            (line("S", 5_000), true),
            (line("Z", 5_000), false),
            (line("R", 6_000), false),
            ("nonsense".to_owned(), true),
        ] {
            assert_eq!(is_alive_by(&stat, process), expected, "{stat}");
        }
        assert!(is_alive_by(&line("R", 6_000), numbered(7, 0)));
        assert_eq!(process_id(process | ENDED), 7);
    }
}
