//! What a rehearsal says about a training: the verdict, and why. Pure.
//!
//! The first of these that holds decides the verdict:
//!
//! 1. the script did not run to its end, because of itself or because of a limit of GhostGPU;
//! 2. none of its reports can be read, or it never used the card, so nothing is known about it;
//! 3. the installed torch has no code for the card, so the job stops at its first kernel whatever the memory;
//! 4. it ran out of memory, which is certain however little of the training was reached;
//! 5. memory keeps growing, and the card is full before the training is over;
//! 6. a decisive part of the training was not reached;
//! 7. it fits tightly, or it fits.

mod margin;
mod reasons;

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Completion, Run, runs_on};
use ghostgpu_session::{Coverage, NotReached, ProcessReport, TrainingPart};

use crate::need::Smallest;
use crate::placement::TightRun;
use crate::step_growth::StepGrowth;
pub use margin::{Margin, OnCard};

/// The number of steps assumed for a training whose end is unknown.
const LONG_TRAINING: u64 = 1_000_000;

/// Slower growth per step is that of a list of numbers, which never fills a card.
const LEAST_GROWTH_BYTES: u64 = 4096;

/// Where batches differ in size, one part in this many of the need must be left: in another order they may need more.
const PARTS_FOR_ANOTHER_ORDER: u64 = 10;

/// From this many flushes per step on, the job counts as tight. Fewer are normal: PyTorch flushes in the first steps
/// and at the ends of epochs.
const FLUSHES_OF_A_TIGHT_STEP: f64 = 0.5;

/// The parts of a training that must be rehearsed before it can be said to fit.
const DECISIVE: [TrainingPart; 4] = [
    TrainingPart::Steps,
    TrainingPart::LargestBatch,
    TrainingPart::Evaluation,
    TrainingPart::NextEpoch,
];

/// A verdict with its reason, and the figures that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// A sentence without its full stop.
    pub reason: String,
    /// What is left of the card after the need of the rehearsed part of the job and its growth to come.
    pub headroom_bytes: Option<u64>,
    /// The headroom that the job must have to fit, and not only fit tightly.
    pub margin_bytes: u64,
    /// How often PyTorch flushed its cache per step on this card.
    pub flushes_per_step: Option<f64>,
}

/// Judges a run, given what is known about the job's need, its growth and the card.
pub fn judge(
    run: &Run,
    need: Option<&Smallest>,
    growth: Option<&StepGrowth>,
    card: &OnCard,
) -> Judgement {
    let has_ended = run.completion() == Completion::Completed;
    let headroom_bytes = need
        .filter(|_| has_ended)
        .and_then(|need| card.capacity_bytes().checked_sub(need.device_bytes))
        .zip(need)
        .map(|(left, need)| {
            let to_come = growth_to_come(growth, run);
            left.saturating_sub(to_come.saturating_sub(need.growth_bytes))
        });
    let flushes_per_step = flushes_per_step(&run.findings.processes);
    let (verdict, reason) = verdict(run, need, growth, card, headroom_bytes, flushes_per_step);
    let is_headroom_known = matches!(
        verdict,
        Verdict::Fits | Verdict::FitsTightly | Verdict::WillRunOut
    );
    Judgement {
        verdict,
        reason,
        headroom_bytes: headroom_bytes.filter(|_| is_headroom_known),
        margin_bytes: card.margin_bytes(),
        flushes_per_step,
    }
}

/// What a completed run used, as its need where no smaller one was searched for.
pub fn need_seen_in(run: &Run) -> Smallest {
    let findings = &run.findings;
    let retries = flushes(&findings.processes);
    Smallest {
        device_bytes: findings.peak_device_bytes(),
        reserved_bytes: findings.peak_reserved_bytes(),
        allocated_bytes: findings.peak_allocated_bytes(),
        comfortable_device_bytes: (retries == 0).then_some(findings.peak_device_bytes()),
        flushes: Some(retries),
        steps: steps(&findings.processes),
        // Any smaller workspaces are part of how this run went; they are not a consequence of having less memory.
        takes_smaller_workspaces: false,
        growth_bytes: 0,
        is_confirmed: true,
    }
}

fn verdict(
    run: &Run,
    need: Option<&Smallest>,
    growth: Option<&StepGrowth>,
    card: &OnCard,
    headroom_bytes: Option<u64>,
    flushes_per_step: Option<f64>,
) -> (Verdict, String) {
    let ended_otherwise = match run.completion() {
        Completion::Completed | Completion::OutOfMemory => None,
        Completion::ScriptFailed => Some(Verdict::ScriptFailed),
        Completion::ScriptKilled => Some(Verdict::ScriptKilled),
        Completion::TimedOut => Some(Verdict::TimedOut),
        Completion::Refused => Some(Verdict::Refused),
        Completion::PreloadBlocked => Some(Verdict::PreloadBlocked),
    };
    if let Some(verdict) = ended_otherwise {
        return (verdict, reasons::ended_otherwise(run, verdict));
    }
    let is_out_of_memory = run.completion() == Completion::OutOfMemory;
    let findings = &run.findings;
    if let (false, [damage, ..], []) = (
        is_out_of_memory,
        &findings.damages[..],
        &findings.processes[..],
    ) {
        return (Verdict::NotKnown, damage.clone());
    }
    if !is_out_of_memory && !uses_card(run, card) {
        return (Verdict::DidNotUseCard, reasons::not_used(run, card));
    }
    if let Some(process) = without_code(run, card) {
        return (Verdict::CannotRun, reasons::no_code(process, card));
    }
    if is_out_of_memory {
        return (Verdict::DoesNotFit, reasons::out_of_memory(run));
    }
    if let Some((growth, steps)) = growth.and_then(|growth| {
        let taken = need.map_or_else(
            || run.findings.peak_device_bytes(),
            |need| need.device_bytes - need.growth_bytes,
        );
        let left = card.capacity_bytes().saturating_sub(taken);
        Some((growth, full_after(growth, left, run)?))
    }) {
        return (Verdict::WillRunOut, reasons::will_run_out(growth, steps));
    }
    if let Some(because) = not_known(run).or_else(|| growth_cut_short(run, growth)) {
        return (Verdict::NotKnown, because);
    }
    if let Some(flushes) = flushes_per_step.filter(|each| *each >= FLUSHES_OF_A_TIGHT_STEP) {
        return (Verdict::FitsTightly, reasons::flushes(flushes));
    }
    let is_much_left =
        |left: u64| need.is_none_or(|need| left >= need.device_bytes / PARTS_FOR_ANOTHER_ORDER);
    if let Some(left) = headroom_bytes.filter(|left| depends_on_order(run) && !is_much_left(*left))
    {
        return (Verdict::FitsTightly, reasons::depends_on_order(left));
    }
    let depends_on_placement = TightRun::of(run, card.capacity_bytes())
        .is_some_and(|tight| !tight.ends_in_other_layouts() || !tight.ends_beside_code());
    if depends_on_placement {
        return (Verdict::FitsTightly, reasons::depends_on_placement());
    }
    match headroom_bytes {
        Some(left) if left < card.margin_bytes() => {
            (Verdict::FitsTightly, reasons::below_margin(left, card))
        }
        left => (Verdict::Fits, reasons::fits(left, card)),
    }
}

/// Whether batches differ in size and more of them are to come. What PyTorch has cached, and in which pieces, depends on
/// the order of sizes, and on a nearly full card that decides whether the job fits.
fn depends_on_order(run: &Run) -> bool {
    let processes = run.findings.processes.iter();
    let mut coverages = processes.filter_map(|process| process.coverage.as_ref());
    steps_to_come(run) > 0 && coverages.any(|coverage| coverage.do_batches_vary)
}

/// Whether the script put anything on the card. A script that only asks for the card's name still has a context there.
fn uses_card(run: &Run, card: &OnCard) -> bool {
    let findings = &run.findings;
    let mut peaks = findings.processes.iter().flat_map(|each| &each.peaks);
    // Not every allocator counts its allocations, and not all memory goes through PyTorch's.
    peaks.any(|peaks| peaks.allocations > 0 || peaks.peak_allocated_bytes > 0)
        || findings.peak_device_bytes() > card.sheet.overhead.context_bytes
}

/// The main process, if its torch has no code for the card.
fn without_code<'a>(run: &'a Run, card: &OnCard) -> Option<&'a ProcessReport> {
    let process = run.findings.main_process()?;
    (!runs_on(&process.code_architectures, card.sheet.capability)).then_some(process)
}

/// After how many more steps the card is full, if the training has that many.
fn full_after(growth: &StepGrowth, left_bytes: u64, run: &Run) -> Option<u64> {
    if growth.bytes_per_step < LEAST_GROWTH_BYTES {
        return None;
    }
    let steps = left_bytes / growth.peak_bytes_per_step.max(growth.bytes_per_step);
    (steps < steps_to_come(run)).then_some(steps)
}

/// How memory grew in passes that were not rehearsed to their end, if there is no steady growth to extrapolate.
fn growth_cut_short(run: &Run, growth: Option<&StepGrowth>) -> Option<String> {
    if growth.is_some() {
        return None;
    }
    let mut coverages = run.findings.processes.iter();
    coverages.find_map(|process| process.coverage.as_ref()?.growth_cut_short.clone())
}

/// What the steps that were not rehearsed will add to the peak, if their number is known.
pub(crate) fn growth_to_come(growth: Option<&StepGrowth>, run: &Run) -> u64 {
    match (growth, steps_to_come(run)) {
        (None, _) | (_, LONG_TRAINING) => 0,
        (Some(growth), steps) => growth.peak_bytes_per_step.saturating_mul(steps),
    }
}

/// How many more steps the training may have: none if the script ran all of them, the skipped ones if passes were
/// shortened, and [`LONG_TRAINING`] if the rehearsal ended the script.
fn steps_to_come(run: &Run) -> u64 {
    if run.stopped_by_step_limit() {
        return LONG_TRAINING;
    }
    let coverages = run.findings.processes.iter();
    let coverages = coverages.filter_map(|process| process.coverage.as_ref());
    coverages
        .filter(|coverage| coverage.is_training_shortened)
        .map(|coverage| coverage.left_out_steps.unwrap_or(LONG_TRAINING))
        .max()
        .unwrap_or(0)
}

/// Why it is not known whether the whole training fits; `None` if every decisive part was reached.
pub fn not_known(run: &Run) -> Option<String> {
    let findings = &run.findings;
    if findings.cards.is_empty() {
        return Some("what was in use on the card could not be read".to_owned());
    }
    if findings.processes.is_empty() {
        return Some(
            "no process of the script reported (was python started with -I, -S or -E, or killed?)"
                .to_owned(),
        );
    }
    if let Some(line) = findings
        .processes
        .iter()
        .find_map(|it| it.waits_at.as_ref())
    {
        return Some(reasons::waits(line));
    }
    let coverages = findings.processes.iter();
    let coverages = coverages.filter_map(|process| process.coverage.as_ref());
    // Ranks do the same things, so the first reason is enough.
    let decisive = coverages.flat_map(decisive_parts).next()?;
    Some(reasons::not_reached(decisive))
}

/// The decisive parts that were not reached.
fn decisive_parts(coverage: &Coverage) -> impl Iterator<Item = &NotReached> {
    let not_reached = coverage.not_reached.iter();
    not_reached.filter(|missed| DECISIVE.contains(&missed.part))
}

fn flushes(processes: &[ProcessReport]) -> u64 {
    let peaks = processes.iter().flat_map(|process| &process.peaks);
    peaks.map(|peaks| peaks.retries).sum()
}

fn steps(processes: &[ProcessReport]) -> u64 {
    let steps = processes.iter().map(|process| process.steps);
    steps.max().unwrap_or(0)
}

/// Flushes per step of the process that flushed most often; `None` if no process made a step.
fn flushes_per_step(processes: &[ProcessReport]) -> Option<f64> {
    let each = processes.iter().filter(|process| process.steps > 0);
    each.map(|process| flushes(std::slice::from_ref(process)) as f64 / process.steps as f64)
        .reduce(f64::max)
}

#[cfg(test)]
mod tests;
