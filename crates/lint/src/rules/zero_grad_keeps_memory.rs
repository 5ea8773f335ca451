//! `zero_grad(set_to_none=False)` fills gradients with zeros instead of freeing them.

use super::fixes::without_keyword;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::Call;
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::span;
use crate::syntax::is_false;

pub static RULE: Rule = Rule {
    name: "zero-grad-keeps-memory",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "gradients are filled with zeros instead of being freed",
    docs: "\
## What it does
Finds `zero_grad(set_to_none=False)`.

## Why it costs memory
The gradients, as large as the parameters, stay allocated through the next forward pass, when
activations need the memory. Freed gradients are allocated again when `backward()` needs them: for a
model with 134 million parameters this lowered the peak from 2.48 GB to 1.95 GB.

## Example
```python
for inputs, targets in loader:
    optimizer.zero_grad(set_to_none=False)
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## Use instead
```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## When it is fine
When other code expects zeros for gradients that a step did not compute (files that read `.grad` are
not reported), and under CUDA graphs, which need gradients at fixed addresses. The fix is unsafe
because an optimizer still updates a parameter whose gradient is zero (momentum, weight decay), but
skips one that has none.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let has_graphs = facts.structure.calls.iter().any(|call| {
        facts.callee(call.node).is_some_and(|name| {
            matches!(
                name.as_str(),
                "torch.cuda.CUDAGraph" | "torch.cuda.graph" | "torch.cuda.make_graphed_callables"
            )
        })
    });
    // Code that reads gradients may expect zeros where a step computed none.
    if has_graphs || !facts.readers_of_attribute("grad").is_empty() {
        return;
    }
    for call in &facts.structure.calls {
        let Some((receiver, "zero_grad")) = facts.method(call.node) else {
            continue;
        };
        // A method defined in the file does what its body says.
        if facts.callee_unit(call.node).is_some()
            || matches!(facts.value(receiver).kind, Kind::Object(_))
        {
            continue;
        }
        let Some(keyword) = call.node.arguments.find_keyword("set_to_none") else {
            continue;
        };
        if !is_false(&keyword.value) || stands_before_backward(facts, call) {
            continue;
        }
        report.add_with(
            span(call.node),
            "zeroed gradients, as large as the parameters, stay allocated through the next forward \
             pass"
                .to_owned(),
            "use the default, `set_to_none=True`",
            Some(Fix::unsafe_(
                "Remove `set_to_none=False`",
                without_keyword(facts, call.node, keyword),
            )),
        );
    }
}

/// Whether the loss of the next backward pass already exists: the old gradients were alive during its
/// forward pass anyway.
fn stands_before_backward(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    let steps = facts
        .structure
        .loop_around(call.place.block)
        .unwrap_or(facts.structure.units[unit].block);
    let next = facts
        .calls_inside(steps)
        .find(|other| other.place.order > call.place.order && facts.is_backward(other.node));
    let Some(backward) = next else {
        return false;
    };
    let Some(path) = facts
        .goes_back_from(backward.node)
        .and_then(|loss| facts.path(loss))
    else {
        return false;
    };
    let made = facts
        .assigns_in_unit(unit)
        .filter(|assign| {
            assign.place.order < backward.place.order && facts.targets(assign.target, path)
        })
        .map(|assign| assign.place.order)
        .max();
    made.is_some_and(|made| made < call.place.order)
}
