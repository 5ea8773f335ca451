//! The run that ran out of memory, kept together with the one with unlimited memory.

use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};
use ghostgpu_recording::{CardMemory, Names, StackId};

/// Everything about an allocation in words, so that numbers do not matter.
fn in_words(names: &Names, card: &CardMemory) -> Vec<String> {
    let frames = |stack: StackId| -> Vec<_> {
        let stack = names.stacks[stack.0 as usize].iter();
        stack
            .map(|id| names.frames[id.0 as usize].clone())
            .collect()
    };
    let allocations = card.allocations.iter().map(|one| {
        let module = &names.modules[one.module.0 as usize];
        format!(
            "{} {} {} {} {} {:?}",
            one.address,
            names.texts[one.name.0 as usize],
            names.operators[one.operator.0 as usize],
            module.path,
            module.class,
            frames(one.stack)
        )
    });
    let failures = card
        .failures
        .iter()
        .map(|failure| format!("{:?}", frames(failure.stack)));
    allocations.chain(failures).collect()
}

#[test]
fn a_failed_run_says_the_same_in_the_names_of_another_recording() {
    for seed in 0..20 {
        let mut whole = recording(MadeUp {
            layers: 3,
            steps: 2,
        });
        let own = in_words(&whole.names, &whole.cards[0]);
        let failed = recording_at_random(seed, 200);
        let cards = failed.cards.iter();
        let cards = cards.map(|card| in_words(&failed.names, card));
        let said: Vec<_> = cards.collect();
        let steps = failed.about.steps;
        whole.keep_failed_run(failed);
        whole.check().expect("it contradicts nothing");
        let kept = whole.failed_run.as_ref().expect("it was kept");
        let cards = kept.cards.iter();
        let kept_said: Vec<_> = cards.map(|card| in_words(&whole.names, card)).collect();
        assert_eq!((kept.steps, kept_said), (steps, said));
        assert_eq!(in_words(&whole.names, &whole.cards[0]), own);
    }
}

#[test]
fn names_of_both_runs_are_held_once() {
    let mut whole = recording(MadeUp {
        layers: 3,
        steps: 2,
    });
    let names = whole.names.clone();
    let mut failed = recording(MadeUp {
        layers: 3,
        steps: 1,
    });
    failed.names.modules[1].output_bytes += 1;
    failed.warnings = vec!["late".to_owned()];
    whole.keep_failed_run(failed);
    assert_eq!(whole.names, names);
    assert_eq!(whole.warnings, ["late"]);
}
