//! What fuzzing checks holds for the recordings that it starts from.

#[path = "../../../fuzz/src/recording.rs"]
mod recording;

use std::path::Path;

#[test]
fn the_corpus_of_recordings_passes_every_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/recording");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the corpus") {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        // What a fuzzer has added need not be one.
        let is_ours = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains('-'));
        assert!(recording::check_recording(&bytes) || !is_ours, "{path:?}");
        count += 1;
    }
    assert!(count >= 16);
}
