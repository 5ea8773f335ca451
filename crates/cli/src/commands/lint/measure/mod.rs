//! `ghostgpu lint --measure`: what the fixes save, seen by rehearsing the script without them and
//! with them. Nothing of the user's is written.

mod answer;
mod progress;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ghostgpu_lint::fixing::{Wanted, fix, fix_alone};
use ghostgpu_lint::{Diagnostic, Settings, Source, examine};

use super::Arguments;
use super::configuration::Configurations;
use crate::answer::Need;
use crate::commands::run::need::measure_need;
use crate::commands::run::prepare::{Prepared, prepare};
use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use crate::in_place_of::in_place_of_the_script;
use crate::last_lines::show_last_lines;
use crate::output::{Output, print_beside, stream_beside};
use crate::probing::{Outcome, Peaks};
use crate::process::Cause;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::{RunDir, temporary_folder};
use crate::terminal::{self, Look};
use answer::{Answer, Run, Variant};
use ghostgpu_text::human;
use progress::Progress;

/// More fixes are not tried one by one.
const MOST_ALONE: usize = 12;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let script = the_script(arguments)?;
    let mut configurations = Configurations::new(arguments)?;
    configurations.learn(script)?;
    let settings = configurations.settings(script);
    let wanted = match arguments.unsafe_fixes {
        true => Wanted::All,
        false => Wanted::Safe,
    };
    let texts = texts(script, &settings, wanted)?;
    let mut command: Vec<OsString> = vec![script.into()];
    command.extend(arguments.script_arguments.iter().cloned());
    let mut run_arguments = arguments.measured.for_running(command);
    run_arguments.breakdown.no_breakdown = true;
    let prepared = prepare(&run_arguments)?;
    announce(&prepared, script, texts.len());
    let folder = temporary_folder()?;
    let mut progress = Progress::default();
    let mut runs = Vec::new();
    let mut first_dir = Some(prepared.run_dir);
    for (number, text) in texts.iter().enumerate() {
        let mut plan = prepared.plan.clone();
        if let Some(contents) = &text.contents {
            let file = folder.path().join(format!("{number}.py"));
            std::fs::write(&file, contents)?;
            plan = in_place_of_the_script(&plan, &file);
        }
        let run_dir = match first_dir.take() {
            Some(run_dir) => run_dir,
            None => RunDir::create(&plan.layout.library)?,
        };
        let log = folder.path().join("output.txt");
        let outcome = match rehearse(&plan, run_dir, &log, &mut |seconds| {
            progress.show(number + 1, texts.len(), &text.variant, seconds);
        })? {
            Ok(outcome) => outcome,
            Err(signal) => {
                progress.clear();
                eprintln!("ghostgpu: interrupted: everything the script had started was ended");
                return Ok(128u8.saturating_add(signal as u8));
            }
        };
        progress.clear();
        if let Run::Failed { because, code } = &outcome {
            show_last_lines(&log);
            if number == 0 {
                eprintln!("ghostgpu: the script failed as it is: {because}");
                return Ok(*code);
            }
        }
        runs.push((text.variant.clone(), outcome));
    }
    let card = &prepared.plan.session.devices[0];
    let answer = Answer {
        script: script.display().to_string(),
        gpu: card.name.clone(),
        gpu_total_bytes: card.total_bytes,
        steps: arguments.measured.steps,
        runs,
    };
    publish(&answer, prepared.json)?;
    Ok(match answer.fits_at_last() {
        true => 0,
        false => EXIT_DOES_NOT_FIT,
    })
}

/// A text of the script to run; none is the script as it is.
struct Text {
    variant: Variant,
    contents: Option<String>,
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
            (true, _) => format!("`{name}` is a notebook, and only a script can be rehearsed"),
            (_, true) => format!("`{name}` is no file"),
            (_, false) => format!("the script `{name}` does not exist"),
        }));
    }
    Ok(script)
}

/// The script as it is, with each fix alone (if there are several), and with all of them.
fn texts(script: &Path, settings: &Settings, wanted: Wanted) -> Result<Vec<Text>, Failure> {
    let failure = |problem: String| Failure::new(format!("`{}`: {problem}", script.display()));
    let contents = std::fs::read(script).map_err(|error| failure(error.to_string()))?;
    let read = |contents: &[u8]| Source::script(contents).map_err(|it| failure(it.to_string()));
    let source = read(&contents)?;
    let remarks = examine(&source, settings);
    let fixable: Vec<&Diagnostic> = remarks
        .iter()
        .filter(|remark| remark.fix.as_ref().is_some_and(|fix| wanted.takes(fix)))
        .collect();
    if fixable.is_empty() {
        let risky = remarks.iter().filter(|remark| remark.fix.is_some()).count();
        let hint = match (risky, remarks.len()) {
            (1.., _) => format!("--unsafe-fixes has {risky} for it"),
            (0, 1..) => "`ghostgpu lint` shows what was found; none of it has a fix".to_owned(),
            (0, 0) => "`ghostgpu lint` finds nothing in it".to_owned(),
        };
        return Err(failure("there is no fix to measure".to_owned()).with_hint(hint));
    }
    let mut texts = vec![Text {
        variant: Variant::AsItIs,
        contents: None,
    }];
    if fixable.len() > 1 {
        for remark in fixable.iter().take(MOST_ALONE) {
            let Some(fix) = &remark.fix else { continue };
            let alone = fix_alone(&source, fix).map_err(|it| failure(it.to_string()))?;
            if let Some(alone) = alone {
                texts.push(Text {
                    variant: Variant::Alone {
                        line: source.position(remark.range.start).line,
                        rule: remark.origin.name(),
                        title: fix.title.clone(),
                    },
                    contents: Some(alone.contents()),
                });
            }
        }
    }
    let all = fix(read(&contents)?, settings, wanted).map_err(|it| failure(it.to_string()))?;
    texts.push(Text {
        variant: Variant::All {
            count: all.count,
            rules: fixable.iter().map(|remark| remark.origin.name()).collect(),
        },
        contents: Some(all.source.contents()),
    });
    Ok(texts)
}

/// Runs a plan, and once more with unlimited memory if it does not fit; or the signal that ended it.
fn rehearse(
    plan: &Plan,
    run_dir: RunDir,
    log: &Path,
    tick: &mut dyn FnMut(u64),
) -> anyhow::Result<Result<Run, i32>> {
    let output = ScriptOutput::Kept(log.to_owned());
    let finished = plan.rehearse(run_dir, false, output, &mut |elapsed| {
        tick(elapsed.as_secs())
    })?;
    if let Cause::Interrupted(signal) = finished.rehearsal.supervised.cause {
        return Ok(Err(signal));
    }
    Ok(Ok(match Outcome::of(&finished.rehearsal) {
        Outcome::Fits(peaks) => Run::Fits(peaks),
        Outcome::Fails { because, code } => Run::Failed { because, code },
        Outcome::DoesNotFit(place) => Run::DoesNotFit {
            place,
            need: match measure_need(plan)?.need {
                Need::Measured {
                    device_bytes,
                    allocated_bytes: Some(allocated_bytes),
                    reserved_bytes: Some(reserved_bytes),
                } => Some(Peaks {
                    allocated_bytes,
                    reserved_bytes,
                    device_bytes,
                }),
                _ => None,
            },
        },
    }))
}

fn announce(prepared: &Prepared, script: &Path, count: usize) {
    let card = prepared.card();
    terminal::note(format_args!(
        "rehearsing `{}` {count} times on a virtual {} ({}): nothing is computed, and no \
         file is changed",
        script.display(),
        card.name,
        human(card.total_bytes)
    ));
    for remark in &prepared.remarks {
        terminal::note(format_args!("note: {remark}"));
    }
}

/// The text goes to standard output, unless the JSON does.
fn publish(answer: &Answer, json: Option<Output>) -> anyhow::Result<()> {
    let look = Look::of(stream_beside(json.as_ref()), None);
    print_beside(json.as_ref(), &answer.text(look))?;
    match json {
        Some(output) => output.write(&(serde_json::to_string_pretty(&answer.json())? + "\n")),
        None => Ok(()),
    }
}
