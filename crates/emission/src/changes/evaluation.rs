//! `torch.no_grad()` where a model in `eval()` is called with a graph.

use ghostgpu_lint::facts::structure::{Call, UnitId};
use ghostgpu_lint::python::{Stmt, span};
use ghostgpu_lint::rules::fixes;

use crate::outcome::{Outcome, Written};
use crate::script::Script;

pub fn write(script: &Script<'_>) -> Outcome {
    let facts = &script.facts;
    let mut edits = Vec::new();
    let mut decorated: Vec<UnitId> = Vec::new();
    let mut wrapped: Vec<usize> = Vec::new();
    let mut has_evaluation = false;
    for call in script.calls() {
        let unit = script.unit(call);
        if script.is_inside_a_model(unit) {
            continue;
        }
        let Some(evaluation) = facts.evaluation_at(call) else {
            continue;
        };
        has_evaluation = true;
        let is_covered = facts.gradients_at(call.node).is_no()
            || decorated.contains(&unit)
            || wrapped.contains(&span(call.statement).start);
        if is_covered || facts.wants_gradients(unit, evaluation) {
            continue;
        }
        if is_all_evaluation(script, unit)
            && let Some(decorator) = fixes::decorated(facts, unit, "torch.no_grad()")
        {
            edits.extend(decorator);
            decorated.push(unit);
        } else {
            edits.extend(wrapped_statement(script, call)?);
            wrapped.push(span(call.statement).start);
        }
    }
    match (edits.is_empty(), has_evaluation) {
        (false, _) => {
            edits.extend(script.import("torch"));
            Written::new("evaluation under `torch.no_grad()`", edits)
        }
        (true, true) => Written::new("evaluation has no graph already", edits),
        (true, false) => Err("no model is certainly in `eval()` where it is called".to_owned()),
    }
}

/// Whether every model that a function calls is in `eval()` there.
fn is_all_evaluation(script: &Script<'_>, unit: UnitId) -> bool {
    unit != 0
        && script.facts.calls_in_unit(unit).all(|call| {
            script.facts.called_module(call.node).is_none()
                || script.facts.evaluation_at(call).is_some()
        })
        && !script
            .facts
            .runs(unit, &|call| script.facts.differentiates(call.node))
}

fn wrapped_statement<'a>(
    script: &Script<'a>,
    call: &Call<'a>,
) -> Result<Vec<ghostgpu_lint::Edit>, String> {
    let is_plain = matches!(
        call.statement,
        Stmt::Expr(_) | Stmt::Assign(_) | Stmt::AugAssign(_)
    );
    let statement = is_plain.then(|| script.list_of(call.statement)).flatten();
    match statement {
        Some((list, at)) => script.wrapped(&list[at..=at], "with torch.no_grad():"),
        None => Err("a model is evaluated inside a longer statement".to_owned()),
    }
}
