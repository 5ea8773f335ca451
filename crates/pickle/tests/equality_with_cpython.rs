//! What is read is what Python's own unpickler makes of the same bytes.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ghostgpu_pickle::{Heap, Limits, Node, Value, read};

/// The value as `cpython_values.py` describes it: one token a line.
fn describe(heap: &Heap, root: Value) -> String {
    let mut text = String::new();
    let mut seen = HashMap::new();
    let mut work = vec![root];
    while let Some(value) = work.pop() {
        let id = match value {
            Value::Node(id) => id,
            scalar => {
                describe_scalar(heap, scalar, &mut text);
                continue;
            }
        };
        let next = seen.len();
        match heap.node(id) {
            Node::BigInt(bytes) => writeln!(text, "bigint {}", hex(bytes)).unwrap(),
            Node::Bytes(bytes) => writeln!(text, "bytes {}", hex(bytes)).unwrap(),
            Node::ByteArray(bytes) => writeln!(text, "bytearray {}", hex(bytes)).unwrap(),
            Node::Tuple(items) => {
                writeln!(text, "tuple {}", items.len()).unwrap();
                work.extend(items.iter().rev());
            }
            Node::Set(items) | Node::FrozenSet(items) => {
                let mut lines: Vec<String> = items
                    .entries()
                    .map(|(item, _)| {
                        let mut line = String::new();
                        describe_scalar(heap, item, &mut line);
                        line
                    })
                    .collect();
                lines.sort();
                writeln!(text, "{} {}", heap.type_name(value), lines.len()).unwrap();
                text.extend(lines);
            }
            Node::List(_) | Node::Dict(_) if seen.contains_key(&id) => {
                writeln!(text, "again {}", seen[&id]).unwrap();
            }
            Node::List(items) => {
                seen.insert(id, next);
                writeln!(text, "list {}", items.len()).unwrap();
                work.extend(items.iter().rev());
            }
            Node::Dict(dictionary) => {
                seen.insert(id, next);
                writeln!(text, "dict {}", dictionary.len()).unwrap();
                work.extend(dictionary.items().iter().rev());
            }
            Node::Free => panic!("a value that refers to nothing"),
        }
    }
    text
}

fn describe_scalar(heap: &Heap, value: Value, text: &mut String) {
    match value {
        Value::None => text.push_str("none\n"),
        Value::Bool(value) => writeln!(text, "{value}").unwrap(),
        Value::Int(value) => writeln!(text, "int {value}").unwrap(),
        Value::Float(value) => writeln!(text, "float {:016x}", value.to_bits()).unwrap(),
        Value::String(id) => writeln!(text, "str {}", hex(heap.string_bytes(id))).unwrap(),
        other => panic!("{other:?} is no scalar"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Python of the test environments, or the machine's own.
fn python() -> String {
    let pythons = std::env::var("GHOSTGPU_TEST_PYTHON").unwrap_or_default();
    match pythons.split(':').next() {
        Some(first) if !first.is_empty() => first.to_string(),
        _ => "python3".to_string(),
    }
}

fn run_python(arguments: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpython_values.py");
    let status = Command::new(python())
        .arg(script)
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn random_values_of_every_protocol_are_what_python_reads() {
    let folder = tempfile::tempdir().unwrap();
    let count = 600;
    run_python(&[
        folder.path().to_str().unwrap(),
        "20261115",
        &count.to_string(),
    ]);
    for number in 0..count {
        let file = |ending: &str| folder.path().join(format!("{number}.{ending}"));
        let bytes = std::fs::read(file("pickle")).unwrap();
        let expected = std::fs::read_to_string(file("txt")).unwrap();
        let protocol = number % 6;
        let pickle = read(&bytes[..], Limits::default())
            .unwrap_or_else(|error| panic!("value {number}, protocol {protocol}: {error}"));
        let ours = describe(&pickle.heap, pickle.root);
        assert!(ours == expected, "value {number}, protocol {protocol}");
    }
}

#[test]
fn real_snapshots_are_what_python_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for source in ["crates/snapshot/tests/data", "fuzz/corpus/snapshot"] {
        for file in std::fs::read_dir(root.join(source)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // In the corpus, files without a dash are what fuzzing has left there.
            let is_snapshot = match source {
                "fuzz/corpus/snapshot" => name.contains('-'),
                _ => name.ends_with(".gz"),
            };
            if !is_snapshot {
                continue;
            }
            std::fs::copy(&path, folder.path().join(&name)).unwrap();
            names.push(name);
        }
    }
    assert!(names.len() > 35, "{names:?}");
    let paths: Vec<String> = names
        .iter()
        .map(|name| folder.path().join(name).to_string_lossy().into_owned())
        .collect();
    let mut arguments = vec!["--describe"];
    arguments.extend(paths.iter().map(String::as_str));
    run_python(&arguments);
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let source: Box<dyn std::io::Read> = if path.ends_with(".gz") {
            Box::new(flate2::read::GzDecoder::new(&bytes[..]))
        } else {
            Box::new(&bytes[..])
        };
        let pickle = read(source, Limits::default()).unwrap();
        let expected = std::fs::read_to_string(format!("{path}.txt")).unwrap();
        assert!(describe(&pickle.heap, pickle.root) == expected, "{path}");
    }
}
