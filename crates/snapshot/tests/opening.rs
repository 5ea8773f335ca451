//! Opening files: packings, folders, and what a file lacks.

use std::path::{Path, PathBuf};

use ghostgpu_snapshot::{EventKind, Format, Missing, OpenError, Part, Warning, open, read_bytes};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn corpus(name: &str) -> ghostgpu_snapshot::Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus/snapshot")
        .join(name);
    open(&path).unwrap()
}

#[test]
fn gzip_and_zstd_open_directly_whatever_the_file_is_called() {
    let packed = open(&data("two-cards-torch2.11-protocol4.pickle.gz")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let zstd = std::fs::read(data("two-cards-torch2.11-protocol4.pickle.zst")).unwrap();
    let renamed = folder.path().join("snapshot");
    std::fs::write(&renamed, &zstd).unwrap();
    let other = open(&renamed).unwrap();
    assert_eq!(packed.pickle_bytes, other.pickle_bytes);
    assert_eq!(
        packed.traces[1].events.bytes(),
        other.traces[1].events.bytes()
    );
}

#[test]
fn zstd_may_have_several_frames_and_others_to_pass_over() {
    let folder = tempfile::tempdir().unwrap();
    let zstd = std::fs::read(data("two-cards-torch2.11-protocol4.pickle.zst")).unwrap();
    let whole = open(&data("two-cards-torch2.11-protocol4.pickle.zst")).unwrap();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let path = folder.path().join("frames.zst");
    std::fs::write(&path, [&zstd[..], &skippable, &zstd].concat()).unwrap();
    let snapshot = open(&path).unwrap();
    assert_eq!(
        snapshot.traces[0].events.len(),
        whole.traces[0].events.len()
    );
    let after_bytes = whole.pickle_bytes;
    assert!(
        snapshot
            .warnings
            .contains(&Warning::TrailingBytes { after_bytes })
    );
}

#[test]
fn a_packed_file_that_is_damaged_is_told_apart_from_a_damaged_pickle() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "two-cards-torch2.11-protocol4.pickle.gz",
        "two-cards-torch2.11-protocol4.pickle.zst",
    ] {
        let bytes = std::fs::read(data(name)).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = open(&path).unwrap_err();
        assert!(
            matches!(error, OpenError::Compression { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_folder_and_a_missing_file_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        open(folder.path()),
        Err(OpenError::Directory { .. })
    ));
    let missing = folder.path().join("missing.pickle");
    let error = open(&missing).unwrap_err();
    assert!(error.to_string().contains("missing.pickle"), "{error}");
}

#[test]
fn every_part_of_a_snapshot_is_read() {
    let snapshot = corpus("modern-4");
    let kinds: Vec<EventKind> = snapshot.traces[0].events.kinds().to_vec();
    assert_eq!(kinds[3], EventKind::Annotate);
    let oom = snapshot.traces[0].events.get(6).unwrap();
    assert_eq!(
        (oom.kind, oom.device_free_bytes, oom.address),
        (EventKind::Oom, Some(1 << 33), 0)
    );
    assert_eq!(snapshot.traces.len(), 3);
    assert_eq!(snapshot.active_devices(), [0, 1]);
    assert_eq!(
        (snapshot.host_segments.len(), snapshot.host_events.len()),
        (1, 1)
    );
    assert_eq!(snapshot.settings.max_split_bytes, Some(Some(128 << 20)));
    assert_eq!(snapshot.settings.max_round_threshold_bytes, Some(None));
    assert_eq!(snapshot.settings.roundup_power2_divisions.len(), 16);
    assert!(snapshot.segments[1].is_expandable);
    let overflow = Warning::RingOverflowed {
        device: None,
        max_entries: None,
    };
    assert_eq!(snapshot.warnings, [overflow]);
}

#[test]
fn the_oldest_form_has_segments_with_histories() {
    let snapshot = corpus("oldest-2");
    assert_eq!(snapshot.format, Format::SegmentsOnly);
    let blocks = &snapshot.segments[0].blocks;
    assert_eq!(
        (blocks[0].requested_bytes, blocks[0].history.len()),
        (Some(1000), 2)
    );
    assert_eq!(snapshot.stacks.frames_of(blocks[0].stack).len(), 3);
    assert_eq!(blocks[1].address, blocks[0].address + 1024);
    assert!(
        snapshot
            .warnings
            .contains(&Warning::NotRecorded(Missing::Traces))
    );
    assert!(
        snapshot
            .warnings
            .contains(&Warning::NotRecorded(Missing::Pools))
    );
}

#[test]
fn a_file_that_uses_a_taken_entry_again_is_read_as_a_whole() {
    let snapshot = corpus("refers_back-4");
    assert_eq!(snapshot.traces[0].events.len(), 2);
    assert_eq!(snapshot.traces[1].events.len(), 1);
    let unknown = Warning::UnknownKey {
        part: Part::Top,
        key: "future_key".to_string(),
        count: 1,
    };
    assert!(snapshot.warnings.contains(&unknown));
}

/// A pickle of a snapshot around the text of one trace, each entry `action addr size time`.
fn traced(entries: &[(&str, u64, u64, i64)]) -> Vec<u8> {
    let mut writer = ghostgpu_pickle::Writer::new(Vec::new()).unwrap();
    writer.dict().unwrap();
    writer.open().unwrap();
    writer.string("segments").unwrap();
    writer.list().unwrap();
    writer.string("device_traces").unwrap();
    writer.list().unwrap();
    writer.list().unwrap();
    writer.open().unwrap();
    for (action, address, bytes, time_us) in entries {
        writer.dict().unwrap();
        writer.open().unwrap();
        writer.string("action").unwrap();
        writer.string(action).unwrap();
        for (key, value) in [("addr", *address), ("size", *bytes)] {
            writer.string(key).unwrap();
            writer.unsigned(value).unwrap();
        }
        writer.string("time_us").unwrap();
        writer.integer(*time_us).unwrap();
        writer.set_items().unwrap();
    }
    writer.append_all().unwrap();
    writer.append().unwrap();
    writer.set_items().unwrap();
    writer.finish().unwrap()
}

#[test]
fn time_that_runs_backwards_and_unknown_actions_are_told() {
    let bytes = traced(&[
        ("alloc", 1, 10, 50),
        ("teleport", 1, 10, 40),
        ("free_completed", 1, 10, 60),
        ("alloc", u64::MAX, 10, 30),
    ]);
    let snapshot = read_bytes(&bytes, Default::default()).unwrap();
    let warning = Warning::TimeRunsBackwards {
        device: 0,
        event: 1,
        count: 2,
    };
    assert!(
        snapshot.warnings.contains(&warning),
        "{:?}",
        snapshot.warnings
    );
    let warning = Warning::UnknownAction {
        action: "teleport".to_string(),
        count: 1,
    };
    assert!(snapshot.warnings.contains(&warning));
    assert_eq!(snapshot.traces[0].events.kinds()[1], EventKind::Other);
    assert_eq!(snapshot.traces[0].events.addresses()[3], u64::MAX);
}

#[test]
fn kinds_of_events_that_were_left_out_are_told() {
    let entries = vec![("alloc", 1, 10, 50); 1000];
    let snapshot = read_bytes(&traced(&entries), Default::default()).unwrap();
    let warning = Warning::ActionsLeftOut {
        device: 0,
        action: "free_completed",
    };
    assert!(
        snapshot.warnings.contains(&warning),
        "{:?}",
        snapshot.warnings
    );
}
