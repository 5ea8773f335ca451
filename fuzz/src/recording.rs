//! Properties that hold for any bytes opened as a recording. A test of `crates/report` also runs them over the
//! corpus.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::Recording;
use ghostgpu_recording::file::{FileError, Limits, read, write};
use ghostgpu_report::{
    JsonOptions, PerfettoOptions, Selection, write_folded, write_html, write_json, write_perfetto,
    write_pprof,
};

/// Small, so that a file that needs more is rejected quickly.
const LIMITS: Limits = Limits {
    memory_bytes: 64 << 20,
};

/// The bytes as a file, and as the packed contents of one: a fuzzer does not get through the packing by chance.
/// Returns whether one of them is a recording.
pub fn check_recording(bytes: &[u8]) -> bool {
    let is_file = check_file(bytes);
    check_file(&packed(bytes)) || is_file
}

/// A file whose names and card are these values: names up to a byte of 255, the card after it, which is also that of a
/// failed run.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut parts = bytes.splitn(2, |byte| *byte == 255);
    let names = parts.next().unwrap_or_default();
    let card = parts.next().unwrap_or_default();
    // No step was complete, and there is one card.
    let failed_run = [&[0, 1], card].concat();
    let sections = [
        (1, &[0; 10][..]),
        (2, names),
        (3, card),
        (5, &failed_run),
        (4, &[]),
    ];
    let mut file = b"\x89ghost\r\n\x03\0\0\0".to_vec();
    for (kind, values) in sections {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::none());
        encoder
            .write_all(values)
            .expect("a vector takes everything");
        let values = encoder.finish().expect("a vector takes everything");
        file.push(kind);
        file.extend((values.len() as u64).to_le_bytes());
        file.extend(values);
    }
    file
}

/// Reading ends, an error has an offset inside the file, and what is read adds up.
fn check_file(file: &[u8]) -> bool {
    match read(file, LIMITS) {
        Ok(recording) => {
            check_contents(&recording);
            true
        }
        Err(error) => {
            let offset = error.offset().expect("every error has a place");
            assert!(
                offset <= file.len() as u64,
                "{error} in {} bytes",
                file.len()
            );
            assert!(!matches!(
                error,
                FileError::Io(_) | FileError::NotWritten(_)
            ));
            assert_eq!(error.to_string().lines().count(), 1);
            false
        }
    }
}

fn check_contents(recording: &Recording) {
    recording.check().expect("what is read is consistent");
    let mut file = Vec::new();
    write(recording, &mut file).expect("what is consistent is written");
    assert_eq!(&read(&file[..], LIMITS).expect("our own file"), recording);
    let recorded = recording.cards.iter();
    let recorded = recorded.map(|card| CardLedger::new(recording, card));
    let failed = recording.failed_run.iter().flat_map(|run| &run.cards);
    let failed = failed.map(|card| CardLedger::of_failed_run(recording, card));
    for ledger in recorded.chain(failed) {
        for moment in [
            ledger.start().moment,
            ledger.peak().moment,
            ledger.end().moment,
        ] {
            let accounts = ledger.accounts(moment);
            let parts = accounts.parts().map(|(_, bytes)| bytes);
            let sum = parts.fold(0, u64::saturating_add);
            assert_eq!(sum, accounts.on_card_bytes());
        }
    }
    let mut out = Vec::new();
    let nothing_fails = "a vector takes everything";
    write_json(recording, &JsonOptions::default(), &mut out).expect(nothing_fails);
    write_pprof(recording, Selection::default(), &mut out).expect(nothing_fails);
    write_folded(recording, Selection::default(), &mut out).expect(nothing_fails);
    let options = PerfettoOptions {
        min_block_bytes: 0,
        ..PerfettoOptions::default()
    };
    write_perfetto(recording, &options, &mut out).expect(nothing_fails);
    write_html(recording, &mut out).expect(nothing_fails);
}
