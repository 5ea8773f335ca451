//! `zero_grad()` in every micro-batch discards what was accumulated.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::accumulation::Window;
use crate::facts::structure::Call;
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::span;

pub static RULE: Rule = Rule {
    name: "zero-grad-while-accumulating",
    family: Family::Accumulation,
    severity: Severity::Error,
    summary: "gradients are zeroed in every micro-batch while they are accumulated",
    docs: "\
## What it does
Finds a loop that steps once per several micro-batches, but calls `zero_grad()` in each of them; and
`zero_grad()` before `backward()` inside `with accelerator.accumulate(...)`.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. Here the step sees
only the gradients of its last micro-batch: the others were computed for nothing. Accelerate skips
`zero_grad()` of a prepared optimizer in all micro-batches but the one that steps, and there a call
before `backward()` erases what the others accumulated.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When the window is one micro-batch long.
",
    check,
};

const HELP: &str = "call it right after the step, under the same condition";

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for window in facts.windows() {
        for call in facts.calls_inside(window.rounds) {
            if is_zero_grad(facts, call)
                && facts.is_every_round(call, &window)
                && !is_an_option(facts, call, &window)
            {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` discards the gradients of all but one of `{}` micro-batches",
                        facts.text(call.node),
                        facts.text(window.every.count)
                    ),
                    HELP,
                );
            }
        }
    }
    for accelerated in facts.accelerated() {
        let Some(backward) = facts
            .calls_inside(accelerated.block)
            .find(|call| facts.is_backward(call.node))
        else {
            continue;
        };
        for call in facts.calls_inside(accelerated.block) {
            if is_zero_grad(facts, call)
                && call.place.order < backward.place.order
                && facts.conditions_of(call, accelerated.block).is_empty()
            {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` is skipped until the micro-batch that steps, and there it erases \
                         what the others accumulated",
                        facts.text(call.node)
                    ),
                    "move it after the step",
                );
            }
        }
    }
}

fn is_zero_grad(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    matches!(facts.method(call.node), Some((receiver, "zero_grad"))
    if matches!(
        facts.value(receiver).kind,
        Kind::Optimizer | Kind::Module(_) | Kind::Unknown
    ))
}

/// Under a setting that does not apply to the step: perhaps the case without accumulation.
fn is_an_option(facts: &Facts<'_>, call: &Call<'_>, window: &Window<'_, '_>) -> bool {
    facts
        .structure
        .conditions(call.place.block, window.rounds)
        .iter()
        .any(|(test, _)| {
            !facts
                .structure
                .conditions(window.step.place.block, window.rounds)
                .iter()
                .any(|(other, _)| std::ptr::eq(*test, *other))
        })
}
