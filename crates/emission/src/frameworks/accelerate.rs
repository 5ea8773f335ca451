//! `Accelerator` of Accelerate, in a loop of the script's own.

use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::python::{ExprCall, Stmt, span};
use ghostgpu_tricks::Request;

use super::{times, with_keywords};
use crate::outcome::{Outcome, Written};
use crate::script::Script;

pub fn write(script: &Script<'_>, request: &Request) -> Option<Outcome> {
    let calls: Vec<&ExprCall> = script
        .calls_of(|name| name == "accelerate.Accelerator")
        .map(|(call, _)| call.node)
        .collect();
    let call = *calls.first()?;
    let value = |option: &str| request.value(option).unwrap_or_default();
    match request.name.as_str() {
        "autocast" => {
            let precision = format!("\"{}\"", value("dtype"));
            Some(with_keywords(
                script,
                call,
                &[("mixed_precision", precision)],
            ))
        }
        "accumulation" => Some(accumulated(script, call, value("steps"))),
        _ => None,
    }
}

fn accumulated(script: &Script<'_>, call: &ExprCall, count: &str) -> Outcome {
    let name = "gradient_accumulation_steps";
    let count = times(script, call, name, count)?;
    let mut written = with_keywords(script, call, &[(name, count)])?;
    let facts = &script.facts;
    let has_window = script.calls().iter().any(|call| {
        matches!(facts.method(call.node), Some((receiver, "accumulate"))
            if facts.value(receiver).kind == Kind::Accelerator)
    });
    if has_window {
        return Ok(written);
    }
    let mut backward = script.calls().iter().filter(|call| {
        matches!(facts.method(call.node), Some((receiver, "backward"))
            if facts.value(receiver).kind == Kind::Accelerator || !call.node.arguments.is_empty())
    });
    let (Some(backward), None) = (backward.next(), backward.next()) else {
        return Err("there is not exactly one `accelerator.backward()`".to_owned());
    };
    let (list, at) = match backward.statement {
        Stmt::Expr(_) => script.list_of(backward.statement),
        _ => None,
    }
    .ok_or("the backward pass is part of a longer statement")?;
    script
        .loop_of(list)
        .ok_or("the backward pass is not directly in a `for` loop over batches")?;
    let first = list[..at].iter().position(|statement| {
        script
            .calls_in(statement)
            .any(|call| script.model_run_by(call).is_some())
    });
    let first = first.ok_or("the forward pass does not stand beside the backward pass")?;
    let model = list[first..at]
        .iter()
        .flat_map(|statement| script.calls_in(statement))
        .find_map(|call| facts.called_module(call.node))
        .ok_or("the model is called in another function")?;
    // All parts of a step must be inside, including `zero_grad()` before the forward pass.
    let parts: Vec<usize> = (0..list.len())
        .filter(|at| script.part(&list[*at]).is_some())
        .collect();
    let begin = parts.first().map_or(first, |part| first.min(*part));
    let end = parts.last().map_or(at, |part| at.max(*part));
    let accelerator = match facts.method(backward.node) {
        Some((receiver, _)) => &script.text[span(receiver)],
        None => return Err("the accelerator has no name".to_owned()),
    };
    let header = format!("with {accelerator}.accumulate({model}):");
    written
        .edits
        .extend(script.wrapped(&list[begin..=end], &header)?);
    Written::new(written.what, written.edits)
}
