//! A snapshot, opened as a recording.

use std::path::Path;

use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::Recording;

use crate::failure::Failure;
use crate::snapshot_file::{card_with_memory, ledger_of, open as open_snapshot, recording_of};

/// A snapshot as a recording, with sentences about what the file lacks.
pub(super) fn open(path: &Path) -> Result<(Recording, Vec<String>), Failure> {
    let mut snapshot = open_snapshot(path)?;
    let warnings = snapshot.warnings.iter().map(ToString::to_string).collect();
    Ok((recording_of(&mut snapshot, path), warnings))
}

/// The requested device, or the only one with memory.
pub(super) fn ledger(
    recording: &Recording,
    wanted: Option<usize>,
) -> Result<(usize, CardLedger<'_>), Failure> {
    let device = card_with_memory(recording, wanted)?;
    ledger_of(recording, device)
        .map(|ledger| (device, ledger))
        .ok_or_else(|| Failure::new(format!("the snapshot has nothing of device {device}")))
}
