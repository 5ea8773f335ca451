//! Properties that hold for any bytes. The crates' own tests also run them over the corpus.

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{By, CardLedger, Groups, Moment};
use ghostgpu_pickle::{Limits, Node, Value};
use ghostgpu_snapshot::{Event, EventContext, Events, NameId, OpenError, Snapshot, StackId};

/// Small, so that a file that needs more is rejected quickly.
const LIMITS: Limits = Limits {
    memory_bytes: 64 << 20,
};

/// Reading ends, an error has an offset inside the file, and every handle leads somewhere.
pub fn check_pickle(bytes: &[u8]) {
    match ghostgpu_pickle::read(bytes, LIMITS) {
        Ok(pickle) => {
            assert!(pickle.length_bytes <= bytes.len() as u64);
            assert_eq!(pickle.has_more, pickle.length_bytes < bytes.len() as u64);
            let mut seen = std::collections::HashSet::new();
            let mut work = vec![pickle.root];
            while let Some(value) = work.pop() {
                match value {
                    Value::Taken | Value::TakenRow => panic!("nothing was taken"),
                    Value::String(id) => assert!(id.index() < pickle.heap.string_count()),
                    Value::Node(id) if seen.insert(id) => match pickle.heap.node(id) {
                        Node::Free => panic!("a value refers to nothing"),
                        Node::List(items) | Node::Tuple(items) => work.extend(items),
                        Node::Dict(items) | Node::Set(items) | Node::FrozenSet(items) => {
                            work.extend(items.items());
                        }
                        Node::BigInt(bytes) => assert!(bytes.len() > 8),
                        Node::Bytes(_) | Node::ByteArray(_) => {}
                    },
                    _ => {}
                }
            }
        }
        Err(error) => {
            let offset = error.offset().unwrap_or(0);
            assert!(
                offset <= bytes.len() as u64,
                "{error} in {} bytes",
                bytes.len()
            );
            assert!(!error.to_string().contains(char::is_control));
        }
    }
}

/// Streaming and reading as a whole agree, writing and reading again changes nothing, and the
/// recording of it adds up.
pub fn check_snapshot(bytes: &[u8]) {
    let streamed = ghostgpu_snapshot::read_bytes(bytes, LIMITS);
    let whole = ghostgpu_snapshot::read_bytes_as_a_whole(bytes, LIMITS);
    let (streamed, whole) = match (streamed, whole) {
        (Ok(streamed), Ok(whole)) => (streamed, whole),
        // What fits as columns need not fit as values.
        (_, Err(OpenError::TooLarge { .. })) | (Err(OpenError::TooLarge { .. }), _) => return,
        (Err(streamed), Err(whole)) => {
            assert_eq!(streamed.to_string(), whole.to_string());
            return;
        }
        (streamed, whole) => panic!(
            "streaming: {:?}, as a whole: {:?}",
            streamed.map(drop),
            whole.map(drop)
        ),
    };
    assert_same(&streamed, &whole);
    check_writing(&streamed);
    check_recording(&streamed);
}

fn assert_same(first: &Snapshot, second: &Snapshot) {
    assert_eq!(describe(first), describe(second));
    // Of very many kinds of anomalies, only the first are reported.
    if first.warnings.len() < 60 {
        assert_eq!(first.warnings, second.warnings);
    }
}

/// A snapshot with every handle resolved: equal ones are equal however they were read.
fn describe(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = vec![format!("{:?} {:?}", snapshot.format, snapshot.settings)];
    for segment in snapshot.segments.iter().chain(&snapshot.host_segments) {
        let mut plain = segment.clone();
        plain.blocks.clear();
        (plain.stack, plain.forward_stack) = (StackId::NONE, StackId::NONE);
        lines.push(format!(
            "{plain:?} {} {}",
            stack(snapshot, segment.stack),
            stack(snapshot, segment.forward_stack)
        ));
        for block in &segment.blocks {
            let mut plain = block.clone();
            plain.history.clear();
            (plain.stack, plain.forward_stack) = (StackId::NONE, StackId::NONE);
            lines.push(format!(
                "{plain:?} {} {}",
                stack(snapshot, block.stack),
                stack(snapshot, block.forward_stack)
            ));
            for entry in &block.history {
                let (address, bytes) = (entry.address, entry.requested_bytes);
                lines.push(format!(
                    "{address} {bytes} {}",
                    stack(snapshot, entry.stack)
                ));
            }
        }
    }
    for trace in &snapshot.traces {
        lines.push(format!("device {}", trace.device));
        describe_events(snapshot, &trace.events, &mut lines);
    }
    describe_events(snapshot, &snapshot.host_events, &mut lines);
    for annotation in &snapshot.annotations {
        let name = snapshot.names.text(annotation.name);
        lines.push(format!(
            "{name} {:?} {} {}",
            annotation.stage, annotation.device, annotation.time_us
        ));
    }
    lines
}

fn describe_events(snapshot: &Snapshot, events: &Events, lines: &mut Vec<String>) {
    for event in events.iter() {
        let context: &EventContext = events.context(event.context);
        let Event {
            kind,
            address,
            bytes,
            device_free_bytes,
            time_us,
            ..
        } = event;
        let texts = [
            context.compile_context,
            context.user_metadata,
            context.internal_metadata,
            context.category,
        ];
        lines.push(format!(
            "{kind:?} {address} {bytes} {device_free_bytes:?} {time_us} {} {:?} {:?} {} {}",
            context.stream,
            context.pool,
            texts.map(|name| snapshot.names.text(name)),
            stack(snapshot, event.stack),
            stack(snapshot, context.forward_stack),
        ));
    }
}

fn stack(snapshot: &Snapshot, id: StackId) -> String {
    let frames = snapshot.stacks.frames_of(id).iter().map(|frame| {
        let frame = snapshot.stacks.frame(*frame);
        let text = |name: NameId| snapshot.names.text(name);
        let fx = frame
            .fx
            .map(|fx| [fx.operation, fx.name, fx.target, fx.original_trace].map(text));
        format!(
            "{:?} {} {:?} {fx:?}",
            text(frame.file),
            frame.line,
            text(frame.function)
        )
    });
    frames.collect::<Vec<_>>().join("; ")
}

/// Written and read again, the events are the same.
fn check_writing(snapshot: &Snapshot) {
    let mut bytes = Vec::new();
    ghostgpu_snapshot::write_snapshot(snapshot, &mut bytes).expect("a vector takes everything");
    let again = match ghostgpu_snapshot::read_bytes(&bytes, LIMITS) {
        Ok(again) => again,
        Err(OpenError::TooLarge { .. } | OpenError::NoDevices { .. }) => return,
        Err(error) => panic!("what was written cannot be read: {error}"),
    };
    let kinds = |snapshot: &Snapshot| -> Vec<String> {
        let mut lines = Vec::new();
        for trace in &snapshot.traces {
            describe_events(snapshot, &trace.events, &mut lines);
        }
        lines
    };
    // Kinds without a name are written as an unknown one.
    assert_eq!(kinds(snapshot), kinds(&again));
}

/// As a recording it does not contradict itself, and the ledger's levels are what is live then.
fn check_recording(snapshot: &Snapshot) {
    let mut snapshot = snapshot.clone();
    let devices = snapshot.active_devices().len();
    let recording = recording_of_snapshot(&mut snapshot);
    assert_eq!(recording.check(), Ok(()));
    assert_eq!(recording.cards.len(), devices);
    let groups = Groups::of(&recording);
    for card in recording.cards.iter().take(4) {
        let ledger = CardLedger::new(&recording, card);
        for by in [By::Line, By::Function, By::Stack, By::Name, By::Size] {
            let holders = ledger.held_by(ledger.peak().moment, by);
            let sum = holders.holders.iter().fold(0u64, |sum, holder| {
                sum.saturating_add(holder.requested_bytes)
            });
            assert_eq!(sum, holders.requested_bytes, "{by:?}");
        }
        assert_eq!(
            ledger.live_at(Moment(usize::MAX)).count(),
            ledger.live_at(ledger.end().moment).count()
        );
        assert!(ledger.overview(&groups, 7).stretches.len() <= 7);
    }
}
