//! PyTorch's own viewer opens what we write, with every torch that tests run with.

use std::path::{Path, PathBuf};
use std::process::Command;

use ghostgpu_snapshot::{open, write_snapshot};

/// Everything that `_memory_viz.py` makes of a snapshot.
const VIEW: &str = r#"
import pickle, sys
from torch.cuda import _memory_viz as viz
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        snapshot = pickle.load(file)
    text = viz.segsum(snapshot) + viz.trace(snapshot)
    assert "segments" in text or "alloc" in text, text
    assert len(viz.trace_plot(snapshot)) > 1000
    assert len(viz.segment_plot(snapshot)) > 1000
"#;

/// Says why nothing is checked. In continuous integration that is a failure.
fn skip(reason: &str) {
    let ci = std::env::var("CI").unwrap_or_default().to_lowercase();
    assert!(
        matches!(ci.as_str(), "" | "0" | "false" | "no"),
        "may not be skipped in CI: {reason}"
    );
    eprintln!("skipped: {reason}");
}

#[test]
fn pytorchs_own_viewer_opens_what_is_written() {
    let pythons = std::env::var("GHOSTGPU_TEST_PYTHON").unwrap_or_default();
    if pythons.is_empty() {
        return skip("GHOSTGPU_TEST_PYTHON names no Python with torch");
    }
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut written: Vec<PathBuf> = Vec::new();
    for file in std::fs::read_dir(data).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "gz") {
            continue;
        }
        let out = folder.path().join(format!("{}.pickle", written.len()));
        write_snapshot(&open(&path).unwrap(), std::fs::File::create(&out).unwrap()).unwrap();
        written.push(out);
    }
    assert!(written.len() > 10);
    for python in pythons.split(':') {
        let output = Command::new(python)
            .args(["-c", VIEW])
            .args(&written)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{python}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
