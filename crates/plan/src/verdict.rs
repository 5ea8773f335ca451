//! What a rehearsal says about a training: the verdict, and why.

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Completion, Run};

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// A sentence without its full stop; empty where the verdict says everything.
    pub reason: String,
}

/// Why a part of the training was not rehearsed; none if everything was that was looked for.
pub fn not_reached(run: &Run) -> Option<String> {
    let processes = run.findings.processes.iter();
    let mut parts = processes
        .filter_map(|process| process.coverage.as_ref())
        .flat_map(|coverage| &coverage.not_reached);
    parts.next().map(|part| part.because.clone())
}

/// Judges a run.
pub fn judge(run: &Run) -> Judgement {
    let verdict = match run.completion() {
        Completion::Completed => Verdict::Fits,
        Completion::OutOfMemory => Verdict::DoesNotFit,
        Completion::ScriptFailed => Verdict::ScriptFailed,
        Completion::ScriptKilled => Verdict::ScriptKilled,
        Completion::TimedOut => Verdict::TimedOut,
        Completion::Refused => Verdict::Refused,
        Completion::PreloadBlocked => Verdict::PreloadBlocked,
    };
    Judgement {
        verdict,
        reason: String::new(),
    }
}
