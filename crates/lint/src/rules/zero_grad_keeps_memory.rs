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
The gradients stay allocated, as large as the parameters, through the next forward pass, where
activations need the room. Freed gradients come back when `backward()` needs them: on the card a
model of 134 million parameters had its peak lowered from 2.48 GB to 1.95 GB.

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
When other code reads gradients that a step did not compute as zeros (files that read `.grad` are not
reported), and under CUDA graphs, which need gradients at fixed addresses. The fix counts as unsafe, because an optimizer goes on to move a
parameter whose gradient is zero, but leaves out one that has none.
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
    // Who reads gradients may count on zeros where a step computed none.
    if has_graphs || !facts.readers_of_attribute("grad").is_empty() {
        return;
    }
    for call in &facts.structure.calls {
        let Some((receiver, "zero_grad")) = facts.method(call.node) else {
            continue;
        };
        // A method of the file's own does what it says there.
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
            "gradients as large as the parameters are kept, filled with zeros, through the next \
             forward pass"
                .to_owned(),
            "leave `set_to_none` at its default, True",
            Some(Fix::unsafe_(
                "Remove `set_to_none=False`",
                without_keyword(facts, call.node, keyword),
            )),
        );
    }
}

/// Whether the loss of the next backward pass is there already: the old gradients lasted through its
/// forward pass in any case.
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
