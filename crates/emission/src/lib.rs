//! Writes tricks into the user's own code.
//!
//! A script and tricks become an edited script and a diff, or a [`NotMechanical`] with the reason. Tricks are written one
//! after the other, each into the result of the previous one, so that each sees the actual code. Edits are small:
//! formatting and comments stay as they are.
//!
//! - [`script`] has what is known about a script (from `ghostgpu_lint::facts`) and where its statements are;
//! - [`rewriting`] makes edits: wrapped statements, keywords, imports;
//! - [`training_step`] finds forward, backward and step of a plain loop;
//! - [`changes`] has a file for each group of tricks, [`frameworks`] one for each library whose
//!   arguments ask for the same;
//! - [`deepspeed`] and [`accelerate_config`] edit configuration files.
//!
//! Nothing here reads files or prints.

pub mod accelerate_config;
mod changes;
pub mod deepspeed;
mod frameworks;
mod outcome;
mod rewriting;
mod script;
mod training_step;

pub use outcome::{Change, NotMechanical, Patch, Refused};

use ghostgpu_lint::{Edit, diff};
use ghostgpu_tricks::Request;
use outcome::not_mechanical;
use script::Script;

/// The tricks that are written first, in this order, because the place of one may depend on others. The rest follow in
/// the order of the request.
const FIRST: &[&str] = &[
    "smaller-batch",
    "small-evaluation-batch",
    "drop-last",
    "no-grad-evaluation",
    "channels-last",
    "autocast",
    "early-zero-grad",
    "accumulation",
];

/// Writes tricks into the script `name`, whose text is `source`.
pub fn patch(name: &str, source: &str, tricks: &[Request]) -> Result<Patch, Refused> {
    let mut ordered: Vec<&Request> = tricks.iter().collect();
    let rank = |request: &&Request| FIRST.iter().position(|it| *it == request.name);
    ordered.sort_by_key(|request| rank(request).unwrap_or(FIRST.len()));
    let mut text = source.to_owned();
    let mut changes = Vec::new();
    for request in ordered {
        let written = Script::read(&text, |script| changes::write(script, request))?
            .map_err(|reason| not_mechanical(request, reason))?;
        changes.push(Change {
            trick: request.name.clone(),
            what: written.what,
            was_there: written.edits.is_empty(),
        });
        let edited = with_edits(&text, written.edits);
        // If an edit breaks the script, that is our fault, and no patch is better than a broken one.
        Script::read(&edited, |_| ()).map_err(|_| {
            not_mechanical(request, "the edited script would not be valid".to_owned())
        })?;
        text = edited;
    }
    Ok(Patch {
        diff: diff::unified(name, source, &text),
        text,
        changes,
    })
}

/// Applies edits, given in any order; edits at the same place keep their order.
fn with_edits(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut result = String::with_capacity(text.len());
    let mut reached = 0;
    for edit in edits {
        // If two edits overlap, the first one counts.
        if edit.range.start < reached {
            continue;
        }
        result.push_str(&text[reached..edit.range.start]);
        match line_end {
            "\n" => result.push_str(&edit.text),
            _ => result.push_str(&edit.text.replace('\n', line_end)),
        }
        reached = edit.range.end;
    }
    result.push_str(&text[reached..]);
    result
}

#[cfg(test)]
mod tests;
