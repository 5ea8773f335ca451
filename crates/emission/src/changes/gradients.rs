//! Where gradients are set to None.

use ghostgpu_lint::python::{ExprCall, Stmt, span};

use crate::outcome::{Outcome, Written};
use crate::script::Script;
use crate::training_step::Part;

/// `zero_grad()` before the forward pass instead of after it.
pub fn zero_early(script: &Script<'_>) -> Outcome {
    let what = "gradients set to None before the forward pass";
    let mut edits = Vec::new();
    for step in script.training_steps()? {
        let (first, _) = script.forward_of(&step)?;
        let zeroed: Vec<usize> = (0..step.list.len())
            .filter(|at| script.part(&step.list[*at]) == Some(Part::ZeroGrad))
            .collect();
        let [at] = *zeroed else {
            return Err(match zeroed.len() {
                0 => "`zero_grad()` does not stand beside the backward pass".to_owned(),
                _ => "several optimizers share this loop".to_owned(),
            });
        };
        let statement = &step.list[at];
        let Stmt::Expr(node) = statement else {
            return Err("`zero_grad()` depends on a condition".to_owned());
        };
        // After the step it is as good as before the next forward pass.
        if at < first || at > step.at {
            let keeps = |call: &&ExprCall| {
                let keyword = call.arguments.find_keyword("set_to_none");
                keyword.is_some_and(|keyword| &script.text[span(&keyword.value)] == "False")
            };
            if let Some(call) = node.value.as_call_expr().filter(keeps) {
                edits.extend(script.no_keyword(call, "set_to_none"));
            }
            continue;
        }
        edits.extend(script.without(statement)?);
        let call = &script.text[span(statement)];
        let plain = call.split('(').next().unwrap_or(call);
        edits.push(script.line_before(&step.list[first], &format!("{plain}()"))?);
    }
    Written::new(what, edits)
}

/// `optimizer.zero_grad(set_to_none=True)` before `model.eval()`.
pub fn drop_before_evaluation(script: &Script<'_>) -> Outcome {
    let facts = &script.facts;
    let optimizers = script.optimizers();
    let mut edits = Vec::new();
    let mut is_there = false;
    for call in script.calls() {
        let Some((receiver, "eval")) = facts.method(call.node) else {
            continue;
        };
        let is_module = facts.value(receiver).is_module();
        let (true, Some(path)) = (is_module, facts.path(receiver)) else {
            continue;
        };
        let unit = script.unit(call);
        let optimizer = optimizers.iter().find(|made| {
            (made.unit == unit || made.unit == 0) && script.model_of(made) == Some(path)
        });
        let holder = match optimizer {
            Some(optimizer) => optimizer.path,
            // A model can clear the gradients of its own parameters.
            None => path,
        };
        let (list, at) = match call.statement {
            Stmt::Expr(_) => script.list_of(call.statement).ok_or("`eval()` is nested")?,
            _ => return Err("`eval()` is part of a longer statement".to_owned()),
        };
        let before = at.checked_sub(1).and_then(|before| list.get(before));
        if before.is_some_and(|it| script.part(it) == Some(Part::ZeroGrad)) {
            is_there = true;
            continue;
        }
        let line = format!("{holder}.zero_grad(set_to_none=True)");
        edits.push(script.line_before(call.statement, &line)?);
    }
    match edits.is_empty() && !is_there {
        true => Err("this file puts no model into `eval()`".to_owned()),
        false => Written::new("gradients dropped before evaluation", edits),
    }
}
