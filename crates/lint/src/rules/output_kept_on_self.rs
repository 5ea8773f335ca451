//! `self.last = output` in `forward` keeps a graph until the next forward pass.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::ClassId;
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, span};
use crate::syntax::{given, plain_callee};

pub static RULE: Rule = Rule {
    name: "output-kept-on-self",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "`forward` stores an activation in an attribute that is never read",
    docs: "\
## What it does
Finds `self.name = activation` in the `forward` of a module, where the activation has a graph and
the file, which trains the module itself, never reads the attribute; and `self.names.append(activation)`
where nothing else in the file has to do with the list.

## Why it costs memory
The attribute keeps the activation and its graph until the next forward pass rebinds it: through the
optimizer's step, through evaluation, and while the next forward pass builds its own graph.

## Example
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        self.features = self.body(x)
        return torch.relu(self.features)

net = Net()
for inputs, targets in loader:
    loss = criterion(net(inputs), targets)
    loss.backward()
```

## Use instead
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        features = self.body(x)
        return torch.relu(features)

net = Net()
for inputs, targets in loader:
    loss = criterion(net(inputs), targets)
    loss.backward()
```

## When it is fine
When the attribute goes into a loss or is inspected later. Only modules that are trained in the same
file are reported, since another file may read the attribute.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_lists(facts, report);
    for assign in &facts.structure.assigns {
        let Expr::Attribute(target) = assign.target else {
            continue;
        };
        if !matches!(&*target.value, Expr::Name(name) if name.id.as_str() == "self")
            || assign.operator.is_some()
        {
            continue;
        }
        let unit = facts.structure.unit_of(assign.place.block);
        let (Some(class), "forward") = (
            facts.structure.units[unit].class,
            facts.structure.units[unit].name,
        ) else {
            continue;
        };
        let value = facts.value(assign.value);
        if !value.is_tensor()
            || !value.graph.is_yes()
            || value.scalar.is_yes()
            || !is_trained_here(facts, class)
            || facts
                .readers_of_attribute(target.attr.as_str())
                .iter()
                .any(|reader| *reader != unit)
            || may_be_read_by_name(facts, target.attr.as_str())
            || reads_before(facts, unit, assign.place.order, target.attr.as_str())
        {
            continue;
        }
        report.add_with(
            span(assign.statement),
            format!(
                "`self.{}` keeps its graph until the next forward pass, and nothing reads it",
                target.attr
            ),
            "use a local variable, or store `.detach()`",
            (!facts
                .readers_of_attribute(target.attr.as_str())
                .contains(&unit))
            .then(|| Fix::unsafe_("Add `.detach()`", without_graph(facts, assign.value))),
        );
    }
}

/// `self.maps.append(attention)` in `forward`, where nothing in the file empties the list.
fn check_lists(facts: &Facts<'_>, report: &mut Report<'_>) {
    for kept in facts.kept() {
        let unit = facts.structure.unit_of(kept.place.block);
        let Some(name) = kept.container.strip_prefix("self.") else {
            continue;
        };
        let value = facts.value(kept.value);
        if facts.structure.units[unit].class.is_none()
            || facts.structure.units[unit].name != "forward"
            || name.contains(['.', '['])
            || !value.is_tensor()
            || !value.graph.is_yes()
            || value.scalar.is_yes()
            || !facts.outlives_step(facts.structure.units[unit].block, kept.container)
            || is_touched_elsewhere(facts, unit, name)
            || may_be_read_by_name(facts, name)
        {
            continue;
        }
        report.add_with(
            span(kept.statement),
            format!("`self.{name}` keeps an activation and its graph from every forward pass"),
            "use a local variable, or store `.detach()` and empty the list",
            Some(Fix::unsafe_(
                "Add `.detach()`",
                without_graph(facts, kept.value),
            )),
        );
    }
}

/// Whether code outside of `forward` and `__init__` has to do with an attribute: it may empty it, or
/// backpropagate what it holds.
fn is_touched_elsewhere(facts: &Facts<'_>, forward: usize, name: &str) -> bool {
    let mut touched = false;
    for (statement, place) in &facts.structure.statements {
        let unit = facts.structure.unit_of(place.block);
        if unit == forward || facts.structure.units[unit].name == "__init__" {
            continue;
        }
        facts.each_expression_of_statement(statement, &mut |part| {
            touched |=
                matches!(part, Expr::Attribute(attribute) if attribute.attr.as_str() == name);
        });
    }
    touched
}

/// Whether the file makes an object of a class, runs it (or a module that it is put into), and backpropagates.
fn is_trained_here(facts: &Facts<'_>, class: ClassId) -> bool {
    let (mut runs, mut trains) = (false, false);
    for call in &facts.structure.calls {
        runs |= facts.value(&call.node.func).kind == Kind::Module(Some(class))
            || facts
                .callee(call.node)
                .is_some_and(|name| name == "torch.nn.Sequential")
                && given(call.node).any(|part| {
                    matches!(part, Expr::Call(made)
                        if facts.value(&made.func).kind == Kind::Class(class))
                });
        trains |= facts.is_backward(call.node);
    }
    runs && trains
}

/// `getattr(model, name)`, `vars(model)`: any attribute, unless another one is named.
fn may_be_read_by_name(facts: &Facts<'_>, attribute: &str) -> bool {
    facts.structure.calls.iter().any(|call| {
        let name = call.node.arguments.args.get(1);
        match plain_callee(call.node) {
            Some("getattr") => !matches!(name, Some(Expr::StringLiteral(text))
                if text.value.to_str() != attribute),
            Some("vars") => true,
            _ => false,
        }
    })
}

/// Whether `forward` reads the attribute before it binds it: a state of the last pass.
fn reads_before(facts: &Facts<'_>, unit: usize, order: usize, name: &str) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        if facts.structure.unit_of(place.block) != unit || place.order > order {
            return false;
        }
        let mut reads = false;
        facts.each_expression_of_statement(statement, &mut |part| {
            reads |= matches!(part, Expr::Attribute(attribute)
                if attribute.attr.as_str() == name && attribute.ctx.is_load());
        });
        reads
    })
}
