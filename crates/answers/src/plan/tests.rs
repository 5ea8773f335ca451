use ghostgpu_device::{Catalogue, DeviceSheet};
use ghostgpu_ledger::Part;
use ghostgpu_plan::memory_plan::{CardThatFits, Composition, Layers, LeftOut, SmallerData};
use ghostgpu_plan::verdict::{Judgement, Margin};
use ghostgpu_recording::Category;
use ghostgpu_rehearse::{Ending, Findings, OutOfMemory, Run, Stop};
use ghostgpu_session::ChangeReport;

use super::*;
use crate::style::{Detail, PLAIN, Style, assert_fits_one_screen};

const MIB: u64 = 1 << 20;

fn sheet() -> DeviceSheet {
    Catalogue::builtin().find("2080ti").expect("a card").sheet()
}

fn peaks(mib: u64) -> Peaks {
    Peaks {
        allocated_bytes: (mib - 600) * MIB,
        reserved_bytes: (mib - 200) * MIB,
        device_bytes: mib * MIB,
    }
}

fn combination(flags: &[(&str, &str)]) -> Combination {
    let requests = flags
        .iter()
        .map(|(flag, value)| Request::of_flag(flag, value).expect("known"));
    let all = requests
        .into_iter()
        .try_fold(Combination::none(), |all, request| all.with(request));
    all.expect("no conflict")
}

fn rehearsed(
    flags: &[(&str, &str)],
    outcome: CombinationOutcome,
    relative_time: Option<f64>,
) -> RehearsedCombination {
    let combination = combination(flags);
    RehearsedCombination {
        reports: combination
            .requests()
            .iter()
            .map(|request| ChangeReport {
                name: request.name.clone(),
                did: Some(format!("did what {} does", request.name)),
                ..ChangeReport::default()
            })
            .collect(),
        combination,
        outcome,
        relative_time,
        is_thorough: true,
    }
}

fn fits(mib: u64) -> CombinationOutcome {
    CombinationOutcome::Fits {
        peaks: peaks(mib),
        headroom_bytes: sheet().total_bytes - mib * MIB,
        tight_because: None,
    }
}

fn misses(mib: Option<u64>) -> CombinationOutcome {
    CombinationOutcome::DoesNotFit {
        place: Some(OutOfMemory::Request {
            stage: "backward".to_owned(),
            step: 1,
            line: Some(("train.py".to_owned(), 41)),
            moment: None,
        }),
        needed: mib.map(peaks),
    }
}

fn judgement(verdict: Verdict, reason: &str) -> Judgement {
    Judgement {
        verdict,
        reason: reason.to_owned(),
        headroom_bytes: None,
        margin_bytes: 0,
        flushes_per_step: None,
    }
}

fn searched(rehearsed: Vec<RehearsedCombination>) -> Searched {
    Searched {
        as_it_is: judgement(Verdict::DoesNotFit, "out of memory in step 2"),
        needed: peaks(13_552),
        composition: Composition {
            parts: vec![
                (Part::Category(Category::Activation), 9_513 * MIB),
                (Part::Category(Category::OptimizerState), 836 * MIB),
                (Part::Category(Category::Parameter), 418 * MIB),
                (Part::Outside, 204 * MIB),
            ],
            blocks: 12,
            layers: vec![Layers {
                class: "GPT2Block".to_owned(),
                count: 12,
                bytes: 9_600 * MIB,
            }],
            batch: Some(64),
            tokens: Some(256),
        },
        rehearsed,
        rehearsals: 31,
        stopped: Stopped::NothingLeft,
        left_out: LeftOut {
            contain_one_that_fits: 12,
            too_large: 3,
            slower: 0,
        },
        allowed_more: false,
        cards: Vec::new(),
        smaller_data: Vec::new(),
    }
}

fn answer(plan: &MemoryPlan) -> PlanAnswer {
    let sheet = sheet();
    let card = OnCard {
        sheet: &sheet,
        count: 1,
        uncertainty: None,
        reserve_bytes: 0,
        margin: Some(Margin::Bytes(256 * MIB)),
        torch: None,
    };
    let mut answer = PlanAnswer::new(
        plan,
        &Circumstances {
            card: &card,
            torch: Some("2.11.0".to_owned()),
            torch_cuda: Some("13.0".to_owned()),
        },
    );
    answer.versions.ghostgpu = "0.1.0".to_owned();
    answer
}

pub(crate) fn found(has_time: bool) -> PlanAnswer {
    let time = |time: f64| has_time.then_some(time);
    let mut answer = answer(&MemoryPlan::Searched(Box::new(searched(vec![
        rehearsed(&[("--checkpoint", "5")], fits(9_940), time(1.14)),
        rehearsed(
            &[
                ("--early-zero-grad", ""),
                ("--checkpoint", "4"),
                ("--chunk-loss", "8"),
            ],
            fits(10_210),
            time(1.16),
        ),
        rehearsed(&[("--checkpoint", "auto")], fits(3_420), time(1.34)),
        rehearsed(&[("--chunks", "2")], fits(7_370), time(1.62)),
        rehearsed(&[("--offload-activations", "")], fits(4_010), time(2.7)),
        rehearsed(&[("--amp", "fp16")], fits(8_700), time(0.48)),
        rehearsed(
            &[("--amp", "fp16"), ("--optimizer", "adafactor")],
            fits(7_900),
            time(0.61),
        ),
        rehearsed(&[("--inplace", "")], misses(Some(13_000)), None),
        rehearsed(
            &[("--optimizer", "8bit")],
            CombinationOutcome::Fails("bitsandbytes is not installed".to_owned()),
            None,
        ),
    ]))));
    let command = "ghostgpu launch --checkpoint 5 train.py --batch-size 64";
    answer.command = command.split(' ').map(str::to_owned).collect();
    answer
}

pub(crate) fn nothing() -> PlanAnswer {
    let strongest = [
        ("--checkpoint", "auto"),
        ("--offload-activations", ""),
        ("--optimizer", "offload"),
    ];
    let mut nothing = searched(vec![
        rehearsed(&strongest, misses(Some(11_900)), None),
        rehearsed(&[("--checkpoint", "auto")], misses(Some(12_400)), None),
        rehearsed(&[("--chunks", "2")], misses(None), None),
    ]);
    let card = |name| Catalogue::builtin().find(name).expect("a card");
    nothing.cards = vec![
        CardThatFits {
            combination: combination(&strongest),
            card: card("3060"),
            peaks: peaks(11_900),
        },
        CardThatFits {
            combination: Combination::none(),
            card: card("a4000"),
            peaks: peaks(13_552),
        },
    ];
    nothing.smaller_data = vec![
        SmallerData {
            kind: SmallerKind::Batch { from: 64, to: 32 },
            before: peaks(11_900),
            after: peaks(7_700),
        },
        SmallerData {
            kind: SmallerKind::Tokens { from: 256, to: 128 },
            before: peaks(11_900),
            after: peaks(8_100),
        },
    ];
    answer(&MemoryPlan::Searched(Box::new(nothing)))
}

const EVERYTHING: Style = Style {
    detail: Detail::Everything,
    ..PLAIN
};

const QUIET: Style = Style {
    detail: Detail::Quiet,
    ..PLAIN
};

#[test]
fn ways_that_fit_on_one_screen() {
    let text = found(true).text(PLAIN);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn without_a_predicted_time_there_is_no_column_for_it() {
    let text = found(false).text(PLAIN);
    assert_fits_one_screen(&text);
    assert!(!text.contains('×') && !text.contains("time"), "{text}");
}

#[test]
fn everything_that_was_rehearsed() {
    insta::assert_snapshot!(found(true).text(EVERYTHING));
}

#[test]
fn nothing_that_fits() {
    let answer = nothing();
    assert_eq!(answer.exit_code, 3);
    let text = answer.text(PLAIN);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn one_line_for_each_result() {
    let run = || Box::new(Run::new(Ending::Exited(0), Findings::default()));
    let fitting = answer(&MemoryPlan::Fits {
        judgement: judgement(Verdict::Fits, "2.00 GiB are left"),
        run: run(),
    });
    let unknown = answer(&MemoryPlan::NoQuestion {
        judgement: judgement(Verdict::NotKnown, "evaluation was not reached"),
        run: run(),
        reason: None,
    });
    let mut tight = searched(vec![rehearsed(
        &[("--checkpoint", "3")],
        CombinationOutcome::Fits {
            peaks: peaks(10_800),
            headroom_bytes: 20 * MIB,
            tight_because: Some("only 20.00 MiB are left".to_owned()),
        },
        None,
    )]);
    let tightly = answer(&MemoryPlan::Searched(Box::new(searched(std::mem::take(
        &mut tight.rehearsed,
    )))));
    tight.stopped = Stopped::Interrupted(Stop::Interrupted(2));
    let interrupted = answer(&MemoryPlan::Searched(Box::new(tight)));
    let all = [
        &fitting,
        &found(true),
        &tightly,
        &nothing(),
        &unknown,
        &interrupted,
    ];
    let codes: Vec<u8> = all.iter().map(|answer| answer.exit_code).collect();
    assert_eq!(codes, [0, 0, 4, 3, 8, 130]);
    let lines: String = all.iter().map(|answer| answer.text(QUIET)).collect();
    insta::assert_snapshot!(lines);
}

#[test]
fn the_document_is_read_back_as_it_was_written() {
    for answer in [found(true), nothing()] {
        let text = crate::in_json(&answer).expect("a document");
        let again: PlanAnswer = serde_json::from_str(&text).expect("read");
        assert_eq!(again, answer);
    }
    let document = serde_json::to_value(found(true)).expect("a document");
    assert_eq!(document["schema"], "ghostgpu.plan/1");
    assert_eq!(document["candidates"][0]["flags"], "--checkpoint 5");
    assert_eq!(
        document["candidates"][5]["needs_allowed"],
        serde_json::json!(["precision"])
    );
    assert_eq!(document["recommended"], 0);
}

#[test]
fn smaller_data_that_saves_nothing_is_not_mentioned() {
    let mut answer = nothing();
    for smaller in &mut answer.smaller_data {
        smaller.after_device_bytes = smaller.before_device_bytes;
    }
    assert!(!answer.text(PLAIN).contains("smaller data"));
}

#[test]
fn another_batch_says_what_becomes_of_the_learning_rate() {
    let one = rehearsed(&[("--checkpoint", "5")], fits(9_943), None);
    let mut found = answer(&MemoryPlan::Searched(Box::new(searched(vec![one]))));
    let mut text_with = |batch| {
        found.largest_batch = Some(LargestBatch {
            batch,
            own: Some(16),
        });
        let words = found.text(PLAIN);
        words.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let quadrupled = text_with(64);
    assert!(
        quadrupled.contains("usually ×4.00 with SGD, ×2.00"),
        "{quadrupled}"
    );
    let same = text_with(16);
    assert!(!same.contains("learning rate"), "{same}");
}

#[test]
fn a_trick_that_fits_in_several_amounts_is_shown_once() {
    let all = vec![
        rehearsed(&[("--checkpoint", "5")], fits(9_943), Some(1.14)),
        rehearsed(&[("--checkpoint", "6")], fits(9_043), Some(1.17)),
        rehearsed(&[("--chunks", "2")], fits(7_373), Some(1.62)),
        rehearsed(
            &[("--checkpoint", "6"), ("--chunks", "2")],
            fits(6_373),
            Some(1.8),
        ),
        rehearsed(&[("--chunks", "4")], fits(5_373), Some(1.9)),
    ];
    let found = answer(&MemoryPlan::Searched(Box::new(searched(all))));
    let shown: Vec<&str> = found.fitting().map(|one| one.in_words.as_str()).collect();
    assert_eq!(
        shown,
        ["--checkpoint 5", "--chunks 2", "--checkpoint 6 --chunks 2"]
    );
    assert_eq!(found.candidates.len(), 5, "the document has all of them");
}

#[test]
fn the_next_command_trains_with_the_plan_or_looks_for_a_larger_batch() {
    let typed = Typed {
        gpu: "3060".to_owned(),
        options: vec!["--no-cudnn".to_owned()],
        python: Some("python3".to_owned()),
        script: vec!["train.py".to_owned()],
    };
    let one = rehearsed(&[("--checkpoint", "5")], fits(9_943), None);
    let mut found = answer(&MemoryPlan::Searched(Box::new(searched(vec![one]))));
    let next = |answer: &PlanAnswer, file: Option<&str>| {
        let words = typed.next(answer, file.map(std::path::Path::new));
        words.join(" ")
    };
    let launch = "ghostgpu launch --checkpoint 5 --python python3 train.py";
    assert_eq!(next(&found, None), launch);
    let launch = "ghostgpu launch --plan a.toml --python python3 train.py";
    assert_eq!(next(&found, Some("a.toml")), launch);
    found.candidates[0].flags = None;
    let launch = "ghostgpu launch --plan plan.toml --python python3 train.py";
    assert_eq!(next(&found, None), launch, "no flags say it");
    assert_eq!(next(&nothing(), None), "");
    found.result = PlanResult::FitsAlready;
    let larger = "ghostgpu max-batch --gpu 3060 --no-cudnn train.py";
    assert_eq!(next(&found, None), larger);
}

#[test]
fn tricks_that_are_enough_for_themselves_are_known_with_what_they_did() {
    let known = found(true).known_tricks();
    let names: Vec<&str> = known.iter().map(|it| it.report.name.as_str()).collect();
    // Not those with an amount, nor those that come with others or do not fit.
    assert_eq!(names, ["offload-activations"]);
    assert_eq!(known[0].peaks, peaks(4_010));
    assert!(known.iter().all(|it| it.report.did.is_some()));
}
