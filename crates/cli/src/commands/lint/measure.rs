//! `ghostgpu lint --measure`: measures what the fixes save by rehearsing the script without and with them. No file of the
//! user is changed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ghostgpu_answers::fixes::Answer;
use ghostgpu_lint::Settings;
use ghostgpu_lint::fixing::Wanted;
use ghostgpu_plan::fixes::{Measured, NoTexts, Text, measure, texts};
use ghostgpu_plan::verdict::OnCard;
use ghostgpu_rehearse::{Job, WholeRuns};

use super::Arguments;
use super::arguments::failure;
use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use crate::progress::Rehearsing;
use crate::questions::{announce, show_last_lines};

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let script = the_script(arguments)?;
    let mut configurations = arguments.configurations()?;
    configurations.learn(script).map_err(failure)?;
    let wanted = match arguments.unsafe_fixes {
        true => Wanted::All,
        false => Wanted::Safe,
    };
    let texts = texts_of(script, &configurations.settings(script), wanted)?;
    let output = arguments.answer.prepare()?;
    let mut command: Vec<OsString> = vec![script.into()];
    command.extend(arguments.script_arguments.iter().cloned());
    let job = Job {
        records_memory: false,
        extent: arguments.extent.extent(),
        ..arguments.measured.job(command)
    };
    let prepared = job.prepare()?;
    let doing = format!("rehearsing `{}` {} times", script.display(), texts.len());
    announce(
        &prepared,
        &doing,
        "nothing is computed, and no file is changed",
    );
    let card = prepared.card().clone();
    let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
    let on_card = OnCard::of(&prepared, arguments.measured.margin);
    let runs = measure(&mut runner, &texts, &on_card)?;
    for (_, measured) in &runs {
        if let Measured::Fails { last_lines, .. } = measured {
            show_last_lines(last_lines);
        }
    }
    if let Some((_, Measured::Fails { reason, code, .. })) = runs.first() {
        eprintln!("ghostgpu: the script failed as it is: {reason}");
        return Ok(*code);
    }
    let answer = Answer {
        script: script.display().to_string(),
        gpu: card.name,
        gpu_total_bytes: card.total_bytes,
        steps: arguments.extent.steps,
        runs,
        applies: applying(script, wanted),
    };
    let text = answer.text(output.style(None));
    output.publish(&text, &answer.json())?;
    // A script that fails only with its fixes does not pass either.
    let verdict = answer.verdict();
    Ok(verdict.exit_code().unwrap_or(EXIT_DOES_NOT_FIT))
}

/// The arguments that apply the measured fixes.
fn applying(script: &Path, wanted: Wanted) -> String {
    let all = match wanted {
        Wanted::All => " --unsafe-fixes",
        Wanted::Safe => "",
    };
    format!("--fix{all} {}", script.display())
}

/// The one script to measure.
fn the_script(arguments: &Arguments) -> Result<&PathBuf, Failure> {
    let [script] = arguments.paths.as_slice() else {
        return Err(Failure::new("--measure takes one script")
            .with_hint("`ghostgpu lint --measure --gpu NAME script.py -- ARGUMENTS`"));
    };
    let is_notebook = script.extension().is_some_and(|end| end == "ipynb");
    if is_notebook || !script.is_file() {
        let name = script.display();
        return Err(Failure::new(match (is_notebook, script.exists()) {
            (true, _) => format!("`{name}` is a notebook, and --measure takes a script"),
            (_, true) => format!("`{name}` is no file"),
            (_, false) => format!("the script `{name}` does not exist"),
        }));
    }
    Ok(script)
}

/// The versions to rehearse, or why there are none.
fn texts_of(script: &Path, settings: &Settings, wanted: Wanted) -> Result<Vec<Text>, Failure> {
    let failure = |problem: String| Failure::new(format!("`{}`: {problem}", script.display()));
    let contents = std::fs::read(script).map_err(|error| failure(error.to_string()))?;
    texts(&contents, settings, wanted).map_err(|because| match because {
        NoTexts::Problem(problem) => failure(problem),
        NoTexts::NoFix { findings, fixes } => {
            let hint = match (fixes, findings) {
                (1.., _) => format!("--unsafe-fixes has {fixes} for it"),
                (0, 1..) => "`ghostgpu lint` shows what was found; none of it has a fix".to_owned(),
                (0, 0) => "`ghostgpu lint` finds nothing in it".to_owned(),
            };
            failure("there is no fix to measure".to_owned()).with_hint(hint)
        }
    })
}
