//! A plan as part of an explanation: the combinations with which the script fits, and the command for the best one.

use ghostgpu_explain::{Catalogue, Effect, say};
use ghostgpu_text::{Sheet, human, wrap};
use ghostgpu_tricks::Numerics;

use crate::fits::next::{quoted, wrapped};
use crate::plan::{Candidate, PlanAnswer};

/// How many combinations one screen shows.
const MOST_SHOWN: usize = 3;

/// How many lines one of them takes at most.
const MOST_LINES: usize = 2;

/// Adds the best combinations, and the command for the first.
pub fn add_best(sheet: &mut Sheet, plan: &PlanAnswer, catalogue: &Catalogue) {
    let width = sheet.text_width();
    let shown = plan.fitting().take(MOST_SHOWN).enumerate();
    let lines: Vec<String> = shown
        .flat_map(|(index, fitting)| {
            let text = format!("{}. {}", index + 1, in_words(fitting, catalogue));
            wrap(&text, width).into_iter().take(MOST_LINES)
        })
        .collect();
    sheet.section(&say!(catalogue, "label-fits-with"), lines);
    add_command(sheet, plan, catalogue);
}

/// Adds all combinations, with what each does.
pub fn add_all(sheet: &mut Sheet, plan: &PlanAnswer, catalogue: &Catalogue) {
    let lines: Vec<String> = plan
        .fitting()
        .enumerate()
        .map(|(index, fitting)| {
            let did: Vec<&str> = fitting.did.iter().map(|did| did.did.as_str()).collect();
            let clause = say!(catalogue, "list-clause");
            let did = did.iter().map(|did| format!("{clause}{did}"));
            format!(
                "{}. {}{}",
                index + 1,
                in_words(fitting, catalogue),
                did.collect::<String>()
            )
        })
        .collect();
    for (index, line) in lines.iter().enumerate() {
        let label = match index {
            0 => say!(catalogue, "label-fits-with"),
            _ => String::new(),
        };
        sheet.paragraph(&label, line);
    }
    add_command(sheet, plan, catalogue);
}

/// How many combinations [`add_best`] does not show.
pub fn not_shown(plan: &PlanAnswer) -> usize {
    plan.fitting().count().saturating_sub(MOST_SHOWN)
}

fn add_command(sheet: &mut Sheet, plan: &PlanAnswer, catalogue: &Catalogue) {
    if plan.best().is_none() {
        return;
    }
    let words: Vec<String> = plan.command.iter().map(|word| quoted(word)).collect();
    let lines = wrapped(&words, sheet.text_width());
    sheet.section(&say!(catalogue, "label-train-with"), lines);
}

/// `--checkpoint 8 (same results up to rounding): 9.83 GiB on the card, time ×1.15`.
fn in_words(fitting: &Candidate, catalogue: &Catalogue) -> String {
    let device = fitting.peaks.map_or(0, |peaks| peaks.peak_device_bytes);
    let time = fitting
        .relative_time
        .map(|time| say!(catalogue, "combination-time", time = format!("{time:.2}")));
    say!(
        catalogue,
        "combination",
        what = fitting.in_words.clone(),
        effect = effect(fitting.numerics).words(catalogue),
        device = human(device),
        time = time.unwrap_or_default()
    )
}

fn effect(numerics: Numerics) -> Effect {
    match numerics {
        Numerics::Identical => Effect::Identical,
        Numerics::Rounding => Effect::Rounding,
        Numerics::Precision => Effect::Precision,
        Numerics::Training => Effect::Training,
    }
}
