//! Writes the recordings that fuzzing starts from: `fuzz_corpus FOLDER`. Each as a file, and as the values inside it.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use ghostgpu_recording::Recording;
use ghostgpu_recording::file::write;
use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    for seed in 1..=6 {
        save(
            &folder,
            &format!("random-{seed}"),
            &recording_at_random(seed, 30),
        );
    }
    let mut two_runs = recording_at_random(1, 30);
    two_runs.keep_failed_run(recording_at_random(7, 20));
    save(&folder, "two-runs", &two_runs);
    for steps in 1..=2 {
        save(
            &folder,
            &format!("training-{steps}"),
            &recording(MadeUp { layers: 2, steps }),
        );
    }
}

fn save(folder: &Path, name: &str, recording: &Recording) {
    let mut file = Vec::new();
    write(recording, &mut file).expect("a vector takes everything");
    std::fs::write(folder.join(format!("{name}-file")), &file).expect("writable");
    // What `fuzz/src/recording.rs` puts into a file: the names, a byte of 255, the first card.
    let mut values = section(&file, 2);
    assert!(!values.contains(&255), "{name}: the names would be cut");
    values.push(255);
    values.extend(section(&file, 3));
    std::fs::write(folder.join(format!("{name}-values")), values).expect("writable");
}

/// The first section of a kind, unpacked.
fn section(file: &[u8], wanted: u8) -> Vec<u8> {
    let mut rest = &file[12..];
    loop {
        let (kind, length) = (
            rest[0],
            u64::from_le_bytes(rest[1..9].try_into().expect("eight bytes")),
        );
        let (packed, after) = rest[9..].split_at(length as usize);
        if kind == wanted {
            let mut values = Vec::new();
            ZlibDecoder::new(packed)
                .read_to_end(&mut values)
                .expect("our own file");
            return values;
        }
        rest = after;
    }
}
