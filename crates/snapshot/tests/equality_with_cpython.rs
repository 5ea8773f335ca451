//! The columns hold what Python's own unpickler reads from the same file, and what we write is read by
//! Python as the same snapshot.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ghostgpu_snapshot::{
    AnnotationStage, BlockState, Events, PoolId, Segment, SegmentKind, Snapshot, StackId,
    StackLists, open, write_snapshot_with,
};

fn describe(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for segment in &snapshot.segments {
        describe_segment(snapshot, segment, &mut text);
    }
    for trace in &snapshot.traces {
        writeln!(text, "device {}", trace.device).unwrap();
        describe_events(snapshot, &trace.events, &mut text);
    }
    for segment in &snapshot.host_segments {
        describe_segment(snapshot, segment, &mut text);
    }
    describe_events(snapshot, &snapshot.host_events, &mut text);
    for annotation in &snapshot.annotations {
        let stage = match annotation.stage {
            AnnotationStage::Start => "START",
            AnnotationStage::End => "END",
            AnnotationStage::Other => "OTHER",
        };
        let name = snapshot.names.text(annotation.name);
        let (device, time_us) = (annotation.device, annotation.time_us);
        writeln!(text, "annotation {name} {stage} {device} {time_us}").unwrap();
    }
    text
}

fn describe_segment(snapshot: &Snapshot, segment: &Segment, text: &mut String) {
    writeln!(
        text,
        "segment {} {} {} {} {} {} {} {} {} {} {}",
        segment.device,
        segment.address,
        segment.total_bytes,
        segment.allocated_bytes,
        segment.active_bytes,
        segment.stream,
        number(segment.requested_bytes),
        match segment.kind {
            SegmentKind::Small => "small",
            SegmentKind::Large => "large",
        },
        pool(segment.pool),
        segment.is_expandable,
        stack(snapshot, segment.stack)
    )
    .unwrap();
    for block in &segment.blocks {
        let state = match block.state {
            BlockState::Allocated => "active_allocated",
            BlockState::PendingFree => "active_pending_free",
            BlockState::Inactive => "inactive",
        };
        let requested = number(block.requested_bytes);
        let frames = stack(snapshot, block.stack);
        writeln!(
            text,
            "block {} {} {requested} {state} {frames}",
            block.address, block.bytes
        )
        .unwrap();
    }
}

fn describe_events(snapshot: &Snapshot, events: &Events, text: &mut String) {
    for event in events.iter() {
        let context = events.context(event.context);
        let names = [
            context.compile_context,
            context.user_metadata,
            context.internal_metadata,
        ];
        writeln!(
            text,
            "event {} {} {} {} {} {} {} {} {} {}",
            event.kind.action(),
            event.address,
            event.bytes,
            number(event.device_free_bytes),
            context.stream,
            event.time_us,
            pool(context.pool),
            names.map(|name| snapshot.names.text(name)).join("|"),
            stack(snapshot, event.stack),
            stack(snapshot, context.forward_stack)
        )
        .unwrap();
    }
}

fn stack(snapshot: &Snapshot, id: StackId) -> String {
    let frames = snapshot.stacks.frames_of(id).iter().map(|frame| {
        let frame = snapshot.stacks.frame(*frame);
        let (file, function) = (
            snapshot.names.text(frame.file),
            snapshot.names.text(frame.function),
        );
        format!("{file}:{}:{function}", frame.line)
    });
    frames.collect::<Vec<_>>().join(";")
}

fn number(value: Option<u64>) -> String {
    value.map_or("-".to_string(), |value| value.to_string())
}

fn pool(pool: Option<PoolId>) -> String {
    pool.map_or("-".to_string(), |pool| format!("{},{}", pool.0, pool.1))
}

/// Files to compare: from the virtual card, from a real one, and small ones of every form.
fn snapshots() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for folder in [
        "crates/snapshot/tests/data",
        "fuzz/corpus/snapshot",
        "ground_truth/allocator/h200",
    ] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_snapshot =
                name.ends_with(".pickle.gz") || folder.contains("corpus") && name.contains('-');
            if is_snapshot {
                paths.push(path);
            }
        }
    }
    paths.sort();
    // Recordings from the real card are long: some of them will do.
    let is_long = |path: &PathBuf| path.to_string_lossy().contains("ground_truth");
    let some = paths.iter().filter(|path| is_long(path)).step_by(6);
    paths
        .iter()
        .filter(|path| !is_long(path))
        .chain(some)
        .cloned()
        .collect()
}

/// What Python reads from each file of a folder.
fn described_by_python(paths: &[PathBuf]) -> Vec<String> {
    let pythons = std::env::var("GHOSTGPU_TEST_PYTHON").unwrap_or_default();
    let python = pythons
        .split(':')
        .next()
        .filter(|first| !first.is_empty())
        .unwrap_or("python3");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpython_snapshots.py");
    let status = Command::new(python)
        .arg(script)
        .args(paths)
        .status()
        .unwrap();
    assert!(status.success());
    let text_of =
        |path: &PathBuf| std::fs::read_to_string(format!("{}.txt", path.display())).unwrap();
    paths.iter().map(text_of).collect()
}

#[test]
fn columns_hold_what_python_reads_and_writes_back() {
    let folder = tempfile::tempdir().unwrap();
    let sources = snapshots();
    assert!(sources.len() > 50, "{}", sources.len());
    let (mut originals, mut written) = (Vec::new(), Vec::new());
    let mut descriptions = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let is_packed = source.extension().is_some_and(|ending| ending == "gz");
        let original = folder.path().join(if is_packed {
            format!("{at}.gz")
        } else {
            format!("{at}")
        });
        std::fs::copy(source, &original).unwrap();
        originals.push(original);
        let snapshot = open(source).unwrap();
        descriptions.push(describe(&snapshot));
        let lists = [StackLists::Shared, StackLists::PerAllocation][at % 2];
        let path = folder.path().join(format!("{at}.written"));
        write_snapshot_with(&snapshot, lists, std::fs::File::create(&path).unwrap()).unwrap();
        written.push(path);
    }
    for ((source, ours), pythons) in sources
        .iter()
        .zip(&descriptions)
        .zip(described_by_python(&originals))
    {
        assert!(
            *ours == pythons,
            "{} is read as:\n{ours}\nand Python reads:\n{pythons}",
            source.display()
        );
    }
    // What older forms do not have is written as newer ones have it, so what is read back is compared.
    for ((source, path), pythons) in sources
        .iter()
        .zip(&written)
        .zip(described_by_python(&written))
    {
        let again = open(path).unwrap();
        assert!(describe(&again) == pythons, "{}", source.display());
        let original = open(source).unwrap();
        let events = |snapshot: &Snapshot| -> Vec<String> {
            let mut text = String::new();
            for trace in &snapshot.traces {
                describe_events(snapshot, &trace.events, &mut text);
            }
            text.lines().map(str::to_string).collect()
        };
        assert_eq!(events(&original), events(&again), "{}", source.display());
    }
}
