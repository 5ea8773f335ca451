//! What is written is read, and damage is noticed.

use super::*;

fn every_kind() -> Vec<LogEntry<'static>> {
    vec![
        LogEntry::Module {
            number: 3,
            path: "encoder.layer.7",
            class: "BertLayer",
        },
        LogEntry::Operator {
            number: 9,
            name: "aten::mm",
        },
        LogEntry::Text {
            number: 1,
            text: "größe",
        },
        LogEntry::ModuleOutput {
            number: 3,
            bytes: 1 << 40,
        },
        LogEntry::Stage { stage: 2, step: 7 },
        LogEntry::Allocated {
            device: 1,
            address: 0x7f00_1234_5600,
            block_bytes: 512,
            operator: 9,
            module: 3,
            totals: Totals {
                allocated_bytes: 512,
                reserved_bytes: 2 << 20,
            },
        },
        LogEntry::Owner {
            kind: OwnerKind::Gradient as u8,
            name: 1,
            address: 0x7f00_1234_5600,
        },
        LogEntry::LibraryMemory {
            device: 1,
            bytes: 8 << 20,
        },
        LogEntry::NcclMemory { bytes: 544 << 20 },
        LogEntry::Exchanged {
            address: 0x7f00_1234_5610,
        },
        LogEntry::FirstKernel {
            device: 0,
            context_bytes: 552_402_944,
            bytes: 16 << 20,
        },
        LogEntry::WorkspaceChoices {
            address: 0x7f00_1234_5600,
            workspace_bytes: 512,
            number: 7,
            sizes: "512,0",
        },
        LogEntry::Workspace {
            address: 0x7f00_1234_5600,
        },
        LogEntry::Freed {
            device: 1,
            address: 0x7f00_1234_5600,
            totals: Totals::default(),
        },
        LogEntry::OutOfMemory {
            device: 0,
            requested_bytes: u64::MAX,
        },
    ]
}

fn written(entries: &[LogEntry]) -> Vec<u8> {
    let mut log = Vec::new();
    for entry in entries {
        entry.write(&mut log);
    }
    log
}

#[test]
fn what_was_written_is_read() {
    let log = written(&every_kind());
    let read: Vec<_> = LogReader::new(&log).map(Result::unwrap).collect();
    assert_eq!(read, every_kind());
}

#[test]
fn a_log_that_was_cut_off_anywhere_gives_its_whole_entries() {
    let log = written(&every_kind());
    for length in 0..log.len() {
        let read: Vec<_> = LogReader::new(&log[..length]).map(Result::unwrap).collect();
        assert_eq!(read, every_kind()[..read.len()]);
    }
}

#[test]
fn an_unknown_kind_ends_the_reading_with_its_place() {
    let mut log = written(&every_kind()[..1]);
    let offset = log.len();
    log.extend([200, 0, 0]);
    let read: Vec<_> = LogReader::new(&log).collect();
    assert_eq!(read.last(), Some(&Err(BadLog { offset })));
    assert_eq!(read.len(), 2);
}

#[test]
fn a_name_of_any_length_is_cut_between_characters() {
    let long = "ö".repeat(MAX_TEXT_BYTES);
    let log = written(&[LogEntry::Text {
        number: 1,
        text: &long,
    }]);
    let Some(Ok(LogEntry::Text { text, .. })) = LogReader::new(&log).next() else {
        panic!("no text");
    };
    assert_eq!(text.len(), MAX_TEXT_BYTES - 1);
}
