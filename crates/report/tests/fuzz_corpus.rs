//! What fuzzing checks holds for the recordings that it starts from.

#[path = "../../../fuzz/src/recording.rs"]
mod recording;

use std::path::Path;

#[test]
fn the_corpus_of_recordings_passes_every_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/recording");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(file.expect("an entry").path()).expect("a file");
        recording::check_recording(&bytes);
        count += 1;
    }
    assert!(count >= 8);
}
