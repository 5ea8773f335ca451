//! What the pass must find, by the definitions.

use ghostgpu_recording::made_up_transformer::{MadeUpTransformer, recording};
use ghostgpu_recording::{AllocationId, Recording, SegmentChange};

use super::*;

fn training(steps: u32) -> Recording {
    recording(MadeUpTransformer {
        layers: 2,
        steps,
        gpu_total_bytes: 12 << 30,
    })
}

/// The definition, without any cleverness.
fn moment_by_definition(card: &CardMemory, event: u32) -> Moment {
    let mut now = Moment {
        event,
        ..Moment::default()
    };
    for allocation in &card.allocations {
        let began = allocation.allocated_at.is_none_or(|begin| begin <= event);
        let ended = allocation.freed_at.is_some_and(|end| end <= event);
        if began && !ended {
            add(&mut now, allocation);
        }
    }
    now.reserved_bytes = card.reserved_before.iter().map(|each| each.bytes).sum();
    for each in &card.events[..=event as usize] {
        match each {
            Event::Reserve(change) => now.reserved_bytes += change.bytes,
            Event::Release(change) => now.reserved_bytes -= change.bytes,
            _ => {}
        }
    }
    now
}

#[test]
fn every_stretch_shows_the_highest_of_its_moments() {
    let recording = training(40);
    let card = &recording.cards[0];
    let swept = sweep(card);
    for stretch in swept.stretches.iter().step_by(97) {
        let event = stretch.highest.event;
        assert_eq!(stretch.highest, moment_by_definition(card, event));
    }
    let highest = swept
        .stretches
        .iter()
        .map(|each| each.highest.allocated_bytes);
    assert_eq!(highest.max(), Some(swept.peak.allocated_bytes));
    assert_eq!(
        swept.peak,
        moment_by_definition(card, swept.peak.event),
        "the peak"
    );
}

#[test]
fn long_recordings_get_no_more_stretches() {
    let recording = training(200);
    let swept = sweep(&recording.cards[0]);
    assert!(recording.cards[0].events.len() > MOST_STRETCHES);
    assert!(swept.stretches.len() <= MOST_STRETCHES);
    assert!(swept.events_per_stretch > 1);
}

#[test]
fn phases_follow_each_other_in_bytes() {
    let swept = sweep(&training(3).cards[0]);
    for pair in swept.phases.windows(2) {
        let after = pair[0].before_bytes + pair[0].came_bytes - pair[0].went_bytes;
        assert_eq!(after, pair[1].before_bytes);
        assert!(pair[0].stayed_bytes <= pair[0].came_bytes);
    }
    let highest = swept.phases.iter().map(|sums| sums.peak_bytes).max();
    assert_eq!(highest, Some(swept.peak.allocated_bytes));
}

#[test]
fn events_that_make_no_sense_are_passed_over() {
    let card = CardMemory {
        events: vec![
            Event::Free(AllocationId(3)),
            Event::Allocate(AllocationId(9)),
            Event::Release(SegmentChange {
                address: 1,
                bytes: 5,
            }),
        ],
        ..CardMemory::default()
    };
    let swept = sweep(&card);
    assert_eq!(swept.peak.allocated_bytes, 0);
    assert_eq!(swept.peak.reserved_bytes, 0);
}

#[test]
fn a_recording_without_events_has_one_moment() {
    let swept = sweep(&CardMemory::default());
    assert_eq!(swept.stretches.len(), 1);
    assert!(swept.phases.is_empty());
}
