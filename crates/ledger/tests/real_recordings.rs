//! The ledger against what PyTorch's own statistics said on a real card.

use std::path::{Path, PathBuf};

use ghostgpu_ledger::{Ledger, Moment};
use ghostgpu_trace::EventKind;
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
        let snapshot = ghostgpu_trace::open(&recording).unwrap();
        let statistics = statistics(&recording);
        let ledger = Ledger::new(&snapshot, 0);
        let name = recording.display();
        let last = |key: &str| series(&statistics, key).last().copied().unwrap();
        assert_eq!(
            ledger.peak().live_bytes,
            last("requested_bytes.all.peak"),
            "{name}"
        );
        assert_eq!(
            ledger.peak_reserved().reserved_bytes,
            last("reserved_bytes.all.peak"),
            "{name}"
        );
        assert_eq!(
            ledger.end().live_bytes,
            last("requested_bytes.all.current"),
            "{name}"
        );
        assert_eq!(
            ledger.end().reserved_bytes,
            last("reserved_bytes.all.current"),
            "{name}"
        );
        assert_eq!(
            ledger.start().live_bytes,
            0,
            "{name}: the recording began before the first allocation"
        );
        assert!(
            ledger.warnings().is_empty(),
            "{name}: {:?}",
            ledger.warnings()
        );
    }
}

#[test]
fn what_is_live_at_each_step_is_what_pytorch_counted_there() {
    for recording in recordings() {
        let snapshot = ghostgpu_trace::open(&recording).unwrap();
        let current = series(&statistics(&recording), "requested_bytes.all.current");
        let ledger = Ledger::new(&snapshot, 0);
        let kinds = snapshot.traces[0].events.kinds();
        let marks = kinds
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind == EventKind::Snapshot);
        for ((at, _), expected) in marks.zip(current) {
            let live: u64 = ledger
                .live_at(Moment(at))
                .iter()
                .map(|block| block.bytes)
                .sum();
            assert_eq!(live, expected, "{} at event {at}", recording.display());
        }
    }
}
