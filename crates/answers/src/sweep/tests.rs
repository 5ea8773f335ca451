use super::*;
use crate::style::{PLAIN, assert_fits_one_screen};

fn argument(name: &str, values: &[&str]) -> SweptArgument {
    SweptArgument {
        name: name.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    }
}

fn point(values: &[&str], card: &str, total_gib: u64, needed_gib: u64) -> Point {
    let fits = needed_gib <= total_gib;
    Point {
        values: values.iter().map(|&value| value.to_owned()).collect(),
        card: OnCard {
            name: card.to_owned(),
            gpu: card.to_owned(),
            total_bytes: total_gib << 30,
            verdict: if fits {
                Verdict::Fits
            } else {
                Verdict::DoesNotFit
            },
            fits: Some(fits),
            reason: fits.then(|| "there is room".to_owned()),
            needed_device_bytes: Some(needed_gib << 30),
            headroom_bytes: fits.then(|| (total_gib - needed_gib) << 30),
            missing_bytes: (!fits).then(|| (needed_gib - total_gib) << 30),
            margin_bytes: 0,
        },
        known_before: false,
    }
}

fn sweep(without_effect: bool) -> Sweep {
    let arguments = vec![
        argument("--batch-size", &["8", "16", "32"]),
        argument("--seq-len", &["512", "1024"]),
    ];
    let mut points = Vec::new();
    for batch in [8, 16, 32] {
        for (index, length) in [512, 1024].into_iter().enumerate() {
            for (card, total) in [("RTX 3090", 24), ("A100 40GB", 40)] {
                let factor = if without_effect { 1 } else { 1 + index as u64 };
                let values = [&*batch.to_string(), &*length.to_string()];
                points.push(point(&values, card, total, batch * factor));
            }
        }
    }
    points[0].known_before = true;
    let last = points.len() - 1;
    points[last].card = OnCard {
        name: "A100 40GB".to_owned(),
        verdict: Verdict::ScriptFailed,
        reason: Some("ValueError: \"<odd>\", it said".to_owned()),
        ..OnCard::default()
    };
    Sweep::new(vec!["train.py".to_owned()], arguments, points, 0)
}

#[test]
fn points_as_people_read_them() {
    let sweep = sweep(false);
    let text = sweep.text(PLAIN, false);
    assert_fits_one_screen(&text);
    insta::assert_snapshot!(text);
    assert_eq!(sweep.exit_code, 0);
}

#[test]
fn an_argument_without_effect_is_told() {
    let sweep = sweep(true);
    assert_eq!(sweep.without_effect, ["--seq-len"]);
    assert!(
        sweep
            .text(PLAIN, false)
            .contains("no effect      --seq-len")
    );
    assert!(self::sweep(false).without_effect.is_empty());
}

#[test]
fn points_for_spreadsheets_and_programs() {
    let mut sweep = sweep(false);
    insta::assert_snapshot!(sweep.csv());
    sweep.points.truncate(1);
    insta::assert_snapshot!(crate::in_json(&sweep).expect("a document"));
}

#[test]
fn points_on_a_page() {
    let page = sweep(false).page();
    assert!(
        !page.contains("<script") && !page.contains("http"),
        "it opens offline"
    );
    assert!(!page.contains("<odd>"), "text is escaped");
    assert_eq!(page.matches("<circle").count(), 11, "one failed");
    assert_eq!(page.matches("<polyline").count(), 4);
    insta::assert_snapshot!(page);
}

#[test]
fn a_sweep_in_which_nothing_fits_or_nothing_can_be_told_has_a_code_of_its_own() {
    let with = |points| Sweep::new(Vec::new(), vec![argument("--n", &["1"])], points, 0).exit_code;
    assert_eq!(with(vec![point(&["1"], "T4", 14, 20)]), 3);
    let mut failed = point(&["1"], "T4", 14, 1);
    failed.card.verdict = Verdict::ScriptFailed;
    failed.card.fits = None;
    assert_eq!(with(vec![failed]), 2);
    assert_eq!(with(Vec::new()), 2);
}
