//! `ghostgpu doctor`: what was found, whether it works together, and what to do if not.

mod checks;

use std::ffi::OsString;

use checks::{Diagnosis, State, diagnose};

use crate::failure::EXIT_FAILURE;
use crate::output::print_all;
use crate::process::hold_signals;
use ghostgpu_text::Table;

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

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    hold_signals();
    let diagnosis = diagnose(arguments.python.as_deref());
    let text = if arguments.json {
        serde_json::to_string_pretty(&diagnosis)? + "\n"
    } else {
        as_text(&diagnosis)
    };
    print_all(&text)?;
    Ok(if diagnosis.is_usable { 0 } else { EXIT_FAILURE })
}

fn as_text(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for check in &diagnosis.checks {
        let mark = match check.state {
            State::Good => "ok",
            State::Limited => "limited",
            State::Broken => "broken",
        };
        text.push_str(&format!("{mark:<8}{:<18}{}\n", check.name, check.finding));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("{:<26}-> {advice}\n", ""));
        }
    }
    if let Some(survey) = &diagnosis.symbols {
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
        text.push_str(&format!("\n{}", table.render()));
    }
    let conclusion = match diagnosis.is_usable {
        true => "rehearsals work here",
        false => "rehearsals do not work here: see the lines marked `broken`",
    };
    text.push_str(&format!("\n{conclusion}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::checks::Check;
    use super::*;
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
        insta::assert_snapshot!(as_text(&diagnosis));
    }
}
