//! `backward(retain_graph=True)` that nothing needs.

use super::fixes::without_argument;
use super::{Family, Report, Rule};
use crate::facts::structure::{BlockId, Call, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, Stmt, span};
use crate::syntax::says_true;

pub static RULE: Rule = Rule {
    name: "retain-graph",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a graph is retained, but not used by another backward pass",
    docs: "\
## What it does
Finds `backward(retain_graph=True)` in a training loop (or in a function that does one step) where no
other `backward()` or `autograd.grad` goes through the same graph later in the step, and no part of the
graph is used in the next step.

## Why it costs memory
`backward()` normally frees the activations of each layer as it proceeds. A retained graph keeps them
all, through the optimizer's step and the next forward pass, until the last variable that refers to
it is rebound.

## Example
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
```

## Use instead
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
When a second loss backpropagates through the same graph later in the step, or a state is carried to
the next one. Losses computed from anything that may carry such a graph are not reported, nor are
those of models of other files that may keep a state, by their names or because the file resets it.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        if !facts.is_backward(call.node)
            || !says_true(call.node, "retain_graph")
            || says_true(call.node, "create_graph")
        {
            continue;
        }
        let unit = facts.structure.unit_of(call.place.block);
        let steps = match facts.structure.loop_around(call.place.block) {
            Some(steps) => steps,
            // A function that does one step: no part of the graph may leave it.
            None if unit != 0 && !returns_graph(facts, unit) && !keeps_on_self(facts, unit) => {
                facts.structure.units[unit].block
            }
            None => continue,
        };
        let Some(loss) = facts.goes_back_from(call.node) else {
            continue;
        };
        // Also in functions defined inside the loop, such as closures for an optimizer.
        let again = facts.structure.calls.iter().any(|other| {
            other.place.order > call.place.order
                && facts.structure.is_inside(other.place.block, steps)
                && facts.runs_differentiation(other.node)
                && !has_another_graph(facts, unit, loss, other)
        });
        let is_parameter = matches!(loss, Expr::Name(name)
            if facts.is_parameter_of(unit, name.id.as_str()));
        if again
            || is_parameter && !is_the_callers_last(facts, unit, loss)
            // What goes back is a tensor with a graph, wherever it comes from.
            || !matches!(facts.value(loss).kind, Kind::Tensor | Kind::Unknown)
            || facts.value(loss).graph.is_no()
            || !is_parameter && facts.may_reach_behind(steps, loss)
            || outlives_its_loop(facts, steps, loss)
            || facts.is_handed_out_by(steps, loss)
        {
            continue;
        }
        let fix = without_argument(facts, call.node, "retain_graph")
            .map(|edits| Fix::unsafe_("Remove `retain_graph=True`", edits));
        report.add_with(
            span(call.node),
            format!(
                "the graph of `{}` is retained, but no other backward pass uses it",
                facts.text(loss)
            ),
            "remove `retain_graph=True`",
            fix,
        );
    }
}

/// Whether a later backward pass starts from a loss of the same function that shares no graph with this one:
/// the actor's, computed from a detached advantage.
fn has_another_graph<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    loss: &'a Expr,
    other: &Call<'a>,
) -> bool {
    if facts.structure.unit_of(other.place.block) != unit || !facts.is_backward(other.node) {
        return false;
    }
    let Some(later) = facts.goes_back_from(other.node) else {
        return false;
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    collect_graph(facts, unit, loss, &mut one);
    collect_graph(facts, unit, later, &mut two);
    !two.is_empty() && !one.iter().any(|part| two.contains(part))
}

/// A part of a graph: what a name was bound to, or a name that was bound elsewhere.
#[derive(PartialEq)]
enum Part<'a> {
    Bound(usize),
    Free(&'a str),
}

/// The parts of the graph that an expression may have.
fn collect_graph<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    expression: &'a Expr,
    parts: &mut Vec<Part<'a>>,
) {
    let mut names: Vec<(&'a str, &'a Expr)> = Vec::new();
    each_expression(expression, &mut |part| {
        if let Some(path) = facts.path(part)
            && !matches!(path, "self" | "cls")
            && !facts.imports.knows(part)
            && !matches!(
                facts.value(part).kind,
                Kind::Module(_) | Kind::Function(_) | Kind::Criterion
            )
            && !facts.value(part).graph.is_no()
            && facts.carries_graph(expression, path)
        {
            names.push((path, part));
        }
    });
    for (path, name) in names {
        let bound: Vec<&'a Expr> = facts
            .assigns_in_unit(unit)
            .filter(|assign| {
                facts.targets(assign.target, path) && span(assign.statement).end <= span(name).start
            })
            .map(|assign| assign.value)
            .collect();
        if bound.is_empty() && !parts.contains(&Part::Free(path)) {
            parts.push(Part::Free(path));
        }
        for value in bound {
            let part = Part::Bound(span(value).start);
            if !parts.contains(&part) {
                parts.push(part);
                collect_graph(facts, unit, value, parts);
            }
        }
    }
}

/// Whether all callers of a function that backpropagates its argument give it one that no other pass of the
/// same step needs.
fn is_the_callers_last<'a>(facts: &Facts<'a>, unit: UnitId, loss: &Expr) -> bool {
    let mut callers = facts.callers(unit).peekable();
    callers.peek().is_some()
        && callers.all(|caller| {
            let Some(steps) = facts.structure.loop_around(caller.place.block) else {
                return false;
            };
            let again = facts.structure.calls.iter().any(|other| {
                !std::ptr::eq(other.node, caller.node)
                    && facts.structure.is_inside(other.place.block, steps)
                    && facts.runs_differentiation(other.node)
            });
            let name = facts.text(loss);
            facts
                .argument_for(caller.node, unit, name)
                .is_some_and(|given| {
                    !again
                        && !facts.may_reach_behind(steps, given)
                        && !outlives_its_loop(facts, steps, given)
                        && !facts.is_handed_out_by(steps, given)
                })
        })
}

/// Whether anything after the loop differentiates what the loss is made of.
fn outlives_its_loop<'a>(facts: &Facts<'a>, steps: BlockId, loss: &'a Expr) -> bool {
    let Some(rounds) = facts.structure.blocks[steps].kind.loop_span() else {
        return false;
    };
    let unit = facts.structure.unit_of(steps);
    let differentiates = facts
        .calls_in_unit(unit)
        .any(|call| span(call.node).start > rounds.end && facts.differentiates(call.node));
    let parts = facts.made_of(loss);
    let with_graph: Vec<&str> = parts
        .iter()
        .filter(|part| facts.value(part).is_tensor() && facts.value(part).graph.is_yes())
        .filter_map(|part| facts.path(part))
        .filter(|path| facts.is_bound_inside(steps, path))
        .collect();
    differentiates
        && facts.structure.statements.iter().any(|(statement, place)| {
            facts.structure.unit_of(place.block) == unit
                && span(*statement).start > rounds.end
                && with_graph
                    .iter()
                    .any(|path| facts.statement_mentions(statement, path))
        })
}

/// Whether a function returns something that may have a graph.
fn returns_graph(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        facts.structure.unit_of(place.block) == unit
            && matches!(statement, Stmt::Return(node)
            if node.value.as_deref().is_some_and(|value| {
                !facts.value(value).graph.is_no()
            }))
    })
}

/// Whether a function stores something with a graph in an object.
fn keeps_on_self(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.assigns_in_unit(unit).any(|assign| {
        matches!(assign.target, Expr::Attribute(_)) && !facts.value(assign.value).graph.is_no()
    })
}
