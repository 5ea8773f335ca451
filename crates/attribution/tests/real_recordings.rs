//! Recordings of snapshots, and the ledger, against what PyTorch's own statistics said on a real card.

use std::path::{Path, PathBuf};

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{CardLedger, Moment};
use ghostgpu_snapshot::EventKind;
use serde_json::Value;

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground_truth/allocator/h200");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".pickle.gz"))
        .collect();
    paths.sort();
    paths
}

fn statistics(recording: &Path) -> Value {
    let name = recording.to_string_lossy().replace(".pickle.gz", ".json");
    let text = std::fs::read_to_string(name).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["statistics"].clone()
}

fn series(statistics: &Value, name: &str) -> Vec<u64> {
    let values = statistics[name].as_array().unwrap();
    values.iter().map(|value| value.as_u64().unwrap()).collect()
}

#[test]
fn peaks_are_those_that_pytorch_counted_on_the_card() {
    let recordings = recordings();
    assert!(recordings.len() > 15);
    for recording in recordings {
        let mut snapshot = ghostgpu_snapshot::open(&recording).unwrap();
        let warnings: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
        let made = recording_of_snapshot(&mut snapshot);
        assert_eq!(made.check(), Ok(()));
        let statistics = statistics(&recording);
        let ledger = CardLedger::new(&made, &made.cards[0]);
        let name = recording.display();
        let last = |key: &str| series(&statistics, key).last().copied().unwrap();
        assert_eq!(
            ledger.peak().requested_bytes,
            last("requested_bytes.all.peak"),
            "{name}"
        );
        assert_eq!(
            ledger.peak_reserved().reserved_bytes,
            last("reserved_bytes.all.peak"),
            "{name}"
        );
        assert_eq!(
            ledger.end().requested_bytes,
            last("requested_bytes.all.current"),
            "{name}"
        );
        assert_eq!(
            ledger.end().reserved_bytes,
            last("reserved_bytes.all.current"),
            "{name}"
        );
        assert_eq!(
            ledger.start().requested_bytes,
            0,
            "{name}: the recording began before the first allocation"
        );
        assert_eq!(made.warnings, warnings, "{name}");
    }
}

#[test]
fn what_is_live_at_each_step_is_what_pytorch_counted_there() {
    for recording in recordings() {
        let mut snapshot = ghostgpu_snapshot::open(&recording).unwrap();
        let current = series(&statistics(&recording), "requested_bytes.all.current");
        let kinds = snapshot.traces[0].events.kinds().to_vec();
        let made = recording_of_snapshot(&mut snapshot);
        let ledger = CardLedger::new(&made, &made.cards[0]);
        let marks = kinds
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind == EventKind::Snapshot);
        for ((at, _), expected) in marks.zip(current) {
            let live: u64 = ledger
                .live_at(Moment(at))
                .map(|(_, one)| one.requested_bytes)
                .sum();
            assert_eq!(live, expected, "{} at event {at}", recording.display());
        }
    }
}
