//! What fuzzing checks holds for the files that it starts from, and for the attacks.

#[path = "../../../fuzz/src/checks.rs"]
mod checks;

use std::path::Path;

fn for_each_file(folder: &str, check: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        check(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    count
}

#[test]
fn the_corpus_of_pickles_passes_every_check() {
    assert!(for_each_file("fuzz/corpus/pickle", checks::check_pickle) >= 36);
}

#[test]
fn the_corpus_of_snapshots_passes_every_check() {
    assert!(for_each_file("fuzz/corpus/snapshot", checks::check_snapshot) >= 35);
}

#[test]
fn hostile_files_pass_every_check() {
    for_each_file("attacks", checks::check_pickle);
    for_each_file("attacks", checks::check_snapshot);
}
