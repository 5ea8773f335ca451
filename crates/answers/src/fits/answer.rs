//! Makes the answer to "does it fit?" from a run. Its type belongs to the recording, which carries it to the page.

use ghostgpu_cost::{Rates, step_time};
use ghostgpu_device::DeviceSheet;
use ghostgpu_plan::Smallest;
use ghostgpu_plan::verdict::Judgement;
use ghostgpu_recording::{AssumedSizes, DevicePeak, Gpu, Verdict, Versions};
use ghostgpu_rehearse::{Completion, Findings, Prepared, Run};
use ghostgpu_session::Note;
use ghostgpu_text::{grouped, human};
use ghostgpu_whatif::PeakRanges;

pub use ghostgpu_recording::Answer;

/// Adding a field keeps the version; changing the meaning of a field or removing one raises it.
const SCHEMA: &str = "ghostgpu.run/1";

/// What is known about the job's need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    Found(Smallest),
    /// No smaller memory than the run used was searched for.
    NotLookedFor {
        took: Smallest,
        because: String,
    },
    Unknown {
        because: String,
    },
}

impl Need {
    /// The smallest memory that is known to be enough.
    pub fn smallest(&self) -> Option<&Smallest> {
        match self {
            Self::Found(smallest) | Self::NotLookedFor { took: smallest, .. } => Some(smallest),
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

/// What the answer needs to know besides the run itself.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    /// The cards of the run; all alike, at least one.
    pub card: &'a DeviceSheet,
    pub card_count: usize,
    /// What others use of every card.
    pub reserve_bytes: u64,
    /// What is known about torch before the run, in case no process reports it.
    pub torch_version: Option<&'a str>,
    pub torch_cuda: Option<&'a str>,
    /// Assumptions about the card and the versions, known before the run.
    pub assumptions: &'a [String],
}

impl<'a> Circumstances<'a> {
    /// What is known about a job before it runs.
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

/// The answer of a run, with the job's need.
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
    // A card cannot hold more than it has, even if CUDA's context and libraries took more here.
    let on_card = |bytes: u64| bytes.min(run.capacity_bytes.unwrap_or(u64::MAX));
    let peak_device_bytes = on_card(findings.peak_device_bytes());
    let comfortable_device_bytes = need
        .smallest()
        .filter(|_| verdict != Verdict::DidNotUseCard)
        .and_then(|need| need.comfortable_device_bytes);
    let (smallest, because) = match need {
        Need::Found(_) if verdict == Verdict::DidNotUseCard => {
            (None, Some("the script did not use the card".to_owned()))
        }
        Need::Found(smallest) => (Some(smallest), None),
        Need::NotLookedFor { because, .. } | Need::Unknown { because } => (None, Some(because)),
    };
    let smallest = smallest.as_ref();
    let coverage = main.and_then(|process| process.coverage.clone());
    let coverage = coverage.unwrap_or_default();
    Answer {
        schema: SCHEMA.to_owned(),
        next: None,
        plan: None,
        fits: verdict.fits(),
        verdict,
        reason,
        peak_allocated_bytes,
        peak_reserved_bytes,
        peak_allocated_range_bytes: None,
        peak_reserved_range_bytes: None,
        peak_device_bytes,
        headroom_bytes,
        margin_bytes,
        reserve_bytes: circumstances.reserve_bytes,
        needed_device_bytes: smallest.map(|need| need.device_bytes),
        needed_allocated_bytes: smallest.and_then(|need| need.allocated_bytes),
        needed_reserved_bytes: smallest.and_then(|need| need.reserved_bytes),
        comfortable_device_bytes,
        cache_flushes_per_step: flushes_per_step,
        needed_flushes_per_step: smallest.and_then(|need| {
            let steps = Some(need.steps).filter(|steps| *steps > 0)?;
            Some(need.flushes? as f64 / steps as f64)
        }),
        needed_with_smaller_workspaces: smallest.is_some_and(|need| need.takes_smaller_workspaces),
        needed_unknown_because: because,
        predicted_step_seconds: predicted_step_seconds(findings, circumstances.card),
        steps: main.map_or(0, |process| process.steps),
        stopped_by_step_limit: run.stopped_by_step_limit(),
        oom: run.fatal_oom().cloned(),
        recovered_ooms: run.recovered_ooms().into_iter().cloned().collect(),
        workspace_retries: run.workspace_retries(),
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
        assumed_sizes: None,
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
        ranks: ghostgpu_rehearse::ranks(findings),
        allocator_peaks: main
            .map(|process| process.peaks.clone())
            .unwrap_or_default(),
        step_peaks: main
            .map(|process| process.step_peaks.clone())
            .unwrap_or_default(),
        process_count: findings.processes.len(),
        exception: run.exception().map(str::to_owned),
        script_exit_code: run.ending.shell_code(),
        exit_code: verdict.exit_code().unwrap_or_else(|| run.failure_code()),
        covered: coverage.covered,
        not_reached: coverage.not_reached,
    }
}

/// The predicted time of a step, to two significant digits: more would suggest a precision that it does not have.
fn predicted_step_seconds(findings: &Findings, card: &DeviceSheet) -> Option<f64> {
    let time = step_time(findings.main_work()?, &Rates::of(card));
    format!("{:.1e}", time.seconds).parse().ok()
}

/// Adds that the peaks depend on where the driver places segments.
pub fn add_peak_ranges(answer: &mut Answer, ranges: &PeakRanges) {
    answer.peak_allocated_range_bytes = Some(ranges.allocated_bytes);
    answer.peak_reserved_range_bytes = Some(ranges.reserved_bytes);
    let varying = [
        ("allocated", ranges.allocated_bytes),
        ("reserved", ranges.reserved_bytes),
    ];
    let varying = varying
        .into_iter()
        .filter(|(_, [least, most])| least != most);
    let sentence = varying.map(|(what, [least, most])| {
        let (least, most) = (grouped(least), grouped(most));
        format!("{least} to {most} bytes {what}")
    });
    let sentence: Vec<String> = sentence.collect();
    answer.assumptions.push(format!(
        "the peak is {}, depending on where the driver puts segments, which differs from machine to machine",
        sentence.join(" and ")
    ));
}

/// How much memory depends on assumed sizes, as a sentence.
pub fn assumed_sizes_in_words(sizes: &AssumedSizes) -> String {
    let AssumedSizes {
        lines,
        allocated_bytes,
        half_allocated_bytes,
    } = *sizes;
    let lines = match lines {
        1 => "one line".to_owned(),
        lines => format!("{lines} lines"),
    };
    if allocated_bytes == half_allocated_bytes {
        return format!("sizes at {lines} depend on values, but the peak does not");
    }
    let (most, half) = (human(allocated_bytes), human(half_allocated_bytes));
    let (low, high) = match half_allocated_bytes < allocated_bytes {
        true => (&half, &most),
        false => (&most, &half),
    };
    // The figures come first, because one screen shows only the beginning of a sentence.
    format!("between {low} and {high} allocated, assumed {most}: sizes at {lines} depend on values")
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
    if let Some(sentence) = several_processes(findings) {
        add(sentence);
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
    if let Some(because) = &run.whole_passes_because {
        add(format!(
            "passes over data were rehearsed in full: {because}"
        ));
    }
    findings.damages.iter().cloned().for_each(&mut add);
    sentences
}

/// Which process is shown, if several used the cards.
fn several_processes(findings: &Findings) -> Option<String> {
    let users = findings.card_user_count();
    let main = findings.main_process().filter(|_| users > 1)?;
    let devices = 0..findings.cards.len();
    let others = devices.map(|device| findings.other_processes_bytes(device));
    let others = others.max().unwrap_or(0);
    let mut own = findings.process_use.iter();
    let was_there = own.any(|each| each.process == main.pid && each.at_card_peak_bytes > 0);
    // The name comes first, because one screen shows only the beginning of a sentence.
    let shown = match &main.script {
        Some(name) => format!("{name} is shown, the largest of {users} processes"),
        None => format!("the largest of {users} processes is shown"),
    };
    Some(match (others, was_there) {
        (0, _) => format!("{shown}: at the card's peak it had the card for itself"),
        (others, true) => format!(
            "{shown}: steps, allocated and reserved are its own, on card counts all of them, and at the peak \
             others had {}",
            human(others)
        ),
        (_, false) => format!(
            "{shown} that reported: the one that had the card at its peak did not (was it killed?), and only \
             on card counts it"
        ),
    })
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
            "CUDA's context or one of its libraries found too little room outside what PyTorch had \
             reserved: a real run ends there with `CUDA error: out of memory` or \
             `CUBLAS_STATUS_ALLOC_FAILED`"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::card_usage::{CardUse, ProcessUse};
    use ghostgpu_session::{AllocatorPeaks, ProcessReport};

    fn process(pid: u32, script: &str, reserved: u64) -> ProcessReport {
        ProcessReport {
            pid,
            script: Some(script.to_owned()),
            peaks: vec![AllocatorPeaks {
                peak_reserved_bytes: reserved,
                allocations: 1,
                ..AllocatorPeaks::default()
            }],
            ..ProcessReport::default()
        }
    }

    fn findings(at_card_peak: [u64; 2]) -> Findings {
        let uses = [1, 2].into_iter().zip(at_card_peak);
        Findings {
            processes: vec![
                process(1, "prepare.py", 10 << 20),
                process(2, "train.py", 30 << 20),
            ],
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: at_card_peak.iter().sum(),
            }],
            process_use: uses
                .map(|(process, bytes)| ProcessUse {
                    process,
                    device: 0,
                    used_bytes: 0,
                    peak_bytes: 30 << 20,
                    at_card_peak_bytes: bytes,
                })
                .collect(),
            ..Findings::default()
        }
    }

    #[test]
    fn what_hangs_on_assumed_sizes_is_said_in_a_sentence() {
        for (lines, half_allocated_bytes, sentence) in [
            (
                2,
                3 << 30,
                "between 3.00 GiB and 4.00 GiB allocated, assumed 4.00 GiB: sizes at 2 lines depend on values",
            ),
            (
                1,
                4 << 30,
                "sizes at one line depend on values, but the peak does not",
            ),
            (
                1,
                5 << 30,
                "between 4.00 GiB and 5.00 GiB allocated, assumed 4.00 GiB: sizes at one line depend on values",
            ),
        ] {
            let sizes = AssumedSizes {
                lines,
                allocated_bytes: 4 << 30,
                half_allocated_bytes,
            };
            assert_eq!(assumed_sizes_in_words(&sizes), sentence);
        }
    }

    #[test]
    fn the_largest_of_several_processes_is_named_and_what_others_held_beside_it() {
        let mut killed = findings([0, 30 << 20]);
        killed.processes.pop();
        for (findings, sentence) in [
            (
                findings([0, 30 << 20]),
                "train.py is shown, the largest of 2 processes: at the card's peak it had the card for itself",
            ),
            (
                findings([10 << 20, 30 << 20]),
                "train.py is shown, the largest of 2 processes: steps, allocated and reserved are its own, on \
                 card counts all of them, and at the peak others had 10.00 MiB",
            ),
            (
                killed,
                "prepare.py is shown, the largest of 2 processes that reported: the one that had the card at \
                 its peak did not (was it killed?), and only on card counts it",
            ),
        ] {
            assert_eq!(several_processes(&findings).as_deref(), Some(sentence));
        }
        let mut alone = findings([0, 30 << 20]);
        alone.process_use.remove(0);
        assert_eq!(several_processes(&alone), None);
    }
}
