//! What `doctor` found, whether rehearsals work, and what to do if not.

use ghostgpu_rehearse::diagnosis::{Check, Diagnosis, State};
use ghostgpu_symbols::SymbolSurvey;
use ghostgpu_text::{Table, wrap};
use serde::Serialize;

use crate::in_json;
use crate::style::{Colour, Detail, Style};

/// Adding a field keeps the version; `docs/doctor-json.md` describes them.
const SCHEMA: &str = "ghostgpu.doctor/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

/// The text in the requested detail.
pub fn text(diagnosis: &Diagnosis, style: Style) -> String {
    let conclusion = match diagnosis.is_usable {
        true => "rehearsals work here",
        false => "rehearsals do not work here: see the lines marked `broken`",
    };
    if style.detail == Detail::Quiet {
        return format!("{conclusion}\n");
    }
    let mut text = String::new();
    for check in &diagnosis.checks {
        text.push_str(&one_check(check, style));
    }
    if let (Some(survey), Detail::Everything) = (&diagnosis.symbols, style.detail) {
        text.push_str(&format!("\n{}", imports(survey).render()));
    }
    text.push_str(&format!("\n{conclusion}\n"));
    text
}

/// The document, which `docs/doctor-json.md` describes.
pub fn json(diagnosis: &Diagnosis) -> serde_json::Result<String> {
    in_json(&Document {
        schema: SCHEMA,
        diagnosis,
    })
}

/// The state, what was found, and below it what to do.
fn one_check(check: &Check, style: Style) -> String {
    const INDENT: usize = 26;
    let (mark, colour) = match check.state {
        State::Good => ("ok", Colour::Good),
        State::Limited => ("limited", Colour::Unknown),
        State::Broken => ("broken", Colour::Bad),
    };
    let width = style.width.saturating_sub(INDENT);
    let advice = check.advice.as_ref().map(|advice| format!("-> {advice}"));
    let findings = wrap(&check.finding, width).into_iter();
    let lines = findings.chain(advice.iter().flat_map(|advice| wrap(advice, width)));
    let mut text = String::new();
    for (index, line) in lines.enumerate() {
        text.push_str(&match index {
            0 => {
                let first = format!("{mark:<8}{:<18}{line}", check.name);
                style.paint_label(mark, colour, &first)
            }
            _ => format!("{:INDENT$}{line}", ""),
        });
        text.push('\n');
    }
    text
}

fn imports(survey: &SymbolSurvey) -> Table {
    let mut table = Table::new(&[
        "imported from",
        ">simulated",
        ">harmless",
        ">refused",
        ">unknown",
    ]);
    for (family, counts) in &survey.families {
        let mut row = vec![(*family).to_owned()];
        row.extend(
            [
                counts.simulated,
                counts.harmless,
                counts.refused,
                counts.unlisted,
            ]
            .map(|count| count.to_string()),
        );
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::PLAIN;
    use ghostgpu_symbols::SymbolSurvey;

    #[test]
    fn a_diagnosis_puts_the_advice_below_its_problem() {
        let check = |name, state, finding: &str, advice: Option<&str>| Check {
            name,
            state,
            finding: finding.to_owned(),
            advice: advice.map(str::to_owned),
        };
        let mut survey = SymbolSurvey::default();
        survey.families.entry("cuBLAS").or_default().simulated = 54;
        let diagnosis = Diagnosis {
            is_usable: false,
            checks: vec![
                check("python", State::Good, "3.11.2 at /usr/bin/python3", None),
                check(
                    "torch",
                    State::Broken,
                    "not installed in this python",
                    Some("install torch there"),
                ),
                check(
                    "C compiler",
                    State::Limited,
                    "none on the PATH",
                    Some("install gcc"),
                ),
            ],
            symbols: Some(survey),
        };
        let full = Style {
            detail: Detail::Everything,
            ..PLAIN
        };
        insta::assert_snapshot!(text(&diagnosis, full));
        assert!(!text(&diagnosis, PLAIN).contains("imported from"));
    }
}
