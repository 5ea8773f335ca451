//! `ghostgpu lint`: finds memory mistakes in code without running it.

mod arguments;
mod measure;
mod rules;

use std::path::PathBuf;

pub use arguments::Arguments;
use arguments::{Format, failure};
use ghostgpu_answers::{Style, in_json};
use ghostgpu_lint::fixing::Wanted;
use ghostgpu_lint::formats::{self, Totals};
use ghostgpu_lint::{FileReport, RULES, catalogue, diagnostic::Diagnostic};
use ghostgpu_lint_files::{Checked, Configurations, Files, Fixing, Found, check, on_all_cores};

use crate::commands::rehearsal_options::ValuesOption;
use crate::failure::{EXIT_DOES_NOT_FIT, EXIT_FAILURE, Failure};
use crate::progress::Progress;
use crate::terminal;

/// The exit code of "something was found".
const EXIT_FOUND: u8 = EXIT_DOES_NOT_FIT;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    if arguments.explain.is_some() || arguments.rules {
        return tell_rules(arguments);
    }
    if arguments.measure {
        return measure::execute(arguments);
    }
    refuse_options_of_measuring(arguments)?;
    let output = arguments.answer.prepare()?;
    let mut configurations = arguments.configurations()?;
    let found = files_to_check(arguments, &mut configurations)?;
    let fixing = fixing(arguments);
    let progress = Progress::new("checking files", found.len());
    let done = |count| progress.done(count);
    let outcomes: Vec<Checked> = on_all_cores(&found, done, |file| {
        check(file, &configurations.settings(&file.path), fixing)
    })
    .into_iter()
    .zip(&found)
    .map(|(outcome, file)| outcome.unwrap_or_else(|fault| faulty(file, &fault)))
    .collect();
    drop(progress);
    let has_changes = outcomes.iter().any(|outcome| !outcome.diff.is_empty());
    let diff: String = outcomes
        .iter()
        .map(|outcome| outcome.diff.as_str())
        .collect();
    let reports: Vec<FileReport> = outcomes.into_iter().map(|outcome| outcome.report).collect();
    let document = || Ok(formats::json::render(&reports));
    let fails = match fixing {
        Fixing::Show(_) => {
            output.answer(|_| diff, document)?;
            complain(&reports);
            has_changes
        }
        _ => {
            output.answer(|style| show(&reports, arguments.format, style), document)?;
            let files = reports.iter().zip(&found);
            files.into_iter().any(|(report, file)| {
                let fail_on = configurations.fail_on(&file.path);
                let counts = |remark: &Diagnostic| fail_on.counts(remark.severity);
                report.diagnostics.iter().any(counts)
            })
        }
    };
    Ok(match fails {
        _ if reports.iter().any(FileReport::is_broken) => EXIT_FAILURE,
        true => EXIT_FOUND,
        false => 0,
    })
}

/// Lists the rules, or explains one.
fn tell_rules(arguments: &Arguments) -> anyhow::Result<u8> {
    let explained = arguments.explain.as_deref().map(rules::find).transpose()?;
    let rules = explained.map_or(RULES.to_vec(), |rule| vec![rule]);
    let text = |style: Style| match explained {
        Some(rule) => catalogue::page(rule),
        None => rules::list(style),
    };
    let output = arguments.answer.prepare()?;
    let document = || in_json(&rules::document(&rules));
    if arguments.format != Format::Text {
        return Err(Failure::new("the rules are listed as text or JSON only").into());
    }
    output.answer(text, document)?;
    Ok(0)
}

/// Refuses options that would have no effect.
fn refuse_options_of_measuring(arguments: &Arguments) -> Result<(), Failure> {
    let options = &arguments.measured;
    let given = [
        (options.gpu.is_some(), "--gpu"),
        (options.memory.is_some(), "--memory"),
        (options.python.is_some(), "--python"),
        (options.timeout.is_some(), "--timeout"),
        (arguments.extent.steps.is_some(), "--steps"),
        (arguments.extent.full, "--full"),
        (options.full_init, "--full-init"),
        (options.values != ValuesOption::default(), "--values"),
        (options.no_cudnn, "--no-cudnn"),
        (!options.library_sizes.is_empty(), "--library-sizes"),
        (!arguments.script_arguments.is_empty(), "--"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::new(format!("`{option}` belongs to --measure"))
            .with_hint("without --measure nothing is run")),
    }
}

/// The files that the paths lead to, without those that the configuration excludes.
fn files_to_check(
    arguments: &Arguments,
    configurations: &mut Configurations,
) -> Result<Vec<Found>, Failure> {
    let here = [PathBuf::from(".")];
    let paths = match arguments.paths.as_slice() {
        [] => &here,
        paths => paths,
    };
    let Files { mut found, empty } = ghostgpu_lint_files::find(paths);
    for file in &found {
        configurations.learn(&file.path).map_err(failure)?;
    }
    found.retain(|file| file.was_named || !configurations.excludes(&file.path));
    for folder in &empty {
        terminal::note(format_args!(
            "there is no Python file and no notebook in `{folder}`"
        ));
    }
    if found.is_empty() {
        return Err(Failure::new("there is nothing to check").with_hint(
            "name files, or a folder with `*.py` or `*.ipynb` that neither git nor the \
             configuration leaves out",
        ));
    }
    Ok(found)
}

fn fixing(arguments: &Arguments) -> Fixing {
    let wanted = match arguments.unsafe_fixes {
        true => Wanted::All,
        false => Wanted::Safe,
    };
    match (arguments.diff, arguments.fix || arguments.unsafe_fixes) {
        (true, _) => Fixing::Show(wanted),
        (false, true) => Fixing::Write(wanted),
        (false, false) => Fixing::Nothing,
    }
}

fn show(reports: &[FileReport], format: Format, style: Style) -> String {
    match format {
        Format::Text => formats::text::render(reports, style.has_colour),
        Format::Sarif => formats::sarif::render(reports),
        Format::Github => formats::github::render(reports),
    }
}

/// Prints, next to a diff, which files could not be read and how much would change.
fn complain(reports: &[FileReport]) {
    for report in reports.iter().filter(|report| report.is_broken()) {
        let problem = report.problem.as_deref().unwrap_or("not Python as a whole");
        eprintln!("ghostgpu: {}: {problem}", report.path);
    }
    let totals = Totals::of(reports);
    terminal::note(format_args!(
        "{} would be fixed, nothing was written",
        totals.fixed
    ));
}

/// The result for a file on which the linter panicked, which must not hide findings in other files.
fn faulty(found: &Found, fault: &str) -> Checked {
    Checked::problem(
        found,
        format!("a bug in ghostgpu kept it from being checked: {fault}"),
    )
}
