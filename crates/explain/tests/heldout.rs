//! Texts from public issues that the recognition was not built with: what is read from them, and whether the
//! advice is of use to whoever pasted them.

mod common;

use common::{Expected, bytes_of, heldout, read};
use ghostgpu_explain::{Amount, Explanation, Figures, explain};

type Figure = fn(&Figures) -> Option<Amount>;

/// What is wrong with the reading of one text; empty lists where nothing is.
#[derive(Default)]
struct Wrong {
    recognition: Vec<String>,
    figures: Vec<String>,
    situation: Vec<String>,
    advice: Vec<String>,
}

fn name_of(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_value(value).expect("a name");
    text.as_str().unwrap_or_default().to_owned()
}

fn check(expected: &Expected) -> Wrong {
    let mut wrong = Wrong::default();
    let log = read(expected.text.as_bytes(), usize::MAX);
    let Some(found) = explain(&log) else {
        wrong.recognition.push("nothing was recognised".to_owned());
        return wrong;
    };
    let differs = |what: &str, found: String, wanted: &str| {
        (found != wanted).then(|| format!("{what}: found {found}, expected {wanted}"))
    };
    let kind = found.finding.kind;
    let memory = expected.memory.as_deref().unwrap_or_default();
    wrong
        .recognition
        .extend(differs("kind", name_of(&kind), &expected.kind));
    wrong
        .recognition
        .extend(differs("memory", name_of(&kind.memory()), memory));
    wrong.figures = wrong_figures(expected, &found.finding.figures);
    let situation = found.situations.first();
    let situation = situation.map(|main| name_of(&main.situation));
    wrong.situation.extend(differs(
        "situation",
        situation.unwrap_or_default(),
        &expected.situation,
    ));
    let purpose = expected.purpose.as_deref().unwrap_or_default();
    wrong
        .situation
        .extend(differs("purpose", purpose_of(&found), purpose));
    wrong.advice = wrong_advice(expected, &found);
    wrong
}

fn purpose_of(found: &Explanation) -> String {
    let all = serde_json::to_value(found).expect("JSON");
    all["purpose"].as_str().unwrap_or("unknown").to_owned()
}

fn wrong_figures(expected: &Expected, figures: &Figures) -> Vec<String> {
    let amounts: [(&str, &Option<String>, Figure); 7] = [
        ("asked", &expected.asked, |figures| figures.requested),
        ("total", &expected.total, |figures| figures.total),
        ("free", &expected.free, |figures| figures.free),
        ("allocated", &expected.allocated, |figures| {
            figures.allocated
        }),
        ("reserved", &expected.reserved, |figures| figures.reserved),
        ("cached", &expected.cached, |figures| figures.cached),
        ("this process", &expected.this_process, |figures| {
            figures.this_process
        }),
    ];
    let mut wrong = Vec::new();
    for (name, wanted, figure) in amounts {
        let Some(wanted) = wanted else { continue };
        let found = figure(figures).map(|amount| amount.bytes);
        if found != Some(bytes_of(wanted)) {
            wrong.push(format!("{name}: found {found:?}, expected {wanted}"));
        }
    }
    if expected.device.is_some() && figures.device != expected.device {
        wrong.push(format!("device: found {:?}", figures.device));
    }
    let processes = figures.processes.len();
    if expected.processes.is_some_and(|wanted| wanted != processes) {
        wrong.push(format!("processes: found {processes}"));
    }
    wrong
}

fn wrong_advice(expected: &Expected, found: &Explanation) -> Vec<String> {
    let said: Vec<String> = found
        .advice
        .iter()
        .map(|each| format!("{} | {} | {}", each.what, each.command, each.why))
        .collect();
    let reasons = found.situations.iter().flat_map(|each| &each.reasons);
    let all = said.join("\n");
    let mut wrong = Vec::new();
    let helps = expected
        .helps
        .iter()
        .any(|word| all.contains(word.as_str()));
    if !helps && !expected.helps.is_empty() {
        wrong.push(format!("advice has none of {:?}:\n{all}", expected.helps));
    }
    let reasons: Vec<&str> = reasons.map(String::as_str).collect();
    let with_reasons = format!("{all}\n{}", reasons.join("\n"));
    for word in &expected.never {
        if with_reasons.contains(word.as_str()) {
            wrong.push(format!("says {word:?}:\n{with_reasons}"));
        }
    }
    wrong
}

#[test]
fn texts_that_nobody_had_seen_are_read_and_answered_rightly() {
    let all = heldout();
    let mut report = String::new();
    let mut right = [0usize; 4];
    for expected in &all {
        let wrong = check(expected);
        let recognised = wrong.recognition.is_empty();
        let parts = [
            &wrong.recognition,
            &wrong.figures,
            &wrong.situation,
            &wrong.advice,
        ];
        for (count, part) in right.iter_mut().zip(parts) {
            *count += usize::from(
                part.is_empty() && (recognised || !wrong.recognition[0].starts_with("nothing")),
            );
        }
        let lines: Vec<String> = parts.into_iter().flatten().cloned().collect();
        if !lines.is_empty() {
            report.push_str(&format!("\n{}\n  {}", expected.source, lines.join("\n  ")));
        }
    }
    let [recognised, figures, situation, advice] = right;
    let summary = format!(
        "of {}: recognised {recognised}, figures right {figures}, situation right {situation}, advice \
         usable {advice}",
        all.len()
    );
    println!("{summary}");
    assert!(all.len() >= 428);
    assert!(report.is_empty(), "{summary}{report}");
}
