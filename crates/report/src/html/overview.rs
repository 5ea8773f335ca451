//! What the page needs for its first picture: what was rehearsed, the peaks, and the timeline in as many
//! stretches as a screen can show.

use ghostgpu_recording::{CardMemory, Category, Event, Recording, Stage};
use serde_json::{Value, json};

use super::section::{Coding, Section};
use super::sweep::{PhaseSums, Stretch, Swept};

/// The version of the layout of the page's data; the page and its data are written together.
const FORMAT: u32 = 1;

pub(super) fn overview_section(
    recording: &Recording,
    swept: &[Swept],
) -> Result<Section, serde_json::Error> {
    let about = &recording.about;
    let mut section = Section::default();
    section.say("format", FORMAT)?;
    section.say("gpu", &about.gpu)?;
    section.say("gpu_total_bytes", about.gpu_total_bytes)?;
    section.say("categories", Category::ALL.map(Category::title))?;
    section.say("category_names", Category::ALL.map(Category::name))?;
    section.say("stages", Stage::ALL.map(Stage::title))?;
    section.say("stage_names", Stage::ALL.map(Stage::name))?;
    let cards: Vec<Value> = recording
        .cards
        .iter()
        .zip(swept)
        .map(|(card, swept)| describe(card, swept))
        .collect();
    section.say("cards", cards)?;
    for (place, swept) in swept.iter().enumerate() {
        add_stretches(&mut section, place, &swept.stretches);
        add_phases(&mut section, place, &swept.phases);
    }
    Ok(section)
}

fn describe(card: &CardMemory, swept: &Swept) -> Value {
    let failed: Vec<Value> = card
        .events
        .iter()
        .enumerate()
        .filter_map(|(index, event)| match event {
            Event::OutOfMemory { requested_bytes } => Some(json!([index, requested_bytes])),
            _ => None,
        })
        .collect();
    json!({
        "index": card.index,
        "outside_bytes": card.outside_bytes,
        "events": card.events.len(),
        "events_per_stretch": swept.events_per_stretch,
        "peak_event": swept.peak.event,
        "peak_allocated_bytes": swept.peak.allocated_bytes,
        "reserved_peak_event": swept.reserved_peak.event,
        "reserved_peak_bytes": swept.reserved_peak.reserved_bytes,
        "out_of_memory": failed,
    })
}

fn add_stretches(section: &mut Section, place: usize, stretches: &[Stretch]) {
    let mut add = |name: &str, value: &dyn Fn(&Stretch) -> u64| {
        let name = format!("card{place}.{name}");
        section.column(&name, Coding::Delta, stretches.iter().map(value));
    };
    add("event", &|it| u64::from(it.highest.event));
    for category in 0..Category::ALL.len() {
        let name = format!("category{category}");
        add(&name, &|it| it.highest.requested_bytes[category]);
    }
    add("rounding", &|it| it.highest.rounding_bytes());
    add("reserved", &|it| it.highest.reserved_bytes);
    add("reserved_highest", &|it| it.highest_reserved_bytes);
}

/// Where stages begin, and nothing else: there may be a hundred thousand of them, and the first picture does
/// not need their sums.
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
