//! A discriminator's step that goes back through the generator.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::paths::is_part_of;
use crate::facts::roles::is_named_after;
use crate::facts::structure::{Call, UnitId};
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, span};
use crate::syntax::given;

pub static RULE: Rule = Rule {
    name: "fake-not-detached",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a discriminator's loss is backpropagated through the generator",
    docs: "\
## What it does
Finds a model (a discriminator, a critic) that gets the output of another one (a generator) with its
graph, in a loss after which only the first one's optimizer steps.

## Why it costs memory
The generator's activations are kept until this `backward()`, which then goes back through the
generator too and computes gradients for all its weights. They are thrown away, or worse, added to
those of the generator's own step.

## Example
```python
critic = nn.Linear(4, 1).to(device)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for inputs, targets in loader:
    fake = model(inputs)
    critic_loss = critic(fake).mean() - critic(inputs).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    loss = -critic(model(inputs)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
critic = nn.Linear(4, 1).to(device)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for inputs, targets in loader:
    fake = model(inputs)
    critic_loss = critic(fake.detach()).mean() - critic(inputs).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    loss = -critic(model(inputs)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
When both models learn from the same loss. Only losses are reported after which, before the next
`backward()`, no optimizer steps that has the generator's parameters.
",
    check,
};

/// How many names are followed back.
const FAR: usize = 8;

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut reported = Vec::new();
    for backward in &facts.structure.calls {
        if !facts.is_backward(backward.node) {
            continue;
        }
        let unit = facts.structure.unit_of(backward.place.block);
        let Some(loss) = facts.goes_back_from(backward.node) else {
            continue;
        };
        let stepped = stepped_after(facts, unit, backward);
        if stepped.is_empty() {
            continue;
        }
        let mut runs = Vec::new();
        collect_runs(facts, unit, loss, FAR, &mut runs);
        for run in runs {
            let Some(judge) = facts.called_module(run) else {
                continue;
            };
            if !has(&stepped, judge) || reported.contains(&span(run)) {
                continue;
            }
            let Some((argument, maker)) = made_by_another(facts, unit, run, judge) else {
                continue;
            };
            if has(&stepped, maker)
                || !is_optimized(facts, unit, maker)
                || trains_maker_too(facts, unit, run, maker)
            {
                continue;
            }
            reported.push(span(run));
            report.add_with(
                span(run),
                format!(
                    "this loss trains `{judge}`, but its backward pass goes on through `{maker}`"
                ),
                format!(
                    "detach what `{judge}` gets: `{}.detach()`",
                    facts.text(argument)
                ),
                Some(Fix::unsafe_(
                    "Add `.detach()`",
                    without_graph(facts, argument),
                )),
            );
        }
    }
}

/// Whether the same run goes into another loss, which trains the maker of what it judged: its graph is
/// needed.
fn trains_maker_too<'a>(facts: &Facts<'a>, unit: UnitId, run: &ExprCall, maker: &str) -> bool {
    facts.calls_in_unit(unit).any(|backward| {
        facts.is_backward(backward.node)
            && has(&stepped_after(facts, unit, backward), maker)
            && facts.goes_back_from(backward.node).is_some_and(|loss| {
                let mut runs = Vec::new();
                collect_runs(facts, unit, loss, FAR, &mut runs);
                runs.iter().any(|other| span(*other) == span(run))
            })
    })
}

fn has(models: &[&str], model: &str) -> bool {
    models
        .iter()
        .any(|each| is_part_of(model, each) || is_part_of(each, model))
}

/// The models whose optimizers step after a `backward()` and before the next one; none if an optimizer
/// is among them of which the models are unknown.
fn stepped_after<'a>(facts: &Facts<'a>, unit: UnitId, backward: &Call<'a>) -> Vec<&'a str> {
    let until = facts
        .calls_in_unit(unit)
        .filter(|call| {
            call.place.order > backward.place.order && facts.runs_differentiation(call.node)
        })
        .map(|call| call.place.order)
        .min()
        .unwrap_or(usize::MAX);
    let mut models = Vec::new();
    for call in facts.calls_in_unit(unit) {
        if call.place.order < backward.place.order || call.place.order > until {
            continue;
        }
        let Some((receiver, "step")) = facts.method(call.node) else {
            continue;
        };
        // `scaler.step(optimizer)`
        let optimizer = call.node.arguments.args.first().unwrap_or(receiver);
        let found = facts
            .path(optimizer)
            .map(|path| models_of(facts, unit, path))
            .unwrap_or_default();
        if found.is_empty() {
            if facts.value(receiver).kind == crate::facts::value::Kind::Scheduler {
                continue;
            }
            return Vec::new();
        }
        models.extend(found);
    }
    models
}

/// The models whose parameters an optimizer got.
fn models_of<'a>(facts: &Facts<'a>, unit: UnitId, optimizer: &str) -> Vec<&'a str> {
    let mut models = Vec::new();
    let mut is_made_here = false;
    for each in facts.units_that_see(unit, optimizer) {
        for assign in facts.assigns_in_unit(each) {
            if facts.path(assign.target) == Some(optimizer) {
                is_made_here = true;
                // `chain = itertools.chain(a.parameters(), ...)` may come before.
                for part in facts.made_of(assign.value) {
                    if let Expr::Call(call) = part
                        && let Some((model, "parameters" | "named_parameters")) = facts.method(call)
                    {
                        models.extend(facts.path(model));
                    }
                }
            }
        }
    }
    if !is_made_here {
        for call in facts.calls_in_unit(unit) {
            if let Some(model) = facts.called_module(call.node)
                && is_named_after(optimizer, model)
                && !models.contains(&model)
            {
                models.push(model);
            }
        }
    }
    models
}

/// Whether some optimizer that a unit sees has a model's parameters.
fn is_optimized(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    let is_stepped = facts.calls_in_unit(unit).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "step"))
            if facts.path(receiver).is_some_and(|path| has(&models_of(facts, unit, path), model)))
    });
    is_stepped
        || facts.structure.assigns.iter().any(|assign| {
            let target = facts.path(assign.target);
            target.is_some_and(|target| {
                facts
                    .units_that_see(unit, target)
                    .contains(&facts.structure.unit_of(assign.place.block))
                    && has(&models_of(facts, unit, target), model)
            })
        })
}

/// The calls of models that an expression is computed from, with their graphs.
fn collect_runs<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    expression: &'a Expr,
    far: usize,
    runs: &mut Vec<&'a ExprCall>,
) {
    let Some(far) = far.checked_sub(1) else {
        return;
    };
    each_expression(expression, &mut |part| {
        if let Expr::Call(call) = part
            && facts.called_module(call).is_some()
            && facts.gradients_at(call).is_yes()
            && !runs.iter().any(|run| span(*run) == span(call))
        {
            runs.push(call);
        }
    });
    let mut names = Vec::new();
    each_expression(expression, &mut |part| {
        if let Some(path) = facts.path(part)
            && facts.carries_graph(expression, path)
        {
            names.push((path, part));
        }
    });
    for (path, part) in names {
        if let Some(made) = facts.last_value(unit, path, part) {
            collect_runs(facts, unit, made, far, runs);
        }
    }
}

/// The argument of a model's call that another model made, with its graph.
fn made_by_another<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    run: &'a ExprCall,
    judge: &str,
) -> Option<(&'a Expr, &'a str)> {
    given(run).find_map(|argument| {
        let value = facts.value(argument);
        if !value.graph.is_yes() {
            return None;
        }
        let mut runs = Vec::new();
        collect_runs(facts, unit, argument, FAR, &mut runs);
        runs.iter()
            .filter_map(|made| facts.called_module(made))
            .find(|maker| *maker != judge)
            .map(|maker| (argument, maker))
    })
}
