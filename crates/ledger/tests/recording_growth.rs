//! Memory that grows from step to step is found, and an ordinary training raises no alarm.

use ghostgpu_ledger::{CardLedger, Growth};
use ghostgpu_recording::made_up::{ByHand, MadeUp, Origin, recording};
use ghostgpu_recording::{AllocationId, Category, Recording, Stage};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn growth(recording: &Recording) -> Growth {
    CardLedger::new(recording, &recording.cards[0]).growth()
}

/// How a simulated training loop treats its memory.
#[derive(Clone, Copy, Default)]
struct Loop<'a> {
    steps: u32,
    /// Gradients are zeroed in place instead of set to None.
    keeps_gradients: bool,
    /// Bytes of each step's batch, repeated cyclically.
    batches: &'a [u64],
    /// What the script appends to a list in each step.
    appended: Option<(u64, Category)>,
    /// How many appended tensors the list has room for.
    room: usize,
    /// Appended tensors are as large as the batch.
    appends_batches: bool,
    /// They are made at the line of the loss, which each step replaces.
    appends_at_loss: bool,
    /// If any are named, something is appended only in these steps.
    appends_in: &'a [u32],
    /// The list is emptied before each of these steps.
    empties_in: &'a [u32],
    /// A tensor to which this many bytes are appended in each step, up to a length in steps.
    lengthened: Option<(u64, u64)>,
    /// Plain SGD: nothing is allocated in its steps, which leave no phase.
    has_no_state: bool,
}

/// An Adam training; the loss and the batch of a step live until the next replaces them.
fn training(settings: Loop) -> Recording {
    let line = |lines| Origin {
        lines,
        ..Origin::default()
    };
    let mut card = ByHand::new();
    card.recording.about.gpu_total_bytes = 1 << 30;
    card.enter(Stage::Moving);
    card.allocate(4 * MIB, Category::Parameter, line(&["train.py:5"]));
    let (mut batch, mut loss, mut gradient): (Option<AllocationId>, Option<_>, Option<_>) =
        Default::default();
    let mut list = std::collections::VecDeque::new();
    let mut history: Option<AllocationId> = None;
    for step in 0..settings.steps {
        let batches = settings.batches;
        let bytes = match batches.len() {
            0 => MIB,
            count => batches[step as usize % count],
        };
        if settings.empties_in.contains(&step) {
            list.drain(..).for_each(|each| card.free(each));
        }
        let new = card.allocate(bytes, Category::Input, line(&["train.py:20"]));
        if let Some(old) = batch.replace(new) {
            card.free(old);
        }
        card.enter(Stage::Forward);
        let saved = card.allocate(2 * bytes, Category::Activation, line(&["model.py:3"]));
        let new = card.allocate(bytes / 7, Category::Kept, line(&["train.py:22"]));
        if let Some(old) = loss.replace(new) {
            card.free(old);
        }
        card.enter(Stage::Backward);
        if gradient.is_none() {
            gradient = Some(card.allocate(4 * MIB, Category::Gradient, Origin::default()));
        }
        card.free(saved);
        card.enter(match settings.has_no_state {
            true => Stage::Script,
            false => Stage::OptimizerStep,
        });
        if step == 0 && !settings.has_no_state {
            card.allocate(8 * MIB, Category::OptimizerState, line(&["train.py:24"]));
        }
        let appends = settings.appends_in.is_empty() || settings.appends_in.contains(&step);
        if let Some((own_bytes, category)) = settings.appended.filter(|_| appends) {
            let bytes = if settings.appends_batches {
                bytes
            } else {
                own_bytes
            };
            let origin = line(match settings.appends_at_loss {
                true => &["train.py:22"],
                false => &["torch/x.py:1", "train.py:30", "train.py:40"],
            });
            list.push_back(card.allocate(bytes, category, origin));
            if list.len() > settings.room {
                card.free(list.pop_front().expect("one"));
            }
        }
        if let Some((bytes, most)) = settings.lengthened {
            let origin = Origin {
                operator: "aten::cat",
                ..line(&["train.py:35"])
            };
            let length = u64::from(step + 1).min(most);
            let new = card.allocate(bytes * length, Category::Kept, origin);
            if let Some(old) = history.replace(new) {
                card.free(old);
            }
        }
        card.next_step();
        if !settings.keeps_gradients {
            card.enter(Stage::ZeroGrad);
            card.free(gradient.take().expect("a gradient"));
            card.enter(Stage::Script);
        }
    }
    card.recording
}

#[test]
fn an_ordinary_training_does_not_grow() {
    for steps in 1..8 {
        for keeps_gradients in [false, true] {
            for batches in [&[][..], &[MIB, 2 * MIB, 3 * MIB, 4 * MIB], &[MIB, 5 * MIB]] {
                let found = growth(&training(Loop {
                    steps,
                    keeps_gradients,
                    batches,
                    ..Loop::default()
                }));
                assert_eq!(found.sources, [], "{steps} steps");
                assert_eq!(found.bytes_per_step, 0);
                assert_eq!(found.steps_until_full, None);
            }
        }
    }
}

#[test]
fn one_tensor_that_becomes_longer_in_each_step_is_found() {
    let lengthened = |most, batches| {
        let settings = Loop {
            steps: 12,
            batches,
            lengthened: Some((3 * MIB, most)),
            ..Loop::default()
        };
        growth(&training(settings))
    };
    for batches in [&[][..], &[MIB, 2 * MIB]] {
        let found = lengthened(u64::MAX, batches);
        let [source] = &found.sources[..] else {
            panic!("{:?}", found.sources);
        };
        assert_eq!(source.label, "train.py:35 in main");
        assert_eq!(source.bytes_per_step, 3 * MIB);
        assert_eq!(source.count, 1);
    }
    // A tensor that is cut to a length does not grow, nor do results of data sorted by length.
    assert_eq!(lengthened(5, &[]).sources, []);
    let sorted: Vec<u64> = (1..=12).map(|length| length * MIB).collect();
    assert_eq!(lengthened(u64::MAX, &sorted).sources, []);
}

#[test]
fn what_is_appended_in_each_step_is_found_with_its_line() {
    let leak = Loop {
        steps: 5,
        appended: Some((3 * MIB, Category::Kept)),
        room: usize::MAX,
        ..Loop::default()
    };
    let recording = training(leak);
    let found = growth(&recording);
    let [source] = &found.sources[..] else {
        panic!("{:?}", found.sources);
    };
    assert_eq!(source.label, "train.py:30 in main");
    assert_eq!(source.category, Category::Kept);
    assert_eq!(source.bytes_per_step, 3 * MIB);
    assert_eq!(source.bytes_at_ends, [3, 6, 9, 12, 15].map(|mib| mib * MIB));
    assert_eq!(found.bytes_per_step, 3 * MIB);
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let used = ledger.peak_reserved().reserved_bytes;
    assert_eq!(found.steps_until_full, Some(((1 << 30) - used) / (3 * MIB)));
}

#[test]
fn a_kept_graph_is_found_after_three_steps_and_not_after_two() {
    let graph = |steps| {
        growth(&training(Loop {
            steps,
            appended: Some((MIB, Category::Activation)),
            room: usize::MAX,
            ..Loop::default()
        }))
    };
    assert_eq!(graph(2).sources.len(), 0);
    assert_eq!(graph(3).sources.len(), 1);
    assert_eq!(graph(3).sources[0].category, Category::Activation);
}

#[test]
fn growth_is_found_without_a_phase_of_the_optimizers() {
    let leak = Loop {
        steps: 3,
        appended: Some((3 * MIB, Category::Kept)),
        room: usize::MAX,
        has_no_state: true,
        ..Loop::default()
    };
    let mut recording = training(leak);
    assert_eq!(growth(&recording).sources.len(), 1);
    // The script ended right after its last step.
    recording.cards[0].phases.retain(|phase| phase.step < 3);
    assert_eq!(growth(&recording).sources.len(), 1);
    recording.about.steps = 2;
    assert_eq!(growth(&recording).sources.len(), 0);
}

#[test]
fn a_buffer_that_has_filled_up_does_not_grow() {
    let ring = Loop {
        steps: 12,
        appended: Some((MIB, Category::Kept)),
        room: 4,
        ..Loop::default()
    };
    assert_eq!(growth(&training(ring)).sources, []);
}

#[test]
fn a_loss_that_is_kept_in_each_step_is_found() {
    // The simulated training frees them only after its last optimizer step.
    let found = growth(&recording(MadeUp {
        layers: 2,
        steps: 4,
    }));
    let [source] = &found.sources[..] else {
        panic!("{:?}", found.sources);
    };
    assert_eq!(
        (source.category, source.bytes_per_step),
        (Category::Kept, 512)
    );
}

/// A list to which a loop appends something.
#[derive(Clone, Debug)]
enum List {
    /// Except for single steps, such as the end of an epoch.
    GrowsInEveryStep,
    GrowsEvery(u32),
    /// Something is kept once per epoch.
    GrowsAtEpochsOf(u32),
    HasRoomFor(usize),
    /// Something else is added when a second epoch begins.
    GrowsIn(u32),
    IsEmptiedEvery(u32),
}

impl List {
    fn grows_in(&self, steps: u32) -> Vec<u32> {
        let all = 0..steps;
        match *self {
            Self::GrowsEvery(period) | Self::GrowsAtEpochsOf(period) => {
                all.filter(|step| (step + 1) % period == 0).collect()
            }
            Self::GrowsIn(only) => vec![only],
            _ => all.collect(),
        }
    }

    fn is_emptied_in(&self, steps: u32) -> Vec<u32> {
        match *self {
            Self::IsEmptiedEvery(period) => (1..steps).filter(|step| step % period == 0).collect(),
            _ => Vec::new(),
        }
    }
}

fn sources_of(list: &List, steps: u32, batches: &[u64]) -> Growth {
    growth(&training(Loop {
        steps,
        batches,
        appended: Some((MIB, Category::Kept)),
        appends_batches: true,
        appends_in: &list.grows_in(steps),
        empties_in: &list.is_emptied_in(steps),
        room: match list {
            List::HasRoomFor(room) => *room,
            _ => usize::MAX,
        },
        ..Loop::default()
    }))
}

/// Batches of any sizes; the last of an epoch is short.
fn batches() -> impl Strategy<Value = Vec<u64>> {
    let sizes = proptest::collection::vec(1..40u64, 1..7);
    sizes.prop_map(|sizes| {
        let sizes = sizes.into_iter().map(|size| size * 64 * 1024);
        sizes.chain([24 * 1024]).collect()
    })
}

proptest! {
    #[test]
    fn what_is_kept_in_every_step_grows_whatever_the_batches(
        batches in batches(),
        steps in 5..24u32,
        period in 1..4u32,
    ) {
        let list = match period {
            1 => List::GrowsInEveryStep,
            period => List::GrowsEvery(period),
        };
        // At least three times after the first step.
        prop_assume!(steps > 3 * period + period + 1);
        let found = sources_of(&list, steps, &batches);
        prop_assert_eq!(found.sources.len(), 1);
        let source = &found.sources[0];
        prop_assert_eq!(source.period as u32, period);
        let (least, most) = (batches.iter().min(), batches.iter().max());
        let each = source.bytes_per_step * u64::from(period);
        // Blocks are rounded up to 512 bytes.
        prop_assert!(least.is_some_and(|least| each + 512 >= *least), "{}", each);
        prop_assert!(most.is_some_and(|most| each <= most + 512), "{}", each);
    }

    #[test]
    fn what_levels_off_is_no_growth(
        batches in batches(),
        steps in 8..24u32,
        room in 1..4usize,
    ) {
        for list in [
            List::HasRoomFor(room),
            List::GrowsIn(steps / 2),
            List::IsEmptiedEvery(room as u32 + 1),
        ] {
            let found = sources_of(&list, steps, &batches);
            prop_assert_eq!(&found.sources, &[], "{:?}", list);
        }
    }
}

#[test]
fn what_each_epoch_keeps_grows_once_it_was_seen_three_times() {
    let list = List::GrowsAtEpochsOf(4);
    for (steps, expected) in [(9, None), (11, None), (13, Some(4)), (16, Some(4))] {
        let found = sources_of(&list, steps, &[MIB]);
        let period = found.sources.first().map(|source| source.period);
        assert_eq!(period, expected, "{steps} steps");
    }
}

#[test]
fn a_leak_is_seen_through_batches_of_very_different_sizes() {
    // The bytes of that line vary with the loss, which is much larger than what is kept.
    let found = growth(&training(Loop {
        steps: 9,
        batches: &[70 * MIB, 7 * MIB, 140 * MIB, 21 * MIB],
        appended: Some((MIB, Category::Kept)),
        appends_at_loss: true,
        room: usize::MAX,
        ..Loop::default()
    }));
    let [source] = &found.sources[..] else {
        panic!("{:?}", found.sources);
    };
    assert!(
        source
            .bytes_at_ends
            .windows(2)
            .any(|pair| pair[1] < pair[0])
    );
    assert_eq!(found.bytes_per_step, MIB);
}
