//! Which functions in the file a call runs, and what happens in them.

use super::Facts;
use super::structure::{Call, UnitId};
use super::value::Kind;
use crate::python::{Expr, ExprCall};

impl<'a> Facts<'a> {
    /// The function, method or `forward` of this file that a call runs.
    pub fn callee_unit(&self, call: &ExprCall) -> Option<UnitId> {
        let method = |class: usize, name: &str| self.structure.classes[class].method(name);
        match self.value(&call.func).kind {
            Kind::Function(unit) => Some(unit),
            Kind::Module(Some(class)) => method(class, "forward"),
            Kind::Object(class) => method(class, "__call__"),
            Kind::Class(class) => method(class, "__init__"),
            _ => None,
        }
    }

    /// Whether a call runs a function or a method, not a model.
    pub fn is_function(&self, call: &ExprCall) -> bool {
        !matches!(
            self.value(&call.func).kind,
            Kind::Module(_) | Kind::Class(_) | Kind::Criterion
        )
    }

    /// A unit and every unit of the file that it runs, directly or not.
    pub fn units_run_by(&self, unit: UnitId) -> Vec<UnitId> {
        let mut reached = vec![unit];
        let mut next = 0;
        while next < reached.len() {
            let current = reached[next];
            next += 1;
            for call in self.calls_in_unit(current) {
                if let Some(callee) = self.callee_unit(call.node)
                    && !reached.contains(&callee)
                {
                    reached.push(callee);
                }
            }
        }
        reached
    }

    /// Whether a unit, or what it runs, makes a call that `wanted` accepts.
    pub fn runs(&self, unit: UnitId, wanted: &dyn Fn(&Call<'a>) -> bool) -> bool {
        self.units_run_by(unit)
            .into_iter()
            .any(|each| self.calls_in_unit(each).any(wanted))
    }

    /// The calls of this file that run a unit.
    pub fn callers(&self, unit: UnitId) -> impl Iterator<Item = &Call<'a>> {
        self.structure
            .calls
            .iter()
            .filter(move |call| self.callee_unit(call.node) == Some(unit))
    }

    /// Whether `wanted` accepts a call, or one in a function of the file that it runs.
    pub fn reaches(&self, call: &ExprCall, wanted: &dyn Fn(&ExprCall) -> bool) -> bool {
        wanted(call)
            || self
                .callee_unit(call)
                .is_some_and(|callee| self.runs(callee, &|inner| wanted(inner.node)))
    }

    /// The argument that a call passes for a unit's parameter.
    pub fn argument_for(&self, call: &'a ExprCall, unit: UnitId, name: &str) -> Option<&'a Expr> {
        let node = self.structure.units[unit].node?;
        let index = node
            .parameters
            .iter()
            .position(|parameter| parameter.name().as_str() == name)?;
        // A method's first parameter is the object.
        let skipped = usize::from(self.structure.takes_object(unit));
        match call.arguments.find_keyword(name) {
            Some(keyword) => Some(&keyword.value),
            None => call.arguments.args.get(index.checked_sub(skipped)?),
        }
    }
}
