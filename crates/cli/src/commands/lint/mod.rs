//! `ghostgpu lint`: finds memory mistakes in code that does not run.

mod arguments;
mod configuration;
mod files;
mod workers;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

pub use arguments::Arguments;
use arguments::Format;
use configuration::Configurations;
use files::{Files, Found};
use ghostgpu_lint::{FileReport, Source, examine, formats};

use crate::failure::{EXIT_DOES_NOT_FIT, EXIT_FAILURE, Failure};
use crate::output::print_all;

/// The exit code of "something was found".
const EXIT_FOUND: u8 = EXIT_DOES_NOT_FIT;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let here = [PathBuf::from(".")];
    let paths = match arguments.paths.as_slice() {
        [] => &here,
        paths => paths,
    };
    let mut configurations = Configurations::new(arguments)?;
    let Files { mut found, empty } = files::find(paths);
    for file in &found {
        configurations.learn(&file.path)?;
    }
    found.retain(|file| file.was_named || !configurations.excludes(&file.path));
    for folder in &empty {
        eprintln!("ghostgpu: there is no Python file and no notebook in `{folder}`");
    }
    if found.is_empty() {
        return Err(Failure::new("there is nothing to check")
            .with_hint(
                "name files, or a folder with `*.py` or `*.ipynb` that neither git nor the \
                 configuration leaves out",
            )
            .into());
    }
    let reports: Vec<FileReport> =
        workers::on_all_cores(&found, |file| check_file(file, &configurations))
            .into_iter()
            .zip(&found)
            .map(|(report, found)| report.unwrap_or_else(|fault| faulty(found, &fault)))
            .collect();
    print_all(&match arguments.format {
        Format::Text => formats::text::render(&reports, wants_colour()),
        Format::Json => formats::json::render(&reports),
    })?;
    let fails = reports.iter().zip(&found).any(|(report, file)| {
        let fail_on = configurations.fail_on(&file.path);
        let mut remarks = report.diagnostics.iter();
        remarks.any(|remark| fail_on.counts(remark.severity))
    });
    Ok(match fails {
        _ if reports.iter().any(FileReport::is_broken) => EXIT_FAILURE,
        true => EXIT_FOUND,
        false => 0,
    })
}

/// Reads and checks one file.
fn check_file(found: &Found, configurations: &Configurations) -> FileReport {
    let mut report = FileReport {
        path: found.shown.clone(),
        problem: found.problem.clone(),
        ..FileReport::default()
    };
    if report.problem.is_some() {
        return report;
    }
    let source = match read(&found.path) {
        Ok(contents) => source(&found.path, &contents),
        Err(error) => Err(files::unreadable(&found.path, &error)),
    };
    match source {
        Ok(source) => {
            report.diagnostics = examine(&source, &configurations.settings(&found.path));
            // Of a file about which nothing is said, nothing will be shown.
            report.source = Some(source).filter(|_| !report.diagnostics.is_empty());
        }
        Err(problem) => report.problem = Some(problem),
    }
    report
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut contents = Vec::new();
    std::io::stdin().lock().read_to_end(&mut contents)?;
    Ok(contents)
}

fn source(path: &Path, contents: &[u8]) -> Result<Source, String> {
    let is_notebook = path
        .extension()
        .is_some_and(|extension| extension == "ipynb");
    let source = match is_notebook {
        true => Source::notebook(contents),
        false => Source::script(contents),
    };
    source.map_err(|error| error.to_string())
}

/// A fault of ours must not hide what was found elsewhere.
fn faulty(found: &Found, fault: &str) -> FileReport {
    FileReport {
        path: found.shown.clone(),
        problem: Some(format!(
            "a fault of ghostgpu's own kept it from being checked: {fault}"
        )),
        ..FileReport::default()
    }
}

fn wants_colour() -> bool {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !is_unwanted
}
