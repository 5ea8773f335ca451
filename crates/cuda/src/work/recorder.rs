//! Counts operations, stretch by stretch, and writes them down at the end of each step.

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use ghostgpu_cost::{HostCalls, Operation, Repeated, Stretch, Work};
use ghostgpu_session::files;

use super::caller::{self, Caller};
use crate::state;

/// The first step is unlike others, and one of the next two may evaluate or save a checkpoint, too.
const RECORDED_STEPS: u64 = 3;

/// A program that never comes to a step, or has ever new shapes, must not fill the host's memory.
const MOST_KINDS: usize = 50_000;

#[derive(Default)]
struct Recorder {
    process: u32,
    steps: u64,
    current: HashMap<Operation, u32>,
    host: HostCalls,
    ended: BTreeMap<(HostCalls, Vec<Repeated>), u32>,
    kinds: usize,
}

static RECORDER: LazyLock<Mutex<Recorder>> = LazyLock::new(Mutex::default);

static IS_ON: AtomicBool = AtomicBool::new(true);

fn recorder() -> MutexGuard<'static, Recorder> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

pub fn record(operation: Operation) {
    let mut recorder = recorder();
    let calls = match caller::current() {
        Caller::Graph => &mut recorder.host.with_graph,
        Caller::Repetition => &mut recorder.host.repeated,
        Caller::NoGraph => &mut recorder.host.without_graph,
        Caller::Backward => &mut recorder.host.in_backward,
    };
    *calls += 1;
    if let Some(times) = recorder.current.get_mut(&operation) {
        *times += 1;
        return;
    }
    recorder.current.insert(operation, 1);
    recorder.kinds += 1;
    if recorder.kinds > MOST_KINDS {
        recorder.stop();
    }
}

pub fn end_stretch() {
    recorder().end_stretch();
}

/// Python handles an operator, of which nothing may reach the card.
pub fn note_dispatch() {
    if is_on() {
        recorder().host.dispatched += 1;
    }
}

/// The script has ended an optimizer step.
pub fn end_step() {
    if !is_on() {
        return;
    }
    let mut recorder = recorder();
    recorder.end_stretch();
    // A forked copy of the script counts its own steps.
    let process = std::process::id();
    if recorder.process != process {
        recorder.process = process;
        recorder.steps = 0;
    }
    recorder.steps += 1;
    let work = recorder.take_step();
    if recorder.steps >= RECORDED_STEPS {
        recorder.stop();
    }
    drop(recorder);
    write(process, &work);
}

impl Recorder {
    fn end_stretch(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let mut operations: Vec<Repeated> = self
            .current
            .drain()
            .map(|(operation, times)| Repeated { times, operation })
            .collect();
        operations.sort_unstable_by(|a, b| a.operation.cmp(&b.operation));
        let host = std::mem::take(&mut self.host);
        *self.ended.entry((host, operations)).or_insert(0) += 1;
    }

    fn take_step(&mut self) -> Work {
        self.kinds = 0;
        let stretches = std::mem::take(&mut self.ended);
        Work {
            step: self.steps,
            stretches: stretches
                .into_iter()
                .map(|((host, operations), times)| Stretch {
                    times,
                    host,
                    operations,
                })
                .collect(),
        }
    }

    fn stop(&mut self) {
        IS_ON.store(false, Ordering::Relaxed);
        self.current = HashMap::new();
        self.ended = BTreeMap::new();
    }
}

/// What cannot be written is lost; the script's own run must not suffer for it.
fn write(process: u32, work: &Work) {
    let (Some(run_dir), Ok(line)) = (state::run_dir(), serde_json::to_string(work)) else {
        return;
    };
    let path = run_dir.join(format!("{}{process}.jsonl", files::WORK_PREFIX));
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all((line + "\n").as_bytes());
    }
}
