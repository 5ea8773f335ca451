//! Whether gradients are enabled in a function: by its decorators, its framework, its callers.

use super::Reader;
use crate::facts::frameworks::{is_evaluation_hook, is_of_a_framework};
use crate::facts::structure::UnitId;
use crate::facts::torch_names;
use crate::facts::value::Truth;
use crate::python::Expr;

impl Reader<'_, '_> {
    /// Whether gradients are enabled in a unit: its decorators, its framework, its callers.
    pub(super) fn mode_of(&self, id: UnitId) -> Truth {
        let unit = &self.structure.units[id];
        if let Some(mode) = self.own_mode(id) {
            return mode;
        }
        // Lightning and the like run a module's evaluation hooks without gradients.
        if is_evaluation_hook(unit.name)
            && unit
                .class
                .is_some_and(|class| is_of_a_framework(self.structure, self.imports, class))
        {
            return Truth::No;
        }
        self.summaries[id]
            .mode
            .unwrap_or_else(|| self.outer_mode(id))
    }

    /// The mode a function sets itself: by a decorator, or by being wrapped after its definition
    /// (`evaluate = torch.no_grad()(evaluate)`).
    pub(super) fn own_mode(&self, id: UnitId) -> Option<Truth> {
        let unit = &self.structure.units[id];
        let decorated = unit.node.and_then(|node| {
            node.decorator_list.iter().find_map(|decorator| {
                let called = match &decorator.expression {
                    Expr::Call(call) => &call.func,
                    other => other,
                };
                let Some(name) = self.imports.qualified(called) else {
                    return may_switch_gradients(called).then_some(Truth::Maybe);
                };
                if torch_names::is_no_grad(&name) {
                    Some(Truth::No)
                } else if torch_names::is_enable_grad(&name) {
                    Some(Truth::Yes)
                } else {
                    may_switch_gradients(called).then_some(Truth::Maybe)
                }
            })
        });
        decorated.or_else(|| self.is_wrapped(unit.name).then_some(Truth::No))
    }

    fn is_wrapped(&self, name: &str) -> bool {
        self.structure.assigns.iter().any(|assign| {
            let Expr::Call(wrapping) = assign.value else {
                return false;
            };
            let Expr::Call(context) = &*wrapping.func else {
                return false;
            };
            matches!(wrapping.arguments.args.first(), Some(Expr::Name(wrapped))
                if wrapped.id.as_str() == name)
                && self
                    .imports
                    .qualified(&context.func)
                    .is_some_and(|name| torch_names::is_no_grad(&name))
        })
    }

    /// An inner function without visible callers may run wherever the outer one runs.
    fn outer_mode(&self, id: UnitId) -> Truth {
        match self.structure.units[id].parent {
            Some(outer) if outer != 0 && self.mode_of(outer).is_no() => Truth::Maybe,
            _ => Truth::Yes,
        }
    }
}

/// Whether the name of a custom decorator or context mentions gradients or inference
/// (`@smart_inference_mode()`): it may disable gradients.
pub(super) fn may_switch_gradients(called: &Expr) -> bool {
    let name = match called {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    let name = name.to_ascii_lowercase();
    name.contains("grad") || name.contains("inference")
}
