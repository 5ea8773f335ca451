//! `ghostgpu doctor`: what was found, whether it works together, and what to do if not.

mod checks;

use std::ffi::OsString;

use checks::{Check, Diagnosis, State, diagnose};
use ghostgpu_symbols::SymbolSurvey;

use super::answer_options::{AnswerOptions, in_json};
use crate::failure::EXIT_FAILURE;
use crate::terminal::{Colour, Detail, Look};
use ghostgpu_rehearse::process::hold_signals;
use ghostgpu_text::{Table, wrap};

/// A field that is added keeps the version; `docs/doctor-json.md` describes them.
const SCHEMA: &str = "ghostgpu.doctor/1";

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

/// Check that rehearsals work here, and say what to do if not
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu doctor
  ghostgpu doctor --python ~/venvs/train/bin/python

Exit codes: 0 rehearsals work here, 2 they do not.")]
pub struct Arguments {
    /// The Python to look at [default: the first on the PATH that has torch]
    #[arg(long, value_name = "PATH")]
    python: Option<OsString>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    hold_signals();
    let diagnosis = diagnose(arguments.python.as_deref())?;
    let output = arguments.answer.prepare()?;
    output.answer(
        |look| as_text(&diagnosis, look),
        || {
            in_json(&Document {
                schema: SCHEMA,
                diagnosis: &diagnosis,
            })
        },
    )?;
    Ok(if diagnosis.is_usable { 0 } else { EXIT_FAILURE })
}

fn as_text(diagnosis: &Diagnosis, look: Look) -> String {
    let conclusion = match diagnosis.is_usable {
        true => "rehearsals work here",
        false => "rehearsals do not work here: see the lines marked `broken`",
    };
    if look.detail == Detail::Quiet {
        return format!("{conclusion}\n");
    }
    let mut text = String::new();
    for check in &diagnosis.checks {
        text.push_str(&one_check(check, look));
    }
    if let (Some(survey), Detail::Everything) = (&diagnosis.symbols, look.detail) {
        text.push_str(&format!("\n{}", imports(survey).render()));
    }
    text.push_str(&format!("\n{conclusion}\n"));
    text
}

/// The state, what was found, and below it what to do.
fn one_check(check: &Check, look: Look) -> String {
    const INDENT: usize = 26;
    let (mark, colour) = match check.state {
        State::Good => ("ok", Colour::Good),
        State::Limited => ("limited", Colour::Unknown),
        State::Broken => ("broken", Colour::Bad),
    };
    let width = look.width.saturating_sub(INDENT);
    let advice = check.advice.as_ref().map(|advice| format!("-> {advice}"));
    let findings = wrap(&check.finding, width).into_iter();
    let lines = findings.chain(advice.iter().flat_map(|advice| wrap(advice, width)));
    let mut text = String::new();
    for (index, line) in lines.enumerate() {
        text.push_str(&match index {
            0 => {
                let first = format!("{mark:<8}{:<18}{line}", check.name);
                look.paint_label(mark, colour, &first)
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
    use super::checks::Check;
    use super::*;
    use crate::terminal::PLAIN;
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
        let full = Look {
            detail: Detail::Everything,
            ..PLAIN
        };
        insta::assert_snapshot!(as_text(&diagnosis, full));
        assert!(!as_text(&diagnosis, PLAIN).contains("imported from"));
    }
}
