//! Prints every finding in the files given, one line each: `path:line:column: rule: message`
//! (in a notebook `path:cell:line:column: …`). Shows what the rules find in the corpus, without
//! configuration, ignore comments or colours. Rules that are off by default are left out.
//!
//! With `@list` instead of a file, the files named in `list`, one per line.

use std::io::Write;
use std::path::Path;

use ghostgpu_lint::{Position, Source, check};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix('@') {
            None => print_findings(&argument, &mut out)?,
            Some(list) => {
                for path in std::fs::read_to_string(list)?.lines() {
                    print_findings(path, &mut out)?;
                }
            }
        }
    }
    Ok(())
}

fn print_findings(path: &str, out: &mut impl Write) -> std::io::Result<()> {
    let contents = std::fs::read(path)?;
    let source = if Path::new(path)
        .extension()
        .is_some_and(|end| end == "ipynb")
    {
        Source::notebook(&contents)
    } else {
        Source::script(&contents)
    };
    let source = match source {
        Ok(source) => source,
        Err(reason) => {
            eprintln!("{path}: {reason}");
            return Ok(());
        }
    };
    let checked = check(&source, |rule| rule.is_on_by_default());
    for error in &checked.errors {
        eprintln!("{path}: {error:?}");
    }
    for finding in &checked.findings {
        let Position { cell, line, column } = source.position(finding.range.start);
        let cell = cell.map_or(String::new(), |cell| format!("{cell}:"));
        let (rule, message) = (finding.rule.name, &finding.message);
        writeln!(out, "{path}:{cell}{line}:{column}: {rule}: {message}")?;
    }
    Ok(())
}
