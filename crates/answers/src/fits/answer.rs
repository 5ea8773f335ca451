//! From a run, the answer to "does it fit?". Its type is the recording's, which carries it to the page.

use ghostgpu_device::DeviceSheet;
use ghostgpu_plan::Smallest;
use ghostgpu_plan::verdict::Judgement;
use ghostgpu_recording::{DevicePeak, Gpu, Verdict, Versions};
use ghostgpu_rehearse::{Completion, Prepared, Run};
use ghostgpu_session::Note;
use ghostgpu_text::human;

pub use ghostgpu_recording::Answer;

/// A field that is added keeps the version; one that changes its meaning or goes raises it.
const SCHEMA: &str = "ghostgpu.run/1";

/// What is known about the memory that the job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    Found(Smallest),
    Unknown { because: String },
}

impl Need {
    pub fn smallest(&self) -> Option<&Smallest> {
        match self {
            Self::Found(smallest) => Some(smallest),
            Self::Unknown { .. } => None,
        }
    }
}

impl From<ghostgpu_plan::Need> for Need {
    fn from(need: ghostgpu_plan::Need) -> Self {
        match need {
            ghostgpu_plan::Need::Found(smallest) => Self::Found(smallest),
            ghostgpu_plan::Need::Unknown(because) => Self::Unknown {
                because: format!("the second run, with unlimited memory, {because}"),
            },
        }
    }
}

/// What the answer needs to know beside the run itself.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    /// The cards of the run; all alike, at least one.
    pub card: &'a DeviceSheet,
    pub card_count: usize,
    /// What others hold of every card.
    pub reserve_bytes: u64,
    /// What is known of torch before the run, for runs in which nobody reports it.
    pub torch_version: Option<&'a str>,
    pub torch_cuda: Option<&'a str>,
    /// Sentences about the card and the versions, known before the run.
    pub assumptions: &'a [String],
}

impl<'a> Circumstances<'a> {
    /// What is known of a job before it runs.
    pub fn of(prepared: &'a Prepared) -> Self {
        let torch = prepared.torch.as_ref();
        Self {
            card: prepared.card(),
            card_count: prepared.card_count(),
            reserve_bytes: prepared.reserve_bytes,
            torch_version: torch.map(|torch| torch.version.as_str()),
            torch_cuda: torch.and_then(|torch| torch.cuda.as_deref()),
            assumptions: &prepared.assumptions,
        }
    }
}

/// What a run says, with what the job needs.
pub fn answer(
    run: &Run,
    judgement: Judgement,
    need: Need,
    circumstances: &Circumstances,
) -> Answer {
    let findings = &run.findings;
    let Judgement {
        verdict,
        reason,
        headroom_bytes,
        margin_bytes,
        flushes_per_step,
    } = judgement;
    let main = findings.main_process();
    let peaks = || findings.processes.iter().flat_map(|process| &process.peaks);
    let peak_allocated_bytes = or_zero_if_unused(run, findings.peak_allocated_bytes());
    let peak_reserved_bytes = or_zero_if_unused(run, findings.peak_reserved_bytes());
    // What CUDA took beyond the card's end is not in use on any card.
    let on_card = |bytes: u64| bytes.min(run.capacity_bytes.unwrap_or(u64::MAX));
    let peak_device_bytes = on_card(findings.peak_device_bytes());
    let (smallest, because) = match need {
        Need::Found(_) if verdict == Verdict::DidNotUseCard => {
            (None, Some("the script did not use the card".to_owned()))
        }
        Need::Found(smallest) => (Some(smallest), None),
        Need::Unknown { because } => (None, Some(because)),
    };
    let smallest = smallest.as_ref();
    let coverage = main.and_then(|process| process.coverage.clone());
    let coverage = coverage.unwrap_or_default();
    Answer {
        schema: SCHEMA.to_owned(),
        fits: verdict.fits(),
        verdict,
        reason,
        peak_allocated_bytes,
        peak_reserved_bytes,
        peak_device_bytes,
        headroom_bytes,
        margin_bytes,
        reserve_bytes: circumstances.reserve_bytes,
        needed_device_bytes: smallest.map(|need| need.device_bytes),
        needed_allocated_bytes: smallest.and_then(|need| need.allocated_bytes),
        needed_reserved_bytes: smallest.and_then(|need| need.reserved_bytes),
        comfortable_device_bytes: smallest.and_then(|need| need.comfortable_device_bytes),
        cache_flushes_per_step: flushes_per_step,
        needed_flushes_per_step: smallest.and_then(|need| {
            let steps = Some(need.steps).filter(|steps| *steps > 0)?;
            Some(need.flushes? as f64 / steps as f64)
        }),
        needed_unknown_because: because,
        steps: findings
            .processes
            .iter()
            .map(|process| process.steps)
            .max()
            .unwrap_or(0),
        stopped_by_step_limit: run.stopped_by_step_limit(),
        oom: run.fatal_oom().cloned(),
        recovered_ooms: run.recovered_ooms().into_iter().cloned().collect(),
        gpu: Gpu {
            name: circumstances.card.name.clone(),
            total_bytes: circumstances.card.total_bytes,
            capability: circumstances.card.capability.to_string(),
            count: circumstances.card_count,
        },
        torch: torch_version(run, circumstances),
        versions: Versions {
            ghostgpu: env!("CARGO_PKG_VERSION").to_owned(),
            torch_cuda: main
                .and_then(|process| process.torch_cuda.clone())
                .or_else(|| circumstances.torch_cuda.map(str::to_owned)),
            cudnn: main.and_then(|process| process.cudnn.clone()),
            code_architectures: main
                .map(|process| process.code_architectures.clone())
                .unwrap_or_default(),
        },
        assumptions: assumptions(run, circumstances),
        notes: notes(run),
        refused: run.refused_calls(),
        retries: peaks().map(|peaks| peaks.retries).sum(),
        allocations: peaks().map(|peaks| peaks.allocations).sum(),
        devices: findings
            .cards
            .iter()
            .enumerate()
            .map(|(device, card)| DevicePeak {
                device,
                peak_device_bytes: on_card(card.peak_bytes),
                other_processes_bytes: findings.other_processes_bytes(device),
            })
            .collect(),
        allocator_peaks: main
            .map(|process| process.peaks.clone())
            .unwrap_or_default(),
        step_peaks: main
            .map(|process| process.step_peaks.clone())
            .unwrap_or_default(),
        process_count: findings.processes.len(),
        exception: run.exception().map(str::to_owned),
        script_exit_code: run.ending.shell_code(),
        exit_code: verdict
            .exit_code()
            .unwrap_or_else(|| run.ending.shell_code()),
        covered: coverage.covered,
        not_reached: coverage.not_reached,
    }
}

/// A script that never touched the card has peaks of zero, not unknown ones.
fn or_zero_if_unused(run: &Run, peak: Option<u64>) -> Option<u64> {
    peak.or_else(|| (!run.findings.used_cuda()).then_some(0))
}

fn torch_version(run: &Run, circumstances: &Circumstances) -> Option<String> {
    let main = run.findings.main_process();
    main.and_then(|process| process.torch.clone())
        .or_else(|| circumstances.torch_version.map(str::to_owned))
}

fn assumptions(run: &Run, circumstances: &Circumstances) -> Vec<String> {
    let findings = &run.findings;
    let mut sentences = circumstances.assumptions.to_vec();
    let mut add = |sentence: String| {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    };
    let is_fitting = run.completion() == Completion::Completed;
    if findings.used_cuda() && findings.processes.is_empty() {
        add(
            "no process of the script reported (was python started with -I, -S or -E, or \
             killed?): steps were not counted, and only the memory on the card is known"
                .to_owned(),
        );
    }
    let users = findings
        .processes
        .iter()
        .filter(|process| process.peaks.iter().any(|peaks| peaks.allocations > 0))
        .count();
    if users > 1 {
        let others: Vec<u64> = (0..findings.cards.len())
            .map(|device| findings.other_processes_bytes(device))
            .collect();
        add(format!(
            "{users} processes used the cards: allocated and reserved are those of the largest, \
             on card counts all of them; of its peak, other processes had {}",
            human(others.into_iter().max().unwrap_or(0))
        ));
    }
    for note in &findings.notes {
        if let Note::Assumption { text } = note {
            add(text.clone());
        }
    }
    for process in &findings.processes {
        process.assumptions.iter().cloned().for_each(&mut add);
    }
    if is_fitting {
        for call in run.refused_calls() {
            add(format!(
                "the script went on after `{}`, which is not simulated",
                call.function
            ));
        }
        if let (true, Some(exception)) = (!run.ending.is_success(), run.exception()) {
            add(format!(
                "after its last step the script ended with {exception}, which stopping it may have \
                 caused"
            ));
        }
    }
    if let Some(exception) = &run.whole_passes_after {
        add(format!(
            "passes over data were rehearsed in full: shortened, the script ended with {exception}"
        ));
    }
    findings.damages.iter().cloned().for_each(&mut add);
    sentences
}

/// Remarks of all processes, each once.
fn notes(run: &Run) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in run
        .findings
        .processes
        .iter()
        .flat_map(|process| &process.notes)
    {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    if run.overflowed() && run.fatal_oom().is_none() {
        notes.push(
            "CUDA's context or one of its libraries found too little room beside what PyTorch had \
             reserved: a real run ends there with `CUDA error: out of memory` or \
             `CUBLAS_STATUS_ALLOC_FAILED`"
                .to_owned(),
        );
    }
    notes
}
