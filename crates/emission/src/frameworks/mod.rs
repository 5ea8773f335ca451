//! Libraries that train for the script, and the arguments by which they apply tricks themselves.

mod accelerate;
mod lightning;
mod transformers;

use ghostgpu_tricks::Request;

use crate::outcome::{Outcome, Written};
use crate::script::Script;
use ghostgpu_lint::python::ExprCall;

/// Writes a trick as an argument of the library that the script trains with. `None` if it uses no library, or if the
/// library has no such argument and the script's own code can be edited.
pub fn write(script: &Script<'_>, request: &Request) -> Option<Outcome> {
    transformers::write(script, request)
        .or_else(|| lightning::write(script, request))
        .or_else(|| accelerate::write(script, request))
}

/// Sets keywords of one call.
fn with_keywords(script: &Script<'_>, call: &ExprCall, keywords: &[(&str, String)]) -> Outcome {
    let mut edits = Vec::new();
    let mut added = Vec::new();
    let mut named = Vec::new();
    for (name, value) in keywords {
        named.push(format!("`{name}={value}`"));
        // For a call without arguments, several keywords are one edit, separated by commas.
        match call.arguments.is_empty() {
            false => edits.extend(script.keyword(call, name, value)?),
            true => added.push(format!("{name}={value}")),
        }
    }
    if let Some((first, rest)) = added.split_first() {
        let (name, value) = first.split_once('=').unwrap_or((first, ""));
        let all = std::iter::once(value.to_owned()).chain(rest.iter().cloned());
        let all: Vec<String> = all.collect();
        edits.extend(script.keyword(call, name, &all.join(", "))?);
    }
    Written::new(named.join(", "), edits)
}

/// The value for a keyword that counts batches per step: `count`, unless the script already sets another number itself.
fn times(script: &Script<'_>, call: &ExprCall, name: &str, count: &str) -> Result<String, String> {
    let Some(keyword) = call.arguments.find_keyword(name) else {
        return Ok(count.to_owned());
    };
    match (script.facts.constant(&keyword.value), count.parse::<i64>()) {
        (Some(1), _) => Ok(count.to_owned()),
        (Some(present), Ok(count)) if present == count => Ok(count.to_string()),
        _ => Err(format!("the script sets `{name}` itself")),
    }
}
