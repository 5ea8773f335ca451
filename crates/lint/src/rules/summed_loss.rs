//! `total += loss` keeps every step's graph.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::finding::Severity;

pub static RULE: Rule = Rule {
    name: "summed-loss",
    family: Family::KeptGraphs,
    severity: Severity::Error,
    summary: "a loss is added to a running total together with its graph",
    docs: "\
## What it does
Finds a running total to which a loss is added, step after step, without `.item()` or `.detach()`.

## Why it costs memory
The total's graph reaches every loss that went into it. After `backward()` the saved activations
are gone, but every step leaves its graph nodes and the tensors they hold; without `backward()`
every step's activations stay on the card.

## Example
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss
```

## Use instead
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.item()
```

## When it is fine
When the total itself is backpropagated, or begins anew in every step.
",
    check,
};

fn check(_facts: &Facts<'_>, _report: &mut Report<'_>) {}
