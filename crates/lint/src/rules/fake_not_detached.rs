//! A discriminator's step that goes back through the generator.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::paths::is_part_of;
use crate::facts::roles::{initial_of, is_named_after, letters_of};
use crate::facts::structure::{Call, UnitId};
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, span};
use crate::syntax::{given, last_name};

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
`backward()`, no optimizer steps that has the generator's parameters. A graph that leads through the
generator to a model that learns is needed, as in a cycle of two generators, and not reported.
",
    check,
};

/// How many names are followed back.
const FAR: usize = 8;
/// How many levels of callers an optimizer is followed through.
const CALLERS: usize = 2;

/// A loss that is backpropagated, and the models whose optimizers step with its gradients.
struct Backward<'a> {
    loss: &'a Expr,
    unit: UnitId,
    stepped: Vec<&'a str>,
}

/// A call of a model that a loss is computed from.
#[derive(Clone, Copy)]
struct Run<'a> {
    call: &'a ExprCall,
    scope: Scope<'a>,
}

/// Where an expression is: in a unit, which may be one that the unit of the loss calls.
#[derive(Clone, Copy)]
struct Scope<'a> {
    unit: UnitId,
    called: Option<(UnitId, &'a ExprCall)>,
}

impl<'a> Scope<'a> {
    fn of(unit: UnitId) -> Self {
        Self { unit, called: None }
    }

    /// What the unit of the loss calls a model.
    fn seen(self, facts: &Facts<'a>, model: &'a str) -> &'a str {
        self.called
            .and_then(|(_, call)| facts.argument_for(call, self.unit, model))
            .and_then(|argument| facts.path(argument))
            .unwrap_or(model)
    }

    /// What a path was last bound to before an expression: here, in the unit that gives it as an argument, or
    /// once in another method of the class.
    fn value_of(
        self,
        facts: &Facts<'a>,
        path: &str,
        before: &Expr,
    ) -> Option<(&'a Expr, Scope<'a>)> {
        if let Some(value) = facts.last_value(self.unit, path, before) {
            return Some((value, self));
        }
        if let Some((unit, call)) = self.called
            && let Some(argument) = facts.argument_for(call, self.unit, path)
        {
            return Some((argument, Scope::of(unit)));
        }
        if !path.starts_with("self.") {
            // `for real_score, fake_score in zip(critic(real), critic(fake))`
            return facts
                .loop_that_binds(self.unit, path, before)
                .map(|node| (&*node.iter, self));
        }
        let mut bound = (facts.units_that_see(self.unit, path).into_iter())
            .flat_map(|unit| {
                facts
                    .assigns_in_unit(unit)
                    .map(move |assign| (assign, unit))
            })
            .filter(|(assign, _)| {
                facts.path(assign.target) == Some(path)
                    && !matches!(assign.value, Expr::NoneLiteral(_))
            });
        match (bound.next(), bound.next()) {
            (Some((assign, unit)), None) => Some((assign.value, Scope::of(unit))),
            _ => None,
        }
    }
}

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let all = backward_passes(facts);
    let mut reported = Vec::new();
    for backward in &all {
        let unit = backward.unit;
        for run in runs_behind(facts, Scope::of(unit), backward.loss) {
            let Some(judge) = facts.called_module(run.call) else {
                continue;
            };
            let judge = run.scope.seen(facts, judge);
            if !has(&backward.stepped, judge) || reported.contains(&span(run.call)) {
                continue;
            }
            let Some((argument, maker)) = made_by_another(facts, run, judge) else {
                continue;
            };
            if has(&backward.stepped, maker)
                || !is_optimized(facts, unit, maker)
                || leads_to_a_trained_model(facts, run, argument, &backward.stepped)
                || trains_maker_too(facts, &all, run, maker)
            {
                continue;
            }
            reported.push(span(run.call));
            report.add_with(
                span(run.call),
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

/// Every backward pass after which it is known which models' optimizers step.
fn backward_passes<'a>(facts: &Facts<'a>) -> Vec<Backward<'a>> {
    let mut all = Vec::new();
    for call in &facts.structure.calls {
        if !facts.is_backward(call.node) {
            continue;
        }
        let unit = facts.structure.unit_of(call.place.block);
        let Some(loss) = facts.goes_back_from(call.node) else {
            continue;
        };
        let stepped = stepped_after(facts, unit, call);
        if !stepped.is_empty() {
            all.push(Backward {
                loss,
                unit,
                stepped,
            });
        }
    }
    all
}

/// Whether the same run goes into another loss, which trains the maker of what it judged: its graph is
/// needed.
fn trains_maker_too<'a>(
    facts: &Facts<'a>,
    all: &[Backward<'a>],
    run: Run<'a>,
    maker: &str,
) -> bool {
    all.iter().any(|backward| {
        has(&backward.stepped, maker)
            && runs_behind(facts, Scope::of(backward.unit), backward.loss)
                .iter()
                .any(|other| span(other.call) == span(run.call))
    })
}

/// Whether what a model gets was also made by one that learns from this loss, further back: then the graph is
/// needed to get there, as in a cycle.
fn leads_to_a_trained_model<'a>(
    facts: &Facts<'a>,
    run: Run<'a>,
    argument: &'a Expr,
    stepped: &[&str],
) -> bool {
    runs_behind(facts, run.scope, argument)
        .into_iter()
        .filter_map(|made| Some(made.scope.seen(facts, facts.called_module(made.call)?)))
        .any(|maker| has(stepped, maker))
}

/// Whether a model, or what it is a part of, is among others.
pub(super) fn has(models: &[&str], model: &str) -> bool {
    models
        .iter()
        .any(|each| is_part_of(model, each) || is_part_of(each, model))
}

/// The models whose optimizers step after a `backward()` and before the next one: in the same unit, or in the
/// method that calls it. None if an optimizer is among them of which the models are unknown.
pub(super) fn stepped_after<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    backward: &Call<'a>,
) -> Vec<&'a str> {
    let steps = |unit: UnitId| {
        facts
            .calls_in_unit(unit)
            .filter(|call| matches!(facts.method(call.node), Some((_, "step"))))
    };
    // `self.backward_D()` and then `self.optimizer_D.step()`
    if steps(unit).next().is_none() {
        let mut callers = facts.callers(unit).filter(|call| {
            matches!(&*call.node.func, Expr::Attribute(function)
                if facts.path(&function.value) == Some("self"))
        });
        if let (Some(only), None) = (callers.next(), callers.next()) {
            let around = facts.structure.unit_of(only.place.block);
            return if around == unit || steps(around).next().is_none() {
                Vec::new()
            } else {
                stepped_after(facts, around, only)
            };
        }
    }
    let until = facts
        .calls_in_unit(unit)
        .filter(|call| {
            call.place.order > backward.place.order && facts.runs_differentiation(call.node)
        })
        .map(|call| call.place.order)
        .min()
        .unwrap_or(usize::MAX);
    let mut models = Vec::new();
    for call in steps(unit) {
        if call.place.order < backward.place.order || call.place.order > until {
            continue;
        }
        let Some((receiver, _)) = facts.method(call.node) else {
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
    models_within(facts, unit, optimizer, CALLERS)
}

fn models_within<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    optimizer: &str,
    callers: usize,
) -> Vec<&'a str> {
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
    if !is_made_here && callers > 0 {
        models = models_given_with(facts, unit, optimizer, callers);
    }
    if !is_made_here && models.is_empty() {
        for call in facts.calls_in_unit(unit) {
            if let Some(model) = facts.called_module(call.node)
                && is_named_after(optimizer, model)
                && !models.contains(&model)
            {
                models.push(model);
            }
        }
        // `opt_QG` of `Q` and `G`
        for letter in letters_of(optimizer).unwrap_or_default().chars() {
            let mut called =
                (facts.calls_in_unit(unit)).filter_map(|call| facts.called_module(call.node));
            models.extend(called.find(|model| {
                last_name(model).len() == 1
                    && last_name(model).starts_with(letter)
                    && !models.contains(model)
            }));
        }
        // `opt_e` of the only model here whose name begins with an e.
        if models.is_empty()
            && let Some(initial) = initial_of(optimizer)
        {
            let mut begins: Vec<&str> = (facts.calls_in_unit(unit))
                .filter_map(|call| facts.called_module(call.node))
                .filter(|model| last_name(model).starts_with(initial))
                .collect();
            begins.dedup();
            begins.sort_unstable();
            begins.dedup();
            if let [only] = *begins {
                models.push(only);
            }
        }
    }
    models
}

/// What a unit calls the models whose parameters an optimizer got that its callers give it.
fn models_given_with<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    optimizer: &str,
    callers: usize,
) -> Vec<&'a str> {
    let mut models = Vec::new();
    let Some(node) = facts.structure.units[unit].node else {
        return models;
    };
    for caller in facts.callers(unit) {
        let around = facts.structure.unit_of(caller.place.block);
        let given = |name: &str| {
            facts
                .argument_for(caller.node, unit, name)
                .and_then(|given| facts.path(given))
        };
        let Some(path) = given(optimizer) else {
            continue;
        };
        for model in models_within(facts, around, path, callers - 1) {
            let parameters = node.parameters.iter().map(|each| each.name().as_str());
            for name in parameters.filter(|name| given(name) == Some(model)) {
                if !models.contains(&name) {
                    models.push(name);
                }
            }
        }
    }
    models
}

/// Whether a caller of a unit takes the parameters of a model that it gives to it.
fn is_optimized_by_callers(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    facts.callers(unit).any(|caller| {
        let given = facts
            .argument_for(caller.node, unit, model)
            .and_then(|given| facts.path(given));
        let around = facts.structure.unit_of(caller.place.block);
        given.is_some_and(|given| {
            facts.calls_in_unit(around).any(|call| {
                matches!(facts.method(call.node), Some((receiver, "parameters"))
                    if facts.path(receiver) == Some(given))
            })
        })
    })
}

/// Whether some optimizer that a unit sees has a model's parameters.
fn is_optimized(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    let is_stepped = facts.calls_in_unit(unit).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "step"))
            if facts.path(receiver).is_some_and(|path| has(&models_of(facts, unit, path), model)))
    });
    is_stepped
        || is_optimized_by_callers(facts, unit, model)
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
fn runs_behind<'a>(facts: &Facts<'a>, scope: Scope<'a>, expression: &'a Expr) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    collect_runs(facts, scope, expression, FAR, &mut runs);
    runs
}

fn collect_runs<'a>(
    facts: &Facts<'a>,
    scope: Scope<'a>,
    expression: &'a Expr,
    far: usize,
    runs: &mut Vec<Run<'a>>,
) {
    let Some(far) = far.checked_sub(1) else {
        return;
    };
    let mut helpers = Vec::new();
    each_expression(expression, &mut |part| {
        let Expr::Call(call) = part else {
            return;
        };
        if facts.called_module(call).is_some() {
            if facts.gradients_at(call).is_yes()
                && !runs.iter().any(|run| span(run.call) == span(call))
            {
                runs.push(Run { call, scope });
            }
        } else if scope.called.is_none()
            && facts.is_function(call)
            && let Some(unit) = facts.callee_unit(call)
            && facts.result(call).graph.is_yes()
        {
            helpers.push((call, unit));
        }
    });
    for (call, unit) in helpers {
        let inner = Scope {
            unit,
            called: Some((scope.unit, call)),
        };
        for returned in facts.returned(unit) {
            collect_runs(facts, inner, returned, far, runs);
        }
    }
    let mut names = Vec::new();
    each_expression(expression, &mut |part| {
        if let Some(path) = facts.path(part)
            && facts.carries_graph(expression, path)
        {
            names.push((path, part));
        }
    });
    for (path, part) in names {
        if let Some((made, scope)) = scope.value_of(facts, path, part) {
            collect_runs(facts, scope, made, far, runs);
        }
    }
}

/// The argument of a model's call that another model made, with its graph.
fn made_by_another<'a>(
    facts: &Facts<'a>,
    run: Run<'a>,
    judge: &str,
) -> Option<(&'a Expr, &'a str)> {
    given(run.call).find_map(|argument| {
        let value = facts.value(argument);
        if !value.graph.is_yes() {
            return None;
        }
        runs_behind(facts, run.scope, argument)
            .into_iter()
            .filter_map(|made| Some(made.scope.seen(facts, facts.called_module(made.call)?)))
            .find(|maker| *maker != judge)
            .map(|maker| (argument, maker))
    })
}
