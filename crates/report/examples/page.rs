//! Writes the page of a made-up training: `page --out FILE`, for tests and benchmarks of the page.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use ghostgpu_recording::made_up::recording_at_random;
use ghostgpu_recording::made_up_transformer::{MadeUpTransformer, recording};
use ghostgpu_recording::{CardMemory, Event, ModuleId, NameId, OperatorId, Recording, StackId};
use serde_json::{Value, json};

/// A name as nobody's friend would choose it.
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
    /// Everything that may occur, in any order, and alike in nothing.
    AtRandom,
    /// Every name that a script can choose is an attack.
    Hostile,
    /// Numbers that lead nowhere: sizes beyond any card, names that are not there, no segments.
    Wild,
    /// A card on which nothing happened.
    Nothing,
    NoCard,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut recording = make(&arguments);
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
    recording.about.answer_json = "[".to_owned();
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
        "cards": recording.cards.iter().map(card_facts).collect::<Vec<_>>(),
    })
}

fn card_facts(card: &CardMemory) -> Value {
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
        .events
        .iter()
        .enumerate()
        .filter_map(|(at, event)| match event {
            Event::Reserve(change) => Some(json!([at, change.address, change.bytes])),
            Event::Release(change) => Some(json!([at, change.address, -(change.bytes as i64)])),
            _ => None,
        })
        .collect();
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
    })
}
