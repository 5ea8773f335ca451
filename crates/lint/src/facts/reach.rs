//! Which functions of the file a call runs, and what happens in them.

use super::Facts;
use super::structure::{BlockId, Call, UnitId};
use super::value::Kind;
use crate::python::ExprCall;

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

    /// Whether a call goes back through a graph: `backward()` in any form, `autograd.grad`.
    pub fn differentiates(&self, call: &ExprCall) -> bool {
        self.is_backward(call)
            || self.callee(call).is_some_and(|name| {
                matches!(
                    name.as_str(),
                    "torch.autograd.grad" | "torch.autograd.backward"
                ) || name.starts_with("torch.func.")
                    || name.starts_with("torch.autograd.functional.")
            })
    }

    /// Whether what a path holds is backpropagated inside a block: `loss.backward()`,
    /// `scaler.scale(loss).backward()`, `accelerator.backward(loss)`.
    pub fn is_backpropagated_inside(&self, block: BlockId, path: &str) -> bool {
        self.calls_inside(block).any(|call| {
            self.is_backward(call.node)
                && (self.mentions(&call.node.func, path)
                    || call
                        .node
                        .arguments
                        .args
                        .first()
                        .is_some_and(|loss| self.path(loss) == Some(path)))
        })
    }
}
