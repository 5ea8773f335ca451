//! Clipping (or unscaling) gradients that are still being accumulated.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::Call;
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::{calls, last_name};

pub static RULE: Rule = Rule {
    name: "clipping-every-micro-batch",
    family: Family::Accumulation,
    severity: Severity::Error,
    summary: "gradients are clipped or unscaled while they are still being accumulated",
    docs: "\
## What it does
Finds `clip_grad_norm_()`, `clip_grad_value_()` and `scaler.unscale_()` calls that run in every
micro-batch of a loop that steps once per several.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. Clipping a partial sum
shrinks the gradients of early micro-batches repeatedly, so later ones weigh more: the result is not
the gradient of the large batch. `unscale_()` may be called only once per step; a second call in the
same window raises an error.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When each micro-batch is to be clipped separately; then accumulate the sum outside the parameters'
`.grad`.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for window in facts.windows() {
        for call in facts.calls_inside(window.rounds) {
            if changes_gradients(facts, call) && facts.is_every_round(call, &window) {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` runs in every micro-batch, before the `{}` of a step are summed",
                        facts.text(&*call.node.func),
                        facts.text(window.every.count)
                    ),
                    "move it under the step's condition, right before the step",
                );
            }
        }
    }
    for accelerated in facts.accelerated() {
        for call in facts.calls_inside(accelerated.block) {
            let is_every_round = facts
                .conditions_of(call, accelerated.block)
                .iter()
                .all(|condition| is_setting(facts, condition.test));
            if changes_gradients(facts, call) && is_every_round {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` runs in every micro-batch: Accelerate skips only the optimizer's \
                         own methods",
                        facts.text(&*call.node.func)
                    ),
                    "put it under `if accelerator.sync_gradients:`",
                );
            }
        }
    }
}

/// A test that is a setting, not the state of the window: a plain path or a comparison of one
/// with a number, and none of `sync_gradients`.
fn is_setting(facts: &Facts<'_>, test: &Expr) -> bool {
    let path = match test {
        Expr::Compare(comparison) => &*comparison.left,
        other => other,
    };
    facts
        .path(path)
        .is_some_and(|path| !path.ends_with("sync_gradients"))
}

fn changes_gradients(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let bound = call.node.arguments.find_argument_value("max_norm", 1);
    if bound.is_some_and(|bound| is_infinite(facts, bound)) {
        return false;
    }
    if let Some(name) = facts.callee(call.node) {
        return name.starts_with("torch.nn.utils.clip_grad");
    }
    match facts.method(call.node) {
        Some((receiver, "unscale_")) => {
            matches!(facts.value(receiver).kind, Kind::Scaler | Kind::Unknown)
        }
        Some((receiver, "clip_grad_norm_" | "clip_grad_value_" | "clip_grad_norm")) => matches!(
            facts.value(receiver).kind,
            Kind::Accelerator | Kind::Optimizer | Kind::Module(_) | Kind::Unknown
        ),
        _ => false,
    }
}

/// An unreachable bound: the norm is only measured.
fn is_infinite(facts: &Facts<'_>, bound: &Expr) -> bool {
    let named = facts
        .imports
        .qualified(bound)
        .is_some_and(|name| matches!(last_name(&name), "inf" | "infty" | "Infinity"));
    let written = calls(bound, "float")
        && matches!(bound, Expr::Call(call)
            if matches!(call.arguments.args.first(), Some(Expr::StringLiteral(text))
                if text.value.to_str().trim_start_matches('+').starts_with("inf")));
    named || written
}
