use std::cell::RefCell;
use std::rc::Rc;

use ghostgpu_device::{Catalogue, DeviceSheet};
use ghostgpu_rehearse::{Change, Ending, History, Rehearsal};
use ghostgpu_session::card_usage::{CardUse, ProcessUse};
use ghostgpu_snapshot::{
    AllocatorSettings, ContextId, DeviceTrace, Event, EventContext, EventKind, Events, Format,
    Names, Snapshot, StackId, Stacks,
};
use ghostgpu_whatif::{Known as KnownOfHistory, OthersMemory, Outside};

use super::*;
use crate::fake_runner::{FakeRunner, does_not_fit, fails, fits, interrupted};

const MIB: u64 = 1 << 20;

/// A training that allocates one block, frees it, and then allocates another: it needs only the memory of the larger
/// one.
#[derive(Clone, Copy)]
struct Training {
    first_bytes: u64,
    second_bytes: u64,
    /// The second block is larger by this for each multiprocessor beyond 80.
    bytes_per_multiprocessor: u64,
    has_history: bool,
}

const TRAINING: Training = Training {
    first_bytes: 1000 * MIB,
    second_bytes: 7000 * MIB,
    bytes_per_multiprocessor: 0,
    has_history: true,
};

impl Training {
    fn second_on(self, sheet: &DeviceSheet) -> u64 {
        let more = u64::from(sheet.multiprocessors.saturating_sub(80));
        self.second_bytes + more * self.bytes_per_multiprocessor
    }

    /// The run of this training on the rehearsal's card.
    fn rehearse(self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let mut sheet = Catalogue::builtin().find("gb300").expect("a card").sheet();
        let mut capacity = None;
        let mut is_unlimited = false;
        for change in &rehearsal.changes {
            match change {
                Change::Card(other) => sheet = (**other).clone(),
                Change::Memory(bytes) => capacity = Some(*bytes),
                Change::UnlimitedMemory => is_unlimited = true,
                other => panic!("{other:?}"),
            }
        }
        let capacity = capacity.unwrap_or(sheet.total_bytes);
        let outside = sheet.overhead.context_bytes + sheet.overhead.kernels_bytes;
        let second = self.second_on(&sheet);
        let all = self.first_bytes + second;
        let room = match is_unlimited {
            true => u64::MAX,
            false => capacity.saturating_sub(outside),
        };
        if room < second {
            let mut run = does_not_fit()?;
            run.findings.processes[0].code_architectures = code();
            return Ok(run);
        }
        let (reserved, flushes) = match room < all {
            true => (second, 3),
            false => (all, 0),
        };
        let mut run = fits(reserved)?;
        run.findings.cards[0].peak_bytes = reserved + outside;
        run.findings.process_use = vec![ProcessUse {
            process: 1,
            device: 0,
            used_bytes: 0,
            peak_bytes: reserved + outside,
            at_card_peak_bytes: reserved + outside,
        }];
        let process = &mut run.findings.processes[0];
        process.pid = 1;
        process.steps = 3;
        process.code_architectures = code();
        process.peaks[0].allocations = 2;
        process.peaks[0].peak_allocated_bytes = second;
        process.peaks[0].retries = flushes;
        run.history = self
            .has_history
            .then(|| Box::new(self.history(&sheet, flushes > 0)));
        Ok(run)
    }

    fn history(self, sheet: &DeviceSheet, has_flushed: bool) -> History {
        let mut trace = DeviceTrace::default();
        let mut push = |kind, address, bytes| {
            let event = Event {
                kind,
                address,
                bytes,
                device_free_bytes: None,
                time_us: 0,
                stack: StackId::NONE,
                context: ContextId(0),
            };
            trace.events.push(event, EventContext::default());
        };
        let (first, second) = (1 << 40, 2 << 40);
        push(EventKind::SegmentAlloc, first, self.first_bytes);
        push(EventKind::Alloc, first, self.first_bytes);
        push(EventKind::FreeRequested, first, self.first_bytes);
        push(EventKind::FreeCompleted, first, self.first_bytes);
        if has_flushed {
            push(EventKind::SegmentFree, first, self.first_bytes);
        }
        push(EventKind::SegmentAlloc, second, self.second_on(sheet));
        push(EventKind::Alloc, second, self.second_on(sheet));
        let snapshot = Snapshot {
            format: Format::Snapshot,
            segments: Vec::new(),
            traces: vec![trace],
            settings: AllocatorSettings::default(),
            annotations: Vec::new(),
            host_segments: Vec::new(),
            host_events: Events::default(),
            stacks: Stacks::default(),
            names: Names::default(),
            warnings: Vec::new(),
            pickle_bytes: 0,
        };
        let known = KnownOfHistory {
            release: "2.11.0".parse().ok(),
            limit_bytes: None,
        };
        let mut history = History::of(&snapshot, 0, known).expect("a history");
        history.beside(OthersMemory {
            context_bytes: sheet.overhead.context_bytes,
            taken: vec![(
                0,
                Outside::FirstKernel {
                    bytes: sheet.overhead.kernels_bytes,
                },
            )],
        });
        history
    }
}

/// The architectures that the fake torch has code for.
fn code() -> Vec<String> {
    let code = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"];
    code.map(str::to_owned).to_vec()
}

fn all() -> Question<'static> {
    Question {
        cards: Catalogue::builtin().cards().iter().collect(),
        reserve_bytes: 0,
        margin: None,
        torch: Some("2.11.0"),
    }
}

fn named(names: &[&str]) -> Question<'static> {
    let find = |name: &&str| Catalogue::builtin().find(name).expect("a card");
    Question {
        cards: names.iter().map(find).collect(),
        ..all()
    }
}

/// The row of a card that is rehearsed individually.
fn by_itself<'a>(training: Training, card: &'a Card, question: &Question<'a>) -> OnOneCard<'a> {
    let mut runner = FakeRunner::new(move |rehearsal| training.rehearse(rehearsal));
    let alone = Alone::rehearse(&mut runner, card).expect("no stop");
    alone.row(&mut runner, question).expect("no stop")
}

/// Compares the survey with individual rehearsals of every card; returns how many rehearsals the survey took.
#[track_caller]
fn assert_same_as_by_themselves(training: Training, question: &Question) -> usize {
    let mut runner = FakeRunner::new(move |rehearsal| training.rehearse(rehearsal));
    let survey = survey(&mut runner, question);
    assert!(
        survey.stop.is_none() && survey.open.is_empty(),
        "{survey:?}"
    );
    assert_eq!(survey.known.len(), question.cards.len());
    for (row, card) in survey.known.iter().zip(&question.cards) {
        assert_eq!(row.card.name, card.name);
        let expected = by_itself(training, card, question);
        assert_eq!(row.verdict, expected.verdict, "{}", card.name);
        assert_eq!(row.headroom_bytes, expected.headroom_bytes, "{}", card.name);
        assert_eq!(row.margin_bytes, expected.margin_bytes, "{}", card.name);
        if row.verdict == Verdict::CannotRun {
            continue;
        }
        let device_bytes = |row: &OnOneCard| row.need.as_ref().map(|need| need.device_bytes);
        assert_eq!(device_bytes(row), device_bytes(&expected), "{}", card.name);
    }
    assert_eq!(survey.rehearsals, runner.seen.len());
    survey.rehearsals
}

#[test]
fn every_card_gets_the_verdict_that_a_rehearsal_on_it_would_give() {
    // One job that fits everywhere, one that is close to the limit of many cards, and one that fits nowhere.
    for second in [1000, 10_500, 900_000] {
        let training = Training {
            second_bytes: second * MIB,
            ..TRAINING
        };
        let rehearsals = assert_same_as_by_themselves(training, &all());
        assert!(rehearsals < 110, "{second} MiB: {rehearsals}");
    }
}

#[test]
fn multiprocessors_that_change_the_need_are_noticed() {
    let training = Training {
        bytes_per_multiprocessor: 4 * MIB,
        ..TRAINING
    };
    let rehearsals = assert_same_as_by_themselves(training, &all());
    let steady = assert_same_as_by_themselves(TRAINING, &all());
    assert!(rehearsals > steady, "{rehearsals} > {steady}");
}

#[test]
fn a_reserve_and_a_margin_count_for_every_card() {
    for margin in [
        None,
        Some(Margin::Percent(5.0)),
        Some(Margin::Bytes(2 << 30)),
    ] {
        let question = Question {
            reserve_bytes: 1 << 30,
            margin,
            ..all()
        };
        // The fake rehearsals do not simulate the reserve, so cards at their limit would get another verdict.
        let training = Training {
            second_bytes: 1500 * MIB,
            ..TRAINING
        };
        let mut runner = FakeRunner::new(move |rehearsal| training.rehearse(rehearsal));
        for row in survey(&mut runner, &question).known {
            let Some(need) = row.need.filter(|_| row.headroom_bytes.is_some()) else {
                continue;
            };
            let left = row.card.total_bytes - (1 << 30) - need.device_bytes;
            assert_eq!(row.headroom_bytes, Some(left), "{}", row.card.name);
        }
    }
}

#[test]
fn a_card_that_others_use_completely_is_not_rehearsed() {
    let question = Question {
        reserve_bytes: 13 << 30,
        ..named(&["3060", "4090"])
    };
    let mut runner = FakeRunner::new(move |rehearsal| TRAINING.rehearse(rehearsal));
    let survey = survey(&mut runner, &question);
    assert_eq!(survey.known[0].verdict, Verdict::DoesNotFit);
    assert_eq!(survey.known[0].need, None);
    assert!(survey.known[1].is_rehearsed);
}

#[test]
fn without_a_history_every_card_is_rehearsed_and_the_survey_says_why() {
    let training = Training {
        has_history: false,
        ..TRAINING
    };
    let mut runner = FakeRunner::new(move |rehearsal| training.rehearse(rehearsal));
    let question = named(&["h200", "3060", "3070", "3080", "3090"]);
    let survey = survey(&mut runner, &question);
    assert!(survey.alone_because.is_some());
    assert!(
        survey.known.iter().all(|row| row.is_rehearsed),
        "{survey:?}"
    );
}

#[test]
fn cards_without_code_are_not_rehearsed() {
    let mut runner = FakeRunner::new(move |rehearsal| TRAINING.rehearse(rehearsal));
    let survey = survey(&mut runner, &named(&["h200", "1080ti", "v100"]));
    let verdicts: Vec<Verdict> = survey.known.iter().map(|row| row.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Fits, Verdict::CannotRun, Verdict::CannotRun]
    );
    let reason = survey.known[1].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("compute capability 6.1"), "{reason}");
    assert_eq!(survey.rehearsals, 2, "one, and one that confirms");
}

#[test]
fn a_script_that_fails_on_the_first_card_is_not_tried_on_others() {
    let mut runner = FakeRunner::new(|_| fails("ValueError: no data"));
    let survey = survey(&mut runner, &named(&["h200", "3060"]));
    assert_eq!(survey.rehearsals, 1);
    assert_eq!(survey.known.len(), 1);
    assert_eq!(survey.known[0].verdict, Verdict::ScriptFailed);
    assert_eq!(survey.open.len(), 1);
    assert_eq!(survey.failed_first.map(|failed| failed.exit_code), Some(1));
}

#[test]
fn a_script_that_fails_on_some_cards_gets_a_verdict_on_the_others() {
    let mut runner = FakeRunner::new(move |rehearsal| {
        let is_turing = rehearsal.changes.iter().any(|change| match change {
            Change::Card(sheet) => sheet.capability.major == 7,
            _ => false,
        });
        match is_turing {
            true => fails("AssertionError: bfloat16 is needed"),
            false => TRAINING.rehearse(rehearsal),
        }
    });
    let survey = survey(
        &mut runner,
        &named(&["h200", "2080ti", "t4", "2060", "3090"]),
    );
    let verdicts: Vec<Verdict> = survey.known.iter().map(|row| row.verdict).collect();
    let failed = Verdict::ScriptFailed;
    assert_eq!(
        verdicts,
        [Verdict::Fits, failed, failed, failed, Verdict::Fits]
    );
}

#[test]
fn a_script_that_uses_no_card_uses_none_of_them() {
    let mut runner = FakeRunner::new(|_| Ok(Run::new(Ending::Exited(0), idle())));
    let survey = survey(&mut runner, &named(&["h200", "3060", "4090"]));
    assert_eq!(survey.rehearsals, 1);
    assert!(survey.known.len() == 3);
    let mut verdicts = survey.known.iter().map(|row| row.verdict);
    assert!(verdicts.all(|verdict| verdict == Verdict::DidNotUseCard));
}

fn idle() -> ghostgpu_rehearse::Findings {
    ghostgpu_rehearse::Findings {
        processes: vec![Default::default()],
        cards: vec![CardUse {
            used_bytes: 0,
            peak_bytes: 0,
        }],
        ..Default::default()
    }
}

#[test]
fn an_interrupted_survey_keeps_the_verdicts_it_has() {
    let count = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&count);
    let mut runner = FakeRunner::new(move |rehearsal| {
        *seen.borrow_mut() += 1;
        match *seen.borrow() {
            1..=4 => TRAINING.rehearse(rehearsal),
            _ => interrupted(),
        }
    });
    let survey = survey(&mut runner, &named(&["3060", "h200", "4090"]));
    assert!(matches!(survey.stop, Some(Stop::Interrupted(2))));
    assert_eq!(survey.known.len() + survey.open.len(), 3);
    assert_eq!(survey.open.len(), 1);
}
