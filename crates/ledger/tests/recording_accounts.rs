//! The categories of a moment add up to what the allocator has, at every moment of any recording.

use ghostgpu_ledger::Moment;
use ghostgpu_ledger::{CardLedger, Part, Sweep};
use ghostgpu_recording::made_up::{ByHand, MadeUp, Origin, recording, recording_at_random};
use ghostgpu_recording::{Answer, CardMemory, Category, DevicePeak, Event, Recording};
use proptest::prelude::*;

/// The sums of a moment, computed naively from the definitions.
fn counted_plainly(card: &CardMemory, moment: usize) -> (u64, u64, u64) {
    let live: Vec<(u64, u64)> = card
        .allocations
        .iter()
        .filter(|one| {
            one.allocated_at
                .is_none_or(|event| (event as usize) < moment)
        })
        .filter(|one| one.freed_at.is_none_or(|event| event as usize >= moment))
        .map(|one| (one.address, one.address + one.block_bytes))
        .collect();
    let allocated = live.iter().map(|(from, to)| to - from).sum();
    let mut segments: Vec<(u64, u64)> = card
        .reserved_before
        .iter()
        .map(|one| (one.address, one.address + one.bytes))
        .collect();
    for event in &card.events[..moment] {
        match event {
            Event::Reserve(id) => {
                let one = card.change(*id);
                segments.push((one.address, one.address + one.bytes));
            }
            Event::Release(id) => {
                let one = card.change(*id);
                let (from, to) = (one.address, one.address + one.bytes);
                segments = segments
                    .iter()
                    .flat_map(|&(begin, end)| {
                        [
                            (begin, end.min(from.max(begin))),
                            (begin.max(to.min(end)), end),
                        ]
                    })
                    .filter(|(begin, end)| begin < end)
                    .collect();
            }
            _ => {}
        }
    }
    let reserved = segments.iter().map(|(begin, end)| end - begin).sum();
    let is_free = |begin: u64, end: u64| !live.iter().any(|(from, to)| *from < end && begin < *to);
    let releasable = segments
        .iter()
        .filter(|(begin, end)| is_free(*begin, *end))
        .map(|(begin, end)| end - begin)
        .sum();
    (allocated, reserved, releasable)
}

fn assert_accounts_add_up(recording: &Recording, every: usize) {
    for card in &recording.cards {
        let ledger = CardLedger::new(recording, card);
        let states: Vec<_> = std::iter::once(*Sweep::new(card).state())
            .chain(Sweep::new(card).map(|(_, state)| state))
            .collect();
        for (moment, state) in states.iter().enumerate().step_by(every) {
            let accounts = ledger.accounts(Moment(moment));
            let (allocated, reserved, releasable) = counted_plainly(card, moment);
            assert_eq!(accounts.allocated_bytes, allocated);
            assert_eq!(accounts.reserved_bytes, reserved);
            assert_eq!(accounts.releasable_bytes, releasable);
            assert_eq!(state.allocated_bytes, allocated);
            assert_eq!(state.reserved_bytes, reserved);
            assert_eq!(state.requested, accounts.requested);
            let sum: u64 = accounts.parts().map(|(_, bytes)| bytes).sum();
            assert_eq!(sum, reserved + card.outside_bytes);
            assert_eq!(sum, accounts.on_card_bytes());
        }
        let most = states.iter().map(|state| state.allocated_bytes).max();
        assert_eq!(Some(ledger.peak().allocated_bytes), most);
        let first = states
            .iter()
            .position(|state| Some(state.allocated_bytes) == most);
        assert_eq!(Some(ledger.peak().moment.0), first);
        let most = states.iter().map(|state| state.reserved_bytes).max();
        assert_eq!(Some(ledger.peak_reserved().reserved_bytes), most);
    }
}

#[test]
fn the_parts_of_a_training_add_up_at_every_moment() {
    let training = recording(MadeUp {
        layers: 3,
        steps: 3,
    });
    assert_accounts_add_up(&training, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_parts_of_any_recording_add_up_at_every_moment(seed: u64, events in 0_usize..120) {
        assert_accounts_add_up(&recording_at_random(seed, events), 1);
    }

    #[test]
    fn sums_by_module_place_operator_and_holder_are_those_of_the_categories(
        seed: u64,
        events in 0_usize..200,
    ) {
        let recording = recording_at_random(seed, events);
        for card in &recording.cards {
            let ledger = CardLedger::new(&recording, card);
            let peak = ledger.peak().moment;
            let accounts = ledger.accounts(peak);
            let tree = ledger.by_module(peak);
            let places = ledger.by_place(peak);
            let operators = ledger.by_operator(peak);
            let holders = ledger.holders(peak);
            for category in Category::ALL {
                let expected = accounts.requested.get(category);
                let own = tree.nodes.iter().map(|node| node.own.requested.get(category));
                prop_assert_eq!(own.sum::<u64>(), expected);
                let top = tree.children(None).map(|(_, node)| node.total.requested.get(category));
                prop_assert_eq!(top.sum::<u64>(), expected);
                let lines = places.iter().map(|one| one.held.requested.get(category));
                prop_assert_eq!(lines.sum::<u64>(), expected);
                let operators = operators.iter().map(|one| one.held.requested.get(category));
                prop_assert_eq!(operators.sum::<u64>(), expected);
                let holders = holders.iter().map(|one| one.held.requested.get(category));
                prop_assert_eq!(holders.sum::<u64>(), expected);
            }
            for (at, node) in tree.nodes.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| parent < at));
                let below = tree.children(Some(at)).map(|(_, child)| child.total.block_bytes);
                prop_assert_eq!(node.total.block_bytes, node.own.block_bytes + below.sum::<u64>());
            }
            prop_assert!(places.iter().all(|one| !one.label.is_empty()));
            prop_assert!(operators.iter().all(|one| !one.label.is_empty()));
            ledger.growth();
        }
    }

    #[test]
    fn the_rule_of_thumb_and_its_differences_lead_to_what_is_on_the_card(
        seed: u64,
        events in 0_usize..200,
    ) {
        let recording = recording_at_random(seed, events);
        for card in &recording.cards {
            let ledger = CardLedger::new(&recording, card);
            if let Some(rule) = ledger.rule_of_thumb() {
                let differences: i64 = rule.differences.iter().map(|one| one.bytes).sum();
                prop_assert_eq!(rule.rule_bytes as i64 + differences, rule.exact_bytes as i64);
                let layers: u64 = rule.layers.iter().map(|layer| layer.rule_bytes).sum();
                prop_assert_eq!(layers, rule.rule_bytes);
            }
        }
    }
}

#[test]
fn free_memory_beside_a_live_block_is_held_by_fragmentation() {
    let mut card = ByHand::new();
    card.reserve(0, 4096);
    card.reserve(4096, 4096);
    let _small = card.allocate_at(1024, 100, Category::Temporary, Origin::default());
    let recording = card.recording;
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let accounts = ledger.accounts(ledger.end().moment);
    assert_eq!(accounts.part(Part::Category(Category::Temporary)), 100);
    assert_eq!(accounts.part(Part::Rounding), 412);
    assert_eq!(accounts.part(Part::Cached), 4096);
    assert_eq!(accounts.part(Part::CachedPinned), 4096 - 512);
}

#[test]
fn what_other_processes_hold_is_a_part_of_what_is_on_the_card() {
    let mut card = ByHand::new();
    card.reserve(0, 4096);
    card.card().outside_bytes = 1000;
    card.recording.about.answer = Some(Answer {
        devices: vec![DevicePeak {
            device: 0,
            peak_device_bytes: 6096,
            other_processes_bytes: 1000,
        }],
        ..Answer::default()
    });
    let recording = card.recording;
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let accounts = ledger.accounts(ledger.end().moment);
    assert_eq!(accounts.part(Part::OtherProcesses), 1000);
    assert_eq!(accounts.on_card_bytes(), 6096);
}
