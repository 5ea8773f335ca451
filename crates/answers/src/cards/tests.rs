use ghostgpu_device::Catalogue;
use ghostgpu_plan::Smallest;
use ghostgpu_plan::cards::FirstFailure;

use super::*;
use crate::style::{Detail, PLAIN, Style, assert_fits_one_screen};

/// A job that needs this much, and was rehearsed on every card.
fn survey(needed_bytes: u64) -> Survey<'static> {
    let known = Catalogue::builtin().cards().iter().map(|card| {
        let cannot_run = card.capability.major < 7;
        let left = card.total_bytes.checked_sub(needed_bytes);
        let (verdict, reason) = match left {
            _ if cannot_run => (Verdict::CannotRun, Some("torch has no code".to_owned())),
            Some(left) if left < card.total_bytes / 50 => {
                (Verdict::FitsTightly, Some("little is left".to_owned()))
            }
            Some(_) => (Verdict::Fits, Some("there is room".to_owned())),
            None => (Verdict::DoesNotFit, None),
        };
        OnOneCard {
            card,
            verdict,
            reason,
            need: (!cannot_run).then(|| Smallest {
                device_bytes: needed_bytes,
                ..Smallest::default()
            }),
            headroom_bytes: left.filter(|_| !cannot_run),
            margin_bytes: 40 << 20,
            is_rehearsed: false,
        }
    });
    Survey {
        known: known.collect(),
        open: Vec::new(),
        rehearsals: 33,
        alone_because: None,
        failed_first: None,
        stop: None,
    }
}

fn question() -> Question<'static> {
    Question {
        cards: Catalogue::builtin().cards().iter().collect(),
        reserve_bytes: 0,
        margin: None,
        torch: Some("2.11.0"),
    }
}

fn answer(survey: &Survey) -> Cards {
    Cards::new(survey, &question(), vec!["train.py".to_owned()])
}

#[test]
fn cards_around_the_limit_on_one_screen() {
    let answer = answer(&survey(10_770_000_000));
    let text = answer.text(PLAIN, false);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
    assert_eq!(answer.exit_code, 0);
}

#[test]
fn every_card_can_be_shown_and_the_verdict_alone() {
    let answer = answer(&survey(10_770_000_000));
    let all = answer.text(PLAIN, true);
    let (_, table) = all.split_once("\n\n").expect("a table");
    let judged = answer.cards.iter();
    let judged = judged.filter(|row| row.verdict != Verdict::CannotRun);
    assert_eq!(table.lines().count(), judged.count() + 1);
    let style = Style {
        detail: Detail::Quiet,
        ..PLAIN
    };
    insta::assert_snapshot!(answer.text(style, false));
}

#[test]
fn a_job_that_fits_nowhere() {
    let answer = answer(&survey(900 << 30));
    let text = answer.text(PLAIN, false);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
    assert_eq!(answer.exit_code, 3);
}

#[test]
fn a_few_cards_of_an_interrupted_survey() {
    let mut survey = survey(22 << 30);
    let wanted = ["RTX 3090", "RTX 4090", "GTX 1080 Ti", "A100 40GB"];
    survey.known.retain(|row| wanted.contains(&row.card.name));
    survey.open = vec![Catalogue::builtin().find("h200").expect("a card")];
    survey.alone_because = Some("the allocator's history of this job cannot be replayed");
    let answer = Cards::new(
        &survey,
        &Question {
            reserve_bytes: 1 << 30,
            ..question()
        },
        Vec::new(),
    );
    let text = answer.text(PLAIN, false);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(answer.csv());
}

#[test]
fn a_script_that_failed() {
    let mut survey = survey(1);
    survey.known.truncate(1);
    survey.known[0].verdict = Verdict::ScriptFailed;
    survey.known[0].reason = Some("the script failed with exit code 1: ValueError: no".to_owned());
    survey.known[0].need = None;
    survey.failed_first = Some(FirstFailure {
        last_lines: Vec::new(),
        exit_code: 1,
    });
    let answer = answer(&survey);
    insta::assert_snapshot!(answer.text(PLAIN, false));
    assert_eq!(answer.exit_code, 1);
}

#[test]
fn cards_for_programs() {
    let mut survey = survey(22 << 30);
    survey.known.retain(|row| row.card.name == "RTX 3090");
    insta::assert_snapshot!(crate::in_json(&answer(&survey)).expect("a document"));
}
