//! A cache that fills the card.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::UnitId;
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, Stmt, span};

pub static RULE: Rule = Rule {
    name: "cached-tensors",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "tensors on the card go into a cache that never frees them",
    docs: "\
## What it does
Finds a function with `functools.lru_cache` or `functools.cache` that returns a tensor on the card
or with a graph, and a module-level dict that functions fill with such tensors and never empty.

## Why it costs memory
A cache holds every tensor until the program ends (`lru_cache` up to 128 of them, or all with
`maxsize=None`). Each entry stays allocated on the card, and a graph keeps everything it was
computed from.

## Example
```python
import functools

@functools.lru_cache(maxsize=None)
def mask(length):
    return torch.ones(length, length, device=\"cuda\").tril()
```

## Use instead
```python
def mask(length):
    return torch.ones(length, length, device=\"cuda\").tril()
```

## When it is fine
When the cached tensors are few and small. Caches with a small `maxsize` are not reported, nor
tensors that may be on the CPU, nor (without `maxsize=None`) tables that depend on sizes only.
",
    check,
};

/// `lru_cache(maxsize=4)` holds little.
const SMALL: u64 = 16;

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (unit, found) in facts.structure.units.iter().enumerate() {
        let Some(node) = found.node else { continue };
        let Some(decorator) = node
            .decorator_list
            .iter()
            .find(|decorator| caches(facts, &decorator.expression))
        else {
            continue;
        };
        // Without parameters there is a single entry, as in a global variable.
        let bound = usize::from(facts.structure.takes_object(unit));
        let parameters = node.parameters.len().saturating_sub(bound);
        // At most 128 entries, which depend on sizes only.
        let is_bounded = is_bounded(&decorator.expression) && returns_tables(facts, unit);
        if parameters > 0 && returns_card_tensor(facts, unit) && !is_bounded {
            report.add(
                span(&decorator.expression),
                format!(
                    "every tensor that `{}` returns stays on the card",
                    found.name
                ),
                "remove or bound the cache, or keep its tensors on the CPU",
            );
        }
    }
    for assign in &facts.structure.assigns {
        let Expr::Subscript(target) = assign.target else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let value = facts.value(assign.value);
        if unit == 0
            || assign.operator.is_some()
            || !value.is_tensor()
            || !(value.card.is_yes() || value.graph.is_yes())
            || facts.path(assign.target).is_some()
        {
            continue;
        }
        let Some(cache) = facts.path(&target.value) else {
            continue;
        };
        if is_dict_of_the_file(facts, unit, cache)
            && !facts.is_ever_emptied(unit, cache)
            && !facts.is_made_of_sizes(unit, assign.value)
        {
            report.add(
                span(assign.statement),
                format!("`{cache}` keeps every tensor until the program ends"),
                "bound it, or keep its tensors detached and on the CPU",
            );
        }
    }
}

/// Whether a decorator caches without a small bound.
fn caches(facts: &Facts<'_>, decorator: &Expr) -> bool {
    let (function, size) = match decorator {
        Expr::Call(call) => (
            &*call.func,
            call.arguments.find_argument_value("maxsize", 0),
        ),
        other => (other, None),
    };
    let small = matches!(size, Some(Expr::NumberLiteral(number))
        if matches!(&number.value, crate::python::Number::Int(size)
            if size.as_u64().is_some_and(|size| size <= SMALL)));
    !small
        && facts
            .imports
            .qualified(function)
            .is_some_and(|name| matches!(name.as_str(), "functools.lru_cache" | "functools.cache"))
}

/// Whether a decorator has a bound: the default of 128, or a `maxsize` other than `None`.
fn is_bounded(decorator: &Expr) -> bool {
    match decorator {
        Expr::Call(call) => !matches!(
            call.arguments.find_argument_value("maxsize", 0),
            Some(Expr::NoneLiteral(_))
        ),
        Expr::Name(name) => name.id.as_str() == "lru_cache",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "lru_cache",
        _ => false,
    }
}

fn returns_tables(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.statements.iter().all(|(statement, place)| {
        facts.structure.unit_of(place.block) != unit
            || match statement {
                Stmt::Return(node) => node
                    .value
                    .as_deref()
                    .is_none_or(|value| facts.is_made_of_sizes(unit, value)),
                _ => true,
            }
    })
}

fn returns_card_tensor(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        facts.structure.unit_of(place.block) == unit
            && matches!(statement, Stmt::Return(node)
            if node.value.as_deref().is_some_and(|value| {
                let value = facts.value(value);
                value.is_tensor() && (value.card.is_yes() || value.graph.is_yes())
            }))
    })
}

/// Whether a name is a module-level dict, not a local one.
fn is_dict_of_the_file(facts: &Facts<'_>, unit: UnitId, path: &str) -> bool {
    !path.contains(['.', '['])
        && facts.units_that_see(unit, path).contains(&0)
        && facts.assigns_in_unit(0).any(|assign| {
            facts.path(assign.target) == Some(path)
                && facts.value(assign.value).kind == Kind::Container
                && facts.structure.loop_around(assign.place.block).is_none()
        })
        && !facts
            .assigns_in_unit(unit)
            .any(|assign| facts.path(assign.target) == Some(path))
}
