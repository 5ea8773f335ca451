//! The data that the page draws first: what was rehearsed, the peaks, and the timeline in as many stretches as a screen
//! can show.

use ghostgpu_ledger::{Groups, Level, PhaseSums, Stretch};
use ghostgpu_recording::{Category, Recording, Source, Stage};
use serde_json::{Value, json};

use super::counted::{Counted, RunShown};
use super::section::{Coding, Section};

/// The version of the layout of the page's data; the page and its data are written together.
const FORMAT: u32 = 2;

/// Colours of the groups if categories are unknown: names of the palette, the easiest to distinguish first.
const LINE_COLOURS: [&str; 9] = [
    "parameter",
    "activation",
    "optimizer_state",
    "gradient",
    "input",
    "workspace",
    "kept",
    "buffer",
    "temporary",
];

pub(super) fn overview_section(
    recording: &Recording,
    groups: &Groups,
    counted: &[Counted<'_>],
) -> Result<Section, serde_json::Error> {
    let about = &recording.about;
    let mut section = Section::default();
    section.say("format", FORMAT)?;
    section.say("gpu", &about.gpu)?;
    section.say("gpu_total_bytes", about.gpu_total_bytes)?;
    section.say("source", source_name(about.source))?;
    section.say("groups", &groups.titles)?;
    section.say("group_colours", colours(recording, groups))?;
    section.say("stages", Stage::ALL.map(Stage::title))?;
    section.say("stage_names", Stage::ALL.map(Stage::name))?;
    let cards: Vec<Value> = counted.iter().map(describe).collect();
    section.say("cards", cards)?;
    for (place, counted) in counted.iter().enumerate() {
        add_stretches(&mut section, place, groups, &counted.overview.stretches);
        add_phases(&mut section, place, &counted.phases);
    }
    Ok(section)
}

pub(super) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Rehearsal => "rehearsal",
        Source::Snapshot => "snapshot",
    }
}

/// The colour of each group, by its name in the style sheet; null for groups that recordings from this source never
/// have, and for communication between ranks if there is none.
fn colours(recording: &Recording, groups: &Groups) -> Vec<Option<&'static str>> {
    let source = recording.about.source;
    match source {
        Source::Rehearsal => Category::ALL
            .into_iter()
            .map(|one| {
                let is_between_ranks = matches!(one, Category::Gathered | Category::Communication);
                let is_shown = !is_between_ranks || is_used(recording, one);
                (is_shown && one.is_known_to(source)).then_some(one.name())
            })
            .collect(),
        Source::Snapshot => {
            let lines = groups.titles.len().saturating_sub(1);
            let lines = LINE_COLOURS.into_iter().take(lines);
            lines.chain(["unknown"]).map(Some).collect()
        }
    }
}

fn is_used(recording: &Recording, category: Category) -> bool {
    let failed = recording.failed_run.iter().flat_map(|run| &run.cards);
    let cards = recording.cards.iter().chain(failed);
    let mut allocations = cards.flat_map(|card| &card.allocations);
    allocations.any(|one| one.category == category)
}

fn describe(counted: &Counted<'_>) -> Value {
    let (card, overview) = (counted.card, &counted.overview);
    let event = |level: Level| level.moment.event().unwrap_or(0);
    let failed: Vec<Value> = card
        .failed_requests()
        .map(|(index, failure)| json!([index, failure.requested_bytes]))
        .collect();
    let ran_out = counted.ran_out.as_ref().map(|ran_out| {
        json!({
            "event": ran_out.event,
            "requested_bytes": ran_out.failure.requested_bytes,
            "left_bytes": ran_out.failure.driver_free_bytes,
        })
    });
    json!({
        "run": match counted.run {
            RunShown::Failed => "failed",
            RunShown::Recorded => "recorded",
        },
        "ran_out": ran_out,
        "other_processes_bytes": counted.other_processes_bytes,
        "index": card.index,
        "title": card.title(),
        "outside_bytes": card.outside_bytes,
        "nccl_bytes": card.nccl_bytes,
        "events": card.events.len(),
        "events_per_stretch": overview.events_per_stretch,
        "peak_event": event(overview.peak),
        "peak_allocated_bytes": overview.peak.allocated_bytes,
        "peak_requested_bytes": overview.peak.requested_bytes,
        "reserved_peak_event": event(overview.peak_reserved),
        "reserved_peak_bytes": overview.peak_reserved.reserved_bytes,
        "out_of_memory": failed,
    })
}

fn add_stretches(section: &mut Section, place: usize, groups: &Groups, stretches: &[Stretch]) {
    let mut add = |name: &str, value: &dyn Fn(&Stretch) -> u64| {
        let name = format!("card{place}.{name}");
        section.column(&name, Coding::Delta, stretches.iter().map(value));
    };
    add("event", &|it| it.highest.moment.event().unwrap_or(0) as u64);
    for group in 0..groups.titles.len() {
        let name = format!("group{group}");
        add(&name, &|it| it.requested[group]);
    }
    add("rounding", &|it| {
        let Level {
            allocated_bytes,
            requested_bytes,
            ..
        } = it.highest;
        allocated_bytes.saturating_sub(requested_bytes)
    });
    add("reserved", &|it| it.highest.reserved_bytes);
    add("reserved_highest", &|it| it.highest_reserved_bytes);
}

/// Only where stages begin: there may be a hundred thousand of them, and the first picture does not need their sums.
fn add_phases(section: &mut Section, place: usize, phases: &[PhaseSums]) {
    let mut add = |name: &str, value: &dyn Fn(&PhaseSums) -> u64| {
        let name = format!("card{place}.phase_{name}");
        section.column(&name, Coding::Delta, phases.iter().map(value));
    };
    add("first_event", &|it| u64::from(it.phase.first_event));
    add("stage", &|it| it.phase.stage as u64);
    add("step", &|it| u64::from(it.phase.step));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_categories_and_stages_are_in_the_order_of_their_numbers() {
        for (place, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, place);
        }
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place);
        }
    }
}
