//! `with torch.autocast(...)` around forward and loss, and a `GradScaler` in fp16.

use std::ops::Range;

use ghostgpu_lint::Edit;
use ghostgpu_lint::facts::torch_names;
use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::python::{Stmt, span};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::rewriting::Top;
use crate::script::Script;
use crate::training_step::{Part, TrainingStep};

pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    let (dtype, is_half) = match option(request, "dtype") {
        "fp16" => ("float16", true),
        _ => ("bfloat16", false),
    };
    if let Some(there) = there_already(script, dtype) {
        return there;
    }
    let steps = script.training_steps()?;
    let header = format!("with torch.autocast(\"cuda\", dtype=torch.{dtype}):");
    let mut edits = script.import("torch");
    let mut done: Vec<Range<usize>> = Vec::new();
    for step in &steps {
        let (first, last) = script.forward_of(step)?;
        let forward = &step.list[first..=last];
        done.push(span(&forward[0]).start..span(&step.list[step.at]).end);
        edits.extend(script.wrapped(forward, &header)?);
    }
    for statements in evaluations(script, &done)? {
        edits.extend(script.wrapped(statements, &header)?);
    }
    if is_half {
        edits.extend(scaled(script, &steps)?);
    }
    let what = match is_half {
        true => "forward and loss under `torch.autocast` in fp16, with a `GradScaler`",
        false => "forward and loss under `torch.autocast` in bf16",
    };
    Written::new(what, edits)
}

/// The outcome for a script that already has autocast.
fn there_already(script: &Script<'_>, dtype: &str) -> Option<Outcome> {
    let is_autocast = |name: &str| name.starts_with("torch.") && name.ends_with("autocast");
    let (call, _) = script.calls_of(is_autocast).next()?;
    let written = &script.text[span(call.node)];
    Some(match written.contains(dtype) {
        true => Written::new("`torch.autocast` is there already", Vec::new()),
        false => Err("the script has an autocast of its own".to_owned()),
    })
}

/// Statements outside of training steps that run a model, each with the loss that follows it.
fn evaluations<'a>(script: &Script<'a>, done: &[Range<usize>]) -> Result<Vec<&'a [Stmt]>, String> {
    let mut found: Vec<&'a [Stmt]> = Vec::new();
    for call in script.calls() {
        let at = span(call.node).start;
        let is_new = !done.iter().any(|range| range.contains(&at))
            && !found.iter().any(|list| covers(list, at));
        let runs = script.facts.called_module(call.node).is_some();
        if !runs || !is_new || script.is_inside_a_model(script.unit(call)) {
            continue;
        }
        // A helper that a training step calls runs under the caller's autocast.
        let is_helper = script.calls().iter().any(|caller| {
            done.iter()
                .any(|range| range.contains(&span(caller.node).start))
                && script.facts.callee_unit(caller.node) == Some(script.unit(call))
        });
        if is_helper {
            continue;
        }
        let is_plain = matches!(
            call.statement,
            Stmt::Expr(_)
                | Stmt::Assign(_)
                | Stmt::AugAssign(_)
                | Stmt::AnnAssign(_)
                | Stmt::Return(_)
        );
        let Some((list, first)) = script.list_of(call.statement).filter(|_| is_plain) else {
            return Err("a model is called inside a longer statement".to_owned());
        };
        let losses = list[first + 1..].iter().take_while(|statement| {
            script.calls_in(statement).any(|call| {
                let name = script.facts.callee(call.node);
                let is_function = name.is_some_and(|name| torch_names::is_loss_function(&name));
                is_function || script.facts.value(&call.node.func).kind == Kind::Criterion
            })
        });
        found.push(&list[first..=first + losses.count()]);
    }
    Ok(found)
}

fn covers(list: &[Stmt], at: usize) -> bool {
    match (list.first(), list.last()) {
        (Some(first), Some(last)) => (span(first).start..span(last).end).contains(&at),
        _ => false,
    }
}

/// The edits for the scaler: creating it once, and using it in every step.
fn scaled(script: &Script<'_>, steps: &[TrainingStep<'_>]) -> Result<Vec<Edit>, String> {
    let name = script.fresh(&["scaler", "grad_scaler"]);
    let made = format!("{name} = torch.amp.GradScaler(\"cuda\")");
    let optimizers = script.optimizers();
    let beside = optimizers
        .iter()
        .find(|made| steps.iter().all(|step| step.unit == made.unit) && !made.path.contains('.'));
    let mut edits = vec![match beside {
        Some(optimizer) => script.line_after(optimizer.statement, &made)?,
        // Functions can access top-level names.
        None => script.top_line(&made, Top::BehindImports),
    }];
    for step in steps {
        if step.backward.scaler.is_some() {
            return Err("the script has a scaler of its own".to_owned());
        }
        let receiver = span(step.backward.receiver);
        edits.push(Edit::insert(receiver.start, format!("{name}.scale(")));
        edits.push(Edit::insert(receiver.end, ")"));
        // The step may be inside an `if`, every few batches.
        let mut behind = Vec::new();
        flatten(&step.list[step.at + 1..], &mut behind);
        let mut stepped = None;
        for &statement in &behind {
            match script.part(statement) {
                Some(Part::Step) => {
                    let (edit, optimizer) = scaled_step(script, statement, &name)?;
                    edits.extend(edit);
                    if stepped.replace(optimizer).is_some() {
                        return Err("two optimizers step in this loop".to_owned());
                    }
                }
                Some(Part::Clip) => {
                    let optimizer = behind
                        .iter()
                        .copied()
                        .filter(|it| script.part(it) == Some(Part::Step))
                        .find_map(|it| script.stepped(it))
                        .ok_or("gradients are clipped where no optimizer steps")?;
                    edits.push(
                        script.line_before(statement, &format!("{name}.unscale_({optimizer})"))?,
                    );
                }
                _ => {}
            }
        }
        if stepped.is_none() {
            return Err("no optimizer steps beside the backward pass".to_owned());
        }
    }
    Ok(edits)
}

/// The statements of a list and of the branches in it.
fn flatten<'a>(list: &'a [Stmt], found: &mut Vec<&'a Stmt>) {
    for statement in list {
        match statement {
            Stmt::If(node) => {
                flatten(&node.body, found);
                for clause in &node.elif_else_clauses {
                    flatten(&clause.body, found);
                }
            }
            other => found.push(other),
        }
    }
}

/// `optimizer.step()` becomes `scaler.step(optimizer)` and `scaler.update()`.
fn scaled_step<'a>(
    script: &Script<'a>,
    statement: &'a Stmt,
    scaler: &str,
) -> Result<(Vec<Edit>, &'a str), String> {
    let optimizer = script.stepped(statement);
    let plain = matches!(statement, Stmt::Expr(node)
        if node.value.as_call_expr().is_some_and(|call| call.arguments.is_empty()));
    match optimizer {
        Some(optimizer) if plain => Ok((
            vec![
                Edit::replace(span(statement), format!("{scaler}.step({optimizer})")),
                script.line_after(statement, &format!("{scaler}.update()"))?,
            ],
            optimizer,
        )),
        _ => Err("the optimizer steps in an unusual way".to_owned()),
    }
}
