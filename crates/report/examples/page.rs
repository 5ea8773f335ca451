//! Writes the page of a synthetic training, or of a snapshot: `page --out FILE`, for tests and benchmarks of the page.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{CardLedger, Groups};
use ghostgpu_recording::made_up::recording_at_random;
use ghostgpu_recording::made_up_transformer::{MadeUpTransformer, recording};
use ghostgpu_recording::{
    Answer, CardMemory, CategoryBytes, Event, Failure, ModuleId, NameId, OperatorId, Plan,
    PlanCandidate, Recording, StackId,
};
use serde_json::{Value, json};

/// A name that tries to break out of the page's markup.
const HOSTILE: &str =
    "</script><img src=x onerror=\"document.title='broken'\">.<b>&amp;\u{202e}'\"";

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    out: PathBuf,
    #[arg(long, default_value_t = 4)]
    layers: u32,
    #[arg(long, default_value_t = 3)]
    steps: u32,
    /// As many steps as it takes for this many events.
    #[arg(long)]
    events: Option<usize>,
    /// The card's memory in MiB.
    #[arg(long, default_value_t = 12 << 10)]
    card_mib: u64,
    #[arg(long, default_value = "usual")]
    kind: Kind,
    /// The page of this snapshot.
    #[arg(long)]
    snapshot: Option<PathBuf>,
    /// Another number gives another recording at random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also writes the allocations as JSON, for a comparison with what the page shows.
    #[arg(long)]
    facts: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Usual,
    /// Two cards, of which the second did half as much.
    TwoCards,
    /// Three ranks, each with more layers than the one before.
    Ranks,
    /// The run that ran out of memory is kept beside the one that had enough.
    TwoRuns,
    /// Everything that may occur, in any order, and alike in nothing.
    AtRandom,
    /// Every name that a script can choose is an attack.
    Hostile,
    /// Numbers that lead nowhere: sizes beyond any card, names that are not there, no segments.
    Wild,
    /// A plan with six candidates.
    Planned,
    /// The same, without predicted times.
    PlannedWithoutTimes,
    /// A card on which nothing happened.
    Nothing,
    NoCard,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut recording = match &arguments.snapshot {
        Some(path) => {
            let mut recording = recording_of_snapshot(&mut ghostgpu_snapshot::open(path)?);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            recording.about.command = vec![name.into_owned()];
            recording
        }
        None => make(&arguments),
    };
    match arguments.kind {
        Kind::Usual | Kind::AtRandom => {}
        Kind::TwoCards => {
            let layers = arguments.layers.div_ceil(2);
            let mut second = with_steps(layers, arguments.steps, arguments.card_mib);
            for mut card in second.cards.drain(..) {
                card.index = 1;
                recording.cards.push(card);
            }
        }
        Kind::Ranks => {
            name_rank(&mut recording, 0);
            for rank in 1..3 {
                let layers = arguments.layers + rank;
                let mut next = with_steps(layers, arguments.steps, arguments.card_mib);
                name_rank(&mut next, rank);
                recording.join(next);
            }
        }
        Kind::TwoRuns => {
            let failed = until_failure(recording.clone());
            recording.keep_failed_run(failed);
        }
        Kind::Planned => recording.about.answer = Some(planned(&recording, true)),
        Kind::PlannedWithoutTimes => recording.about.answer = Some(planned(&recording, false)),
        Kind::Hostile => make_hostile(&mut recording),
        Kind::Wild => make_wild(&mut recording),
        Kind::Nothing => recording.cards = vec![CardMemory::default()],
        Kind::NoCard => recording.cards.clear(),
    }
    if let Some(path) = &arguments.facts {
        serde_json::to_writer(BufWriter::new(File::create(path)?), &facts(&recording))?;
    }
    let begin = Instant::now();
    ghostgpu_report::write_html(&recording, BufWriter::new(File::create(&arguments.out)?))?;
    println!(
        "{}",
        json!({
            "events": recording.cards.first().map_or(0, |card| card.events.len()),
            "write_seconds": begin.elapsed().as_secs_f64(),
            "bytes": std::fs::metadata(&arguments.out)?.len(),
        })
    );
    Ok(())
}

/// The memory of a rank, a quarter of whose context is NCCL's.
fn name_rank(recording: &mut Recording, rank: u32) {
    for card in &mut recording.cards {
        card.rank = Some(rank);
        card.nccl_bytes = card.outside_bytes / 4;
    }
}

fn make(arguments: &Arguments) -> Recording {
    if arguments.kind == Kind::AtRandom {
        return recording_at_random(arguments.seed, arguments.events.unwrap_or(300));
    }
    let make = |steps| with_steps(arguments.layers, steps, arguments.card_mib);
    let Some(wanted) = arguments.events else {
        return make(arguments.steps);
    };
    let events = |steps| make(steps).cards[0].events.len();
    let per_step = (events(4) - events(2)) / 2;
    make(wanted.div_ceil(per_step) as u32)
}

fn with_steps(layers: u32, steps: u32, card_mib: u64) -> Recording {
    recording(MadeUpTransformer {
        layers,
        steps,
        gpu_total_bytes: card_mib << 20,
    })
}

/// The same run on a card that is too small: it ends where the next segment would not fit.
fn until_failure(mut recording: Recording) -> Recording {
    let total_bytes = recording.about.gpu_total_bytes;
    let card = &mut recording.cards[0];
    let mut used = card.outside_bytes;
    let mut failed = None;
    for (event, is_reserved, change) in card.segment_changes() {
        if is_reserved && used + change.bytes > total_bytes {
            failed = Some((event as usize, change));
            break;
        }
        used = match is_reserved {
            true => used + change.bytes,
            false => used - change.bytes,
        };
    }
    let (end, refused) = failed.expect("a card that is too small");
    let changes = card.segment_changes();
    let changes = changes
        .filter(|(event, ..)| (*event as usize) < end)
        .count();
    card.changes.truncate(changes);
    card.events.truncate(end);
    card.failures.clear();
    card.allocations
        .retain(|one| one.allocated_at.is_none_or(|event| (event as usize) < end));
    for one in &mut card.allocations {
        one.freed_at = one.freed_at.filter(|event| (*event as usize) < end);
    }
    card.phases
        .retain(|phase| phase.first_event as usize <= end);
    card.times_us.truncate(end);
    card.times_us
        .push(card.times_us.last().copied().unwrap_or(0));
    let event = card.fail(Failure {
        requested_bytes: refused.bytes,
        driver_free_bytes: Some(total_bytes - used),
        ..Failure::default()
    });
    card.events.push(event);
    recording.about.steps = 0;
    recording
}

/// The answer of a job that does not fit as it is, with a plan.
fn planned(recording: &Recording, has_times: bool) -> Answer {
    let mib = |list: &[(&str, u64)]| -> Vec<CategoryBytes> {
        let of = |(category, mib): &(&str, u64)| CategoryBytes {
            category: (*category).to_owned(),
            bytes: mib << 20,
        };
        list.iter().map(of).collect()
    };
    let candidate = |what: &str, peak: u64, time: f64, numbers: &str| PlanCandidate {
        what: what.to_owned(),
        peak_bytes: peak << 20,
        relative_time: has_times.then_some(time),
        fits: peak <= 11_900,
        numbers: numbers.to_owned(),
        ..PlanCandidate::default()
    };
    let plan = Plan {
        available_bytes: 11_900 << 20,
        before: mib(&[
            ("parameter", 418),
            ("gradient", 418),
            ("optimizer_state", 836),
            ("activation", 12_400),
            ("temporary", 410),
            ("outside", 380),
        ]),
        candidates: vec![
            PlanCandidate {
                chosen: true,
                categories: mib(&[
                    ("parameter", 418),
                    ("gradient", 418),
                    ("optimizer_state", 836),
                    ("activation", 7_100),
                    ("temporary", 290),
                    ("outside", 380),
                ]),
                ..candidate("bf16 autocast", 9_442, 0.54, "precision")
            },
            candidate(
                "bf16 autocast, 6 blocks checkpointed",
                6_240,
                0.66,
                "precision",
            ),
            candidate("6 blocks checkpointed", 9_980, 1.17, "identical"),
            candidate("all blocks checkpointed", 6_480, 1.34, "identical"),
            candidate("4 chunks", 7_310, 1.62, "rounding"),
            candidate("fused AdamW", 14_862, 0.99, "rounding"),
        ],
    };
    Answer {
        plan: Some(plan),
        ..recording.about.answer.clone().unwrap_or_default()
    }
}

fn make_wild(recording: &mut Recording) {
    let card = &mut recording.cards[0];
    for (place, allocation) in card.allocations.iter_mut().enumerate() {
        match place % 7 {
            0 => allocation.block_bytes = 1 << 60,
            1 => allocation.requested_bytes = u64::MAX,
            2 => allocation.module = ModuleId(u32::MAX),
            3 => allocation.stack = StackId(u32::MAX),
            4 => (allocation.name, allocation.operator) = (NameId(99_999), OperatorId(99_999)),
            5 => (allocation.block_bytes, allocation.address) = (0, u64::MAX),
            _ => {}
        }
    }
    card.events
        .retain(|event| !matches!(event, Event::Reserve(_)));
    card.events.reverse();
    card.phases.reverse();
    recording.about.gpu_total_bytes = u64::MAX;
    recording.about.answer = Some(Answer::default());
}

fn make_hostile(recording: &mut Recording) {
    let names = &mut recording.names;
    names
        .texts
        .iter_mut()
        .skip(1)
        .for_each(|text| text.push_str(HOSTILE));
    names
        .operators
        .iter_mut()
        .skip(1)
        .for_each(|text| text.push_str(HOSTILE));
    for module in names.modules.iter_mut().skip(1) {
        module.path.push_str(HOSTILE);
        module.class.push_str(HOSTILE);
    }
    for frame in &mut names.frames {
        frame.file.push_str(HOSTILE);
        frame.function.push_str(HOSTILE);
    }
    recording.about.command.push(HOSTILE.to_owned());
    recording.about.gpu.push_str(HOSTILE);
    recording.about.torch.push_str(HOSTILE);
    recording.warnings.push(HOSTILE.to_owned());
}

fn facts(recording: &Recording) -> Value {
    json!({
        "modules": recording.names.modules.iter().map(|module| &module.path).collect::<Vec<_>>(),
        "names": recording.names.texts,
        "operators": recording.names.operators,
        "groups": Groups::of(recording).titles,
        "cards": recording
            .cards
            .iter()
            .map(|card| card_facts(recording, card))
            .collect::<Vec<_>>(),
        "failed_cards": recording
            .failed_run
            .iter()
            .flat_map(|run| &run.cards)
            .map(|card| card_facts(recording, card))
            .collect::<Vec<_>>(),
    })
}

fn card_facts(recording: &Recording, card: &CardMemory) -> Value {
    let allocations: Vec<Value> = card
        .allocations
        .iter()
        .map(|each| {
            json!({
                "address": each.address,
                "requested": each.requested_bytes,
                "block": each.block_bytes,
                "begin": each.allocated_at,
                "end": each.freed_at,
                "category": each.category.name(),
                "title": each.category.title(),
                "name": each.name.0,
                "module": each.module.0,
                "operator": each.operator.0,
            })
        })
        .collect();
    let segments: Vec<Value> = card
        .segment_changes()
        .map(|(at, is_reserved, change)| {
            let bytes = change.bytes as i64;
            let sign = if is_reserved { 1 } else { -1 };
            json!([at, change.address, sign * bytes])
        })
        .collect();
    let ledger = CardLedger::new(recording, card);
    let before: u64 = card
        .reserved_before
        .iter()
        .map(|segment| segment.bytes)
        .sum();
    json!({
        "events": card.events.len(),
        "outside": card.outside_bytes,
        "reserved_before": before,
        "allocations": allocations,
        "segments": segments,
        "levels": levels(recording, card),
        "pinned_at_peak": ledger.accounts(ledger.peak().moment).pinned_bytes(),
        "failed": card.failed_requests().map(|(event, _)| event).collect::<Vec<_>>(),
    })
}

/// What the ledger says after each event, or after some of very many: requested bytes by group, allocated, reserved.
fn levels(recording: &Recording, card: &CardMemory) -> Vec<Value> {
    let groups = Groups::of(recording);
    let overview = CardLedger::new(recording, card).overview(&groups, usize::MAX);
    let every = overview.stretches.len().div_ceil(30_000).max(1);
    let stretches = overview.stretches.iter().step_by(every);
    stretches
        .filter_map(|stretch| {
            Some(json!({
                "event": stretch.highest.moment.event()?,
                "requested": stretch.requested[..groups.titles.len()],
                "allocated": stretch.highest.allocated_bytes,
                "reserved": stretch.highest.reserved_bytes,
            }))
        })
        .collect()
}
