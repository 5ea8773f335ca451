//! The batch size of a loader.

use ghostgpu_lint::Edit;
use ghostgpu_lint::facts::structure::BlockKind;
use ghostgpu_lint::python::{Expr, ExprCall, span};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::script::Script;

/// A `DataLoader` that the script creates.
struct Loader<'a> {
    path: &'a str,
    call: &'a ExprCall,
    trains: bool,
    evaluates: bool,
}

pub fn of_training(script: &Script<'_>, request: &Request) -> Outcome {
    let batch = option(request, "batch");
    let loader = only(loaders(script), |it| it.trains, "trains")?;
    Written::new(
        format!("`batch_size` {batch} for {}", loader.path),
        sized(script, &loader, batch)?,
    )
}

pub fn of_evaluation(script: &Script<'_>, request: &Request) -> Outcome {
    let batch = option(request, "batch");
    let loader = only(loaders(script), |it| it.evaluates, "evaluates")?;
    if loader.trains {
        return Err("the script trains with the loader that it evaluates with".to_owned());
    }
    Written::new(
        format!("`batch_size` {batch} for {}", loader.path),
        sized(script, &loader, batch)?,
    )
}

pub fn drop_last(script: &Script<'_>) -> Outcome {
    let loader = only(loaders(script), |it| it.trains, "trains")?;
    let edits = script.keyword(loader.call, "drop_last", "True")?;
    Written::new(format!("`drop_last=True` for {}", loader.path), edits)
}

fn only<'a>(
    loaders: Vec<Loader<'a>>,
    wanted: impl Fn(&Loader<'a>) -> bool,
    does: &str,
) -> Result<Loader<'a>, String> {
    let mut found = loaders.into_iter().filter(|it| wanted(it));
    match (found.next(), found.next()) {
        (Some(loader), None) => Ok(loader),
        (None, _) => Err(format!("no DataLoader of this file certainly {does}")),
        _ => Err(format!("more than one DataLoader {does}")),
    }
}

/// The loaders of the file, and what happens in the loops over them.
fn loaders<'a>(script: &Script<'a>) -> Vec<Loader<'a>> {
    let facts = &script.facts;
    let assigns = facts.structure.assigns.iter();
    let made = assigns.filter_map(|assign| match assign.value {
        Expr::Call(call) if facts.makes_loader(call) => Some((facts.path(assign.target)?, call)),
        _ => None,
    });
    let mut found: Vec<Loader<'a>> = made
        .map(|(path, call)| Loader {
            path,
            call,
            trains: false,
            evaluates: false,
        })
        .collect();
    for (id, block) in facts.structure.blocks.iter().enumerate() {
        let BlockKind::For(node) = block.kind else {
            continue;
        };
        let trains = facts
            .calls_inside(id)
            .any(|call| facts.runs_backward(call.node));
        let evaluates = !trains
            && facts
                .calls_inside(id)
                .any(|call| script.model_run_by(call).is_some());
        for loader in &mut found {
            if iterates(script, &node.iter, loader.path, facts.structure.unit_of(id)) {
                loader.trains |= trains;
                loader.evaluates |= evaluates;
            }
        }
    }
    found
}

/// Whether a loop iterates over a loader, by its name or through a parameter.
fn iterates(script: &Script<'_>, iterated: &Expr, path: &str, unit: usize) -> bool {
    let facts = &script.facts;
    if facts.mentions(iterated, path) {
        return true;
    }
    let Some(node) = facts.structure.units[unit].node else {
        return false;
    };
    node.parameters.iter().any(|parameter| {
        let name = parameter.name().as_str();
        facts.mentions(iterated, name)
            && facts.callers(unit).any(|call| {
                facts
                    .argument_for(call.node, unit, name)
                    .is_some_and(|given| facts.path(given) == Some(path))
            })
    })
}

/// The edit of a loader's batch size: at the constant that defines it, or at the loader itself.
fn sized(script: &Script<'_>, loader: &Loader<'_>, batch: &str) -> Result<Vec<Edit>, String> {
    let arguments = &loader.call.arguments;
    if arguments.find_keyword("batch_sampler").is_some() {
        return Err(format!("a sampler makes the batches of {}", loader.path));
    }
    let given = match arguments.find_keyword("batch_size") {
        Some(keyword) => Some(&keyword.value),
        None => arguments.args.get(1),
    };
    let Some(given) = given else {
        return script.keyword(loader.call, "batch_size", batch);
    };
    // The constant may also decide the sizes of tensors elsewhere, so it must change, not only the argument.
    let value = match given {
        Expr::Name(name) => match script.only_value(name.id.as_str()) {
            Some((value @ Expr::NumberLiteral(_), _)) => value,
            _ => given,
        },
        _ => given,
    };
    Ok(match &script.text[span(value)] == batch {
        true => Vec::new(),
        false => vec![Edit::replace(span(value), batch)],
    })
}
