//! Why a verdict is what it is: one sentence each, without its full stop.

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{OutOfMemory, Outcome, Run, hides_every_card};
use ghostgpu_session::{NotReached, ProcessReport, TrainingPart};
use ghostgpu_text::{counted, human};

use super::OnCard;
use crate::step_growth::StepGrowth;

pub fn ended_otherwise(run: &Run, verdict: Verdict) -> String {
    let code = run.ending.shell_code();
    match verdict {
        Verdict::TimedOut => {
            let ranks = run.ranks_in_the_end();
            let ranks = ranks.map(|places| format!(": {places}"));
            format!(
                "the script did not end in time{}",
                ranks.unwrap_or_default()
            )
        }
        Verdict::Refused => "the script stopped at a call that is not simulated".to_owned(),
        Verdict::PreloadBlocked => "the stand-in library was not loaded".to_owned(),
        Verdict::ScriptKilled => {
            format!(
                "the script was killed by signal {}",
                code.saturating_sub(128)
            )
        }
        _ => {
            let line = run.exception().and_then(|text| text.lines().next());
            let exception = line.map(|line| format!(": {line}")).unwrap_or_default();
            if run.ranks_trouble().is_some() {
                return line.unwrap_or_default().to_owned();
            }
            match run.failed_rank() {
                Some(rank) => {
                    let at = run.exception_at().map(|line| format!(" at {line}"));
                    format!("rank {rank} failed{}{exception}", at.unwrap_or_default())
                }
                None => format!("the script failed with exit code {code}{exception}"),
            }
        }
    }
}

/// What keeps the script from using the card, if known.
pub fn not_used(run: &Run, card: &OnCard) -> String {
    let processes = || run.findings.processes.iter();
    let hiding = processes()
        .filter_map(|process| process.visible_devices.as_deref())
        .find(|value| hides_every_card(value, card.count));
    if let Some(value) = hiding {
        let value = if value.is_empty() { "\"\"" } else { value };
        return format!("CUDA_VISIBLE_DEVICES={value} hides every card from the script");
    }
    let without_cuda = processes()
        .filter(|process| process.torch_cuda.is_none())
        .find_map(|process| process.torch.as_deref());
    match without_cuda {
        Some(torch) => format!("torch {torch} is built without CUDA"),
        None => "the script put nothing on the card".to_owned(),
    }
}

pub fn no_code(process: &ProcessReport, card: &OnCard) -> String {
    let torch = process.torch.as_deref().or(card.torch).unwrap_or_default();
    format!(
        "torch {torch} has no code for compute capability {} (it has {}), so the script would stop at its \
         first kernel",
        card.sheet.capability,
        process.code_architectures.join(", ")
    )
}

pub fn out_of_memory(run: &Run) -> String {
    match Outcome::of(run) {
        Outcome::DoesNotFit(place @ OutOfMemory::Request { .. }) => {
            format!("it runs out of memory {place}")
        }
        _ => {
            "CUDA's context or one of its libraries finds no room outside what PyTorch has reserved"
                .to_owned()
        }
    }
}

pub fn will_run_out(growth: &StepGrowth, steps: u64) -> String {
    let full = match steps {
        0 => "the card is full within the next step".to_owned(),
        steps => format!(
            "the card is full after about {}",
            counted(steps, "more step", "more steps")
        ),
    };
    let Some(line) = &growth.line else {
        let bytes = human(growth.bytes_per_step);
        return format!("{full}: each takes {bytes} more");
    };
    let keeper = match line.kept_in.as_str() {
        "" => String::new(),
        variable => format!(", kept in {variable}"),
    };
    format!(
        "{full}: each keeps {} more from {}{keeper}",
        human(line.bytes_per_step),
        line.place
    )
}

/// A loop that runs until the card computes some value.
pub fn waits(line: &str) -> String {
    format!(
        "the loop at {line} waits for a value that only a real card computes, and the rehearsal ended there"
    )
}

pub fn not_reached(part: &NotReached) -> String {
    let what = match part.part {
        TrainingPart::Steps => "no optimizer step was reached",
        TrainingPart::LargestBatch => "the largest batch was not reached",
        TrainingPart::SmallestBatch => "the smallest batch was not reached",
        TrainingPart::LastBatch => "the last batch of a pass was not reached",
        TrainingPart::Evaluation => "evaluation was not reached",
        TrainingPart::Checkpoint => "no checkpoint was reached",
        TrainingPart::NextEpoch => "the next epoch was not reached",
        TrainingPart::EndOfScript => "the end of the script was not reached",
    };
    match part.because.as_str() {
        "" => what.to_owned(),
        because => format!("{what}: {because}"),
    }
}

pub fn flushes(per_step: f64) -> String {
    format!("PyTorch flushes its cache {per_step:.1} times a step, which is slow")
}

pub fn depends_on_order(left_bytes: u64) -> String {
    format!(
        "{} to spare is little where batches differ in size: in another order they may need more",
        human(left_bytes)
    )
}

pub fn depends_on_placement() -> String {
    "on another machine, where the driver puts PyTorch's segments elsewhere, it may run out of memory"
        .to_owned()
}

pub fn below_margin(left_bytes: u64, card: &OnCard) -> String {
    format!(
        "{} to spare is less than the margin of {}: {}",
        human(left_bytes),
        human(card.margin_bytes()),
        card.margin_because()
    )
}

pub fn fits(left_bytes: Option<u64>, card: &OnCard) -> String {
    match left_bytes {
        Some(left) => to_spare(left, card.capacity_bytes()),
        None => "it completes on this card; the smallest memory it needs is not known".to_owned(),
    }
}

/// `6.55 GiB (56 %) to spare`.
pub fn to_spare(left_bytes: u64, capacity_bytes: u64) -> String {
    let share = left_bytes as f64 / capacity_bytes.max(1) as f64 * 100.0;
    let share = match share {
        share if share > 0.0 && share < 1.0 => format!("{share:.1}"),
        share => format!("{share:.0}"),
    };
    format!("{} ({share} %) to spare", human(left_bytes))
}
