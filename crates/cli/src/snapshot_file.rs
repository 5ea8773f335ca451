//! Opens a memory snapshot, as it is or as a recording, and selects a device in it.

use std::path::Path;

use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::Recording;
use ghostgpu_snapshot::{OpenError, Snapshot};

use crate::failure::Failure;
use crate::progress;

/// Opens a snapshot; any other file is refused with one sentence.
pub fn open(path: &Path) -> Result<Snapshot, Failure> {
    let opened = progress::during("reading the snapshot", || ghostgpu_snapshot::open(path));
    opened.map_err(|error| cannot_open(&error))
}

fn cannot_open(error: &OpenError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        OpenError::Io { .. } => failure,
        _ => failure.with_hint(
            "a snapshot is what torch.cuda.memory._dump_snapshot(\"file.pickle\") writes",
        ),
    }
}

/// A snapshot as a recording, which takes the snapshot's events.
pub fn recording_of(snapshot: &mut Snapshot, path: &Path) -> Recording {
    let mut recording = progress::during("reading the events", || {
        ghostgpu_attribution::recording_of_snapshot(snapshot)
    });
    let name = path.file_name().unwrap_or(path.as_os_str());
    recording.about.command = vec![name.to_string_lossy().into_owned()];
    recording
}

/// The requested card of a recording, or the only one with events.
pub fn card_with_history(recording: &Recording, wanted: Option<usize>) -> Result<usize, Failure> {
    let cards = recording.cards.iter();
    let with_events: Vec<usize> = cards
        .filter(|card| !card.events.is_empty())
        .map(|card| card.index as usize)
        .collect();
    choose(&with_events, &indices(recording), wanted)
}

/// The requested card of a recording, or the only one.
pub fn card_with_memory(recording: &Recording, wanted: Option<usize>) -> Result<usize, Failure> {
    let all = indices(recording);
    choose(&all, &all, wanted)
}

fn indices(recording: &Recording) -> Vec<usize> {
    let cards = recording.cards.iter();
    cards.map(|card| card.index as usize).collect()
}

/// What the ledger says about one card of a recording.
pub fn ledger_of(recording: &Recording, index: usize) -> Option<CardLedger<'_>> {
    let mut cards = recording.cards.iter();
    let card = cards.find(|card| card.index as usize == index)?;
    Some(CardLedger::new(recording, card))
}

/// The requested device, or the only one with a history.
pub fn device_with_history(snapshot: &Snapshot, wanted: Option<usize>) -> Result<usize, Failure> {
    let with_events: Vec<usize> = snapshot
        .traces
        .iter()
        .filter(|trace| !trace.events.is_empty())
        .map(|trace| trace.device)
        .collect();
    choose(&with_events, &snapshot.active_devices(), wanted)
}

/// The requested device, or the only one with memory.
pub fn device_with_memory(snapshot: &Snapshot, wanted: Option<usize>) -> Result<usize, Failure> {
    let active = snapshot.active_devices();
    choose(&active, &active, wanted)
}

fn choose(preferred: &[usize], active: &[usize], wanted: Option<usize>) -> Result<usize, Failure> {
    let listed = || {
        let numbers: Vec<String> = active.iter().map(ToString::to_string).collect();
        numbers.join(", ")
    };
    match (wanted, preferred, active) {
        (Some(device), ..) if active.contains(&device) => Ok(device),
        (Some(device), _, []) => Err(Failure::new(format!(
            "the snapshot has no device {device}: it has no memory and no events at all"
        ))),
        (Some(device), ..) => Err(Failure::new(format!(
            "the snapshot has nothing of device {device}, only of {}",
            listed()
        ))),
        (None, [only], _) => Ok(*only),
        (None, [], [only]) => Ok(*only),
        (None, _, []) => Err(Failure::new(
            "the snapshot has no memory and no events of any device",
        )),
        (None, ..) => Err(
            Failure::new(format!("the snapshot has several devices: {}", listed()))
                .with_hint("choose one with --device"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_device_is_taken_and_of_several_one_must_be_named() {
        assert_eq!(choose(&[1], &[0, 1], None), Ok(1));
        assert_eq!(choose(&[], &[3], None), Ok(3));
        assert_eq!(choose(&[0, 1], &[0, 1], Some(1)), Ok(1));
        assert!(choose(&[0, 1], &[0, 1], None).is_err());
        assert!(choose(&[], &[], None).is_err());
        assert!(choose(&[0], &[0], Some(2)).is_err());
        assert!(choose(&[], &[], Some(0)).is_err());
    }
}
